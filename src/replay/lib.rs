//! Traces of real clusters: read from files, turned into Kubernetes objects, and the report on what became
//! of them.
//!
//! Nothing here schedules or talks to a server. `openb` reads one format, `objects` makes nodes and pods
//! of a trace, `decisions` writes where each pod went, `audit` checks the outcome from API objects with
//! arithmetic of its own, and `report` is what a person reads at the end. Traces are read where they are
//! and belong to whoever published them.
//!
//! In the format `philly` pods come and go, in gangs: `philly` reads it, `gang_objects` makes workers of its
//! jobs, `gang_check` judges every watch event (`node_ledger` keeps its books), and `gang_report` tells.

use std::fmt;
use std::path::Path;

mod audit;
mod decisions;
mod gang_check;
mod gang_faults;
mod gang_objects;
mod gang_report;
mod node_ledger;
mod objects;
mod openb;
mod philly;
mod quantity;
mod report;
mod rows;
mod words;

pub use audit::{AuditResult, Overcommitted, Total, audit};
pub use decisions::write_decisions;
pub use gang_check::{GangCheck, GangOutcome, JobResult, Seen};
pub use gang_faults::Fault;
pub use gang_objects::{GANG_MIN, GANG_NAME, GANG_TOTAL, GPU, SyntheticNodes, to_worker_json};
pub use gang_report::{GangReport, Pace};
pub use objects::{GPU_CORE, GPU_MODEL_LABEL, PODS_PER_NODE, QOS_LABEL, to_node_json, to_pod_json};
pub use philly::{GangJob, read_jobs};
pub use report::{Allocated, Report};
pub use words::span;

/// A node of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceNode {
    /// Name.
    pub name: String,
    /// CPU in thousandths of a core.
    pub cpu_milli: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Number of GPUs.
    pub gpus: u64,
    /// Their model; empty without GPUs.
    pub model: String,
}

/// A pod of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracePod {
    /// Name.
    pub name: String,
    /// CPU it requests, in thousandths of a core.
    pub cpu_milli: u64,
    /// Memory it requests, in MiB.
    pub memory_mib: u64,
    /// Number of GPUs it uses.
    pub gpus: u64,
    /// Thousandths of each GPU: 1,000 but for a share of a single one; 0 without GPUs.
    pub gpu_milli: u64,
    /// The GPU models it accepts; empty for any.
    pub models: Vec<String>,
    /// Its class of service, in the trace's words.
    pub qos: String,
    /// When it was created, seconds since the trace began.
    pub created_at: i64,
    /// When it was deleted.
    pub deleted_at: i64,
}

/// A cluster and its pods, in the order of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Nodes.
    pub nodes: Vec<TraceNode>,
    /// Pods.
    pub pods: Vec<TracePod>,
}

/// A trace format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The lists of nodes and pods of Alibaba's GPU cluster trace of 2023.
    Openb,
    /// A list of training jobs, as Gavel released Microsoft's Philly trace.
    Philly,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 2] = [Self::Openb, Self::Philly];

    /// Returns the name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openb => "openb",
            Self::Philly => "philly",
        }
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        let format = Self::ALL.into_iter().find(|format| format.as_str() == text);
        format.ok_or_else(|| format!("no trace format is called {text:?}; known are: {}", known()))
    }
}

/// Why a trace could not be read. Nothing of it is used then.
#[derive(Debug)]
pub enum TraceError {
    /// The file cannot be opened or read.
    Io {
        /// File.
        file: String,
        /// Cause.
        source: std::io::Error,
    },
    /// A line is not as the format demands.
    Line {
        /// File.
        file: String,
        /// Line, from 1.
        line: u64,
        /// What is wrong, with column and value.
        problem: LineProblem,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { file, source } => write!(f, "{file}: {source}"),
            Self::Line { file, line, problem } => write!(f, "{file}:{line}: {problem}"),
        }
    }
}

/// The text has the cause in it, so there is no `source`: a chain would say it twice.
impl std::error::Error for TraceError {}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineProblem {
    /// A value.
    Column {
        /// Column.
        column: &'static str,
        /// What the file says.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The line as a whole.
    Whole(String),
}

impl fmt::Display for LineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column { column, value, problem } => write!(f, "column {column}: {value:?} {problem}"),
            Self::Whole(problem) => f.write_str(problem),
        }
    }
}

/// Reads a trace of the format `openb`, all or nothing.
pub fn read_openb(nodes: &Path, pods: &Path) -> Result<Trace, TraceError> {
    Ok(Trace { nodes: openb::read_nodes(nodes)?, pods: openb::read_pods(pods)? })
}
