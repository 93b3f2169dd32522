//! kube-batch's Queues, in the API groups of its earlier and later versions.
//!
//! A Queue with an unusable spec is still a Queue: each value that cannot be used becomes a problem of the Queue, and the
//! rest holds. The object is quarantined only when its name cannot be read.

use pellucid_model::gang::{GangProblem, Queue};
use pellucid_model::{Name, Object, ObjectKind};

use crate::decode::lenient::{Fault, Lenient, Map, QuantityText};
use crate::decode::objects::{bodies, object, own_key};
use crate::decode::requests::amount;
use crate::decode::wire::{Meta, wire_types};
use crate::kinds::resource::{BuiltIn, Resource};

pub(crate) static INCUBATOR: BuiltIn = BuiltIn {
    resource: Resource {
        is_namespaced: false,
        ..Resource::new("scheduling.incubator.k8s.io", "v1alpha1", "queues")
    },
    read: |text| {
        object(ObjectKind::QueueIncubator, text, |body: &QueueBody, meta: &Meta| {
            queue(body, meta).map(Object::QueueIncubator)
        })
    },
};

pub(crate) static SIGS_DEV: BuiltIn = BuiltIn {
    resource: Resource { is_namespaced: false, ..Resource::new("scheduling.sigs.dev", "v1alpha2", "queues") },
    read: |text| {
        object(ObjectKind::QueueSigsDev, text, |body: &QueueBody, meta: &Meta| {
            queue(body, meta).map(Object::QueueSigsDev)
        })
    },
};

wire_types! {
    /// A Queue of either API group.
    struct QueueBody {
        metadata: Lenient<Meta>,
        spec: Lenient<QueueSpec>,
    }
    /// `spec` of a Queue.
    struct QueueSpec {
        weight: Lenient<i64>,
        capability: Map<QuantityText>,
    }
}

bodies!(QueueBody);

fn queue(body: &QueueBody, meta: &Meta) -> Result<Queue, Fault> {
    let (_, name) = own_key(meta)?;
    let mut problems = Vec::new();
    let (weight, capability) = match body.spec.read("spec") {
        Ok(None) => (None, Vec::new()),
        Ok(Some(spec)) => (weight(spec, &mut problems), capability(spec, &mut problems)),
        Err(fault) => {
            problems.push(problem(fault, "its weight is 1 and it has no capability"));
            (None, Vec::new())
        }
    };
    Ok(Queue { name, weight, capability: capability.into(), problems: problems.into() })
}

/// Turns a fault with its whole path into a problem that says what holds instead.
fn problem(fault: Fault, instead: &str) -> GangProblem {
    GangProblem {
        field: fault.field.into(),
        value: fault.value.into(),
        problem: format!("{}; {instead}", fault.problem).into(),
        is_fatal: false,
    }
}

fn weight(spec: &QueueSpec, problems: &mut Vec<GangProblem>) -> Option<i64> {
    match spec.weight.read("weight") {
        Ok(Some(weight)) if *weight < 0 => {
            let fault = Fault::new("spec.weight", &weight.to_string(), "negative");
            problems.push(problem(fault, "it counts as 0, so the queue deserves nothing"));
            Some(0)
        }
        Ok(weight) => weight.copied(),
        Err(fault) => {
            problems.push(problem(fault.under("spec"), "it counts as 1"));
            None
        }
    }
}

/// Reads every limit that can be used.
fn capability(spec: &QueueSpec, problems: &mut Vec<GangProblem>) -> Vec<(Name, i64)> {
    let entries = match spec.capability.read("capability") {
        Ok(entries) => entries.map_or(&[][..], Vec::as_slice),
        Err(fault) => {
            problems.push(problem(fault.under("spec"), "the queue has no capability"));
            &[]
        }
    };
    let mut all = Vec::new();
    for (resource, text) in entries {
        let read = text.read("").and_then(|text| text.map(|text| amount(resource, text)).transpose());
        let at = |fault: Fault| fault.under(resource).under("spec.capability");
        match read {
            Ok(None) => {}
            Ok(Some(amount)) if amount < 0 => {
                let text = text.good().map_or("", |QuantityText(text)| text);
                problems.push(problem(at(Fault::new("", text, "negative")), "it counts as 0"));
                all.push((resource.clone(), 0));
            }
            Ok(Some(amount)) => all.push((resource.clone(), amount)),
            Err(fault) => problems.push(problem(at(fault), "the resource has no limit")),
        }
    }
    all.sort();
    all.dedup_by(|later, kept| later.0 == kept.0);
    all
}
