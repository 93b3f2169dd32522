//! The parts of a fix. Each relaxes one failed requirement on one node: an edit that can be simulated, how to apply
//! it for real, and its cost.

use pellucid_api::reason::{ReasonCode, Resolver};
use pellucid_api::rest::explain::OwnerOf;
use pellucid_api::rest::simulate::{
    AddToleration, CopyNode, EditBody, PodsOf, RemoveTaint, SetRequest, TaintOf,
};
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::{Edit, Target};
use pellucid_cycle::what_if::exhaustive::Requirement;
use pellucid_cycle::what_if::simulation::Simulation;
use pellucid_framework::advice::Exchange;
use pellucid_model::quantity::format_amount;
use pellucid_model::taint::{Taint, TaintEffect, tolerated};
use pellucid_model::{Name, NodeIdx, Now, Pod, PodKey, PodSpec};
use serde_json::json;

use super::labels;
use super::owners::request_field;
use super::victims::delete_pod;
use crate::requirements::victims::victims_on;
use crate::requirements::{PodRequirements, missing, requested};

/// One part of a fix. A higher cost means that it is harder to apply.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) edit: Edit,
    pub(super) body: EditBody,
    pub(super) text: String,
    pub(super) command: Option<String>,
    pub(super) recreate: bool,
    pub(super) resolver: Resolver,
    /// Of a change of one pod: the controller that is changed, or the object for which the pod stands.
    pub(super) owner: Option<OwnerOf>,
    /// Whether the object is changed for which the pod stands.
    pub(super) is_of_object: bool,
    pub(super) cost: u32,
    /// Its place among the parts of one change that must be carried out in an order.
    pub(super) place: u32,
    /// Whether it counts only together with the other parts of its change, so that it is never left out.
    pub(super) is_bound: bool,
}

impl Part {
    /// Builds a part without a command. The owner makes edits of pods, the administrator all others.
    pub(super) fn new(edit: Edit, body: EditBody, text: String, cost: u32) -> Self {
        let resolver = if edit.target().is_some() { Resolver::PodOwner } else { Resolver::ClusterAdmin };
        let (command, owner, recreate) = (None, None, false);
        let (place, is_of_object, is_bound) = (0, false, false);
        Self { edit, body, text, command, recreate, resolver, owner, is_of_object, cost, place, is_bound }
    }

    pub(super) fn with_command(self, command: String) -> Self {
        Self { command: Some(command), ..self }
    }
}

/// The side of a failed requirement that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Pod,
    Cluster,
    /// Of each requirement the side that costs less.
    Cheapest,
}

impl Side {
    pub(super) const ALL: [Self; 3] = [Self::Pod, Self::Cluster, Self::Cheapest];
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
        Side::Cheapest => match (pod(), cluster()) {
            (Some(pod), Some(cluster)) => Some(if cost(&cluster) < cost(&pod) { cluster } else { pod }),
            (pod, cluster) => pod.or(cluster),
        },
    }
}

/// Returns the sum of the parts' costs.
pub(super) fn cost(parts: &[Part]) -> u32 {
    parts.iter().map(|part| part.cost).sum()
}

/// Puts parts in the order in which they are listed: the easiest first.
pub(super) fn put_in_order(parts: &mut [Part]) {
    parts.sort_by(|a, b| (a.cost, a.place, &a.text).cmp(&(b.cost, b.place, &b.text)));
}

/// Returns the parts without one of them, `None` when that one counts only together with others.
pub(super) fn without(parts: &[Part], at: usize) -> Option<Vec<Part>> {
    if parts[at].is_bound {
        return None;
    }
    Some([&parts[..at], &parts[at + 1..]].concat())
}

/// Returns a change of the pod that relaxes the requirement, if there is one.
pub(super) fn of_pod(
    asked: &PodRequirements<'_>,
    of: &Target,
    node: NodeIdx,
    requirement: &Requirement,
) -> Option<Part> {
    let part = relaxed(asked, of, node, requirement)?;
    Some(match of {
        Target::Pod(_) => owned(asked, part),
        Target::Gang(_) => part,
    })
}

/// Says what to change for a change of one pod: the object for which it stands, or its controller; `commands` says how.
pub(super) fn owned(asked: &PodRequirements<'_>, part: Part) -> Part {
    let pod = &asked.record.pod;
    let all = match &part.edit {
        Edit::SetRequest { resource, amount, .. } => requested_in(pod, resource, *amount),
        _ => String::new(),
    };
    let part = in_object(pod, Part { text: format!("{}{all}", part.text), ..part });
    match crate::owner::owner(&asked.cluster, pod) {
        Some(owner) if !part.is_of_object => made_in(owner, part),
        _ => part,
    }
}

/// Makes a change of a pod that stands for an object one of the object. Nobody can edit such a pod: the object has its
/// template and is changed where it is, by no command that is known here.
pub(super) fn in_object(pod: &Pod, part: Part) -> Part {
    let Some(of) = pod.stands_for.as_deref() else { return part };
    let owner = OwnerOf { kind: of.kind.to_string(), name: of.name.to_string() };
    made_in(owner, Part { recreate: false, command: None, is_of_object: true, ..part })
}

fn made_in(owner: OwnerOf, part: Part) -> Part {
    Part { text: format!("{} (in {} {})", part.text, owner.kind, owner.name), owner: Some(owner), ..part }
}

/// Says where a pod requests a resource, for a request of this amount, unless its only container does.
fn requested_in(pod: &Pod, resource: &Name, amount: i64) -> String {
    if pod.requests_of_one {
        return String::new();
    }
    let Some(field) = request_field(pod, resource, amount) else {
        return ", all its containers together".into();
    };
    let place = match (&field.init_container, &field.container) {
        (Some((_, name)), _) => format!("init container {name}"),
        (None, Some((_, name))) => format!("container {name}"),
        (None, None) => "spec.resources".into(),
    };
    match field.beside {
        0 => format!(" in {place}"),
        beside => format!(" in all: {} in {place}", format_amount(resource, amount - beside)),
    }
}

fn relaxed(
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
        ReasonCode::UntoleratedTaint => Some(tolerate(of, taint_of(asked, node, requirement)?)),
        ReasonCode::NodeAffinityMismatch | ReasonCode::NodeNameMismatch if !is_tied(asked) => {
            Some(drop_part(
                of,
                Edit::DropNodeAffinity,
                EditBody::DropNodeAffinity,
                "let it run on other nodes (no nodeSelector, no required node affinity)",
                45,
            ))
        }
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

/// Returns whether the pod's controller names its node, and would name it again.
pub(super) fn is_tied(asked: &PodRequirements<'_>) -> bool {
    asked.record.pod.spec.is_daemon
}

fn affinity(asked: &PodRequirements<'_>, of: &Target, requirement: &Requirement) -> Option<Part> {
    let spec = &asked.record.pod.spec;
    match requirement.reason.code {
        ReasonCode::PodAffinityMismatch if !spec.pod_affinity.required.is_empty() => Some(drop_part(
            of,
            Edit::RelaxPodAffinity,
            EditBody::RelaxPodAffinity,
            "only prefer other pods beside it (podAffinity preferred, not required)",
            50,
        )),
        ReasonCode::PodAntiAffinityConflict if !spec.pod_anti_affinity.required.is_empty() => {
            Some(drop_part(
                of,
                Edit::RelaxPodAntiAffinity,
                EditBody::RelaxPodAntiAffinity,
                "only prefer to be away from other pods (podAntiAffinity preferred, not required)",
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
pub(super) fn pods_of(of: &Target) -> PodsOf {
    match of {
        Target::Pod(key) => PodsOf { pod: Some(key.to_string()), gang: None },
        Target::Gang(key) => PodsOf { pod: None, gang: Some(key.to_string()) },
    }
}

pub(super) fn remove_gates(of: &Target, gates: &[Name]) -> Part {
    let names: Vec<&str> = gates.iter().map(Name::as_str).collect();
    let text = format!("remove the scheduling gates {}", names.join(", "));
    let patch = json!([{"op": "remove", "path": "/spec/schedulingGates"}]);
    let command = match of {
        Target::Pod(PodKey { namespace, name }) => {
            Some(format!("kubectl -n {namespace} patch pod {name} --type=json -p '{patch}'"))
        }
        Target::Gang(_) => None,
    };
    let (edit, body) = (Edit::RemoveGates(of.clone()), EditBody::RemoveGates(pods_of(of)));
    Part { command, ..Part::new(edit, body, text, 5) }
}

/// Returns an amount of bytes in whole mebibytes, not more than it is, as people state it; other amounts as they are.
pub(super) fn round(resource: &str, amount: i64) -> i64 {
    let mebibyte = 1 << 20;
    let is_bytes = format_amount(resource, mebibyte) == "1Mi";
    if is_bytes && amount > mebibyte { amount - amount % mebibyte } else { amount }
}

/// Builds the part that lowers a resource request.
pub(super) fn set_request(spec: &PodSpec, of: &Target, resource: &Name, amount: i64) -> Part {
    let (requested, amount) = (requested(spec, resource).unwrap_or(0), round(resource, amount));
    let PodsOf { pod, gang } = pods_of(of);
    let (from, to) = (format_amount(resource, requested), format_amount(resource, amount));
    let body = SetRequest { pod, gang, resource: resource.to_string(), amount: to.clone(), instead_of: None };
    let text = format!("request {to} of {resource} instead of {from}");
    let edit = Edit::SetRequest { of: of.clone(), resource: resource.clone(), amount, instead_of: None };
    Part { recreate: true, ..Part::new(edit, EditBody::SetRequest(body), text, cut_cost(requested, amount)) }
}

/// Builds the part that requests something else than before, as a plugin proposes it.
pub(super) fn exchange(of: &Target, exchange: Exchange, (text, cost): (String, u32)) -> Part {
    let Exchange { resource, amount, instead_of } = exchange;
    let PodsOf { pod, gang } = pods_of(of);
    let (name, to, other) =
        (resource.to_string(), format_amount(&resource, amount), Some(instead_of.to_string()));
    let body = SetRequest { pod, gang, resource: name, amount: to, instead_of: other };
    let edit = Edit::SetRequest { of: of.clone(), resource, amount, instead_of: Some(instead_of) };
    Part { recreate: true, ..Part::new(edit, EditBody::SetRequest(body), text, cost) }
}

/// Returns the cost of a lower request. It grows with the part of the request that is cut, by up to 40.
pub(super) fn cut_cost(requested: i64, amount: i64) -> u32 {
    let cut = i128::from(requested) - i128::from(amount);
    40 + u32::try_from(cut.max(0) * 40 / i128::from(requested.max(1))).unwrap_or(40)
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
fn tolerate(of: &Target, taint: &Taint) -> Part {
    let PodsOf { pod, gang } = pods_of(of);
    let body = TaintOf {
        key: taint.key.to_string(),
        value: taint.value.to_string(),
        effect: Some(taint.effect.as_str().into()),
    };
    let edit = Edit::AddToleration { of: of.clone(), taint: taint.clone() };
    let body = EditBody::AddToleration(AddToleration { pod, gang, taint: body });
    Part::new(edit, body, format!("tolerate taint {}", taint_text(taint)), 20)
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
    let name = asked.cluster.node_name(node);
    match requirement.reason.code {
        ReasonCode::NodeUnschedulable => Some(vec![uncordon(name)]),
        ReasonCode::UntoleratedTaint => Some(vec![remove_taint(name, taint_of(asked, node, requirement)?)]),
        ReasonCode::NodeAffinityMismatch => {
            labels::parts(&asked.record.pod.spec.affinity, asked.cluster.node(node)?)
        }
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

/// Builds the part that adds a node like an existing one.
pub(super) fn copy_node(like: &Name, number: usize) -> Part {
    let name = format!("{like}-copy-{number}");
    let edit = Edit::CopyNode { node: like.clone(), name: Name::new(&name) };
    let body = EditBody::CopyNode(CopyNode { node: like.to_string(), name });
    Part::new(edit, body, format!("add a node like {like}"), 120)
}

/// Returns a copy of the state with a change applied, in the order in which its parts are listed: a new node is like the
/// changed one. Returns `None` when an edit cannot be applied.
pub(super) fn changed(snapshot: &Snapshot, parts: &[Part], now: Now) -> Option<Simulation> {
    let mut simulation = Simulation::of(snapshot, now);
    let mut parts = parts.to_vec();
    put_in_order(&mut parts);
    for part in &parts {
        simulation.edit(&part.edit).ok()?;
    }
    Some(simulation)
}
