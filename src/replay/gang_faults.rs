//! What a replay of gangs must never see, each with its job, node and numbers.

use std::fmt;
use std::time::Duration;

use super::Overcommitted;
use super::quantity::ONE;
use super::words::span;

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node holds more than is allocatable.
    Overcommitted {
        /// When, after the replay began.
        at: Duration,
        /// The job of the worker with which it happened.
        job: String,
        /// That worker.
        worker: String,
        /// Node and amounts.
        over: Overcommitted,
    },
    /// A gang was bound in part for longer than may be.
    LateQuorum {
        /// Job.
        job: String,
        /// Workers that must be bound.
        quorum: usize,
        /// How many were bound when the time was up.
        in_time: usize,
        /// How long it may take.
        limit: Duration,
        /// How long it took.
        took: Duration,
    },
    /// A gang was bound in part and stayed so.
    NoQuorum {
        /// Job.
        job: String,
        /// Workers that must be bound.
        quorum: usize,
        /// How many were.
        bound: usize,
        /// How long after the first Binding the replay ended.
        since_first: Duration,
    },
    /// A worker ended otherwise than it should have.
    LostWorker {
        /// Job.
        job: String,
        /// Worker.
        worker: String,
        /// Its node; empty when it had none.
        node: String,
        /// What became of it, in words.
        how: &'static str,
    },
    /// A job did not come to its end.
    NotFinished {
        /// Job.
        job: String,
        /// Workers that it should have.
        workers: usize,
        /// How many were seen.
        created: usize,
        /// How many were bound.
        bound: usize,
        /// How many succeeded.
        succeeded: usize,
    },
    /// Something cannot be judged.
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

/// Writes billionths of one as a number.
fn amount(billionths: i128) -> String {
    let (whole, rest) = (billionths / ONE, billionths % ONE);
    match rest {
        0 => whole.to_string(),
        rest => format!("{whole}.{:09}", rest.abs()).trim_end_matches('0').to_owned(),
    }
}
