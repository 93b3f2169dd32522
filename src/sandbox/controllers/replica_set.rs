//! ReplicaSets and ReplicationControllers: keep the wanted number of pods, and report it in the status.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{BATCH, living, pod_of, set_status};
use crate::api::Api;
use crate::kinds::pods::{self, NODE_NAME, PHASE};
use crate::options::{DeleteOptions, Options};
use crate::store::{Key, Object};

/// Takes a ReplicaSet or ReplicationController one step closer to its spec.
pub(super) fn reconcile(api: &Api, table: &str, key: &Key) {
    let Some((kind, set, value)) = living(api, table, key) else { return };
    let Some(pod_kind) = api.kind_of("pods") else { return };
    let is_living = |pod: &Arc<Object>| !pod.is_deleting && !pods::is_finished(pod);
    let mut living: Vec<_> = api.store.owned("pods", &set.uid).into_iter().filter(is_living).collect();
    let wanted = value["spec"]["replicas"].as_u64().unwrap_or(1) as usize;
    if living.len() < wanted {
        let pod = pod_of(&kind, &value);
        for _ in 0..(wanted - living.len()).min(BATCH) {
            match api.create(&pod_kind, &key.0, pod.clone(), &Options::controller()) {
                Ok(written) => living.push(written.object),
                Err(_) => break,
            }
        }
    } else if living.len() > wanted {
        living.sort_by_key(|pod| keep_rank(pod));
        let surplus = (living.len() - wanted).min(BATCH);
        for pod in living.drain(..surplus) {
            // It may be deleted already.
            let _ = api.delete(&pod_kind, &pod.key, &DeleteOptions::controller());
        }
    }
    set_status(api, &kind, key, &status(&value, &living));
}

/// Returns the order in which pods are given up: unassigned, pending, not ready, and young ones first.
fn keep_rank(pod: &Object) -> (bool, bool, bool, std::cmp::Reverse<u64>) {
    let is_on_node = !pod.field(NODE_NAME).is_empty();
    (is_on_node, pod.field(PHASE) != "Pending", pod.is_ready, std::cmp::Reverse(pod.revision))
}

fn status(set: &Value, living: &[Arc<Object>]) -> Value {
    let ready = living.iter().filter(|pod| pod.is_ready).count();
    let mut status = json!({"replicas": living.len(), "observedGeneration": set["metadata"]["generation"]});
    if !living.is_empty() {
        status["fullyLabeledReplicas"] = living.len().into();
    }
    if ready > 0 {
        status["readyReplicas"] = ready.into();
        status["availableReplicas"] = ready.into();
    }
    status
}
