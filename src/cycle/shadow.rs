//! Shadow mode: decides for the pods of another scheduler, writes nothing, and counts how often it agrees.

use std::collections::VecDeque;

use pellucid_model::{Name, PodKey};

/// Disagreements kept as examples.
const EXAMPLES: usize = 50;

/// One pod that went elsewhere than we would have sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Pod.
    pub pod: PodKey,
    /// Our node; `None` when we would have refused it.
    pub ours: Option<Name>,
    /// Where the other scheduler put it.
    pub theirs: Name,
}

/// AttemptKind often we agreed.
#[derive(Clone, Debug, Default)]
pub struct ShadowTally {
    /// The scheduler that is shadowed.
    pub of: Name,
    /// The same node.
    pub agreed: u64,
    /// Another node.
    pub disagreed: u64,
    /// They placed it, we refused it.
    pub refused_by_us: u64,
    /// They placed it before we looked.
    pub not_compared: u64,
    /// We placed it, and they did not within the time we hold a place.
    pub expired: u64,
    /// The newest disagreements.
    pub examples: VecDeque<Disagreement>,
}

impl ShadowTally {
    /// Counts a pod that the other scheduler has bound. `ours` is our decision, if there was one.
    pub fn count(&mut self, pod: &PodKey, ours: Option<Option<Name>>, theirs: &Name) {
        match ours {
            None => return self.not_compared += 1,
            Some(Some(node)) if node == *theirs => return self.agreed += 1,
            Some(Some(_)) => self.disagreed += 1,
            Some(None) => self.refused_by_us += 1,
        }
        let example = Disagreement { pod: pod.clone(), ours: ours.flatten(), theirs: theirs.clone() };
        self.examples.push_back(example);
        if self.examples.len() > EXAMPLES {
            self.examples.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_counted_once() {
        let mut tally = ShadowTally::default();
        let (pod, a, b) = (PodKey::new("d", "p"), Name::new("a"), Name::new("b"));
        tally.count(&pod, None, &a);
        tally.count(&pod, Some(Some(a.clone())), &a);
        tally.count(&pod, Some(Some(b)), &a);
        tally.count(&pod, Some(None), &a);
        assert_eq!((tally.not_compared, tally.agreed, tally.disagreed, tally.refused_by_us), (1, 1, 1, 1));
        assert_eq!(tally.examples.len(), 2);
    }
}
