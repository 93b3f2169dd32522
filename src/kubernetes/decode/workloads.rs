//! Decodes Namespaces and the kinds that select pods: Services, controllers, disruption budgets.

use pellucid_model::object::{Budget, Namespace, Workload};
use pellucid_model::selector::LabelSelector;
use pellucid_model::{Name, Object, ObjectKind};

use crate::decode::fields::{exactly, int32, labels, name, required, selector};
use crate::decode::lenient::Fault;
use crate::decode::objects::ObjectBody;
use crate::decode::slim::Meta;
use crate::decode::slim_objects::{BudgetBody, NamespaceBody, PairsBody, SetBody};

impl ObjectBody for NamespaceBody {
    fn object(&self, _: ObjectKind, meta: &Meta) -> Result<Object, Fault> {
        let read = || Ok(Namespace { name: own_name(meta)?, labels: labels(meta)? });
        read().map(Object::Namespace).map_err(|f: Fault| f.under("metadata"))
    }
}

impl ObjectBody for PairsBody {
    fn object(&self, kind: ObjectKind, meta: &Meta) -> Result<Object, Fault> {
        let (pairs, replicas) = self.spec.within("spec", |spec| {
            let pairs = spec.selector.entries("selector", |_, value| Ok(value.clone()))?;
            Ok((pairs, int32(&spec.replicas, "replicas", 1)?))
        })?;
        // An empty map selects no pods, unlike an empty label selector.
        let all = (!pairs.is_empty()).then_some(pairs);
        let selector = all.map(|all| LabelSelector::new(all.into_iter().map(|(k, v)| exactly(k, v))));
        workload(kind, meta, selector, replicas)
    }
}

impl ObjectBody for SetBody {
    fn object(&self, kind: ObjectKind, meta: &Meta) -> Result<Object, Fault> {
        let (selector, replicas) = self.spec.within("spec", |spec| {
            Ok((selector(&spec.selector, "selector")?, int32(&spec.replicas, "replicas", 1)?))
        })?;
        workload(kind, meta, selector, replicas)
    }
}

fn workload(
    kind: ObjectKind,
    meta: &Meta,
    selector: Option<LabelSelector>,
    replicas: i32,
) -> Result<Object, Fault> {
    let (namespace, name) = own_key(meta)?;
    let replicas = (kind != ObjectKind::Service).then(|| u32::try_from(replicas).unwrap_or(0));
    let workload = Workload { namespace, name, selector, replicas };
    Ok(match kind {
        ObjectKind::ReplicationController => Object::ReplicationController(workload),
        ObjectKind::ReplicaSet => Object::ReplicaSet(workload),
        ObjectKind::StatefulSet => Object::StatefulSet(workload),
        _ => Object::Service(workload),
    })
}

impl ObjectBody for BudgetBody {
    fn object(&self, _: ObjectKind, meta: &Meta) -> Result<Object, Fault> {
        let (namespace, name) = own_key(meta)?;
        let selector = self.spec.within("spec", |spec| selector(&spec.selector, "selector"))?;
        let (allowed, disrupted) = self.status.within("status", |status| {
            let pods = status.disrupted_pods.entries("disruptedPods", |_, _| Ok(()))?;
            Ok((int32(&status.disruptions_allowed, "disruptionsAllowed", 0)?, pods))
        })?;
        let disrupted = disrupted.into_iter().map(|(pod, ())| pod.as_str().into()).collect();
        Ok(Object::PodDisruptionBudget(Budget { namespace, name, selector, allowed, disrupted }))
    }
}

/// Reads `metadata.name`. Faults lack the prefix `metadata`.
pub(super) fn own_name(meta: &Meta) -> Result<Name, Fault> {
    required(&meta.name, "name").map(|name| Name::new(&name))
}

/// Reads namespace and name of an object; the namespace is empty for cluster-wide kinds. Faults have the whole path.
pub(super) fn own_key(meta: &Meta) -> Result<(Name, Name), Fault> {
    let read = || Ok((name(&meta.namespace, "namespace")?, own_name(meta)?));
    read().map_err(|f: Fault| f.under("metadata"))
}
