//! PodDisruptionBudgets.

use pellucid_model::object::Budget;
use pellucid_model::{Object, ObjectKind};

use crate::decode::fields::{int32, selector};
use crate::decode::lenient::{Fault, Lenient, Map, Moment};
use crate::decode::objects::{bodies, object, own_key};
use crate::decode::wire::{Meta, wire_types};
use crate::kinds::resource::{BuiltIn, Resource};
use crate::kinds::workloads::SetSpec;

pub(crate) static POD_DISRUPTION_BUDGET: BuiltIn = BuiltIn {
    resource: Resource::new("policy", "v1", "poddisruptionbudgets"),
    read: |text| object(ObjectKind::PodDisruptionBudget, text, pod_disruption_budget),
};

wire_types! {
    struct BudgetBody {
        metadata: Lenient<Meta>,
        spec: Lenient<SetSpec>,
        status: Lenient<BudgetStatus>,
    }
    /// `status` of a PodDisruptionBudget.
    struct BudgetStatus {
        disruptions_allowed: Lenient<i64>,
        disrupted_pods: Map<Moment>,
    }
}

bodies!(BudgetBody);

fn pod_disruption_budget(body: &BudgetBody, meta: &Meta) -> Result<Object, Fault> {
    let (namespace, name) = own_key(meta)?;
    let selector = body.spec.within("spec", |spec| selector(&spec.selector, "selector"))?;
    let (allowed, disrupted) = body.status.within("status", |status| {
        let pods = status.disrupted_pods.entries("disruptedPods", |_, _| Ok(()))?;
        Ok((int32(&status.disruptions_allowed, "disruptionsAllowed", 0)?, pods))
    })?;
    let disrupted = disrupted.into_iter().map(|(pod, ())| pod.as_str().into()).collect();
    Ok(Object::PodDisruptionBudget(Budget { namespace, name, selector, allowed, disrupted }))
}
