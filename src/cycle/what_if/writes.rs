//! Carries out in a simulation what a plugin writes before the Binding of a pod that stands for an object: the writes that
//! give the object its place.

use std::sync::Arc;

use pellucid_cluster::{Cluster, Input};
use pellucid_model::PodKey;
use pellucid_model::effect::{EffectReport, ObjectOrder, ObjectWrite, WriteOutcome};

use super::simulation::Simulation;

impl Simulation {
    /// Carries out a write for a pod that stands for an object, as the API server would, and drops any other. Returns whether
    /// it carried it out.
    pub(super) fn write(&mut self, order: &ObjectOrder) -> bool {
        let cluster = &self.scheduler.cluster;
        let Some(pod) = order.pod.as_ref() else { return false };
        let record = cluster.find_pod(&pod.key).and_then(|id| cluster.pod(id));
        let stage = record.filter(|record| record.pod.stands_for.is_some()).map(|record| record.stage);
        let Some((stage, input)) = stage.zip(written(cluster, &order.write)) else { return false };
        self.stages.insert(pod.key.clone(), stage);
        self.scheduler.apply(input, self.now);
        let done = EffectReport::ObjectDone { id: order.id, outcome: WriteOutcome::Written };
        self.scheduler.apply(Input::Report(done), self.now);
        true
    }
}

/// Returns what a watch delivers after a patch of an object of a plugin's kind or of a pod.
fn written(cluster: &Cluster, write: &ObjectWrite) -> Option<Input> {
    let ObjectWrite::Patch { object, patch, .. } = write else { return None };
    let namespace = object.namespace.clone().unwrap_or_default();
    if object.group.is_empty() && object.plural == "pods" {
        let id = cluster.find_pod(&PodKey { namespace, name: object.name.as_str().into() })?;
        return Some(Input::PodApplied(Arc::new(cluster.pod(id)?.pod.marked(patch))));
    }
    let objects = cluster.custom_objects();
    let kind = objects.kinds().find(|kind| (kind.0.group, kind.0.plural) == (object.group, object.plural))?;
    let known = objects.get(kind, &(namespace, object.name.clone()))?;
    Some(Input::CustomApplied(Arc::new(known.patched(patch)?)))
}
