//! The parts of a fix. Each relaxes one failed requirement on one node: an edit that can be simulated, how to apply
//! it for real, and its cost.

use pellucid_api::reason::{ReasonCode, Resolver};
use pellucid_api::rest::simulate::{
    AddToleration, CopyNode, EditBody, LabelNode, PodsOf, RemoveTaint, SetRequest, TaintOf,
};
use pellucid_cluster::{Cluster, Place};
use pellucid_cycle::what_if::edit::{Edit, Target};
use pellucid_cycle::what_if::exhaustive::{Requirement, masks_of_pod_on};
use pellucid_model::quantity::{format_amount, format_milli};
use pellucid_model::taint::{Taint, TaintEffect, tolerated};
use pellucid_model::{Name, NodeIdx, PodId, PodKey, PodSpec};
use serde_json::{Value, json};

use crate::what_if::requirements::{PodRequirements, missing, requested};

/// Largest number of pods that a fix removes from a node.
const MOST_VICTIMS: usize = 8;

/// One part of a fix. A higher cost means that it is harder to apply.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) edit: Edit,
    pub(super) body: EditBody,
    pub(super) text: String,
    pub(super) command: Option<String>,
    pub(super) recreate: bool,
    pub(super) resolver: Resolver,
    pub(super) cost: u32,
}

impl Part {
    /// Builds a part without a command. The owner makes edits of pods, the administrator all others.
    pub(super) fn new(edit: Edit, body: EditBody, text: String, cost: u32) -> Self {
        let resolver = if edit.target().is_some() { Resolver::PodOwner } else { Resolver::ClusterAdmin };
        Self { edit, body, text, command: None, recreate: false, resolver, cost }
    }

    fn with_command(self, command: String) -> Self {
        Self { command: Some(command), ..self }
    }
}

/// The side of a failed requirement that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Pod,
    Cluster,
}

/// Returns the parts that relax a requirement on a node. Falls back to the other side when `side` offers none.
pub(super) fn relax(
    asked: &PodRequirements<'_>,
    of: &Target,
    node: NodeIdx,
    requirement: &Requirement,
    side: Side,
) -> Option<Vec<Part>> {
    let pod = || of_pod(asked, of, node, requirement).map(|part| vec![part]);
    let cluster = || of_cluster(asked, node, requirement);
    match side {
        Side::Pod => pod().or_else(cluster),
        Side::Cluster => cluster().or_else(pod),
    }
}

/// Returns a change of the pod that relaxes the requirement, if there is one.
pub(super) fn of_pod(
    asked: &PodRequirements<'_>,
    of: &Target,
    node: NodeIdx,
    requirement: &Requirement,
) -> Option<Part> {
    match requirement.reason.code {
        ReasonCode::InsufficientResource => {
            let (_, available) = missing(asked, node, requirement)?;
            let resource = requirement.reason.subject.as_ref()?;
            (available > 0).then(|| set_request(&asked.record.pod.spec, of, resource, available))
        }
        ReasonCode::UntoleratedTaint => Some(tolerate(asked, of, taint_of(asked, node, requirement)?)),
        ReasonCode::NodeAffinityMismatch | ReasonCode::NodeNameMismatch => Some(drop_part(
            of,
            Edit::DropNodeAffinity,
            EditBody::DropNodeAffinity,
            "let it run on other nodes (no nodeSelector, no required node affinity)",
            45,
        )),
        ReasonCode::HostPortConflict => {
            Some(drop_part(of, Edit::DropHostPorts, EditBody::DropHostPorts, "take no host port", 45))
        }
        _ => match requirement.plugin {
            "PodTopologySpread" => Some(drop_part(
                of,
                Edit::RelaxSpread,
                EditBody::RelaxSpread,
                "only prefer to be spread (whenUnsatisfiable: ScheduleAnyway)",
                40,
            )),
            "InterPodAffinity" => affinity(asked, of, requirement),
            _ => None,
        },
    }
}

fn affinity(asked: &PodRequirements<'_>, of: &Target, requirement: &Requirement) -> Option<Part> {
    let spec = &asked.record.pod.spec;
    match requirement.reason.code {
        ReasonCode::PodAffinityMismatch if !spec.pod_affinity.required.is_empty() => Some(drop_part(
            of,
            Edit::DropPodAffinity,
            EditBody::DropPodAffinity,
            "require no other pods beside it (no required podAffinity)",
            50,
        )),
        ReasonCode::PodAntiAffinityConflict if !spec.pod_anti_affinity.required.is_empty() => {
            Some(drop_part(
                of,
                Edit::DropPodAntiAffinity,
                EditBody::DropPodAntiAffinity,
                "bear other pods near it (no required podAntiAffinity)",
                50,
            ))
        }
        _ => None,
    }
}

fn drop_part(
    of: &Target,
    edit: fn(Target) -> Edit,
    body: fn(PodsOf) -> EditBody,
    text: &str,
    cost: u32,
) -> Part {
    Part { recreate: true, ..Part::new(edit(of.clone()), body(pods_of(of)), text.into(), cost) }
}

/// Returns the target as the `pod` and `gang` fields of an edit's body.
fn pods_of(of: &Target) -> PodsOf {
    match of {
        Target::Pod(key) => PodsOf { pod: Some(key.to_string()), gang: None },
        Target::Gang(key) => PodsOf { pod: None, gang: Some(key.to_string()) },
    }
}

pub(super) fn remove_gates(of: &Target, gates: &[Name]) -> Part {
    let names: Vec<&str> = gates.iter().map(Name::as_str).collect();
    let text = format!("remove the scheduling gates {}", names.join(", "));
    let command = patch(of, &json!([{"op": "remove", "path": "/spec/schedulingGates"}]));
    let (edit, body) = (Edit::RemoveGates(of.clone()), EditBody::RemoveGates(pods_of(of)));
    Part { command, ..Part::new(edit, body, text, 5) }
}

/// Formats an amount as a manifest states it, without rounding.
pub(crate) fn exact(resource: &str, amount: i64) -> String {
    if resource == "cpu" { format_milli(amount) } else { amount.to_string() }
}

/// Builds the part that lowers a resource request.
pub(super) fn set_request(spec: &PodSpec, of: &Target, resource: &Name, amount: i64) -> Part {
    let requested = requested(spec, resource).unwrap_or(0);
    let PodsOf { pod, gang } = pods_of(of);
    let body = SetRequest { pod, gang, resource: resource.to_string(), amount: exact(resource, amount) };
    // The cost grows with the part of the request that is cut, by up to 40.
    let cut =
        u32::try_from((requested - amount).max(0) as i128 * 40 / i128::from(requested.max(1))).unwrap_or(40);
    let (from, to) = (format_amount(resource, requested), format_amount(resource, amount));
    let text = format!("request {to} of {resource} instead of {from}");
    let edit = Edit::SetRequest { of: of.clone(), resource: resource.clone(), amount };
    Part { recreate: true, ..Part::new(edit, EditBody::SetRequest(body), text, 40 + cut) }
}

fn taint_of<'a>(
    asked: &'a PodRequirements<'_>,
    node: NodeIdx,
    requirement: &Requirement,
) -> Option<&'a Taint> {
    let subject = requirement.reason.subject.as_ref()?;
    let taints = &asked.cluster.node(node)?.taints;
    let tolerations = &asked.record.pod.spec.tolerations;
    taints.iter().filter(|t| !tolerated(tolerations, t)).find(|t| **subject == *taint_text(t))
}

/// Builds the part that adds a toleration. Existing pods may gain tolerations.
fn tolerate(asked: &PodRequirements<'_>, of: &Target, taint: &Taint) -> Part {
    let PodsOf { pod, gang } = pods_of(of);
    let body = TaintOf {
        key: taint.key.to_string(),
        value: taint.value.to_string(),
        effect: Some(taint.effect.as_str().into()),
    };
    let toleration = json!({
        "key": &*taint.key, "operator": "Equal", "value": &*taint.value, "effect": taint.effect.as_str(),
    });
    let (path, value) = match asked.record.pod.spec.tolerations.is_empty() {
        true => ("/spec/tolerations", json!([toleration])),
        false => ("/spec/tolerations/-", toleration),
    };
    let command = patch(of, &json!([{"op": "add", "path": path, "value": value}]));
    let edit = Edit::AddToleration { of: of.clone(), taint: taint.clone() };
    let body = EditBody::AddToleration(AddToleration { pod, gang, taint: body });
    Part { command, ..Part::new(edit, body, format!("tolerate taint {}", taint_text(taint)), 20) }
}

/// Returns the command that patches a pod. There is none for a gang.
fn patch(of: &Target, patch: &Value) -> Option<String> {
    let Target::Pod(PodKey { namespace, name }) = of else { return None };
    Some(format!("kubectl -n {namespace} patch pod {name} --type=json -p '{patch}'"))
}

fn taint_text(taint: &Taint) -> String {
    let value = if taint.value.is_empty() { String::new() } else { format!("={}", taint.value) };
    format!("{}{value}:{}", taint.key, taint.effect.as_str())
}

/// Returns changes of the cluster that relax the requirement, if there are any.
pub(super) fn of_cluster(
    asked: &PodRequirements<'_>,
    node: NodeIdx,
    requirement: &Requirement,
) -> Option<Vec<Part>> {
    let name = &asked.cluster.slot(node).name;
    match requirement.reason.code {
        ReasonCode::NodeUnschedulable => Some(vec![uncordon(name)]),
        ReasonCode::UntoleratedTaint => Some(vec![remove_taint(name, taint_of(asked, node, requirement)?)]),
        ReasonCode::NodeAffinityMismatch => label(asked, node),
        _ => {
            let victims = victims_on(asked, node)?;
            Some(victims.into_iter().map(|key| delete_pod(asked, key)).collect())
        }
    }
}

pub(super) fn uncordon(node: &Name) -> Part {
    let (edit, body) = (Edit::Uncordon(node.clone()), EditBody::Uncordon(node.to_string()));
    let command = format!("kubectl uncordon {node}");
    Part::new(edit, body, format!("uncordon node {node}"), 10).with_command(command)
}

/// Builds the part that removes a taint from a node. For the taint of a cordon it uncordons.
pub(super) fn remove_taint(node: &Name, taint: &Taint) -> Part {
    if &*taint.key == "node.kubernetes.io/unschedulable" && taint.effect == TaintEffect::NoSchedule {
        return uncordon(node);
    }
    let body = RemoveTaint {
        node: node.to_string(),
        key: taint.key.to_string(),
        effect: Some(taint.effect.as_str().into()),
    };
    let edit = Edit::RemoveTaint { node: node.clone(), key: taint.key.clone(), effect: Some(taint.effect) };
    let text = format!("remove taint {} from node {node}", taint_text(taint));
    let command = format!("kubectl taint nodes {node} {}:{}-", taint.key, taint.effect.as_str());
    Part::new(edit, EditBody::RemoveTaint(body), text, 30).with_command(command)
}

/// Builds the parts that add the labels a `nodeSelector` requires. Returns `None` if the pod has required affinity
/// terms, which may require anything.
fn label(asked: &PodRequirements<'_>, node: NodeIdx) -> Option<Vec<Part>> {
    let affinity = &asked.record.pod.spec.affinity;
    let object = asked.cluster.node(node)?;
    if affinity.required.is_some() {
        return None;
    }
    let name = &object.name;
    let missing = affinity.selector.iter().filter(|(key, value)| object.labels.get(key) != Some(value));
    let part = |(key, value): &(Name, Name)| {
        let edit = Edit::LabelNode { node: name.clone(), key: key.clone(), value: value.clone() };
        let body = LabelNode { node: name.to_string(), key: key.to_string(), value: value.to_string() };
        let text = format!("label node {name} with {key}={value}");
        let command = format!("kubectl label nodes {name} {key}={value} --overwrite");
        Part::new(edit, EditBody::LabelNode(body), text, 25).with_command(command)
    };
    let parts: Vec<Part> = missing.map(part).collect();
    (!parts.is_empty()).then_some(parts)
}

pub(super) fn delete_pod(asked: &PodRequirements<'_>, key: PodKey) -> Part {
    let record = asked.cluster.find_pod(&key).and_then(|id| asked.cluster.pod(id));
    let is_higher = record.is_some_and(|r| r.pod.priority > asked.record.pod.priority);
    let cost = if is_higher { 100 } else { 60 };
    let (text, body) = (format!("let pod {key} go"), EditBody::DeletePod(key.to_string()));
    let command = format!("kubectl -n {} delete pod {}", key.namespace, key.name);
    Part::new(Edit::DeletePod(key), body, text, cost).with_command(command)
}

/// Builds the part that adds a node like an existing one.
pub(super) fn copy_node(like: &Name, number: usize) -> Part {
    let name = format!("{like}-copy-{number}");
    let edit = Edit::CopyNode { node: like.clone(), name: Name::new(&name) };
    let body = EditBody::CopyNode(CopyNode { node: like.to_string(), name });
    Part::new(edit, body, format!("add a node like {like}"), 120)
}

/// Returns a minimal set of pods that must leave a node so that it takes the pod. Pods of low priority go first, then
/// those with the largest CPU request. Returns `None` when removing pods does not help, or more than `MOST_VICTIMS`
/// would have to leave.
pub(crate) fn victims_on(asked: &PodRequirements<'_>, node: NodeIdx) -> Option<Vec<PodKey>> {
    let mut cluster = asked.cluster.fork();
    let spec = asked.record.pod.spec.clone();
    let movable = |id: &PodId| {
        cluster.pod(*id).is_some_and(|r| !r.pod.deleting && !r.pod.is_static && r.node == Some(node))
    };
    let mut pods: Vec<PodId> = cluster.slot(node).pods.iter().copied().filter(movable).collect();
    pods.sort_by_cached_key(|id| {
        cluster.pod(*id).map(|r| {
            let requests = &r.pod.spec.requests.list;
            (r.pod.priority, std::cmp::Reverse(requests.milli_cpu), r.pod.key.clone())
        })
    });
    let profile = asked.profile;
    let fits = |cluster: &mut Cluster| {
        let masks = masks_of_pod_on(cluster, profile, (asked.id, &spec), &[node]);
        masks.pod.is_none() && masks.of(node) == 0
    };
    let mut gone: Vec<(PodId, Place)> = Vec::new();
    let mut all = pods.iter();
    while !fits(&mut cluster) {
        let id = *all.next()?;
        gone.push((id, cluster.displace(id)?));
    }
    // Put back the pods whose removal was not needed, the last removed first.
    let mut needed: Vec<PodId> = Vec::new();
    for (id, place) in gone.into_iter().rev() {
        cluster.put_back(id, place);
        if !fits(&mut cluster) {
            cluster.release(id);
            needed.push(id);
        }
    }
    let keys = needed.iter().filter_map(|id| cluster.pod(*id).map(|r| r.pod.key.clone()));
    let mut keys: Vec<PodKey> = keys.collect();
    keys.sort();
    (!keys.is_empty() && keys.len() <= MOST_VICTIMS).then_some(keys)
}
