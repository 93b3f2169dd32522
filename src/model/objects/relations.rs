//! How a pod relates to other pods: inter-pod affinity and topology spread constraints.
//!
//! `matchLabelKeys` and `mismatchLabelKeys` are merged into the selectors during decoding, as the API server does for
//! new pods.

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::selector::LabelSelector;

/// One pod affinity term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodAffinityTerm {
    /// Node label whose values are the topology domains.
    pub topology_key: Name,
    /// Selects pods; `None` selects none.
    pub selector: Option<LabelSelector>,
    /// Namespaces that the term applies to, sorted. When empty and without a `namespace_selector`: the pod's own.
    pub namespaces: Box<[Name]>,
    /// Adds the namespaces with matching labels; an empty selector adds all.
    pub namespace_selector: Option<LabelSelector>,
}

/// A preferred pod affinity term.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WeightedTerm {
    /// Weight, 1 to 100.
    pub weight: i32,
    /// The term to satisfy.
    pub term: PodAffinityTerm,
}

/// `podAffinity` or `podAntiAffinity`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodTerms {
    /// Terms that must all hold.
    pub required: Box<[PodAffinityTerm]>,
    /// Terms that add their weight to the score when they hold.
    pub preferred: Box<[WeightedTerm]>,
}

impl PodTerms {
    /// Returns whether there are no terms.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.preferred.is_empty()
    }

    /// Iterates over all terms, required ones first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &PodAffinityTerm> {
        self.required.iter().chain(self.preferred.iter().map(|w| &w.term))
    }
}

/// Whether nodes that a policy excludes are counted for topology spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NodeInclusion {
    /// Only nodes that pass are counted.
    Honor,
    /// All nodes are counted.
    Ignore,
}

/// One entry of `topologySpreadConstraints`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SpreadConstraint {
    /// Largest allowed difference between domains, 1 or more.
    pub max_skew: i32,
    /// Node label whose values are the topology domains.
    pub topology_key: Name,
    /// Whether `whenUnsatisfiable` is `DoNotSchedule`; otherwise `ScheduleAnyway`.
    pub is_hard: bool,
    /// Selects the pods to count; `None` counts none.
    pub selector: Option<LabelSelector>,
    /// With fewer domains than this, the global minimum is 0. Defaults to 1.
    pub min_domains: i32,
    /// Whether only nodes that satisfy `nodeSelector` and node affinity are counted; defaults to `Honor`.
    pub node_affinity_policy: NodeInclusion,
    /// Whether only nodes whose taints the pod tolerates are counted; defaults to `Ignore`.
    pub node_taints_policy: NodeInclusion,
}

/// The kinds of owners from which default spread constraints take a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OwnerKind {
    /// `v1` ReplicationController.
    ReplicationController,
    /// `apps/v1` ReplicaSet.
    ReplicaSet,
    /// `apps/v1` StatefulSet.
    StatefulSet,
}

/// The controller of a pod, if it is of one of these kinds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    /// Kind of the controller.
    pub kind: OwnerKind,
    /// Name, in the pod's namespace.
    pub name: Name,
}
