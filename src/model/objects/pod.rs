//! A pod as the scheduler sees it: its identity, and the spec that decides where it fits.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::gang::{Controller, GangDeclaration, GangProblem};
use crate::relations::{Owner, PodTerms, SpreadConstraint};
use crate::requests::{PodRequests, ResourceList};
use crate::selector::{LabelSelector, Labels, NodeAffinity};
use crate::storage::PodVolumes;
use crate::taint::Toleration;
use crate::{GangKey, Name};

/// The number of a pod slot in the state, reused after the pod is gone. Its value never decides anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodId(pub u32);

impl PodId {
    /// Returns the number as an array index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Namespace and name of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodKey {
    /// Namespace of the pod.
    pub namespace: Name,
    /// Name. Not interned, because pod names rarely repeat.
    pub name: Arc<str>,
}

impl PodKey {
    /// Makes a key from a namespace and a name.
    #[inline]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

crate::named! {
    /// Network protocol of a host port.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Protocol {
        /// TCP, the default.
        Tcp = "TCP",
        /// User Datagram Protocol.
        Udp = "UDP",
        /// Stream Control Transmission Protocol.
        Sctp = "SCTP",
    }
}

/// A port that a pod takes on its host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostPort {
    /// Protocol of the port.
    pub protocol: Protocol,
    /// Host IP; `0.0.0.0` (also used for an empty one) conflicts with every IP.
    pub ip: Name,
    /// Port number, above 0.
    pub port: u16,
}

/// Every field of a pod that a plugin reads. Pods with equal specs share one *shape*: what was found out about one of
/// them holds for the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(C)]
pub struct PodSpec {
    // What every attempt reads comes first and lies together: specs of many shapes are rarely in the processor's cache.
    /// Namespace of the pod, in which its selectors apply by default.
    pub namespace: Name,
    /// Labels. In the state only those that some selector reads (see `cluster::SelectedKeys`), so a label that nobody
    /// selects by does not make another shape. Derived from the pod's own labels, and therefore not serialised.
    #[serde(skip)]
    pub labels: Labels,
    /// Labels that plugins read and that say nothing about nodes, such as a quota's name. They are apart, so that pods which
    /// differ in them alone are equal wherever pods are counted by labels. Derived as `labels` are.
    #[serde(skip)]
    pub wide_labels: Labels,
    /// Annotations that a plugin declares, see `framework::DeclaredKeys`.
    pub annotations: Labels,
    /// `topologySpreadConstraints`.
    pub spread: Box<[SpreadConstraint]>,
    /// `podAffinity`.
    pub pod_affinity: PodTerms,
    /// `podAntiAffinity`.
    pub pod_anti_affinity: PodTerms,
    /// The volumes that decide where the pod fits.
    pub volumes: PodVolumes,
    /// The resources that the pod requests.
    pub requests: PodRequests,
    /// `spec.priority`: nominated pods of equal or higher priority count against a node's room.
    pub priority: i32,
    /// The controller, when default spread constraints may take a selector from it.
    pub owner: Option<Owner>,
    /// Whether a DaemonSet owns the pod.
    pub is_daemon: bool,
    /// Whether the pod is in a shadow group: kube-batch's for pods of its scheduler name that name no PodGroup.
    #[serde(default)]
    pub has_shadow_group: bool,
    /// The limits of the pod, summed up like its requests.
    pub limits: ResourceList,
    /// The pod's QoS class.
    pub qos: Qos,
    /// `spec.nodeName` of a pod that is not placed yet; only simulated pods have one.
    pub node_name: Option<Name>,
    /// `nodeSelector` and node affinity.
    pub affinity: NodeAffinity,
    /// `spec.tolerations`.
    pub tolerations: Box<[Toleration]>,
    /// Ports that the containers take on the host.
    pub host_ports: Box<[HostPort]>,
    /// Images of containers, init containers and image volumes, normalised (`:latest` when untagged).
    pub images: Box<[Name]>,
    /// Number of containers and init containers, by which image locality scales its score.
    pub n_containers: u32,
    /// Names of `spec.resourceClaims` (dynamic resource allocation).
    pub resource_claims: Box<[Name]>,
    /// Node features without which the pod cannot run, as kube-scheduler infers them, sorted.
    pub required_features: Box<[Name]>,
}

impl PodSpec {
    /// Iterates over the selectors with which this pod selects other pods.
    #[inline]
    pub fn pod_selectors(&self) -> impl Iterator<Item = &LabelSelector> {
        let terms = self.pod_affinity.iter().chain(self.pod_anti_affinity.iter());
        let spread = self.spread.iter().filter_map(|c| c.selector.as_ref());
        terms.filter_map(|t| t.selector.as_ref()).chain(spread)
    }
}

crate::named! {
    /// Kubernetes' quality of service, which follows from requests and limits of CPU and memory.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum Qos {
        /// No container requests or limits any.
        #[default]
        BestEffort = "BestEffort",
        /// Some container requests or limits some.
        Burstable = "Burstable",
        /// Every container requests its limit of both.
        Guaranteed = "Guaranteed",
    }
}

crate::named! {
    /// `status.phase`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum PodPhase {
        /// Pending, also when absent.
        #[default]
        Pending = "Pending",
        /// At least one container runs or starts.
        Running = "Running",
        /// Succeeded: terminal.
        Succeeded = "Succeeded",
        /// Failed: terminal.
        Failed = "Failed",
        /// The kubelet does not report the pod's state.
        Unknown = "Unknown",
    }
}

impl PodPhase {
    /// Returns whether the pod has ended and uses no resources any more.
    #[inline]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The `PodScheduled` condition that the API server holds, so that an equal one is not written again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledCondition {
    /// Whether `status` is `True`.
    pub is_true: bool,
    /// `reason`.
    pub reason: Arc<str>,
    /// `message`.
    pub message: Arc<str>,
}

/// The object for which a pod of the state stands: one of a plugin's kind that is scheduled as a pod is. The API server
/// has no such pod; what is decided about it is written to the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StandsFor {
    /// `apiVersion` of the object.
    pub api_version: Name,
    /// `kind` of the object.
    pub kind: Name,
    /// Namespace; empty for a kind without namespaces.
    pub namespace: Name,
    /// Name of the object. Its uid is that of the pod.
    pub name: Name,
}

impl fmt::Display for StandsFor {
    /// Writes kind and name, such as `Reservation r1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name, .. } = self;
        if namespace.is_empty() { write!(f, "{kind} {name}") } else { write!(f, "{kind} {namespace}/{name}") }
    }
}

/// A field of a pod with several containers that decides how much of a resource the pod requests: with less there, the pod
/// requests less by as much. Without a container it is `spec.resources`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestField {
    /// The resource.
    pub resource: Name,
    /// The init container whose field it is, by place and name.
    pub init_container: Option<(usize, Name)>,
    /// The container whose field it is, by place and name.
    #[serde(default)]
    pub container: Option<(usize, Name)>,
    /// What the pod would request without it. The field decides as long as the pod requests this or more.
    pub rest: i64,
    /// What the pod requests besides, as long as the field decides.
    #[serde(default)]
    pub beside: i64,
}

/// An immutable pod object.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[repr(C)]
pub struct Pod {
    // What every attempt reads comes first and lies together: a pod is hardly ever in the processor's cache when its turn comes.
    /// The fields that decide where the pod fits.
    pub spec: Arc<PodSpec>,
    /// What the pod declares about its gang.
    pub gang: Option<Arc<GangDeclaration>>,
    /// The object for which the pod stands; `None` for a pod of the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<Arc<StandsFor>>,
    /// `status.nominatedNodeName`.
    pub nominated_node: Option<Name>,
    /// Namespace and name.
    pub key: PodKey,
    /// uid of the object.
    pub uid: Arc<str>,
    /// Creation, in seconds since 1970.
    pub created: i64,
    /// All labels of the pod.
    pub labels: Labels,
    /// `spec.priority`, 0 when absent.
    pub priority: i32,
    /// Whether `spec.preemptionPolicy` is `Never`.
    pub never_preempts: bool,
    /// `status.startTime`, in seconds since 1970.
    pub started: Option<i64>,
    /// Whether condition `DisruptionTarget` is True with reason `PreemptionByScheduler`.
    pub is_preempted: bool,
    /// `spec.schedulerName`.
    pub scheduler_name: Name,
    /// `spec.nodeName`; `None` while the pod is not bound.
    pub node_name: Option<Name>,
    /// Names of `spec.schedulingGates`, in the object's order.
    pub gates: Box<[Name]>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// Whether a kubelet created it from a file (annotation `kubernetes.io/config.mirror`).
    pub is_static: bool,
    /// Since when condition `PodScheduled` is True, in seconds since 1970.
    pub scheduled_at: Option<i64>,
    /// Since when condition `Initialized` is True, in seconds since 1970.
    pub initialized_at: Option<i64>,
    /// Whether condition `Ready` is True.
    #[serde(default)]
    pub is_ready: bool,
    /// The `PodScheduled` condition, if the pod has one.
    pub scheduled: Option<ScheduledCondition>,
    /// Annotations that Bindings of plugins add to pods, see `framework::DeclaredKeys`.
    pub marks: Labels,
    /// The controlling owner.
    pub controller: Option<Controller>,
    /// Whether the pod requests just what its only container does: it has no init containers, no overhead and no
    /// pod-level requests.
    #[serde(default)]
    pub requests_of_one: bool,
    /// Of each resource that one field decides beside the containers: which field.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub request_fields: Box<[RequestField]>,
    /// Gang keys of the pod that do not make it a member of a gang.
    pub gang_warning: Option<Arc<GangProblem>>,
}

impl Pod {
    /// Returns it with the annotations of a merge patch as marks.
    pub fn marked(&self, patch: &serde_json::Value) -> Self {
        let new =
            crate::merge_patch::annotations(patch).map(|(key, value)| (Name::new(key), Name::new(value)));
        Self { marks: Labels::new(self.marks.iter().cloned().chain(new)), ..self.clone() }
    }

    /// Returns the gang that the pod is a member of. A pod that names two gangs is in none.
    #[inline]
    pub fn member_of(&self) -> Option<&GangKey> {
        self.gang.as_deref().filter(|mark| !mark.names_two).map(|mark| &mark.gang)
    }

    /// Returns whether the pod's end gives its room to others. Static pods and pods of a DaemonSet come back where they
    /// were.
    pub fn can_leave(&self) -> bool {
        !self.is_static && !self.spec.is_daemon
    }
}
