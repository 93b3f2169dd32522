//! Turns the body of `POST /apis/v1/simulate` into a question.
//!
//! Manifests are decoded like those of a watch, and names must be valid for an API server. Whether the named objects
//! exist is checked when the question is planned (`diagnosis::simulate`).

use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid_api::rest::simulate::{EditBody, PodsOf, SimulateRequest, TaintOf};
use pellucid_cluster::input::Quarantined;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::{Edit, Target};
use pellucid_diagnosis::what_if::simulate::Question;
use pellucid_http::ReadError;
use pellucid_kubernetes::decode::Decoder;
use pellucid_model::taint::{Taint, TaintEffect};
use pellucid_model::{GangKey, Name, ObjectKind, Pod, PodKey, cancellation, quantity};
use serde_json::{Value, json};

use crate::rest::admission::admit;
use crate::rest::names::{
    container_resources, invalid, label_key, label_value, namespace, node_resources, object_name, resource,
    shown,
};
use crate::rest::plugin_objects::{applied, deleted};

const MAX_PODS: usize = 5_000;
const MAX_EDITS: usize = 1_000;
/// Most rows of a score table.
const MAX_ROWS: usize = 1_000;

/// Decodes a request. An error names the field and its value.
pub(crate) fn question(snapshot: &Snapshot, request: SimulateRequest) -> Result<Question, ReadError> {
    bound("pods", request.pods.len(), MAX_PODS)?;
    bound("podGroups", request.pod_groups.len(), MAX_PODS)?;
    bound("include", request.include.len(), MAX_PODS)?;
    bound("includeGangs", request.include_gangs.len(), MAX_PODS)?;
    bound("edits", request.edits.len(), MAX_EDITS)?;
    bound("scores", request.scores, MAX_ROWS)?;
    let mut question = Question {
        evict: request.evict,
        scores: request.scores,
        state_hash: request.state_hash,
        ..Question::default()
    };
    let decoder = &Decoder::in_use(&snapshot.registry, snapshot.profiles.iter().map(|profile| &**profile));
    question.edits = each(&request.edits, "edits", |body, field| edit(decoder, body, field))?;
    let groups = each(&request.pod_groups, "podGroups", |group, field| pod_group(decoder, group, field))?;
    question.edits.extend(groups);
    question.edits.extend(pods(snapshot, decoder, &request.pods)?);
    question.pods = each(&request.include, "include", |name, field| pod_key(name, field))?;
    question.gangs = each(&request.include_gangs, "includeGangs", |name, field| gang_key(name, field))?;
    let asks = !question.pods.is_empty() || !question.gangs.is_empty();
    if !asks && !question.edits.iter().any(asks_for_pods) {
        return Err(invalid("body", "no pod is asked for: give pods, include, includeGangs, or edit a pod"));
    }
    Ok(question)
}

/// Reads every item of a list, with the field in which it stands.
fn each<T, U>(
    list: &[T],
    field: &str,
    read: impl Fn(&T, &str) -> Result<U, ReadError>,
) -> Result<Vec<U>, ReadError> {
    list.iter().enumerate().map(|(at, item)| read(item, &format!("{field}[{at}]"))).collect()
}

fn asks_for_pods(edit: &Edit) -> bool {
    matches!(edit, Edit::ApplyPod(_) | Edit::MovePod { .. }) || edit.target().is_some()
}

fn bound(field: &str, n: usize, most: usize) -> Result<(), ReadError> {
    if n > most { Err(invalid(field, &format!("{n} is too many; at most {most}"))) } else { Ok(()) }
}

pub(super) fn unreadable(field: &str, q: &Quarantined) -> ReadError {
    let at = if q.field.is_empty() { String::new() } else { format!(".{}", q.field) };
    invalid(&format!("{field}{at}"), &format!("{} ({})", q.problem, q.value))
}

/// Decodes pods, and sets the fields that an API server or an admission plugin would set.
fn pods(snapshot: &Snapshot, decoder: &Decoder, manifests: &[Value]) -> Result<Vec<Edit>, ReadError> {
    let mut seen = BTreeSet::new();
    let mut edits = Vec::with_capacity(manifests.len());
    for (at, manifest) in manifests.iter().enumerate() {
        cancellation::check();
        let field = format!("pods[{at}]");
        let manifest = with_namespace(manifest, &field, "Pod")?;
        let mut pod = decoder.pod(&manifest).map_err(|q| unreadable(&field, &q))?;
        names(&manifest, &field)?;
        container_resources(&manifest["spec"], &format!("{field}.spec"))?;
        complete(snapshot, &mut pod, at, &field)?;
        admit(snapshot, &mut pod, &manifest, &field)?;
        if let Some(node) = &pod.node_name {
            let problem = format!("{node}: only pods that are to be placed can be simulated; leave it out");
            return Err(invalid(&format!("{field}.spec.nodeName"), &problem));
        }
        if pod.deleting || pod.phase.is_terminal() {
            return Err(invalid(&field, "the pod is being deleted, or has ended"));
        }
        if !seen.insert(pod.key.clone()) {
            return Err(invalid(&field, &format!("there are two pods {}", pod.key)));
        }
        if snapshot.cluster.find_pod(&pod.key).is_some() {
            let problem = format!("there is a pod {} already; use another name, or include it", pod.key);
            return Err(invalid(&field, &problem));
        }
        edits.push(Edit::ApplyPod(Arc::new(pod)));
    }
    Ok(edits)
}

fn complete(snapshot: &Snapshot, pod: &mut Pod, at: usize, field: &str) -> Result<(), ReadError> {
    if pod.scheduler_name.is_empty()
        && let Some(profile) = snapshot.profiles.first()
    {
        pod.scheduler_name = profile.scheduler_name.clone();
    }
    if !snapshot.cluster.is_ours(&pod.scheduler_name) {
        let problem = format!("{} is not a scheduler name of ours", pod.scheduler_name);
        return Err(invalid(&format!("{field}.spec.schedulerName"), &problem));
    }
    if pod.uid.is_empty() {
        pod.uid = format!("simulated-{at}").into();
    }
    Ok(())
}

/// Checks the kind of a manifest and puts an object without a namespace into `default`, as kubectl does.
pub(super) fn with_namespace(manifest: &Value, field: &str, kind: &str) -> Result<Value, ReadError> {
    let mut manifest = manifest.clone();
    let Some(object) = manifest.as_object_mut() else {
        return Err(invalid(field, &format!("not an object; want a {kind} manifest")));
    };
    if let Some(other) = object.get("kind").filter(|k| *k != kind) {
        return Err(invalid(&format!("{field}.kind"), &format!("want {kind}, found {other}")));
    }
    let meta = object.entry("metadata").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut()
        && meta.get("namespace").is_none_or(|ns| ns.as_str() == Some(""))
    {
        meta.insert("namespace".into(), "default".into());
    }
    Ok(manifest)
}

/// Checks the name and namespace of a namespaced object.
pub(super) fn names(manifest: &Value, field: &str) -> Result<(), ReadError> {
    let text = |at: &str| manifest["metadata"][at].as_str().unwrap_or_default();
    namespace(text("namespace"), &format!("{field}.metadata.namespace"))?;
    object_name(text("name"), &format!("{field}.metadata.name"))
}

fn pod_group(decoder: &Decoder, manifest: &Value, field: &str) -> Result<Edit, ReadError> {
    let manifest = with_namespace(manifest, field, "PodGroup")?;
    let version = manifest.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = version.split_once('/').map_or(version, |(group, _)| group);
    let of_group = |kind: &ObjectKind| kind.as_str().strip_prefix("PodGroup.") == Some(group);
    let kind = ObjectKind::POD_GROUPS.into_iter().find(of_group).ok_or_else(|| {
        let known = ObjectKind::POD_GROUPS.map(|kind| kind.as_str().trim_start_matches("PodGroup."));
        let problem =
            format!("{version:?} has no PodGroups that are read here; groups are {}", known.join(", "));
        invalid(&format!("{field}.apiVersion"), &problem)
    })?;
    let object = decoder.object(kind, &manifest).map_err(|q| unreadable(field, &q))?;
    names(&manifest, field)?;
    Ok(Edit::ApplyObject(Arc::new(object)))
}

fn edit(decoder: &Decoder, body: &EditBody, field: &str) -> Result<Edit, ReadError> {
    let at = |rest: &str| format!("{field}.{rest}");
    let node = |text: &str, rest: &str| object_name(text, &at(rest)).map(|()| Name::new(text));
    let pods_of = |of: &PodsOf, rest: &str| target(of.pod.as_deref(), of.gang.as_deref(), &at(rest));
    Ok(match body {
        EditBody::AddNode(manifest) => added_node(decoder, manifest, &at("addNode"))?,
        EditBody::CopyNode(copy) => Edit::CopyNode {
            node: node(&copy.node, "copyNode.node")?,
            name: node(&copy.name, "copyNode.name")?,
        },
        EditBody::RemoveNode(name) => Edit::RemoveNode(node(name, "removeNode")?),
        EditBody::RemoveTaint(taint) => Edit::RemoveTaint {
            node: node(&taint.node, "removeTaint.node")?,
            key: label_key(&taint.key, &at("removeTaint.key"))?,
            effect: effect(taint.effect.as_deref(), &at("removeTaint.effect"))?,
        },
        EditBody::Uncordon(name) => Edit::Uncordon(node(name, "uncordon")?),
        EditBody::LabelNode(label) => Edit::LabelNode {
            node: node(&label.node, "labelNode.node")?,
            key: label_key(&label.key, &at("labelNode.key"))?,
            value: label_value(&label.value, &at("labelNode.value"))?,
        },
        EditBody::RemoveLabel(label) => Edit::RemoveLabel {
            node: node(&label.node, "removeLabel.node")?,
            key: label_key(&label.key, &at("removeLabel.key"))?,
        },
        EditBody::DeletePod(pod) => Edit::DeletePod(pod_key(pod, &at("deletePod"))?),
        EditBody::SetWeight(set) if !(0..=100).contains(&set.weight) => {
            let problem = format!("{} is not between 0 and 100", set.weight);
            return Err(invalid(&at("setWeight.weight"), &problem));
        }
        EditBody::SetWeight(set) => Edit::SetWeight { plugin: Name::new(&set.plugin), weight: set.weight },
        EditBody::SetQuorum(set) => {
            let gang = gang_key(&set.gang, &at("setQuorum.gang"))?;
            if set.min == 0 {
                return Err(invalid(&at("setQuorum.min"), "0 is not a quorum"));
            }
            Edit::SetQuorum { gang, min: set.min }
        }
        EditBody::SetMinResource(set) => {
            let gang = gang_key(&set.gang, &at("setMinResource.gang"))?;
            resource(&set.resource, &at("setMinResource.resource"))?;
            let amount = amount(&set.resource, &set.amount, &at("setMinResource.amount"))?;
            Edit::SetMinResource { gang, resource: Name::new(&set.resource), amount }
        }
        EditBody::SetRequest(set) => {
            resource(&set.resource, &at("setRequest.resource"))?;
            let amount = amount(&set.resource, &set.amount, &at("setRequest.amount"))?;
            let of = target(set.pod.as_deref(), set.gang.as_deref(), &at("setRequest"))?;
            if let Some(other) = &set.instead_of {
                resource(other, &at("setRequest.insteadOf"))?;
            }
            let instead_of = set.instead_of.as_deref().map(Name::new);
            Edit::SetRequest { of, resource: Name::new(&set.resource), amount, instead_of }
        }
        EditBody::AddToleration(add) => {
            let of = target(add.pod.as_deref(), add.gang.as_deref(), &at("addToleration"))?;
            Edit::AddToleration { of, taint: taint(&add.taint, &at("addToleration.taint"))? }
        }
        EditBody::LabelPod(label) => Edit::LabelPod {
            of: target(label.pod.as_deref(), label.gang.as_deref(), &at("labelPod"))?,
            key: label_key(&label.key, &at("labelPod.key"))?,
            value: label_value(&label.value, &at("labelPod.value"))?,
        },
        EditBody::AnnotatePod(set) => Edit::AnnotatePod {
            of: target(set.pod.as_deref(), set.gang.as_deref(), &at("annotatePod"))?,
            key: label_key(&set.key, &at("annotatePod.key"))?,
            value: Name::new(&set.value),
        },
        EditBody::MovePod(moved) => Edit::MovePod {
            pod: pod_key(&moved.pod, &at("movePod.pod"))?,
            to: node(&moved.node, "movePod.node")?,
        },
        EditBody::DropNodeAffinity(of) => Edit::DropNodeAffinity(pods_of(of, "dropNodeAffinity")?),
        EditBody::DropHostPorts(of) => Edit::DropHostPorts(pods_of(of, "dropHostPorts")?),
        EditBody::RelaxSpread(of) => Edit::RelaxSpread(pods_of(of, "relaxSpread")?),
        EditBody::DropPodAffinity(of) => Edit::DropPodAffinity(pods_of(of, "dropPodAffinity")?),
        EditBody::RelaxPodAffinity(of) => Edit::RelaxPodAffinity(pods_of(of, "relaxPodAffinity")?),
        EditBody::RelaxPodAntiAffinity(of) => {
            Edit::RelaxPodAntiAffinity(pods_of(of, "relaxPodAntiAffinity")?)
        }
        EditBody::DropPodAntiAffinity(of) => Edit::DropPodAntiAffinity(pods_of(of, "dropPodAntiAffinity")?),
        EditBody::RemoveGates(of) => Edit::RemoveGates(pods_of(of, "removeGates")?),
        EditBody::ApplyObject(manifest) => applied(decoder, manifest, &at("applyObject"))?,
        EditBody::DeleteObject(object) => deleted(decoder, object, &at("deleteObject"))?,
    })
}

fn added_node(decoder: &Decoder, manifest: &Value, field: &str) -> Result<Edit, ReadError> {
    let node = decoder.node(manifest).map_err(|q| unreadable(field, &q))?;
    object_name(&node.name, &format!("{field}.metadata.name"))?;
    node_resources(&manifest["status"], &format!("{field}.status"))?;
    Ok(Edit::ApplyNode(Arc::new(node)))
}

fn amount(resource: &str, text: &str, field: &str) -> Result<i64, ReadError> {
    let amount = if resource == "cpu" { quantity::milli(text) } else { quantity::units(text) };
    match amount {
        Ok(amount) if amount >= 0 => Ok(amount),
        Ok(_) => Err(invalid(field, &format!("{text:?} is negative"))),
        Err(problem) => Err(invalid(field, &format!("{text:?}: {problem}"))),
    }
}

fn target(pod: Option<&str>, gang: Option<&str>, field: &str) -> Result<Target, ReadError> {
    match (pod, gang) {
        (Some(pod), None) => Ok(Target::Pod(pod_key(pod, &format!("{field}.pod"))?)),
        (None, Some(gang)) => Ok(Target::Gang(gang_key(gang, &format!("{field}.gang"))?)),
        _ => Err(invalid(field, "give either pod or gang")),
    }
}

fn split<'t>(text: &'t str, field: &str) -> Result<(&'t str, &'t str), ReadError> {
    let parts =
        text.split_once('/').filter(|(ns, name)| !ns.is_empty() && !name.is_empty() && !name.contains('/'));
    let (of, name) =
        parts.ok_or_else(|| invalid(field, &format!("{} is not namespace/name", shown(text))))?;
    namespace(of, field)?;
    Ok((of, name))
}

fn pod_key(text: &str, field: &str) -> Result<PodKey, ReadError> {
    let (namespace, name) = split(text, field)?;
    object_name(name, field)?;
    Ok(PodKey::new(namespace, name))
}

/// Parses a gang key. A gang's name may come from an annotation, which takes any text, so it is not checked.
fn gang_key(text: &str, field: &str) -> Result<GangKey, ReadError> {
    split(text, field).map(|(namespace, name)| GangKey::new(namespace, name))
}

fn effect(text: Option<&str>, field: &str) -> Result<Option<TaintEffect>, ReadError> {
    let known = [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute];
    let Some(text) = text else { return Ok(None) };
    let found = known.into_iter().find(|effect| effect.as_str() == text);
    let problem = format!("{text:?} is none of NoSchedule, PreferNoSchedule, NoExecute");
    found.map(Some).ok_or_else(|| invalid(field, &problem))
}

fn taint(of: &TaintOf, field: &str) -> Result<Taint, ReadError> {
    let effect = effect(of.effect.as_deref(), &format!("{field}.effect"))?;
    let effect = effect.ok_or_else(|| invalid(field, "effect is missing"))?;
    let key = label_key(&of.key, &format!("{field}.key"))?;
    Ok(Taint { key, value: label_value(&of.value, &format!("{field}.value"))?, effect })
}
