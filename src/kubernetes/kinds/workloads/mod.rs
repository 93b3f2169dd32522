//! The kinds that select pods: Services, controllers, disruption budgets; here the fields that several of them share.

pub(crate) mod pod_disruption_budget;
pub(crate) mod replica_set;
pub(crate) mod replication_controller;
pub(crate) mod service;
pub(crate) mod stateful_set;

use pellucid_model::Name;
use pellucid_model::object::Workload;
use pellucid_model::selector::LabelSelector;

use crate::decode::fields::{exactly, int32, selector};
use crate::decode::lenient::{Fault, Lenient, Map};
use crate::decode::objects::{bodies, own_key};
use crate::decode::relations::controller;
use crate::decode::wire::{self, Meta, wire_types};

wire_types! {
    /// A Service or a ReplicationController, which select pods by a map of labels.
    struct PairsBody {
        metadata: Lenient<Meta>,
        spec: Lenient<PairsSpec>,
    }
    /// `spec` of a Service or a ReplicationController.
    struct PairsSpec {
        selector: Map<Name>,
        replicas: Lenient<i64>,
    }
    /// A ReplicaSet or a StatefulSet, which select pods by a label selector.
    struct SetBody {
        metadata: Lenient<Meta>,
        spec: Lenient<SetSpec>,
    }
    /// `spec` of a ReplicaSet, a StatefulSet or a PodDisruptionBudget.
    struct SetSpec {
        selector: Lenient<wire::LabelSelector>,
        replicas: Lenient<i64>,
    }
}

bodies!(PairsBody, SetBody);

/// Reads what selects pods by a map of labels.
fn by_pairs(body: &PairsBody, meta: &Meta) -> Result<Workload, Fault> {
    let (pairs, replicas) = body.spec.within("spec", |spec| {
        let pairs = spec.selector.entries("selector", |_, value| Ok(value.clone()))?;
        Ok((pairs, int32(&spec.replicas, "replicas", 1)?))
    })?;
    // An empty map selects no pods, unlike an empty label selector.
    let all = (!pairs.is_empty()).then_some(pairs);
    let selector = all.map(|all| LabelSelector::new(all.into_iter().map(|(k, v)| exactly(k, v))));
    workload(meta, selector, replicas)
}

/// Reads what selects pods by a label selector.
fn by_selector(body: &SetBody, meta: &Meta) -> Result<Workload, Fault> {
    let (selector, replicas) = body.spec.within("spec", |spec| {
        Ok((selector(&spec.selector, "selector")?, int32(&spec.replicas, "replicas", 1)?))
    })?;
    workload(meta, selector, replicas)
}

fn workload(meta: &Meta, selector: Option<LabelSelector>, replicas: i32) -> Result<Workload, Fault> {
    let (namespace, name) = own_key(meta)?;
    let controller = controller(meta).map_err(|fault| fault.under("metadata"))?;
    let replicas = Some(u32::try_from(replicas).unwrap_or(0));
    Ok(Workload { namespace, name, selector, replicas, controller })
}
