//! Gangs as pods and PodGroups declare them, in five dialects.
//!
//! Only what is said, as it is said: what cannot be used stands beside it as a [`GangProblem`]. What a gang
//! comes to (which definition wins, who its members are, what is missing) is `cluster::gangs`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::requests::ResourceList;

/// Namespace and name of a gang.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GangKey {
    /// Namespace.
    pub namespace: Name,
    /// Name.
    pub name: Name,
}

impl GangKey {
    /// Makes a key.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for GangKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// How a gang is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Dialect {
    /// Labels `gang.unicore.mcyou.cn/*`.
    Unicore,
    /// Label of scheduler-plugins, with a PodGroup or, in its oldest form, two labels.
    Coscheduling,
    /// Annotations `gang.scheduling.koordinator.sh/*`.
    Koordinator,
    /// Annotation `scheduling.k8s.io/group-name`.
    KubeBatch,
    /// `spec.schedulingGroup`.
    Native,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Unicore, Self::Coscheduling, Self::Koordinator, Self::KubeBatch, Self::Native];

    /// Returns the word used in bodies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unicore => "unicore",
            Self::Coscheduling => "coscheduling",
            Self::Koordinator => "koordinator",
            Self::KubeBatch => "kube-batch",
            Self::Native => "native",
        }
    }
}

/// What becomes of members that fit while the quorum is not reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GangMode {
    /// They are given up at once: all or nothing.
    #[default]
    Strict,
    /// They wait for the others, with a deadline.
    NonStrict,
}

impl GangMode {
    /// Returns Koordinator's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::NonStrict => "NonStrict",
        }
    }
}

/// Which members count towards the quorum (Koordinator).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MatchPolicy {
    /// Those that wait for their Binding.
    OnlyWaiting,
    /// Those, and the bound ones.
    WaitingAndRunning,
    /// Those; once the quorum was reached, no more is asked.
    #[default]
    OnceSatisfied,
}

impl MatchPolicy {
    /// Returns Koordinator's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnlyWaiting => "only-waiting",
            Self::WaitingAndRunning => "waiting-and-running",
            Self::OnceSatisfied => "once-satisfied",
        }
    }
}

/// A part of a definition that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GangProblem {
    /// Path of the field, such as `metadata.annotations[gang.scheduling.koordinator.sh/min-available]`.
    pub field: Arc<str>,
    /// Its value.
    pub value: Arc<str>,
    /// What is wrong with it.
    pub problem: Arc<str>,
    /// Whether the gang cannot be scheduled because of it. If not, a default stands in and this is a warning.
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

/// What a pod or a PodGroup may say about a gang; `None` where it is silent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GangTerms {
    /// Members of a quorum.
    pub min: Option<u32>,
    /// Members there will ever be (Koordinator's `total-number`).
    pub total: Option<u32>,
    /// Mode.
    pub mode: Option<GangMode>,
    /// Match policy.
    pub policy: Option<MatchPolicy>,
    /// How long a member waits for the others.
    pub wait: Option<Duration>,
    /// The gangs that reach their quorum together, this one included, by key, each once; empty: it stands alone.
    pub groups: Arc<[GangKey]>,
}

/// What a pod says about the gang it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GangMark {
    /// The gang, in the pod's namespace.
    pub gang: GangKey,
    /// How it is named.
    pub dialect: Dialect,
    /// Whether the gang is defined by a PodGroup, without which its pods wait.
    pub needs_group: bool,
    /// A group that a kube-batch pod without annotation has of its own.
    pub is_shadow: bool,
    /// Whether the pod names another gang too, or this one in another dialect: then it is in none, and its
    /// first problem says so.
    pub names_two: bool,
    /// What the pod says itself.
    pub terms: GangTerms,
    /// What of it cannot be used.
    pub problems: Box<[GangProblem]>,
}

/// A controller reference.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Controller {
    /// Its uid.
    pub uid: Arc<str>,
    /// Its kind.
    pub kind: Arc<str>,
    /// Its name, in the pod's namespace.
    pub name: Arc<str>,
}

/// Phase of a PodGroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the API's own words")]
pub enum GroupPhase {
    #[default]
    Pending,
    PreScheduling,
    Scheduling,
    Scheduled,
    Running,
    Unknown,
    Finished,
    Failed,
}

impl GroupPhase {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::PreScheduling,
        Self::Scheduling,
        Self::Scheduled,
        Self::Running,
        Self::Unknown,
        Self::Finished,
        Self::Failed,
    ];

    /// Returns the API's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::PreScheduling => "PreScheduling",
            Self::Scheduling => "Scheduling",
            Self::Scheduled => "Scheduled",
            Self::Running => "Running",
            Self::Unknown => "Unknown",
            Self::Finished => "Finished",
            Self::Failed => "Failed",
        }
    }
}

/// The condition on a PodGroup: `PodGroupScheduled` (native) or `Unschedulable` (kube-batch).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupCondition {
    /// Type.
    pub kind: &'static str,
    /// Whether its status is `True`.
    pub is_true: bool,
    /// Reason.
    pub reason: Arc<str>,
    /// Message.
    pub message: Arc<str>,
}

/// `status` of a PodGroup, as far as a scheduler writes it. Fields that an API group lacks are not written there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Phase; `None`: not set yet.
    pub phase: Option<GroupPhase>,
    /// `ns/owner` of its pods, sorted, joined by commas.
    pub occupied_by: Arc<str>,
    /// Bound members.
    pub scheduled: u32,
    /// Running members.
    pub running: u32,
    /// Members that ended well.
    pub succeeded: u32,
    /// Members that failed.
    pub failed: u32,
    /// When a member was first placed, seconds since 1970.
    pub schedule_start: Option<i64>,
    /// Our condition.
    #[serde(skip)]
    pub condition: Option<GroupCondition>,
}

/// A PodGroup, of any of the API groups ([`ObjectKind`](super::ObjectKind) tells which).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodGroup {
    /// Which API group it is of.
    pub kind: crate::ObjectKind,
    /// Namespace and name.
    pub key: GangKey,
    /// uid.
    pub uid: Arc<str>,
    /// Creation, seconds since 1970.
    pub created: i64,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// What it says.
    pub terms: GangTerms,
    /// Native `schedulingPolicy.basic`: its pods are scheduled one by one.
    pub is_basic: bool,
    /// `spec.minResources`: what must be free before anything is planned.
    pub min_resources: Option<ResourceList>,
    /// Priority, when it has one of its own.
    pub priority: Option<i32>,
    /// kube-batch: its queue; empty is the default queue.
    pub queue: Name,
    /// native: the Workload it was made from, when it names one.
    pub workload: Option<Name>,
    /// What of it cannot be used.
    pub problems: Box<[GangProblem]>,
    /// Status as the API server holds it.
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

/// An object of which only the name matters: a kube-batch Queue, a native Workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Namespace, empty for a Queue.
    pub namespace: Name,
    /// Name.
    pub name: Name,
}
