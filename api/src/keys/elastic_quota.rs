//! The keys of ElasticQuota (`scheduling.sigs.k8s.io/v1alpha1`), as Koordinator has them, and the names of its built-in
//! quotas.
//!
//! Only the text; `plugins::elastic_quota` knows what a value means and which default it has.

/// Label of a pod: the quota it belongs to.
pub const NAME: &str = "quota.scheduling.koordinator.sh/name";
/// Label of a pod: `"false"` counts it against the quota's min and keeps it from being evicted for others.
pub const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";

/// Label of a quota: `"true"` for one that may have children, and has no pods.
pub const IS_PARENT: &str = "quota.scheduling.koordinator.sh/is-parent";
/// Label of a quota: name of its parent. Absent or empty for a child of the root.
pub const PARENT: &str = "quota.scheduling.koordinator.sh/parent";
/// Label of a quota: `"false"` keeps its unused min from others.
pub const ALLOW_LENT_RESOURCE: &str = "quota.scheduling.koordinator.sh/allow-lent-resource";
/// Label of a quota: the tree it belongs to, taken over from the parent. Absent or empty for the default tree.
pub const TREE_ID: &str = "quota.scheduling.koordinator.sh/tree-id";
/// Label of a quota: `"true"` for the root of a tree of its own.
pub const IS_ROOT: &str = "quota.scheduling.koordinator.sh/is-root";
/// Label of a tree's root: `"true"` leaves the tree's total in the default tree as well.
pub const IGNORE_DEFAULT_TREE: &str = "quota.scheduling.koordinator.sh/ignore-default-tree";
/// Label of a tree's root: name of the ElasticQuotaProfile that says which nodes the tree has.
pub const PROFILE: &str = "quota.scheduling.koordinator.sh/profile";
/// Label of a quota: `"true"` lets an administrator change it where the admission rules would refuse it.
pub const ALLOW_FORCE_UPDATE: &str = "quota.scheduling.koordinator.sh/allow-force-update";

/// Annotation of a quota, a resource list: its weight in the distribution of what is left over. Absent: its max.
pub const SHARED_WEIGHT: &str = "quota.scheduling.koordinator.sh/shared-weight";
/// Annotation of a quota, a JSON list: the namespaces whose pods belong to it.
pub const NAMESPACES: &str = "quota.scheduling.koordinator.sh/namespaces";
/// Annotation of a tree's root, a resource list: what the tree has.
pub const TOTAL_RESOURCE: &str = "quota.scheduling.koordinator.sh/total-resource";
/// Annotation of a tree's root, a resource list: the part of its total on nodes that take no pods.
pub const UNSCHEDULABLE_RESOURCE: &str = "quota.scheduling.koordinator.sh/unschedulable-resource";
/// Annotation of an ElasticQuotaProfile, a JSON list: the resources of the tree.
pub const RESOURCE_KEYS: &str = "quota.scheduling.koordinator.sh/resource-keys";
/// Annotation of a quota, a resource list: what its pods may request altogether when they are created.
pub const ADMISSION: &str = "quota.scheduling.koordinator.sh/admission";
/// Annotation of a quota, a JSON list: the resources of which max may not be set below what is used.
pub const MAX_STRICT_CHECK_RESOURCE_KEYS: &str =
    "quota.scheduling.koordinator.sh/max-strict-check-resource-keys";

/// Annotation of a quota, a resource list, written by the scheduler: what its pods may use now.
pub const RUNTIME: &str = "quota.scheduling.koordinator.sh/runtime";
/// Annotation of a quota, a resource list, written by the scheduler: what it asks of its parent.
pub const REQUEST: &str = "quota.scheduling.koordinator.sh/request";
/// Annotation of a quota, a resource list, written by the scheduler: what its pods and children ask of it.
pub const CHILD_REQUEST: &str = "quota.scheduling.koordinator.sh/child-request";
/// Annotation of a quota, a resource list, written by the scheduler: the greater of min and what is allocated.
pub const GUARANTEED: &str = "quota.scheduling.koordinator.sh/guaranteed";
/// Annotation of a quota, a resource list, written by the scheduler: what its pods use, or is guaranteed to children.
pub const ALLOCATED: &str = "quota.scheduling.koordinator.sh/allocated";
/// Annotation of a quota, a resource list, written by the scheduler: what its non-preemptible pods request.
pub const NON_PREEMPTIBLE_REQUEST: &str = "quota.scheduling.koordinator.sh/non-preemptible-request";
/// Annotation of a quota, a resource list, written by the scheduler: what its non-preemptible pods use.
pub const NON_PREEMPTIBLE_USED: &str = "quota.scheduling.koordinator.sh/non-preemptible-used";

/// The root of the default tree, which holds the total, as Koordinator calls it today and in 0.7.
pub const ROOT_QUOTA: [&str; 2] = ["koordinator-root-quota", "root"];
/// The quota of the system's pods, likewise.
pub const SYSTEM_QUOTA: [&str; 2] = ["koordinator-system-quota", "system"];
/// The quota of pods that belong to no other, likewise.
pub const DEFAULT_QUOTA: [&str; 2] = ["koordinator-default-quota", "default"];
