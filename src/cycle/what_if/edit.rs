//! Hypothetical changes of the cluster, converted to the inputs that a watch would deliver.
//!
//! An edit of a pod or node becomes a changed copy of the object, applied like any other input. This module makes no
//! decisions and writes nothing to the cluster.

use std::fmt;
use std::sync::Arc;

use pellucid_cluster::{Cluster, Input};
use pellucid_model::requests::{DEFAULT_MEMORY, DEFAULT_MILLI_CPU, PodRequests, ResourceList};
use pellucid_model::selector::NodeAffinity;
use pellucid_model::taint::{Taint, TaintEffect, Toleration, TolerationOperator};
use pellucid_model::{GangKey, Name, Node, NodeIdx, Object, Pod, PodId, PodKey, PodSpec};

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
    /// Deletes a pod and frees what it holds.
    DeletePod(PodKey),
    /// Adds or replaces a pod.
    ApplyPod(Arc<Pod>),
    /// Adds or replaces an object of another kind.
    ApplyObject(Arc<Object>),
    /// Changes how much of a resource pods request.
    SetRequest {
        /// The pods to change.
        of: Target,
        /// Name of the resource.
        resource: Name,
        /// Amount in the base unit of the resource; 0 removes the request.
        amount: i64,
    },
    /// Adds a toleration to pods.
    AddToleration {
        /// The pods to change.
        of: Target,
        /// The taint that they tolerate.
        taint: Taint,
    },
    /// Removes what pods require of their node's name and labels.
    DropNodeAffinity(Target),
    /// Removes the host ports of pods.
    DropHostPorts(Target),
    /// Makes the topology spread constraints of pods soft.
    RelaxSpread(Target),
    /// Removes the required pod affinity of pods.
    DropPodAffinity(Target),
    /// Removes the required pod anti-affinity of pods.
    DropPodAntiAffinity(Target),
    /// Removes the scheduling gates of pods.
    RemoveGates(Target),
    /// Sets the weight of a plugin's scores in every profile; with 0 they do not count.
    SetWeight {
        /// Name of the plugin.
        plugin: Name,
        /// The new weight.
        weight: i64,
    },
}

/// An edit that does not fit the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditError {
    /// The object that the edit is about.
    pub what: String,
    /// Why the edit does not fit.
    pub problem: String,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.problem)
    }
}

impl std::error::Error for EditError {}

fn error(what: impl fmt::Display, problem: &str) -> EditError {
    EditError { what: what.to_string(), problem: problem.to_string() }
}

impl Edit {
    /// Returns the inputs that a watch would deliver for the change. A weight is not part of the cluster, so it has
    /// none.
    pub(super) fn inputs(&self, cluster: &Cluster) -> Result<Vec<Input>, EditError> {
        let node = |name: &Name, change: &dyn Fn(&mut Node) -> Result<(), EditError>| {
            let (_, known) = find_node(cluster, name)?;
            let mut node = Node::clone(known);
            change(&mut node)?;
            Ok(vec![Input::NodeApplied(Arc::new(node))])
        };
        match self {
            Self::ApplyNode(node) => Ok(vec![Input::NodeApplied(node.clone())]),
            Self::CopyNode { node: like, name } => copy_node(cluster, like, name),
            Self::RemoveNode(name) => {
                find_node(cluster, name)?;
                Ok(vec![Input::NodeDeleted(name.clone())])
            }
            Self::RemoveTaint { node: name, key, effect } => node(name, &|node| {
                let goes = |t: &Taint| t.key == *key && effect.is_none_or(|e| e == t.effect);
                if !node.taints.iter().any(goes) {
                    return Err(error(name, &format!("the node has no such taint: {key}")));
                }
                node.taints = node.taints.iter().filter(|t| !goes(t)).cloned().collect();
                Ok(())
            }),
            Self::Uncordon(name) => node(name, &|node| {
                open(node);
                Ok(())
            }),
            Self::LabelNode { node: name, key, value } => node(name, &|node| {
                node.labels = node.labels.with(key.clone(), value.clone());
                Ok(())
            }),
            Self::DeletePod(key) => {
                cluster.find_pod(key).ok_or_else(|| error(key, "there is no such pod"))?;
                Ok(vec![Input::PodDeleted(key.clone())])
            }
            Self::ApplyPod(pod) => Ok(vec![Input::PodApplied(pod.clone())]),
            Self::ApplyObject(object) => Ok(vec![Input::ObjectApplied(object.clone())]),
            Self::SetWeight { .. } => Ok(Vec::new()),
            _ => self.pods(cluster),
        }
    }

    /// Returns the inputs of an edit of pods.
    fn pods(&self, cluster: &Cluster) -> Result<Vec<Input>, EditError> {
        let Some(of) = self.target() else { return Ok(Vec::new()) };
        let ids = members(cluster, of)?;
        let pods = ids.into_iter().filter_map(|id| cluster.pod(id));
        Ok(pods.map(|record| Input::PodApplied(Arc::new(self.changed(&record.pod)))).collect())
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
            Self::SetRequest { resource, amount, .. } => set_request(&mut spec.requests, resource, *amount),
            Self::AddToleration { taint, .. } => {
                let toleration = Toleration {
                    key: taint.key.clone(),
                    operator: TolerationOperator::Equal,
                    value: taint.value.clone(),
                    effect: Some(taint.effect),
                };
                let mut all = spec.tolerations.to_vec();
                all.push(toleration);
                spec.tolerations = all.into();
            }
            Self::DropNodeAffinity(_) => {
                let preferred = std::mem::take(&mut spec.affinity.preferred);
                spec.affinity = NodeAffinity { preferred, ..NodeAffinity::default() };
                spec.node_name = None;
            }
            Self::DropHostPorts(_) => spec.host_ports = Box::default(),
            Self::RelaxSpread(_) => {
                let soft = spec.spread.iter().cloned().map(|mut constraint| {
                    constraint.is_hard = false;
                    constraint
                });
                spec.spread = soft.collect();
            }
            Self::DropPodAffinity(_) => spec.pod_affinity.required = Box::default(),
            Self::DropPodAntiAffinity(_) => spec.pod_anti_affinity.required = Box::default(),
            Self::RemoveGates(_) => pod.gates = Box::default(),
            _ => {}
        }
    }

    /// Returns the pods that the edit changes, if it changes pods.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::SetRequest { of, .. } | Self::AddToleration { of, .. } => Some(of),
            Self::DropNodeAffinity(of)
            | Self::DropHostPorts(of)
            | Self::RelaxSpread(of)
            | Self::DropPodAffinity(of)
            | Self::DropPodAntiAffinity(of)
            | Self::RemoveGates(of) => Some(of),
            _ => None,
        }
    }
}

fn find_node<'c>(cluster: &'c Cluster, name: &Name) -> Result<(NodeIdx, &'c Arc<Node>), EditError> {
    let idx = cluster.find_node(name).and_then(|idx| Some((idx, cluster.node(idx)?)));
    idx.ok_or_else(|| error(name, "there is no such node"))
}

/// Copies a node with its labels and taints, except for the hostname label and the cordon.
fn copy_node(cluster: &Cluster, like: &Name, name: &Name) -> Result<Vec<Input>, EditError> {
    let (_, known) = find_node(cluster, like)?;
    if cluster.find_node(name).is_some_and(|idx| cluster.node(idx).is_some()) {
        return Err(error(name, "there is such a node already"));
    }
    let mut node = Node::clone(known);
    (node.name, node.uid) = (name.clone(), Arc::from(format!("copy of {like}")));
    node.labels = node.labels.with("kubernetes.io/hostname".into(), name.clone());
    open(&mut node);
    Ok(vec![Input::NodeApplied(Arc::new(node))])
}

/// Makes a node schedulable. The taint goes with the field, as the node controller would remove it.
fn open(node: &mut Node) {
    node.unschedulable = false;
    let is_cordon = |t: &Taint| &*t.key == "node.kubernetes.io/unschedulable";
    node.taints = node.taints.iter().filter(|t| !is_cordon(t)).cloned().collect();
}

/// Returns the pending pods of a target, sorted by name. Fails if the target does not exist or is a placed pod.
pub(super) fn members(cluster: &Cluster, of: &Target) -> Result<Vec<PodId>, EditError> {
    match of {
        Target::Pod(key) => {
            let id = cluster.find_pod(key).ok_or_else(|| error(key, "there is no such pod"))?;
            if cluster.pod(id).is_some_and(|r| r.node.is_some()) {
                return Err(error(key, "the pod is placed; only pending pods can be changed"));
            }
            Ok(vec![id])
        }
        Target::Gang(key) => {
            let gang = cluster.gangs().get(key).ok_or_else(|| error(key, "there is no such gang"))?;
            let is_pending = |id: &PodId| cluster.pod(*id).is_some_and(|r| r.node.is_none());
            let mut pods: Vec<PodId> = gang.members.keys().copied().filter(is_pending).collect();
            pods.sort_by_cached_key(|id| cluster.pod(*id).map(|r| r.pod.key.clone()));
            Ok(pods)
        }
    }
}

/// Sets what a pod requests. Scoring assumes a default amount for a container that requests nothing: the default
/// applies at 0 and ends with a request.
fn set_request(requests: &mut PodRequests, resource: &Name, amount: i64) {
    let list: &mut ResourceList = &mut requests.list;
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
        "ephemeral-storage" => list.ephemeral_storage = amount,
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
