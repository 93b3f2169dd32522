//! Pods from the wire to the model. What cannot be read is quarantined with the exact field, never guessed.
//!
//! Defaults that an API server fills in (a request that only has a limit, host ports of pods on the host
//! network, protocols) are filled in here as well, because simulate, replay and tests decode manifests that
//! no API server has seen.
#![expect(
    clippy::result_large_err,
    reason = "unreadable objects are rare, and a readable pod is larger still"
)]

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

pub use super::decode_node::node_from_value;
use super::decode_requests::requests;
use super::lenient::{Fault, Lenient, List, Shape};
use super::slim;
use super::slim::SlimPod;
use crate::cluster::input::Quarantined;
use crate::model::pod::{HostPort, PodPhase, Protocol, ScheduledCondition};
use crate::model::selector::{Labels, NodeAffinity, NodeSelectorTerm, Operator, PreferredTerm, Requirement};
use crate::model::taint::{TaintEffect, Toleration, TolerationOperator};
use crate::model::{Name, Pod, PodKey, PodSpec};

/// Decodes a Pod manifest.
pub fn pod_from_value(value: &Value) -> Result<Pod, Quarantined> {
    match SlimPod::deserialize(value) {
        Ok(slim) => pod(&slim),
        Err(error) => Err(quarantined("Pod", None, None, Fault::new("", "", error.to_string()))),
    }
}

/// Decodes a Pod.
pub(super) fn pod(slim: &SlimPod) -> Result<Pod, Quarantined> {
    read_pod(slim).map_err(|fault| {
        let body = slim.body.good();
        let spec = body.and_then(|b| b.spec.good());
        let scheduler = spec.and_then(|s| s.scheduler_name.good()).cloned();
        quarantined("Pod", body.and_then(|b| b.metadata.good()), scheduler, fault)
    })
}

/// Makes the record of an object that cannot be read, with as much of its identity as can be.
pub(super) fn quarantined(
    kind: &'static str,
    meta: Option<&slim::Meta>,
    scheduler_name: Option<Name>,
    fault: Fault,
) -> Quarantined {
    let text = |field: Option<&Lenient<Arc<str>>>| field.and_then(Lenient::good).cloned();
    Quarantined {
        kind,
        namespace: meta.and_then(|m| m.namespace.good()).cloned().unwrap_or_default(),
        name: text(meta.map(|m| &m.name)).unwrap_or_else(|| "".into()),
        uid: text(meta.map(|m| &m.uid)).unwrap_or_else(|| "".into()),
        scheduler_name,
        field: fault.field.into(),
        value: fault.value.into(),
        problem: fault.problem.into(),
    }
}

fn read_pod(slim: &SlimPod) -> Result<Pod, Fault> {
    let Some(body) = slim.body.read("")? else { return Err(Fault::new("", "null", "not an object")) };
    let no_meta = slim::Meta::default();
    let no_spec = slim::PodSpec::default();
    let no_status = slim::PodStatus::default();
    let meta = body.metadata.read("metadata")?.unwrap_or(&no_meta);
    let spec = body.spec.read("spec")?.unwrap_or(&no_spec);
    let status = body.status.read("status")?.unwrap_or(&no_status);
    let under_status = |fault: Fault| fault.under("status");
    let under_spec = |fault: Fault| fault.under("spec");
    let under_meta = |fault: Fault| fault.under("metadata");
    let mut read = read_spec(spec, status)?;
    read.namespace = meta.namespace.read("namespace").map_err(under_meta)?.cloned().unwrap_or_default();
    read.labels = labels(meta).map_err(under_meta)?;
    read.priority = priority(spec).map_err(under_spec)?;
    Ok(Pod {
        key: PodKey {
            namespace: read.namespace.clone(),
            name: required(&meta.name, "name").map_err(under_meta)?,
        },
        uid: meta.uid.read("uid").map_err(under_meta)?.cloned().unwrap_or_else(|| "".into()),
        created: meta.creation_timestamp.read("creationTimestamp").map_err(under_meta)?.map_or(0, |m| m.0),
        labels: read.labels.clone(),
        priority: read.priority,
        never_preempts: false,
        started: None,
        is_preempted: false,
        scheduler_name: name(&spec.scheduler_name, "schedulerName").map_err(under_spec)?,
        node_name: filled(&spec.node_name, "nodeName").map_err(under_spec)?,
        nominated_node: filled(&status.nominated_node_name, "nominatedNodeName").map_err(under_status)?,
        gates: spec
            .scheduling_gates
            .each("schedulingGates", |gate| name(&gate.name, "name"))
            .map_err(under_spec)?
            .into(),
        phase: phase(status).map_err(under_status)?,
        deleting: meta.deletion_timestamp.read("deletionTimestamp").map_err(under_meta)?.is_some(),
        is_static: meta.annotations.read("annotations").map_err(under_meta)?.is_some_and(|m| m.0),
        scheduled: scheduled(status).map_err(under_status)?,
        spec: Arc::new(read),
    })
}

fn read_spec(spec: &slim::PodSpec, status: &slim::PodStatus) -> Result<PodSpec, Fault> {
    let requests = requests(spec, status)?;
    let n_containers = count(&spec.containers) + count(&spec.init_containers);
    let read = || {
        Ok(PodSpec {
            requests,
            node_name: None,
            affinity: affinity(spec)?,
            tolerations: spec.tolerations.each("tolerations", toleration)?.into(),
            host_ports: host_ports(spec)?,
            images: images(spec)?,
            n_containers,
            ..PodSpec::default()
        })
    };
    read().map_err(|fault: Fault| fault.under("spec"))
}

fn count<T>(list: &List<T>) -> u32 {
    if let Lenient::Good(items) = list { u32::try_from(items.len()).unwrap_or(u32::MAX) } else { 0 }
}

/// Reads a field that every object has.
pub(super) fn required<T: Shape + Clone>(value: &Lenient<T>, field: &str) -> Result<T, Fault> {
    value.read(field)?.cloned().ok_or_else(|| Fault::new(field, "", "missing"))
}

/// Reads a text, empty when absent.
pub(super) fn name(value: &Lenient<Name>, field: &str) -> Result<Name, Fault> {
    Ok(value.read(field)?.cloned().unwrap_or_default())
}

/// Reads a text, `None` when absent or empty.
fn filled(value: &Lenient<Name>, field: &str) -> Result<Option<Name>, Fault> {
    Ok(value.read(field)?.filter(|n| !n.is_empty()).cloned())
}

/// Reads `metadata.labels`.
pub(super) fn labels(meta: &slim::Meta) -> Result<Labels, Fault> {
    meta.labels.entries("labels", |_, value| Ok(value.clone())).map(Labels::new)
}

fn int32(value: i64, field: &str) -> Result<i32, Fault> {
    i32::try_from(value).map_err(|_| Fault::new(field, &value.to_string(), "not a 32-bit integer"))
}

fn priority(spec: &slim::PodSpec) -> Result<i32, Fault> {
    int32(spec.priority.read("priority")?.copied().unwrap_or(0), "priority")
}

fn phase(status: &slim::PodStatus) -> Result<PodPhase, Fault> {
    Ok(match status.phase.read("phase")?.map_or("", Name::as_str) {
        "" | "Pending" => PodPhase::Pending,
        "Running" => PodPhase::Running,
        "Succeeded" => PodPhase::Succeeded,
        "Failed" => PodPhase::Failed,
        "Unknown" => PodPhase::Unknown,
        other => return Err(Fault::new("phase", other, "unknown phase")),
    })
}

fn scheduled(status: &slim::PodStatus) -> Result<Option<ScheduledCondition>, Fault> {
    let mut found = None;
    status.conditions.each("conditions", |condition| {
        if name(&condition.r#type, "type")?.as_str() == "PodScheduled" {
            let text = |value: Option<&Arc<str>>| value.cloned().unwrap_or_else(|| "".into());
            found = Some(ScheduledCondition {
                is_true: name(&condition.status, "status")?.as_str() == "True",
                reason: text(condition.reason.read("reason")?),
                message: text(condition.message.read("message")?),
            });
        }
        Ok(())
    })?;
    Ok(found)
}

fn affinity(spec: &slim::PodSpec) -> Result<NodeAffinity, Fault> {
    let mut selector = spec.node_selector.entries("nodeSelector", |_, value| Ok(value.clone()))?;
    selector.sort();
    let mut read = NodeAffinity { selector: selector.into(), ..Default::default() };
    let Some(affinity) = spec.affinity.read("affinity")? else { return Ok(read) };
    let path = "affinity.nodeAffinity";
    let Some(node) = affinity.node_affinity.read(path)? else { return Ok(read) };
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    if let Some(selector) = node.required.read(required).map_err(|f| f.under(path))? {
        let terms = selector.node_selector_terms.each("nodeSelectorTerms", term);
        read.required = Some(terms.map_err(|f| f.under(required).under(path))?.into());
    }
    let preferred = node.preferred.each("preferredDuringSchedulingIgnoredDuringExecution", |preferred| {
        let empty = slim::SelectorTerm::default();
        let preference = preferred.preference.read("preference")?.unwrap_or(&empty);
        Ok(PreferredTerm {
            weight: int32(preferred.weight.read("weight")?.copied().unwrap_or(0), "weight")?,
            term: term(preference).map_err(|f| f.under("preference"))?,
        })
    });
    read.preferred = preferred.map_err(|f| f.under(path))?.into();
    Ok(read)
}

fn term(term: &slim::SelectorTerm) -> Result<NodeSelectorTerm, Fault> {
    Ok(NodeSelectorTerm {
        expressions: term.match_expressions.each("matchExpressions", requirement)?.into(),
        fields: term.match_fields.each("matchFields", requirement)?.into(),
    })
}

fn requirement(requirement: &slim::Requirement) -> Result<Requirement, Fault> {
    let operator = match name(&requirement.operator, "operator")?.as_str() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        other => return Err(Fault::new("operator", other, "unknown node selector operator")),
    };
    Ok(Requirement {
        key: required(&requirement.key, "key")?,
        operator,
        values: requirement.values.each("values", |value| Ok(value.clone()))?.into(),
    })
}

/// Reads a taint effect, `None` when absent or empty.
pub(super) fn taint_effect(value: &Lenient<Name>) -> Result<Option<TaintEffect>, Fault> {
    Ok(match value.read("effect")?.map_or("", Name::as_str) {
        "" => None,
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Some(TaintEffect::PreferNoSchedule),
        "NoExecute" => Some(TaintEffect::NoExecute),
        other => return Err(Fault::new("effect", other, "unknown taint effect")),
    })
}

fn toleration(toleration: &slim::Toleration) -> Result<Toleration, Fault> {
    Ok(Toleration {
        key: name(&toleration.key, "key")?,
        operator: match name(&toleration.operator, "operator")?.as_str() {
            "" | "Equal" => TolerationOperator::Equal,
            "Exists" => TolerationOperator::Exists,
            _ => TolerationOperator::Unknown,
        },
        value: name(&toleration.value, "value")?,
        effect: taint_effect(&toleration.effect)?,
    })
}

/// Host ports of containers and sidecars, sorted, each once.
fn host_ports(spec: &slim::PodSpec) -> Result<Box<[HostPort]>, Fault> {
    let on_host = spec.host_network.read("hostNetwork")?.copied().unwrap_or(false);
    let ports = |container: &slim::Container| container.ports.each("ports", |p| host_port(p, on_host));
    let containers = spec.containers.each("containers", ports)?;
    let sidecars = spec.init_containers.each("initContainers", |container| {
        if is_sidecar(container)? { ports(container) } else { Ok(Vec::new()) }
    })?;
    let mut all: Vec<_> = containers.into_iter().chain(sidecars).flatten().flatten().collect();
    all.sort();
    all.dedup();
    Ok(all.into())
}

/// Whether an init container stays: `restartPolicy: Always`.
pub(super) fn is_sidecar(container: &slim::Container) -> Result<bool, Fault> {
    Ok(container.restart_policy.read("restartPolicy")?.is_some_and(|p| p.as_str() == "Always"))
}

fn host_port(port: &slim::Port, on_host: bool) -> Result<Option<HostPort>, Fault> {
    let mut host = port.host_port.read("hostPort")?.copied().unwrap_or(0);
    let mut field = "hostPort";
    if host == 0 && on_host {
        host = port.container_port.read("containerPort")?.copied().unwrap_or(0);
        field = "containerPort";
    }
    if host == 0 {
        return Ok(None);
    }
    let number = u16::try_from(host).map_err(|_| Fault::new(field, &host.to_string(), "not a port"))?;
    let protocol = match name(&port.protocol, "protocol")?.as_str() {
        "" | "TCP" => Protocol::Tcp,
        "UDP" => Protocol::Udp,
        "SCTP" => Protocol::Sctp,
        other => return Err(Fault::new("protocol", other, "unknown protocol")),
    };
    let ip = filled(&port.host_ip, "hostIP")?.unwrap_or_else(|| "0.0.0.0".into());
    Ok(Some(HostPort { protocol, ip, port: number }))
}

/// Images of init containers, containers and image volumes.
fn images(spec: &slim::PodSpec) -> Result<Box<[Name]>, Fault> {
    let image = |container: &slim::Container| Ok(normalised(&name(&container.image, "image")?));
    let mut all = spec.init_containers.each("initContainers", image)?;
    all.extend(spec.containers.each("containers", image)?);
    let volumes = spec.volumes.each("volumes", |volume| match volume.image.read("image")? {
        Some(image) => filled(&image.reference, "reference").map_err(|f| f.under("image")),
        None => Ok(None),
    })?;
    all.extend(volumes.iter().flatten().map(normalised));
    Ok(all.into())
}

/// Appends `:latest` to an image without tag or digest. A colon before the last slash is a registry's port.
fn normalised(image: &Name) -> Name {
    if image.rfind(':') <= image.rfind('/') { Name::new(&format!("{image}:latest")) } else { image.clone() }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
