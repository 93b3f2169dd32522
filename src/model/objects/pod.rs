//! A pod as the scheduler sees it: what identifies it, and the part that decides where it fits.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::gang::{Controller, GangMark, GangProblem};
use crate::relations::{Owner, PodTerms, SpreadConstraint};
use crate::requests::PodRequests;
use crate::selector::{LabelSelector, Labels, NodeAffinity};
use crate::storage::PodVolumes;
use crate::taint::Toleration;
use crate::{GangKey, Name};

/// The number of a pod slot in the state. Reused after the pod is gone; it never decides anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodId(pub u32);

impl PodId {
    /// Returns it as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodKey {
    /// Namespace.
    pub namespace: Name,
    /// Name. Not interned: it is unique.
    pub name: Arc<str>,
}

impl PodKey {
    /// Makes a key.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Network protocol of a host port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Protocol {
    /// TCP, the default.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// Returns the API's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }
}

/// A port a pod takes on its host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostPort {
    /// Protocol.
    pub protocol: Protocol,
    /// Host IP; `0.0.0.0` (also for an empty one) conflicts with every IP.
    pub ip: Name,
    /// Port, above 0.
    pub port: u16,
}

/// Every field of a pod that a plugin reads. Pods with equal specs have one *shape*: what was found
/// out about one of them holds for the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodSpec {
    /// Namespace.
    pub namespace: Name,
    /// Labels. In the state only those that some selector reads (see `cluster::SelectedKeys`): a label that
    /// nobody selects by does not make another shape. Made of the pod's own labels, and therefore not written.
    #[serde(skip)]
    pub labels: Labels,
    /// `spec.priority`: pods of equal or higher priority that are nominated to a node count against it.
    pub priority: i32,
    /// Its controller, when default spread constraints may take a selector from it.
    pub owner: Option<Owner>,
    /// What it requests.
    pub requests: PodRequests,
    /// `spec.nodeName` of a pod that is not yet placed (only a simulated pod has one).
    pub node_name: Option<Name>,
    /// `nodeSelector` and node affinity.
    pub affinity: NodeAffinity,
    /// `podAffinity`.
    pub pod_affinity: PodTerms,
    /// `podAntiAffinity`.
    pub pod_anti_affinity: PodTerms,
    /// `topologySpreadConstraints`.
    pub spread: Box<[SpreadConstraint]>,
    /// Tolerations.
    pub tolerations: Box<[Toleration]>,
    /// Host ports.
    pub host_ports: Box<[HostPort]>,
    /// Images of containers, init containers and image volumes, normalised (`:latest` when untagged).
    pub images: Box<[Name]>,
    /// Number of containers and init containers: the scale of image locality.
    pub n_containers: u32,
    /// Volumes.
    pub volumes: PodVolumes,
    /// Names of `spec.resourceClaims` (dynamic resource allocation).
    pub resource_claims: Box<[Name]>,
    /// Node features without which the pod cannot run, as kube-scheduler infers them; sorted.
    pub required_features: Box<[Name]>,
}

impl PodSpec {
    /// Iterates over the selectors with which this pod selects pods.
    pub fn pod_selectors(&self) -> impl Iterator<Item = &LabelSelector> {
        let terms = self.pod_affinity.iter().chain(self.pod_anti_affinity.iter());
        let spread = self.spread.iter().filter_map(|c| c.selector.as_ref());
        terms.filter_map(|t| t.selector.as_ref()).chain(spread)
    }
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PodPhase {
    /// Pending, also when absent.
    #[default]
    Pending,
    /// Running.
    Running,
    /// Succeeded: terminal.
    Succeeded,
    /// Failed: terminal.
    Failed,
    /// Unknown.
    Unknown,
}

impl PodPhase {
    /// Whether the pod has ended and holds nothing.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// Returns the API's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }
}

/// The `PodScheduled` condition the API server holds, so that an equal one is not written again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledCondition {
    /// Whether `status` is `True`.
    pub is_true: bool,
    /// `reason`.
    pub reason: Arc<str>,
    /// `message`.
    pub message: Arc<str>,
}

/// A pod object, immutable.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pod {
    /// Namespace and name.
    pub key: PodKey,
    /// uid of the object.
    pub uid: Arc<str>,
    /// Creation, seconds since 1970.
    pub created: i64,
    /// All its labels.
    pub labels: Labels,
    /// `spec.priority`, 0 when absent.
    pub priority: i32,
    /// Whether `spec.preemptionPolicy` is `Never`.
    pub never_preempts: bool,
    /// `status.startTime`, seconds since 1970.
    pub started: Option<i64>,
    /// Whether condition `DisruptionTarget` is True for `PreemptionByScheduler`.
    pub is_preempted: bool,
    /// `spec.schedulerName`.
    pub scheduler_name: Name,
    /// `spec.nodeName`, when it is placed.
    pub node_name: Option<Name>,
    /// `status.nominatedNodeName`.
    pub nominated_node: Option<Name>,
    /// `spec.schedulingGates`, names in order.
    pub gates: Box<[Name]>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// Whether a kubelet made it from a file (annotation `kubernetes.io/config.mirror`).
    pub is_static: bool,
    /// `PodScheduled` condition, when there is one.
    pub scheduled: Option<ScheduledCondition>,
    /// Its controller.
    pub controller: Option<Controller>,
    /// The gang it belongs to.
    pub gang: Option<Arc<GangMark>>,
    /// Keys of a gang that do not make it a member of one.
    pub gang_warning: Option<Arc<GangProblem>>,
    /// What decides where it fits.
    pub spec: Arc<PodSpec>,
}

impl Pod {
    /// Returns the gang it is a member of. A pod that names two is in none.
    pub fn member_of(&self) -> Option<&GangKey> {
        self.gang.as_deref().filter(|mark| !mark.names_two).map(|mark| &mark.gang)
    }
}

impl Default for PodKey {
    fn default() -> Self {
        Self::new("", "")
    }
}
