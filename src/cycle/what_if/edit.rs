//! Hypothetical changes of the cluster, converted to the inputs that a watch would deliver.
//!
//! An edit of a pod or node becomes a changed copy of the object, applied like any other input. This module makes no
//! decisions and writes nothing to the cluster.

use std::sync::Arc;

use pellucid_cluster::objects::ObjectKey;
use pellucid_cluster::{Cluster, Input};
use pellucid_model::pod::{PodPhase, Qos, RequestField};
use pellucid_model::relations::{PodTerms, WeightedTerm};
use pellucid_model::requests::{DEFAULT_MEMORY, DEFAULT_MILLI_CPU, PodRequests, ResourceList};
use pellucid_model::selector::{Labels, NodeAffinity};
use pellucid_model::taint::{Taint, TaintEffect, Toleration, TolerationOperator};
use pellucid_model::{
    CustomKindRef, CustomObject, GangKey, Name, Node, Object, ObjectKind, Pod, PodId, PodKey, PodSpec,
};

use super::quorum;

/// The pods that an edit changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// One pending pod.
    Pod(PodKey),
    /// The pending members of a gang.
    Gang(GangKey),
}

/// One hypothetical change.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Adds or replaces a node.
    ApplyNode(Arc<Node>),
    /// Adds an empty, schedulable copy of a node.
    CopyNode {
        /// The node to copy, without its pods.
        node: Name,
        /// Name of the copy.
        name: Name,
    },
    /// Removes a node. Its pods keep their places on it.
    RemoveNode(Name),
    /// Removes the taints of a node that have a key.
    RemoveTaint {
        /// Name of the node.
        node: Name,
        /// Key of the taints.
        key: Name,
        /// Removes only taints with this effect; `None` means any effect.
        effect: Option<TaintEffect>,
    },
    /// Makes a node schedulable again.
    Uncordon(Name),
    /// Sets a label of a node.
    LabelNode {
        /// Name of the node.
        node: Name,
        /// Key of the label.
        key: Name,
        /// Value of the label.
        value: Name,
    },
    /// Removes a label of a node.
    RemoveLabel {
        /// Name of the node.
        node: Name,
        /// Key of the label.
        key: Name,
    },
    /// Deletes a pod and frees what it holds.
    DeletePod(PodKey),
    /// Adds or replaces a pod.
    ApplyPod(Arc<Pod>),
    /// Adds or replaces an object of another kind.
    ApplyObject(Arc<Object>),
    /// Deletes an object of another kind.
    DeleteObject(ObjectKind, ObjectKey),
    /// Adds or replaces an object of a plugin's kind.
    ApplyCustom(Arc<CustomObject>),
    /// Deletes an object of a plugin's kind.
    DeleteCustom(CustomKindRef, ObjectKey),
    /// Changes how much of a resource pods request.
    SetRequest {
        /// The pods to change.
        of: Target,
        /// Name of the resource.
        resource: Name,
        /// Amount in the base unit of the resource; 0 removes the request.
        amount: i64,
        /// A resource that the pods request no longer.
        instead_of: Option<Name>,
    },
    /// Adds a toleration to pods.
    AddToleration {
        /// The pods to change.
        of: Target,
        /// The taint that they tolerate.
        taint: Taint,
    },
    /// Sets a label of pods.
    LabelPod {
        /// The pods to change.
        of: Target,
        /// Key of the label.
        key: Name,
        /// Value of the label.
        value: Name,
    },
    /// Sets an annotation of pods.
    AnnotatePod {
        /// The pods to change.
        of: Target,
        /// Key of the annotation.
        key: Name,
        /// Value of the annotation.
        value: Name,
    },
    /// Makes a placed pod anew, to be placed on another node alone.
    MovePod {
        /// The pod.
        pod: PodKey,
        /// Name of the other node.
        to: Name,
    },
    /// Removes what pods require of their node's name and labels.
    DropNodeAffinity(Target),
    /// Removes the host ports of pods.
    DropHostPorts(Target),
    /// Makes the topology spread constraints of pods soft.
    RelaxSpread(Target),
    /// Makes the required pod affinity of pods a preference.
    RelaxPodAffinity(Target),
    /// Makes the required pod anti-affinity of pods a preference.
    RelaxPodAntiAffinity(Target),
    /// Removes the required pod affinity of pods.
    DropPodAffinity(Target),
    /// Removes the required pod anti-affinity of pods.
    DropPodAntiAffinity(Target),
    /// Removes the scheduling gates of pods.
    RemoveGates(Target),
    /// Sets how many members make a quorum of a gang, where the gang is defined.
    SetQuorum {
        /// The gang.
        gang: GangKey,
        /// Number of members of a quorum.
        min: u32,
    },
    /// Sets how much of a resource must be free before a gang is planned, in its PodGroup.
    SetMinResource {
        /// The gang.
        gang: GangKey,
        /// Name of the resource.
        resource: Name,
        /// Amount in the base unit of the resource.
        amount: i64,
    },
    /// Sets the weight of a plugin's scores in every profile; with 0 they do not count.
    SetWeight {
        /// Name of the plugin.
        plugin: Name,
        /// The new weight.
        weight: i64,
    },
}

impl Edit {
    /// Returns the inputs that a watch would deliver for the change, or why the edit does not fit the cluster. A weight
    /// is not part of the cluster, so it has none.
    pub(super) fn inputs(&self, cluster: &Cluster) -> Result<Vec<Input>, String> {
        let node = |name: &Name, change: &dyn Fn(&mut Node)| {
            let mut node = Node::clone(find_node(cluster, name)?);
            change(&mut node);
            Ok(vec![Input::NodeApplied(Arc::new(node))])
        };
        match self {
            Self::ApplyNode(node) => Ok(vec![Input::NodeApplied(node.clone())]),
            Self::CopyNode { node: like, name } => copy_node(cluster, like, name),
            Self::RemoveNode(name) => {
                find_node(cluster, name)?;
                Ok(vec![Input::NodeDeleted(name.clone())])
            }
            Self::RemoveTaint { node: name, key, effect } => {
                let goes = |t: &Taint| t.key == *key && effect.is_none_or(|e| e == t.effect);
                if !find_node(cluster, name)?.taints.iter().any(goes) {
                    return Err(format!("{name}: the node has no such taint: {key}"));
                }
                node(name, &|node| remove_taints(node, goes))
            }
            Self::Uncordon(name) => node(name, &open),
            Self::LabelNode { node: name, key, value } => {
                node(name, &|node| node.labels = node.labels.with(key.clone(), value.clone()))
            }
            Self::RemoveLabel { node: name, key } => {
                if find_node(cluster, name)?.labels.get(key).is_none() {
                    return Err(format!("{name}: the node has no label {key}"));
                }
                node(name, &|node| {
                    node.labels = Labels::new(node.labels.iter().filter(|(k, _)| k != key).cloned());
                })
            }
            Self::DeletePod(key) => {
                cluster.find_pod(key).ok_or_else(|| format!("{key}: there is no such pod"))?;
                Ok(vec![Input::PodDeleted(key.clone())])
            }
            Self::MovePod { pod, to } => moved(cluster, pod, to),
            Self::ApplyPod(pod) => Ok(vec![Input::PodApplied(pod.clone())]),
            Self::ApplyObject(object) => Ok(vec![Input::ObjectApplied(object.clone())]),
            Self::DeleteObject(kind, key) => {
                let known = cluster.objects().get(*kind, key);
                known.ok_or_else(|| format!("{}: there is no such {}", key.1, kind.as_str()))?;
                Ok(vec![Input::ObjectDeleted(*kind, key.clone())])
            }
            Self::ApplyCustom(object) => Ok(vec![Input::CustomApplied(object.clone())]),
            Self::DeleteCustom(kind, key) => {
                let known = cluster.custom_objects().get(*kind, key);
                known.ok_or_else(|| format!("{}: there is no such {}", key.1, kind.0.qualified))?;
                Ok(vec![Input::CustomDeleted(*kind, key.clone())])
            }
            Self::SetQuorum { gang, min } => quorum::inputs(cluster, gang, *min),
            Self::SetMinResource { gang, resource, amount } => {
                quorum::with_min_resource(cluster, gang, (resource, *amount))
            }
            _ => {
                let ids = self.target().map_or(Ok(Vec::new()), |of| members(cluster, of))?;
                let pods = ids.into_iter().filter_map(|id| cluster.pod(id));
                Ok(pods.map(|record| Input::PodApplied(Arc::new(self.changed(&record.pod)))).collect())
            }
        }
    }

    /// Returns a pod as this edit changes it, even if the edit is about other pods.
    pub fn changed(&self, pod: &Pod) -> Pod {
        let mut pod = pod.clone();
        let mut spec = PodSpec::clone(&pod.spec);
        self.change(&mut pod, &mut spec);
        pod.spec = Arc::new(spec);
        pod
    }

    fn change(&self, pod: &mut Pod, spec: &mut PodSpec) {
        match self {
            Self::SetRequest { resource, amount, instead_of, .. } => {
                let mut set = |resource: &Name, amount| {
                    let of_whole = |f: &RequestField| {
                        f.resource == *resource && f.init_container.is_none() && f.container.is_none()
                    };
                    let is_of_whole = pod.request_fields.iter().any(of_whole);
                    set_request(&mut spec.requests, resource, amount, is_of_whole);
                };
                set(resource, *amount);
                if let Some(other) = instead_of.as_ref().filter(|other| *other != resource) {
                    set(other, 0);
                }
                spec.qos = qos(spec, resource);
            }
            Self::AddToleration { taint, .. } => {
                let toleration = Toleration {
                    key: taint.key.clone(),
                    operator: TolerationOperator::Equal,
                    value: taint.value.clone(),
                    effect: Some(taint.effect),
                };
                spec.tolerations = spec.tolerations.iter().cloned().chain([toleration]).collect();
            }
            // The state copies the labels that somebody reads into the spec.
            Self::LabelPod { key, value, .. } => pod.labels = pod.labels.with(key.clone(), value.clone()),
            Self::AnnotatePod { key, value, .. } => {
                spec.annotations = spec.annotations.with(key.clone(), value.clone());
            }
            Self::DropNodeAffinity(_) => {
                let preferred = std::mem::take(&mut spec.affinity.preferred);
                spec.affinity = NodeAffinity { preferred, ..NodeAffinity::default() };
                spec.node_name = None;
            }
            Self::DropHostPorts(_) => spec.host_ports = Box::default(),
            Self::RelaxSpread(_) => spec.spread.iter_mut().for_each(|constraint| constraint.is_hard = false),
            Self::RelaxPodAffinity(_) => relax(&mut spec.pod_affinity),
            Self::RelaxPodAntiAffinity(_) => relax(&mut spec.pod_anti_affinity),
            Self::DropPodAffinity(_) => spec.pod_affinity.required = Box::default(),
            Self::DropPodAntiAffinity(_) => spec.pod_anti_affinity.required = Box::default(),
            Self::RemoveGates(_) => pod.gates = Box::default(),
            _ => {}
        }
    }

    /// Returns whether the edit changes what a pod may get without being made anew: tolerations, labels, annotations.
    pub fn is_patch(&self) -> bool {
        matches!(self, Self::AddToleration { .. } | Self::LabelPod { .. } | Self::AnnotatePod { .. })
    }

    /// Returns whether the pods that the edit adds or changes queue behind all others. A pod that is patched keeps its
    /// place.
    pub(super) fn queues_anew(&self) -> bool {
        !self.is_patch()
    }

    /// Returns the pods that the edit changes, if it changes pods.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::SetRequest { of, .. }
            | Self::AddToleration { of, .. }
            | Self::LabelPod { of, .. }
            | Self::AnnotatePod { of, .. }
            | Self::DropNodeAffinity(of)
            | Self::DropHostPorts(of)
            | Self::RelaxSpread(of)
            | Self::RelaxPodAffinity(of)
            | Self::RelaxPodAntiAffinity(of)
            | Self::DropPodAffinity(of)
            | Self::DropPodAntiAffinity(of)
            | Self::RemoveGates(of) => Some(of),
            _ => None,
        }
    }
}

/// Weight of a term that was required, the largest there is.
const WEIGHT: i32 = 100;

/// Makes required terms preferences.
fn relax(terms: &mut PodTerms) {
    let required = std::mem::take(&mut terms.required).into_iter();
    let softer = required.map(|term| WeightedTerm { weight: WEIGHT, term });
    terms.preferred = std::mem::take(&mut terms.preferred).into_iter().chain(softer).collect();
}

fn find_node<'c>(cluster: &'c Cluster, name: &Name) -> Result<&'c Arc<Node>, String> {
    let node = cluster.find_node(name).and_then(|idx| cluster.node(idx));
    node.ok_or_else(|| format!("{name}: there is no such node"))
}

/// Makes a placed pod anew, so that only another node can take it.
fn moved(cluster: &Cluster, key: &PodKey, to: &Name) -> Result<Vec<Input>, String> {
    find_node(cluster, to)?;
    let id = cluster.find_pod(key).ok_or_else(|| format!("{key}: there is no such pod"))?;
    let record = cluster.pod(id).ok_or_else(|| format!("{key}: there is no such pod"))?;
    match record.node {
        None => return Err(format!("{key}: the pod has no place; only placed pods can be moved")),
        Some(node) if cluster.node_name(node) == to => return Err(format!("{key}: the pod is on {to}")),
        Some(_) => {}
    }
    let mut pod = replacement(&record.pod);
    let mut spec = PodSpec::clone(&pod.spec);
    spec.node_name = Some(to.clone());
    pod.spec = Arc::new(spec);
    Ok(vec![Input::PodDeleted(key.clone()), Input::PodApplied(Arc::new(pod))])
}

/// Returns the pod that is made in place of a deleted one. It has the name of the deleted one, because nobody knows the
/// name that a controller will give it.
pub(super) fn replacement(pod: &Pod) -> Pod {
    Pod {
        uid: format!("replaces {}", pod.uid).into(),
        // It is younger than all others.
        created: i64::MAX,
        started: None,
        is_preempted: false,
        node_name: None,
        nominated_node: None,
        phase: PodPhase::Pending,
        deleting: false,
        scheduled_at: None,
        initialized_at: None,
        is_ready: false,
        scheduled: None,
        marks: Labels::default(),
        ..pod.clone()
    }
}

/// Copies a node with its labels and taints, except for the hostname label and the cordon.
fn copy_node(cluster: &Cluster, like: &Name, name: &Name) -> Result<Vec<Input>, String> {
    let mut node = Node::clone(find_node(cluster, like)?);
    if find_node(cluster, name).is_ok() {
        return Err(format!("{name}: there is such a node already"));
    }
    (node.name, node.uid) = (name.clone(), Arc::from(format!("copy of {like}")));
    node.labels = node.labels.with("kubernetes.io/hostname".into(), name.clone());
    open(&mut node);
    Ok(vec![Input::NodeApplied(Arc::new(node))])
}

/// Makes a node schedulable. The taint goes with the field, as the node controller would remove it.
fn open(node: &mut Node) {
    node.unschedulable = false;
    remove_taints(node, |t| &*t.key == "node.kubernetes.io/unschedulable");
}

fn remove_taints(node: &mut Node, goes: impl Fn(&Taint) -> bool) {
    node.taints = node.taints.iter().filter(|t| !goes(t)).cloned().collect();
}

/// Returns the pending pods of a target, sorted by name. Fails if the target does not exist or is a placed pod.
pub(super) fn members(cluster: &Cluster, of: &Target) -> Result<Vec<PodId>, String> {
    match of {
        Target::Pod(key) => {
            let id = cluster.find_pod(key).ok_or_else(|| format!("{key}: there is no such pod"))?;
            if cluster.pod(id).is_some_and(|r| r.node.is_some()) {
                return Err(format!("{key}: the pod is placed; only pending pods can be changed"));
            }
            Ok(vec![id])
        }
        Target::Gang(key) => {
            let gang = cluster.gangs().get(key).ok_or_else(|| format!("{key}: there is no such gang"))?;
            let is_pending = |id: &PodId| cluster.pod(*id).is_some_and(|r| r.node.is_none());
            let mut pods: Vec<PodId> = gang.members.keys().copied().filter(is_pending).collect();
            pods.sort_by_cached_key(|id| cluster.pod(*id).map(|r| r.pod.key.clone()));
            Ok(pods)
        }
    }
}

/// Sets what a pod requests, as a whole or in its containers. Scoring assumes a default amount for a container that requests
/// nothing: the default applies at 0 and ends with a request.
fn set_request(requests: &mut PodRequests, resource: &Name, amount: i64, is_of_whole: bool) {
    let list: &mut ResourceList = &mut requests.list;
    if let Some(own) = requests.by_containers.as_deref_mut().filter(|_| !is_of_whole) {
        match &**resource {
            "cpu" => own.milli_cpu = assumed(own.milli_cpu, list.milli_cpu, amount, DEFAULT_MILLI_CPU),
            "memory" => own.memory = assumed(own.memory, list.memory, amount, DEFAULT_MEMORY),
            _ => set_amount(own, resource, amount),
        }
    }
    match &**resource {
        "cpu" => {
            requests.non_zero_milli_cpu =
                assumed(requests.non_zero_milli_cpu, list.milli_cpu, amount, DEFAULT_MILLI_CPU);
            list.milli_cpu = amount;
        }
        "memory" => {
            requests.non_zero_memory = assumed(requests.non_zero_memory, list.memory, amount, DEFAULT_MEMORY);
            list.memory = amount;
        }
        _ => set_amount(list, resource, amount),
    }
}

/// Returns the QoS class of a pod that requests another amount of a resource.
fn qos(spec: &PodSpec, resource: &Name) -> Qos {
    let (own, limits) = (&spec.requests.list, &spec.limits);
    let amounts = |of: &ResourceList| (of.milli_cpu, of.memory);
    match spec.qos {
        known if !matches!(&**resource, "cpu" | "memory") => known,
        _ if (amounts(own), amounts(limits)) == ((0, 0), (0, 0)) => Qos::BestEffort,
        Qos::Guaranteed if amounts(own) == amounts(limits) => Qos::Guaranteed,
        _ => Qos::Burstable,
    }
}

/// Sets the amount of a resource in a list.
pub(super) fn set_amount(list: &mut ResourceList, resource: &Name, amount: i64) {
    match &**resource {
        "cpu" => list.milli_cpu = amount,
        "memory" => list.memory = amount,
        "ephemeral-storage" => list.ephemeral_storage = amount,
        "pods" => list.pods = amount,
        _ => {
            let mut scalars = list.scalars.to_vec();
            scalars.retain(|(name, _)| name != resource);
            if amount > 0 {
                scalars.push((resource.clone(), amount));
                scalars.sort();
            }
            list.scalars = scalars.into();
        }
    }
}

fn assumed(known: i64, old: i64, new: i64, default: i64) -> i64 {
    match (old, new) {
        (_, 0) => default,
        (0, _) => new,
        _ => known.saturating_sub(old).saturating_add(new),
    }
}
