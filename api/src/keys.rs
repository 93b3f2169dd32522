//! The label and annotation keys that declare a gang, for the dialects that use keys, and those of quotas
//! ([`elastic_quota`]).
//!
//! Only the text of the keys; the code that parses pods knows who reads a key, from where and with which default. Keys
//! of other APIs are reproduced exactly. The native dialect of gangs has no key: a pod names its PodGroup in
//! `spec.schedulingGroup.podGroupName`.

pub mod elastic_quota;
pub mod reservation;

/// The unicore dialect: two labels on the pod, no group object.
pub mod unicore {
    /// Label: the gang's name in the pod's namespace.
    pub const NAME: &str = "gang.unicore.mcyou.cn/name";
    /// Label: number of members that make a quorum, in decimal. A pod with only one of the two labels is in no gang.
    pub const AVAILABLE_COUNT: &str = "gang.unicore.mcyou.cn/available-count";
}

/// The Coscheduling dialect of scheduler-plugins: a label that names a PodGroup, or two labels without one.
pub mod coscheduling {
    /// Label: name of the PodGroup `scheduling.x-k8s.io/v1alpha1` in the pod's namespace.
    pub const POD_GROUP: &str = "scheduling.x-k8s.io/pod-group";
    /// Label: name of the PodGroup `scheduling.sigs.k8s.io/v1alpha1` in the pod's namespace. Used by scheduler-plugins
    /// up to 1.24 and by Koordinator.
    pub const POD_GROUP_SIGS: &str = "pod-group.scheduling.sigs.k8s.io";
    /// Label of the oldest form, without a group object: the gang's name. Koordinator reads it as a synonym of
    /// [`POD_GROUP_SIGS`].
    pub const NAME: &str = "pod-group.scheduling.sigs.k8s.io/name";
    /// Label of the oldest form: number of members that make a quorum, in decimal.
    pub const MIN_AVAILABLE: &str = "pod-group.scheduling.sigs.k8s.io/min-available";
}

/// The Koordinator dialect: annotations on the pod or on its PodGroup.
pub mod koordinator {
    /// Annotation of a pod: the gang's name in the pod's namespace. Needs no PodGroup.
    pub const NAME: &str = "gang.scheduling.koordinator.sh/name";
    /// Annotation: number of members that make a quorum, in decimal.
    pub const MIN_AVAILABLE: &str = "gang.scheduling.koordinator.sh/min-available";
    /// Annotation: total number of members of the gang, in decimal; not below the quorum.
    pub const TOTAL_NUMBER: &str = "gang.scheduling.koordinator.sh/total-number";
    /// Annotation: [`STRICT`] or [`NON_STRICT`].
    pub const MODE: &str = "gang.scheduling.koordinator.sh/mode";
    /// Annotation: which members count towards the quorum: [`ONLY_WAITING`], [`WAITING_AND_RUNNING`] or
    /// [`ONCE_SATISFIED`].
    pub const MATCH_POLICY: &str = "gang.scheduling.koordinator.sh/match-policy";
    /// Annotation: another spelling of [`MATCH_POLICY`], with the prefix of the PodGroup label.
    pub const MATCH_POLICY_ALIAS: &str = "pod-group.scheduling.sigs.k8s.io/match-policy";
    /// Annotation: how long the gang may wait, a Go duration such as `30s`.
    pub const WAITING_TIME: &str = "gang.scheduling.koordinator.sh/waiting-time";
    /// Annotation: the gangs that must reach quorum together, a JSON array of `"namespace/name"`.
    pub const GROUPS: &str = "gang.scheduling.koordinator.sh/groups";

    /// Value of [`MODE`]: all or nothing. The default.
    pub const STRICT: &str = "Strict";
    /// Value of [`MODE`]: members that fit keep their place and wait, the others try again.
    pub const NON_STRICT: &str = "NonStrict";

    /// Value of [`MATCH_POLICY`]: only members that wait count.
    pub const ONLY_WAITING: &str = "only-waiting";
    /// Value of [`MATCH_POLICY`]: members that wait or run count.
    pub const WAITING_AND_RUNNING: &str = "waiting-and-running";
    /// Value of [`MATCH_POLICY`]: a gang that once had its quorum keeps it. The default.
    pub const ONCE_SATISFIED: &str = "once-satisfied";
}

/// The kube-batch dialect: an annotation on the pod that names a PodGroup.
pub mod kube_batch {
    /// Annotation: the PodGroup `scheduling.incubator.k8s.io/v1alpha1` or `scheduling.sigs.dev/v1alpha2` in the
    /// pod's namespace.
    pub const GROUP_NAME: &str = "scheduling.k8s.io/group-name";
    /// Annotation of a pod without a PodGroup: quorum of the group that is created implicitly for it, in decimal.
    pub const GROUP_MIN_MEMBER: &str = "scheduling.k8s.io/group-min-member";
}
