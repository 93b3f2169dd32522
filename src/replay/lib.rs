//! Replays traces of real clusters: reads trace files, turns them into Kubernetes objects, checks the outcome and
//! reports it. Start with [`read_openb`] or [`read_jobs`].
//!
//! Nothing here schedules or talks to a server. Traces are read in place and belong to their publishers.
//!
//! Modules for replays of single pods, in reading order:
//! - `rows` reads CSV files, `openb` the format of Alibaba's trace;
//! - `objects` makes nodes and pods of a trace;
//! - `decisions` writes the node of each pod;
//! - `audit` checks the outcome from API objects with its own arithmetic (`quantity`);
//! - `report` formats the result for the user, with `words`.
//!
//! With a strategy, the same trace is a study of how well GPUs are packed, card by card: see `cards`.
//!
//! In the format `philly`, pods come and go in gangs: `philly` reads it, `gang_objects` makes workers of its jobs,
//! `gang_check` judges every watch event (`node_ledger` tracks what nodes hold, `gang_faults` defines the violations),
//! and `gang_report` formats the result. With quotas, `quota_file` says whose jobs belong to which, and `fairness` follows
//! what each got.

use std::fmt;
use std::path::Path;

mod audit;
mod cards;
mod decisions;
mod fairness;
mod gang_check;
mod gang_faults;
mod gang_objects;
mod gang_report;
mod node_ledger;
mod objects;
mod openb;
mod philly;
mod quantity;
mod quota_file;
mod report;
mod rows;
mod words;

pub use audit::{AuditResult, Overcommitted, Total, audit};
pub use cards::{
    Arrivals, PackingReport, PackingRun, RunResult, Typical, arrivals, to_card_node_json, to_card_pod_json,
    to_device_json, typical_json, typical_pods,
};
pub use decisions::write_decisions;
pub use fairness::{Fairness, FairnessReport, QuotaFairness};
pub use gang_check::{GangCheck, GangOutcome, JobResult, Seen};
pub use gang_faults::Fault;
pub use gang_objects::{GANG_MIN, GANG_NAME, GANG_TOTAL, GPU, SyntheticNodes, to_worker_json};
pub use gang_report::{GangReport, Pace};
pub use objects::{GPU_CORE, GPU_MODEL_LABEL, PODS_PER_NODE, QOS_LABEL, to_node_json, to_pod_json};
pub use philly::{GangJob, read_jobs};
pub use quota_file::{LeafQuota, QUOTA_NAME, QuotaFile, USERS};
pub use report::{Allocated, Report};
pub use words::span;

/// A node of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceNode {
    /// Name, unique in the trace and valid for a Kubernetes object.
    pub name: String,
    /// CPU in thousandths of a core.
    pub cpu_milli: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Number of GPUs.
    pub gpus: u64,
    /// GPU model; empty without GPUs.
    pub model: String,
}

/// A pod of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracePod {
    /// Name, unique in the trace and valid for a Kubernetes object.
    pub name: String,
    /// Requested CPU, in thousandths of a core.
    pub cpu_milli: u64,
    /// Requested memory, in MiB.
    pub memory_mib: u64,
    /// Number of GPUs that the pod uses.
    pub gpus: u64,
    /// Thousandths of each GPU: 1,000 except for a share of a single GPU; 0 without GPUs.
    pub gpu_milli: u64,
    /// Accepted GPU models; empty for any.
    pub models: Vec<String>,
    /// Class of service, as named in the trace.
    pub qos: String,
}

/// A cluster and its pods, in the order of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The nodes of the cluster, in the order of their file.
    pub nodes: Vec<TraceNode>,
    /// The pods of the cluster, in the order of their file.
    pub pods: Vec<TracePod>,
}

/// A supported trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Node and pod lists of Alibaba's GPU cluster trace of 2023.
    Openb,
    /// List of training jobs from Microsoft's Philly trace, as released with Gavel.
    Philly,
}

impl Format {
    /// Every supported format.
    pub const ALL: [Self; 2] = [Self::Openb, Self::Philly];

    /// Returns the name used on the command line.
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

/// Why a trace could not be read, with the file and the line. Reading is all or nothing.
#[derive(Debug)]
pub struct TraceError(String);

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TraceError {}

/// Reads a trace of the format `openb`, all or nothing.
pub fn read_openb(nodes: &Path, pods: &Path) -> Result<Trace, TraceError> {
    Ok(Trace { nodes: openb::read_nodes(nodes)?, pods: openb::read_pods(pods)? })
}
