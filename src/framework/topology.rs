//! NUMA topology: what plugins say about the NUMA nodes that a pod could use on a node, and what is agreed.
//!
//! Plugins that hand out resources with a place (CPUs, memory, devices) implement [`TopologyHints`]. The cycle asks all
//! of them about each node that passed the filters, merges their hints ([`merge`](super::merge)), and refuses the node
//! where the hints do not agree as the node's policy demands. What was agreed, a [`NumaAffinity`], is handed to
//! [`Reserve::reserve_aligned`](super::plugin::Reserve::reserve_aligned). Which CPU or device is taken is not decided
//! here.

use pellucid_model::cause::Cause;
use pellucid_model::{Name, NodeIdx, PodSpec};

use super::plugin::CycleValue;
use super::view::View;

/// A set of NUMA nodes of one node, by their numbers from 0 to 63.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NumaMask(pub u64);

impl NumaMask {
    /// Returns the set of one NUMA node, or `None` when the number is above 63.
    #[inline]
    pub fn of(number: u32) -> Option<Self> {
        1u64.checked_shl(number).map(Self)
    }

    /// Returns the NUMA nodes from 0 up to `n`, without it; at most 64.
    #[inline]
    pub fn first(n: u32) -> Self {
        Self(1u64.checked_shl(n).map_or(u64::MAX, |bit| bit - 1))
    }

    /// Returns how many NUMA nodes are in the set.
    #[inline]
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns whether the set is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether a NUMA node is in the set.
    #[inline]
    pub fn contains(self, number: u32) -> bool {
        Self::of(number).is_some_and(|bit| !self.and(bit).is_empty())
    }

    /// Returns the NUMA nodes that are in both sets.
    #[inline]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the NUMA nodes that are in one of the sets.
    #[inline]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Iterates over the numbers, ascending.
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(move |number| self.contains(*number))
    }
}

pellucid_model::named! {
    /// What a node demands of the hints, from lax to strict. The names are the kubelet's.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum NumaPolicy {
        /// Hints are not asked for.
        #[default]
        None = "none",
        /// The best affinity is taken, whatever it is.
        BestEffort = "best-effort",
        /// Only an affinity that all hints prefer is taken.
        Restricted = "restricted",
        /// Only an affinity to one NUMA node that all hints prefer is taken.
        SingleNumaNode = "single-numa-node",
    }
}

impl NumaPolicy {
    /// Reads a policy in the kubelet's or in Koordinator's spelling; the empty text is [`NumaPolicy::None`].
    pub fn read(text: &str) -> Option<Self> {
        match text {
            "" | "None" => Some(Self::None),
            "BestEffort" => Some(Self::BestEffort),
            "Restricted" => Some(Self::Restricted),
            "SingleNUMANode" => Some(Self::SingleNumaNode),
            _ => Self::ALL.into_iter().find(|policy| policy.as_str() == text),
        }
    }
}

/// One way to give a pod a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopologyHint {
    /// The NUMA nodes that the resource comes from; `None` for any. Those that the node does not have are left out of the
    /// affinity.
    pub mask: Option<NumaMask>,
    /// Whether this is as good a way as there is.
    pub preferred: bool,
    /// Adds to the score of an affinity to these NUMA nodes; of affinities that are otherwise as good the one with the greater
    /// score is taken. A negative one counts as 0.
    pub score: i64,
}

/// The ways to give a pod one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceHints {
    /// The resource. Several providers may name the same one; each list counts.
    pub resource: Name,
    /// The hints. `None` when any NUMA nodes are as good; empty when there is no aligned way, which no strict policy
    /// takes.
    pub hints: Option<Vec<TopologyHint>>,
}

/// What a node demands of one pod, and the NUMA nodes that it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumaTopology {
    /// The policy, of the node or of the pod.
    pub policy: NumaPolicy,
    /// The NUMA nodes of the node. Without any, nothing is aligned.
    pub nodes: NumaMask,
    /// NUMA nodes that a preferred affinity has alone or not at all, because pods hold them that must not share.
    pub only_alone: NumaMask,
    /// NUMA nodes that are no preferred affinity alone, because pods hold them that spread over several.
    pub never_alone: NumaMask,
}

impl NumaTopology {
    /// Returns what two providers demand together: the stricter policy, and the NUMA nodes and restrictions of both.
    #[inline]
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            policy: self.policy.max(other.policy),
            nodes: self.nodes.or(other.nodes),
            only_alone: self.only_alone.or(other.only_alone),
            never_alone: self.never_alone.or(other.never_alone),
        }
    }

    /// Returns whether an affinity keeps to `only_alone` and `never_alone`.
    #[inline]
    pub fn allows(&self, mask: NumaMask) -> bool {
        let apart = if mask.count() == 1 { self.never_alone } else { self.only_alone };
        mask.and(apart).is_empty()
    }
}

/// The NUMA nodes that all providers agreed on for a pod on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumaAffinity {
    /// The policy under which it was agreed; never [`NumaPolicy::None`].
    pub policy: NumaPolicy,
    /// The NUMA nodes, at least one.
    pub mask: NumaMask,
    /// Whether every hint behind it is preferred.
    pub preferred: bool,
    /// Sum of the scores of the hints with exactly this mask.
    pub score: i64,
}

/// Provides hints about NUMA nodes. The providers of a profile are all its plugins that return one, at whichever points
/// they are enabled.
///
/// What a provider says about a node must depend on nothing but the node object, the pods on the node, what they hold,
/// and derived state whose hooks tell which nodes they touched: it is kept for equal pods like the result of a filter
/// that reads [`Reads::Usage`](super::plugin::Reads::Usage). It is asked before the pod has its place.
pub trait TopologyHints: Send + Sync {
    /// Prepares the other calls for pods with this spec. Returns `None` when the provider has nothing to say about
    /// them on any node; it is then not asked. The value is kept for equal pods, so what it depends on besides the spec
    /// must be derived state whose hooks tell that all nodes are touched when it changes.
    #[inline]
    fn prepare(&self, _view: View<'_>, _spec: &PodSpec) -> Option<CycleValue> {
        Some(std::sync::Arc::new(()))
    }

    /// Returns whether this provider ever knows what a node demands. One that does not is asked only where one that does has
    /// something to say.
    #[inline]
    fn knows_topologies(&self) -> bool {
        true
    }

    /// Returns what the node demands of the pod, `None` when this provider knows nothing of it. Fails when node and pod
    /// contradict each other. Called for every node that passed the filters, so it must be cheap.
    fn topology(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        value: &CycleValue,
        node: NodeIdx,
    ) -> Result<Option<NumaTopology>, Cause>;

    /// Returns the hints for each resource that the pod requests of this provider; an empty list for no preference.
    /// Fails when the node has not enough for the pod, aligned or not. Called only where there is a policy.
    fn hints(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        value: &CycleValue,
        node: NodeIdx,
    ) -> Result<Vec<ResourceHints>, Cause>;

    /// Checks that the provider can give the pod what it requests within the merged affinity: all NUMA nodes where its
    /// hints do not agree with those of others under [`NumaPolicy::BestEffort`], or where it has no preference.
    #[inline]
    fn fits(
        &self,
        _view: View<'_>,
        _spec: &PodSpec,
        _value: &CycleValue,
        _node: NodeIdx,
        _affinity: NumaAffinity,
    ) -> Result<(), Cause> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_hold_numbers_up_to_63() {
        assert_eq!(NumaMask::of(64), None);
        assert_eq!(NumaMask::first(64), NumaMask(u64::MAX));
        assert_eq!(NumaMask::first(0), NumaMask::default());
        let mask = NumaMask::first(2).or(NumaMask::of(63).expect("63 is a number"));
        assert_eq!(mask.numbers().collect::<Vec<_>>(), [0, 1, 63]);
        assert!(mask.contains(63) && !mask.contains(2) && !mask.contains(64));
    }

    #[test]
    fn policies_are_read_in_both_spellings() {
        for policy in NumaPolicy::ALL {
            assert_eq!(NumaPolicy::read(policy.as_str()), Some(policy));
        }
        assert_eq!(NumaPolicy::read(""), Some(NumaPolicy::None));
        assert_eq!(NumaPolicy::read("SingleNUMANode"), Some(NumaPolicy::SingleNumaNode));
        assert_eq!(NumaPolicy::read("Single"), None);
    }

    #[test]
    fn of_two_topologies_the_stricter_policy_holds() {
        let of = |policy, nodes| NumaTopology { policy, nodes: NumaMask(nodes), ..NumaTopology::default() };
        let both = of(NumaPolicy::Restricted, 0b01).with(of(NumaPolicy::BestEffort, 0b11));
        assert_eq!(both, of(NumaPolicy::Restricted, 0b11));
    }
}
