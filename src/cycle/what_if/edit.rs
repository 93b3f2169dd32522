//! Hypothetical changes of the cluster, and how they become what a watch would have said.
//!
//! An edit of a pod or node is a changed copy of the object, applied as any other input. Nothing here knows
//! how decisions are made, or writes to the cluster.

use std::fmt;
use std::sync::Arc;

use pellucid_cluster::{Cluster, Input};
use pellucid_model::requests::{DEFAULT_MEMORY, DEFAULT_MILLI_CPU, PodRequests, ResourceList};
use pellucid_model::selector::NodeAffinity;
use pellucid_model::taint::{Taint, TaintEffect, Toleration, TolerationOperator};
use pellucid_model::{GangKey, Name, Node, NodeIdx, Object, Pod, PodId, PodKey, PodSpec};

/// The pods an edit is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// One pod.
    Pod(PodKey),
    /// The members of a gang that are not placed.
    Gang(GangKey),
}

/// One change.
#[derive(Clone, Debug)]
pub enum Edit {
    /// A node is added, or becomes this one.
    ApplyNode(Arc<Node>),
    /// An empty node like one that is there, open for pods.
    CopyNode {
        /// The node that is copied, without its pods.
        node: Name,
        /// Name of the new one.
        name: Name,
    },
    /// A node goes. Its pods keep their places on it.
    RemoveNode(Name),
    /// A node loses its taints with a key.
    RemoveTaint {
        /// Node.
        node: Name,
        /// Key.
        key: Name,
        /// Only those with this effect.
        effect: Option<TaintEffect>,
    },
    /// A node is open for pods again.
    Uncordon(Name),
    /// A node has a label.
    LabelNode {
        /// Node.
        node: Name,
        /// Key.
        key: Name,
        /// Value.
        value: Name,
    },
    /// A pod goes, and what it holds is free.
    DeletePod(PodKey),
    /// A pod is added, or becomes this one.
    ApplyPod(Arc<Pod>),
    /// An object of another kind is added, or becomes this one.
    ApplyObject(Arc<Object>),
    /// Pods request another amount of a resource, in its base unit.
    SetRequest {
        /// Pods.
        of: Target,
        /// Resource.
        resource: Name,
        /// Amount; 0 takes the request away.
        amount: i64,
    },
    /// Pods tolerate a taint.
    AddToleration {
        /// Pods.
        of: Target,
        /// The taint.
        taint: Taint,
    },
    /// Pods do not choose nodes by name or label any more.
    DropNodeAffinity(Target),
    /// Pods take no ports of their host.
    DropHostPorts(Target),
    /// Pods only prefer to be spread.
    RelaxSpread(Target),
    /// Pods do not require other pods beside them.
    DropPodAffinity(Target),
    /// Pods do not require other pods to stay away.
    DropPodAntiAffinity(Target),
    /// Pods have no scheduling gates.
    RemoveGates(Target),
    /// A plugin's scores have another weight in every profile; 0 takes them away.
    SetWeight {
        /// Plugin.
        plugin: Name,
        /// Weight.
        weight: i64,
    },
}

/// An edit that does not fit the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditError {
    /// What it is about.
    pub what: String,
    /// What is wrong.
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
    /// Returns what a watch would have said of the change. Weights are not the cluster's and say nothing.
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

    /// The edits of pods.
    fn pods(&self, cluster: &Cluster) -> Result<Vec<Input>, EditError> {
        let Some(of) = self.target() else { return Ok(Vec::new()) };
        let ids = members(cluster, of)?;
        let pods = ids.into_iter().filter_map(|id| cluster.pod(id));
        Ok(pods.map(|record| Input::PodApplied(Arc::new(self.changed(&record.pod)))).collect())
    }

    /// Returns a pod as this edit makes it, whichever pods it is about.
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

    /// Returns the pods it changes, if it changes pods.
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

/// A copy has the labels and taints of its model, but for the label that names the machine, and is not cordoned.
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

/// Lets pods onto a node. The node controller takes the taint away with the field.
fn open(node: &mut Node) {
    node.unschedulable = false;
    let is_cordon = |t: &Taint| &*t.key == "node.kubernetes.io/unschedulable";
    node.taints = node.taints.iter().filter(|t| !is_cordon(t)).cloned().collect();
}

/// Returns the pods of a target that are not placed, by name.
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

/// Sets what a pod requests. Scoring assumes an amount for a container that requests nothing: it comes with 0
/// and goes with a request.
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
