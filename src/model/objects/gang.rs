//! Gangs as pods and PodGroups declare them, in five dialects.
//!
//! Holds only what is declared; a value that cannot be used is reported as a [`GangProblem`]. `cluster::gangs` resolves
//! the declarations: which definition wins, who the members are, what is missing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::requests::ResourceList;

/// Namespace and name of a gang.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GangKey {
    /// Namespace of the PodGroup and the pods.
    pub namespace: Name,
    /// Name of the gang, and of its PodGroup if it has one.
    pub name: Name,
}

impl GangKey {
    /// Makes a key from a namespace and a name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for GangKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

crate::named! {
    /// The API by which a gang is declared; named as in the REST API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Dialect {
        /// Labels `gang.unicore.mcyou.cn/*`.
        Unicore = "unicore",
        /// Label of scheduler-plugins, with a PodGroup or, in its oldest form, two labels.
        Coscheduling = "coscheduling",
        /// Annotations `gang.scheduling.koordinator.sh/*`.
        Koordinator = "koordinator",
        /// Annotation `scheduling.k8s.io/group-name`.
        KubeBatch = "kube-batch",
        /// `spec.schedulingGroup`.
        Native = "native",
    }
}

crate::named! {
    /// What happens to members that fit while the quorum is not reached; named as Koordinator does.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum GangMode {
        /// They lose their places at once: all or nothing.
        #[default]
        Strict = "Strict",
        /// They wait for the others, with a deadline.
        NonStrict = "NonStrict",
    }
}

crate::named! {
    /// Which members count towards the quorum (Koordinator's match policy).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum MatchPolicy {
        /// Members that wait for their Binding.
        OnlyWaiting = "only-waiting",
        /// Members that wait for their Binding, and bound ones.
        WaitingAndRunning = "waiting-and-running",
        /// As `WaitingAndRunning`, until the quorum was reached once; after that no quorum is required.
        #[default]
        OnceSatisfied = "once-satisfied",
    }
}

/// A declared value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GangProblem {
    /// Path of the field, such as `metadata.annotations[gang.scheduling.koordinator.sh/min-available]`.
    pub field: Arc<str>,
    /// The value as declared; may be empty.
    pub value: Arc<str>,
    /// What is wrong with it.
    pub problem: Arc<str>,
    /// Whether the problem prevents scheduling. If not, a default replaces the value and this is a warning.
    pub is_fatal: bool,
}

impl fmt::Display for GangProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)?;
        match &*self.value {
            "" => Ok(()),
            value => write!(f, ", got {value}"),
        }
    }
}

/// What a pod or a PodGroup declares about a gang; `None` where it declares nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GangTerms {
    /// Number of members that make a quorum.
    pub min: Option<u32>,
    /// Total number of members that will ever exist (Koordinator's `total-number`).
    pub total: Option<u32>,
    /// What happens to members that fit while the quorum is not reached.
    pub mode: Option<GangMode>,
    /// Koordinator's match policy.
    pub policy: Option<MatchPolicy>,
    /// How long a member waits for the others.
    pub wait: Option<Duration>,
    /// The gangs that reach their quorum together, this one included, sorted by key, without duplicates. Empty when the
    /// gang has no partners.
    pub groups: Arc<[GangKey]>,
}

/// What a pod declares about the gang it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GangDeclaration {
    /// The gang, in the pod's namespace.
    pub gang: GangKey,
    /// The API by which the pod names the gang.
    pub dialect: Dialect,
    /// Whether the gang needs a PodGroup, without which its pods wait.
    pub needs_group: bool,
    /// Whether this is the group that a kube-batch pod without an annotation forms by itself.
    pub is_shadow: bool,
    /// Whether the pod also names another gang, or this one in another dialect. It is then in no gang, and its first
    /// problem says so.
    pub names_two: bool,
    /// The terms that the pod declares itself.
    pub terms: GangTerms,
    /// The declared values that cannot be used.
    pub problems: Box<[GangProblem]>,
}

/// The controlling owner of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Controller {
    /// The owner's uid.
    pub uid: Arc<str>,
    /// The owner's kind, such as `ReplicaSet`.
    pub kind: Arc<str>,
    /// The owner's name, in the pod's namespace.
    pub name: Arc<str>,
}

crate::named! {
    /// Phase of a PodGroup.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[expect(missing_docs, reason = "the API's own words")]
    pub enum GroupPhase {
        #[default]
        Pending = "Pending",
        PreScheduling = "PreScheduling",
        Scheduling = "Scheduling",
        Scheduled = "Scheduled",
        Running = "Running",
        Unknown = "Unknown",
        Finished = "Finished",
        Failed = "Failed",
    }
}

/// The condition on a PodGroup: `PodGroupScheduled` (native) or `Unschedulable` (kube-batch).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupCondition {
    /// Type of the condition.
    pub kind: &'static str,
    /// Whether its status is `True`.
    pub is_true: bool,
    /// Reason of the condition.
    pub reason: Arc<str>,
    /// Message of the condition.
    pub message: Arc<str>,
}

/// The part of a PodGroup's `status` that a scheduler writes. Fields that an API group lacks are not written there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// `status.phase`; `None` when not set yet.
    pub phase: Option<GroupPhase>,
    /// `ns/owner` of its pods, sorted, joined by commas.
    pub occupied_by: Arc<str>,
    /// Number of bound members.
    pub scheduled: u32,
    /// Number of running members.
    pub running: u32,
    /// Number of members that succeeded.
    pub succeeded: u32,
    /// Number of members that failed.
    pub failed: u32,
    /// When a member was first placed, in seconds since 1970.
    pub schedule_start: Option<i64>,
    /// The condition that this scheduler owns.
    #[serde(skip)]
    pub condition: Option<GroupCondition>,
}

/// A PodGroup of any API group; [`ObjectKind`](super::ObjectKind) says which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodGroup {
    /// The kind, which names the API group.
    pub kind: crate::ObjectKind,
    /// Namespace and name.
    pub key: GangKey,
    /// uid of the object.
    pub uid: Arc<str>,
    /// Creation, in seconds since 1970.
    pub created: i64,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The terms that it declares.
    pub terms: GangTerms,
    /// Native `schedulingPolicy.basic`: its pods are scheduled one by one.
    pub is_basic: bool,
    /// `spec.minResources`: resources that must be free before anything is planned.
    pub min_resources: Option<ResourceList>,
    /// The group's own priority, if it declares one.
    pub priority: Option<i32>,
    /// The queue (kube-batch); empty means the default queue.
    pub queue: Name,
    /// The Workload that it was created from (native), if it names one.
    pub workload: Option<Name>,
    /// The declared values that cannot be used.
    pub problems: Box<[GangProblem]>,
    /// The status as the API server holds it.
    pub status: GroupStatus,
}

impl Default for PodGroup {
    fn default() -> Self {
        Self {
            kind: crate::ObjectKind::PodGroupX,
            key: GangKey::default(),
            uid: "".into(),
            created: 0,
            deleting: false,
            terms: GangTerms::default(),
            is_basic: false,
            min_resources: None,
            priority: None,
            queue: Name::default(),
            workload: None,
            problems: Box::default(),
            status: GroupStatus::default(),
        }
    }
}

/// A kube-batch Queue: a tenant of the cluster. Values that cannot be used are left out and listed as problems.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// Name of the object. Queues have no namespace.
    pub name: Name,
    /// `spec.weight`, 0 or more; `None` when absent.
    pub weight: Option<i64>,
    /// `spec.capability`, 0 or more each: thousandths for `cpu`, whole units for the rest. Sorted by name. A resource
    /// that is named with 0 differs from one that is not named.
    pub capability: Box<[(Name, i64)]>,
    /// The declared values that cannot be used.
    pub problems: Box<[GangProblem]>,
}

/// An object of which only the name matters: a native Workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Namespace of the object.
    pub namespace: Name,
    /// Name of the object.
    pub name: Name,
}
