//! Pods. A binding or eviction without an answer is settled by reading the pod.

use std::sync::Arc;

use pellucid_cluster::input::Quarantined;
use pellucid_model::pod::{PodPhase, ScheduledCondition};
use pellucid_model::relations::PodTerms;
use pellucid_model::selector::{Labels, NodeAffinity, NodeSelectorTerm, PreferredTerm};
use pellucid_model::taint::{TaintEffect, Toleration, TolerationOperator};
use pellucid_model::{Name, Pod, PodKey, PodSpec};

use crate::decode::containers::{host_ports, images, required_features};
use crate::decode::fields::{annotations, filled, int32, labels, marks, name, required, term, text};
use crate::decode::gangs::declaration::add_gang;
use crate::decode::lenient::{Fault, Lenient, List};
use crate::decode::objects::bodies;
use crate::decode::relations::{controller, is_daemon, owner, spread, terms};
use crate::decode::requests::{are_of_one, limits, qos, request_fields, requests};
use crate::decode::volumes::volumes;
use crate::decode::wire::PodBody;
use crate::decode::{Item, quarantined, wire};
use crate::kinds::resource::{BuiltIn, Resource};

pub(crate) static POD: BuiltIn<Pod> = BuiltIn {
    resource: Resource {
        is_required: true,
        verbs: &["get", "delete", "patch", "binding/create", "status/patch"],
        ..Resource::new("", "v1", "pods")
    },
    read: |text| Item::read::<PodBody>(text, pod),
};

bodies!(PodBody);

/// Decodes a Pod. Fails with its identity and the first field that cannot be read.
fn pod(body: &Lenient<PodBody>) -> Result<Pod, Quarantined> {
    read_pod(body).map_err(|fault| {
        let body = body.good();
        let spec = body.and_then(|b| b.spec.good());
        let scheduler = spec.and_then(|s| s.scheduler_name.good()).cloned();
        let is_bound = spec.and_then(|s| s.node_name.good()).is_some_and(|name| !name.is_empty());
        Quarantined { is_bound, ..quarantined("Pod", body.and_then(|b| b.metadata.good()), scheduler, fault) }
    })
}

fn read_pod(body: &Lenient<PodBody>) -> Result<Pod, Fault> {
    let Some(body) = body.read("")? else { return Err(Fault::new("", "null", "not an object")) };
    let (no_meta, no_spec, no_status) = <(wire::Meta, wire::PodSpec, wire::PodStatus)>::default();
    let meta = body.metadata.read("metadata")?.unwrap_or(&no_meta);
    let spec = body.spec.read("spec")?.unwrap_or(&no_spec);
    let status = body.status.read("status")?.unwrap_or(&no_status);
    let mut pod = identity(meta).map_err(|f| f.under("metadata"))?;
    add_status(&mut pod, status).map_err(|f| f.under("status"))?;
    let own = PodSpec {
        namespace: pod.key.namespace.clone(),
        labels: pod.labels.clone(),
        owner: owner(meta).map_err(|f| f.under("metadata"))?,
        is_daemon: is_daemon(meta).map_err(|f| f.under("metadata"))?,
        annotations: annotations(meta).map_err(|f| f.under("metadata"))?,
        requests: requests(spec, status)?,
        limits: limits(spec)?,
        qos: qos(spec)?,
        ..PodSpec::default()
    };
    add_spec(&mut pod, spec, own).map_err(|f| f.under("spec"))?;
    pod.controller = controller(meta).map_err(|f| f.under("metadata"))?;
    pod.requests_of_one = are_of_one(spec).map_err(|f| f.under("spec"))?;
    pod.request_fields = request_fields(spec).map_err(|f| f.under("spec"))?;
    add_gang(&mut pod, meta, spec)?;
    Ok(pod)
}

/// Starts a pod from `metadata`.
fn identity(meta: &wire::Meta) -> Result<Pod, Fault> {
    Ok(Pod {
        key: PodKey { namespace: name(&meta.namespace, "namespace")?, name: required(&meta.name, "name")? },
        uid: text(&meta.uid, "uid")?,
        created: meta.creation_timestamp.read("creationTimestamp")?.map_or(0, |m| m.0),
        labels: labels(meta)?,
        marks: marks(meta)?,
        deleting: meta.deletion_timestamp.read("deletionTimestamp")?.is_some(),
        is_static: meta.annotations.read("annotations")?.is_some_and(|known| known.is_mirror),
        ..Pod::default()
    })
}

fn add_status(pod: &mut Pod, status: &wire::PodStatus) -> Result<(), Fault> {
    pod.started = status.start_time.read("startTime")?.map(|m| m.0);
    pod.nominated_node = filled(&status.nominated_node_name, "nominatedNodeName")?;
    pod.phase = phase(status)?;
    status.conditions.each("conditions", |condition| add_condition(pod, condition))?;
    Ok(())
}

fn add_condition(pod: &mut Pod, condition: &wire::Condition) -> Result<(), Fault> {
    let is_true = || Ok(name(&condition.status, "status")?.as_str() == "True");
    let reason = || text(&condition.reason, "reason");
    let since = || Ok(condition.last_transition_time.read("lastTransitionTime")?.map(|m| m.0));
    match name(&condition.r#type, "type")?.as_str() {
        "Initialized" if is_true()? => pod.initialized_at = since()?,
        "Ready" => pod.is_ready = is_true()?,
        "PodScheduled" => {
            if is_true()? {
                pod.scheduled_at = since()?;
            }
            pod.scheduled = Some(ScheduledCondition {
                is_true: is_true()?,
                reason: reason()?,
                message: text(&condition.message, "message")?,
            });
        }
        "DisruptionTarget" => pod.is_preempted = is_true()? && &*reason()? == "PreemptionByScheduler",
        _ => {}
    }
    Ok(())
}

/// Adds the fields of `spec`. `own` is a spec with the fields that come from `metadata` and `status`.
fn add_spec(pod: &mut Pod, spec: &wire::PodSpec, own: PodSpec) -> Result<(), Fault> {
    pod.priority = int32(&spec.priority, "priority", 0)?;
    pod.never_preempts = match name(&spec.preemption_policy, "preemptionPolicy")?.as_str() {
        "" | "PreemptLowerPriority" => false,
        "Never" => true,
        other => return Err(Fault::new("preemptionPolicy", other, "unknown preemption policy")),
    };
    pod.scheduler_name = name(&spec.scheduler_name, "schedulerName")?;
    pod.node_name = filled(&spec.node_name, "nodeName")?;
    pod.gates = names(&spec.scheduling_gates, "schedulingGates")?;
    let (pod_affinity, pod_anti_affinity) = pod_terms(spec, &pod.labels)?;
    pod.spec = Arc::new(PodSpec {
        priority: pod.priority,
        affinity: node_affinity(spec)?,
        pod_affinity,
        pod_anti_affinity,
        spread: spread(spec, &pod.labels)?,
        tolerations: spec.tolerations.each("tolerations", toleration)?.into(),
        host_ports: host_ports(spec)?,
        images: images(spec)?,
        n_containers: count(&spec.containers) + count(&spec.init_containers),
        volumes: volumes(spec, &pod.key.name, &pod.uid)?,
        resource_claims: names(&spec.resource_claims, "resourceClaims")?,
        required_features: required_features(spec)?,
        ..own
    });
    Ok(())
}

fn names(list: &List<wire::Named>, field: &str) -> Result<Box<[Name]>, Fault> {
    list.each(field, |named| name(&named.name, "name")).map(Into::into)
}

fn count<T>(list: &List<T>) -> u32 {
    if let Lenient::Good(items) = list { u32::try_from(items.len()).unwrap_or(u32::MAX) } else { 0 }
}

fn phase(status: &wire::PodStatus) -> Result<PodPhase, Fault> {
    Ok(match status.phase.read("phase")?.map_or("", Name::as_str) {
        "" | "Pending" => PodPhase::Pending,
        "Running" => PodPhase::Running,
        "Succeeded" => PodPhase::Succeeded,
        "Failed" => PodPhase::Failed,
        "Unknown" => PodPhase::Unknown,
        other => return Err(Fault::new("phase", other, "unknown phase")),
    })
}

fn pod_terms(spec: &wire::PodSpec, labels: &Labels) -> Result<(PodTerms, PodTerms), Fault> {
    spec.affinity.within("affinity", |affinity| {
        let pod_affinity = terms(&affinity.pod_affinity, "podAffinity", labels)?;
        Ok((pod_affinity, terms(&affinity.pod_anti_affinity, "podAntiAffinity", labels)?))
    })
}

fn node_affinity(spec: &wire::PodSpec) -> Result<NodeAffinity, Fault> {
    let mut selector = spec.node_selector.entries("nodeSelector", |_, value| Ok(value.clone()))?;
    selector.sort();
    let terms = |affinity: &wire::Affinity| affinity.node_affinity.within("nodeAffinity", node_terms);
    let (required, preferred) = spec.affinity.within("affinity", terms)?;
    Ok(NodeAffinity { selector: selector.into(), required, preferred })
}

/// Required and preferred terms.
type NodeTerms = (Option<Box<[NodeSelectorTerm]>>, Box<[PreferredTerm]>);

fn node_terms(node: &wire::NodeAffinity) -> Result<NodeTerms, Fault> {
    let required =
        node.required.if_present("requiredDuringSchedulingIgnoredDuringExecution", |selector| {
            selector.node_selector_terms.each("nodeSelectorTerms", term).map(Into::into)
        })?;
    let preferred = node.preferred.each("preferredDuringSchedulingIgnoredDuringExecution", |preferred| {
        let empty = wire::SelectorTerm::default();
        let preference = preferred.preference.read("preference")?.unwrap_or(&empty);
        Ok(PreferredTerm {
            weight: int32(&preferred.weight, "weight", 0)?,
            term: term(preference).map_err(|f| f.under("preference"))?,
        })
    })?;
    Ok((required, preferred.into()))
}

/// Reads a taint effect; `None` when absent or empty.
pub(crate) fn taint_effect(value: &Lenient<Name>) -> Result<Option<TaintEffect>, Fault> {
    Ok(match value.read("effect")?.map_or("", Name::as_str) {
        "" => None,
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Some(TaintEffect::PreferNoSchedule),
        "NoExecute" => Some(TaintEffect::NoExecute),
        other => return Err(Fault::new("effect", other, "unknown taint effect")),
    })
}

fn toleration(toleration: &wire::Toleration) -> Result<Toleration, Fault> {
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
