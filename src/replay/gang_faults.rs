//! Violations that a replay of gangs must never produce, with job, node and numbers.

use std::fmt;
use std::time::Duration;

use super::Overcommitted;
use super::quantity::ONE;
use super::words::span;

/// A violation found by the gang check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node holds more than its allocatable.
    Overcommitted {
        /// Time since the start of the replay.
        at: Duration,
        /// Job of the worker whose event revealed it.
        job: String,
        /// Name of that worker.
        worker: String,
        /// Node and amounts.
        over: Overcommitted,
    },
    /// A gang was partially bound for longer than the limit.
    LateQuorum {
        /// Name of the job.
        job: String,
        /// Number of workers that must be bound together.
        quorum: usize,
        /// Number of workers bound within the limit.
        in_time: usize,
        /// Maximum time from the first Binding to the quorum.
        limit: Duration,
        /// Actual time from the first Binding to the quorum.
        took: Duration,
    },
    /// A gang was still partially bound at the end of the replay.
    NoQuorum {
        /// Name of the job.
        job: String,
        /// Number of workers that must be bound together.
        quorum: usize,
        /// Number of bound workers.
        bound: usize,
        /// Time from the first Binding to the end of the replay.
        since_first: Duration,
    },
    /// A worker failed, or was deleted before it succeeded.
    LostWorker {
        /// Name of the job.
        job: String,
        /// Name of the worker.
        worker: String,
        /// Node of the worker; empty without one.
        node: String,
        /// Description of the worker's end.
        how: &'static str,
    },
    /// A job did not finish.
    NotFinished {
        /// Name of the job.
        job: String,
        /// Number of workers that the job should have.
        workers: usize,
        /// Number of created workers.
        created: usize,
        /// Number of bound workers.
        bound: usize,
        /// Number of workers that succeeded.
        succeeded: usize,
    },
    /// Something cannot be judged; holds a description.
    Unclear(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overcommitted { at, job, worker, over } => {
                let (requested, allocatable) = (amount(over.requested), amount(over.allocatable));
                write!(
                    f,
                    "OVERCOMMITTED: {} holds {requested} {} and has {allocatable}, since {worker} of {job} at {}",
                    over.node,
                    over.resource,
                    span(*at)
                )
            }
            Self::LateQuorum { job, quorum, in_time, limit, took } => write!(
                f,
                "LATE QUORUM: {job}: {in_time} of {quorum} workers bound {:.3} s after its first Binding, all {quorum} after {:.3} s",
                limit.as_secs_f64(),
                took.as_secs_f64()
            ),
            Self::NoQuorum { job, quorum, bound, since_first } => write!(
                f,
                "NO QUORUM: {job}: {bound} of {quorum} workers bound, still {} after its first Binding",
                span(*since_first)
            ),
            Self::LostWorker { job, worker, node, how } => match node.as_str() {
                "" => write!(f, "LOST WORKER: {worker} of {job}, without a node, {how}"),
                node => write!(f, "LOST WORKER: {worker} of {job} on {node} {how}"),
            },
            Self::NotFinished { job, workers, created, bound, succeeded } => write!(
                f,
                "NOT FINISHED: {job}: {workers} workers: {created} created, {bound} bound, {succeeded} succeeded"
            ),
            Self::Unclear(what) => write!(f, "UNCLEAR: {what}"),
        }
    }
}

/// Formats an amount in billionths as a decimal number.
fn amount(billionths: i128) -> String {
    let (whole, rest) = (billionths / ONE, billionths % ONE);
    match rest {
        0 => whole.to_string(),
        rest => format!("{whole}.{:09}", rest.abs()).trim_end_matches('0').to_owned(),
    }
}
