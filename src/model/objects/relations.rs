//! How a pod relates to other pods: inter-pod affinity and topology spread constraints.
//!
//! `matchLabelKeys` and `mismatchLabelKeys` are merged into the selectors before they come here, as the API
//! server does it for new pods.

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::selector::LabelSelector;

/// One pod affinity term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodAffinityTerm {
    /// Node label whose values are the domains.
    pub topology_key: Name,
    /// Pods meant; `None` means none.
    pub selector: Option<LabelSelector>,
    /// Namespaces meant, sorted. Empty together with no `namespace_selector`: the pod's own.
    pub namespaces: Box<[Name]>,
    /// Also the namespaces with such labels; an empty one means all.
    pub namespace_selector: Option<LabelSelector>,
}

/// A preferred term and what it is worth, 1 to 100.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WeightedTerm {
    /// Weight.
    pub weight: i32,
    /// Term.
    pub term: PodAffinityTerm,
}

/// `podAffinity` or `podAntiAffinity`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodTerms {
    /// Every one must hold.
    pub required: Box<[PodAffinityTerm]>,
    /// Each that holds counts.
    pub preferred: Box<[WeightedTerm]>,
}

impl PodTerms {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.preferred.is_empty()
    }

    /// Iterates over all terms.
    pub fn iter(&self) -> impl Iterator<Item = &PodAffinityTerm> {
        self.required.iter().chain(self.preferred.iter().map(|w| &w.term))
    }
}

/// Whether a node that a policy speaks about is counted.
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
    /// The largest difference allowed, 1 or more.
    pub max_skew: i32,
    /// Node label whose values are the domains.
    pub topology_key: Name,
    /// `DoNotSchedule` (hard) or `ScheduleAnyway`.
    pub is_hard: bool,
    /// Pods counted; `None` counts none.
    pub selector: Option<LabelSelector>,
    /// With fewer domains than this the global minimum is 0. 1 when absent.
    pub min_domains: i32,
    /// What `nodeSelector` and node affinity say about counting a node; `Honor` when absent.
    pub node_affinity_policy: NodeInclusion,
    /// What untolerated taints say about it; `Ignore` when absent.
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

/// The controller of a pod, when it is of one of these kinds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    /// Kind.
    pub kind: OwnerKind,
    /// Name, in the pod's namespace.
    pub name: Name,
}
