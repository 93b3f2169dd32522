//! Writes that plugins' states request, and their outcomes.

use pellucid_model::effect::{ObjectWrite, WriteOutcome};
use pellucid_model::{CustomKindRef, Now};

use super::custom::report_touched;
use crate::derived::{HookContext, Touched};
use crate::event::ClusterEvent;
use crate::objects::ObjectKey;
use crate::state::Cluster;

/// A write that the state of a plugin requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueWrite {
    /// The state, to which [`Cluster::write_settled`] gives the outcome.
    pub state: StateId,
    /// Name of the plugin.
    pub plugin: &'static str,
    /// The write.
    pub write: ObjectWrite,
}

/// Number of a plugin's state within one [`Cluster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateId(usize);

impl Cluster {
    /// Returns the writes that plugins' states request and that were not returned before. Never called while an overlay
    /// is open, nor on a copy.
    pub fn due_writes(&mut self, now: Now) -> Vec<DueWrite> {
        debug_assert!(!self.undo.is_open(), "what is tried is not written");
        self.now = now;
        let cx = HookContext { now, nodes: &self.node_index };
        let mut all = Vec::new();
        for (at, state) in self.derived.iter_mut().enumerate() {
            let plugin = state.plugin();
            let due = state.due_writes(&cx).into_iter();
            all.extend(due.map(|write| DueWrite { state: StateId(at), plugin, write }));
        }
        all
    }

    /// Returns the objects that end with writes which plugins' states will request. For copies, on which nothing is written.
    pub fn ending_objects(&self) -> Vec<(CustomKindRef, ObjectKey)> {
        self.derived.iter().flat_map(|state| state.ending_objects()).collect()
    }

    /// Passes the outcome of a write to the plugin's state that requested it.
    pub fn write_settled(
        &mut self,
        of: StateId,
        write: &ObjectWrite,
        outcome: &WriteOutcome,
        out: &mut Vec<ClusterEvent>,
    ) {
        let mut at = 0;
        let touched = self.notify_plugins(|state, cx| {
            at += 1;
            if at == of.0 + 1 { state.write_settled(cx, write, outcome) } else { Touched::Nothing }
        });
        report_touched(touched, out);
    }
}
