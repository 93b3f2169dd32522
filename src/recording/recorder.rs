//! Score tables (flag `s`) and refused nodes (flag `f`) of recent attempts, in bounded rings.
//!
//! Cheap to clone for a published snapshot. Records that are pushed out are counted.

use std::collections::VecDeque;
use std::sync::Arc;

use pellucid_framework::Cause;
use pellucid_model::{Name, Now, PodKey};

/// Maximum number of score tables.
pub const TABLES_KEPT: usize = 256;
/// Maximum number of rows of all tables together; the newest table is kept even if it has more.
pub const ROWS_KEPT: usize = 65_536;
/// Maximum number of attempts with refused nodes.
pub const FAILURES_KEPT: usize = 64;
/// Maximum number of refused nodes per attempt.
pub const NODES_PER_FAILURE: usize = 1_000;

/// A plugin's share in a node's score: raw, normalised, weighted.
pub type Share = (i64, i64, i64);

/// One node's row of a recorded score table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRow {
    /// Name of the node.
    pub node: Name,
    /// Sum of the weighted scores.
    pub total: i64,
    /// The share of each plugin of the table, in its order; `None` when the plugin skipped.
    pub shares: Vec<Option<Share>>,
}

pellucid_model::named! {
    /// How the node of a recorded table was chosen; named as in the REST API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Choice {
        /// By its score, among several feasible nodes.
        Best = "best score",
        /// As the only feasible node.
        Only = "only feasible node",
        /// As the pod's nominated node; no other node was evaluated.
        Nominated = "nominated node",
    }
}

/// A recorded score table of one attempt.
#[derive(Clone, Debug)]
pub struct RecordedTable {
    /// Namespace and name of the pod.
    pub pod: PodKey,
    /// Number of the attempt (scheduling cycle).
    pub cycle: u64,
    /// When the attempt was made.
    pub at: Now,
    /// Name of the chosen node.
    pub chosen: Name,
    /// How the node was chosen.
    pub choice: Choice,
    /// Number of feasible nodes.
    pub feasible: usize,
    /// Score plugins and their weights, in the profile's order.
    pub plugins: Vec<(&'static str, i64)>,
    /// The rows of the best nodes.
    pub rows: Vec<RecordedRow>,
}

/// The recorded refused nodes of one attempt.
#[derive(Clone, Debug)]
pub struct RecordedFailure {
    /// Namespace and name of the pod.
    pub pod: PodKey,
    /// Number of the attempt (scheduling cycle).
    pub cycle: u64,
    /// When the attempt was made.
    pub at: Now,
    /// Names of the refused nodes, each with its cause.
    pub nodes: Vec<(Name, Arc<Cause>)>,
}

/// The rings of recorded tables and failures. The scheduling thread writes them; readers get a clone.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    tables: Arc<VecDeque<Arc<RecordedTable>>>,
    failures: Arc<VecDeque<Arc<RecordedFailure>>>,
    rows: usize,
    tables_dropped: u64,
    failures_dropped: u64,
}

impl Recorder {
    /// Records a score table and returns it.
    pub fn push_table(&mut self, table: RecordedTable) -> Arc<RecordedTable> {
        let table = Arc::new(table);
        let tables = Arc::make_mut(&mut self.tables);
        tables.push_back(table.clone());
        self.rows += table.rows.len();
        while tables.len() > TABLES_KEPT || (self.rows > ROWS_KEPT && tables.len() > 1) {
            self.rows -= tables.pop_front().map_or(0, |t| t.rows.len());
            self.tables_dropped += 1;
        }
        table
    }

    /// Records refused nodes and returns them; those beyond [`NODES_PER_FAILURE`] are counted as dropped.
    pub fn push_failure(&mut self, mut failure: RecordedFailure) -> Arc<RecordedFailure> {
        self.failures_dropped += failure.nodes.len().saturating_sub(NODES_PER_FAILURE) as u64;
        failure.nodes.truncate(NODES_PER_FAILURE);
        let failure = Arc::new(failure);
        let failures = Arc::make_mut(&mut self.failures);
        failures.push_back(failure.clone());
        if failures.len() > FAILURES_KEPT {
            self.failures_dropped += failures.pop_front().map_or(0, |f| f.nodes.len() as u64);
        }
        failure
    }

    /// Iterates over recorded tables, newest first.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<RecordedTable>> {
        self.tables.iter().rev()
    }

    /// Iterates over recorded failures, newest first.
    pub fn failures(&self) -> impl Iterator<Item = &Arc<RecordedFailure>> {
        self.failures.iter().rev()
    }

    /// Returns the number of tables that were pushed out.
    pub fn tables_dropped(&self) -> u64 {
        self.tables_dropped
    }

    /// Returns the number of refused nodes that were pushed out or left out.
    pub fn failures_dropped(&self) -> u64 {
        self.failures_dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(n: usize) -> RecordedTable {
        let row = RecordedRow { node: Name::new("n"), total: 0, shares: Vec::new() };
        RecordedTable {
            pod: PodKey::new("default", "p"),
            cycle: 1,
            at: Now::default(),
            chosen: Name::new("n"),
            choice: Choice::Best,
            feasible: n,
            plugins: Vec::new(),
            rows: vec![row; n],
        }
    }

    #[test]
    fn tables_are_bounded_by_their_number_and_by_their_rows() {
        let mut recorder = Recorder::default();
        (0..TABLES_KEPT + 5).for_each(|_| drop(recorder.push_table(table(2))));
        assert_eq!((recorder.tables().count(), recorder.tables_dropped()), (TABLES_KEPT, 5));
        recorder.push_table(table(ROWS_KEPT - 10));
        assert_eq!(recorder.tables().count(), 1 + 5);
        recorder.push_table(table(ROWS_KEPT + 10));
        assert_eq!(recorder.tables().count(), 1, "the newest is kept whatever its size");
    }
}
