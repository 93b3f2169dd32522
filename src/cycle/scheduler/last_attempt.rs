//! What is kept of the last attempt at each pod.
//!
//! Of a pod that waits all of it. A placement is one of many thousands a second and is in the flight recorder anyway, so
//! of that only where it stands is kept: two words instead of a second copy in memory that nobody had looked at since.
//! Deciding reads nothing but the node, so what the recorder has pushed out changes no decision.

use std::sync::Arc;

use pellucid_model::NodeIdx;
use pellucid_recording::flight::{Chunk, Entry, What};
use pellucid_recording::{Outcome, Refusal, Verdict};

/// See the module.
#[derive(Clone, Debug, Default)]
pub enum LastAttempt {
    /// There was no attempt.
    #[default]
    Nothing,
    /// It was placed.
    Placed {
        /// The node.
        node: NodeIdx,
        /// The recorder's entry; it may have been pushed out since.
        entry: u64,
    },
    /// Anything else, and placements while the recorder is off.
    Full(Arc<Verdict>),
}

impl LastAttempt {
    /// Returns the verdict, if the recorder, asked by `find`, still has what is not kept here. `changes`: how many there
    /// have been by now.
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
                let What::Placed(numbers) = chunk.what(&entry) else { return None };
                Some(numbers.verdict(*node, (entry.cycle, entry.last), changes))
            }
        }
    }

    /// Returns the node, if it was placed.
    pub fn node(&self) -> Option<NodeIdx> {
        match self {
            Self::Placed { node, .. } => Some(*node),
            Self::Full(verdict) => Some(verdict.placement()?.node),
            Self::Nothing => None,
        }
    }

    /// Returns what it came to, if that is kept whole: always when it was not placed.
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Full(verdict) => Some(&verdict.outcome),
            Self::Nothing | Self::Placed { .. } => None,
        }
    }

    /// Returns why it was refused, or is held before the queue.
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
