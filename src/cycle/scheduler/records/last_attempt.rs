//! The last attempt at each pod.
//!
//! Keeps the full verdict for pending pods. For placed pods it keeps only the node and the flight recorder's entry id:
//! there are many thousands of placements a second, the recorder has them anyway, and two words are cheaper than a
//! second copy. Decisions read only the node, so they do not depend on what the recorder has dropped.

use std::sync::Arc;

use pellucid_model::NodeIdx;
use pellucid_recording::flight::{Chunk, Entry, FlightEvent};
use pellucid_recording::{Outcome, Refusal, Verdict};

/// The last attempt at one pod.
#[derive(Clone, Debug, Default)]
pub enum LastAttempt {
    /// There was no attempt yet.
    #[default]
    Nothing,
    /// The pod was placed while the recorder was on.
    Placed {
        /// The chosen node.
        node: NodeIdx,
        /// Id of the flight recorder's entry, which may have been dropped since.
        entry: u64,
    },
    /// Any other outcome, and placements while the recorder was off.
    Full(Arc<Verdict>),
}

impl LastAttempt {
    /// Returns the verdict, or `None` if there was no attempt or the flight recorder has dropped its entry. `find`
    /// looks up an entry in the recorder; `changes` is the current node-change counter.
    pub fn verdict<'a>(
        &self,
        find: impl FnOnce(u64) -> Option<(&'a Chunk, Entry)>,
        changes: u64,
    ) -> Option<Verdict> {
        match self {
            Self::Nothing => None,
            Self::Full(verdict) => Some(verdict.as_ref().clone()),
            Self::Placed { node, entry } => {
                let (chunk, entry) = find(*entry)?;
                let FlightEvent::Placed(numbers) = chunk.event(&entry) else { return None };
                Some(numbers.verdict(*node, (entry.cycle, entry.last), changes))
            }
        }
    }

    /// Returns the chosen node if the pod was placed.
    pub fn node(&self) -> Option<NodeIdx> {
        match self {
            Self::Placed { node, .. } => Some(*node),
            Self::Full(verdict) => Some(verdict.placement()?.node),
            Self::Nothing => None,
        }
    }

    /// Returns the outcome if it is stored in full, which holds for every outcome but a placement.
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Full(verdict) => Some(&verdict.outcome),
            Self::Nothing | Self::Placed { .. } => None,
        }
    }

    /// Returns why the pod was refused or is gated.
    pub fn refusal(&self) -> Option<&Arc<Refusal>> {
        match self.outcome()? {
            Outcome::Refused(refusal) | Outcome::Gated(refusal) => Some(refusal),
            Outcome::Placed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_two_words() {
        assert_eq!(size_of::<LastAttempt>(), 16);
    }
}
