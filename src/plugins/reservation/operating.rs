//! Pods in operating mode Reservation: a pod that runs and is ready, whose room is there for others, as that of a reservation
//! which one owner uses up.
//!
//! Such a pod is read as a reservation of the name `NAMESPACE/NAME`; nothing is written of it.

use std::sync::{Arc, LazyLock};

use pellucid_api::keys::reservation as keys;
use pellucid_framework::manifest::FieldError;
use pellucid_model::pod::PodPhase;
use pellucid_model::{Name, Pod};
use serde_json::{Map, Value, json};

use super::entry::Known;
use super::object::Reservation;

const MODE: &str = "Reservation";
/// The label of such pods. Every pod is asked for it: what the spec has of labels is in the processor's cache, the labels of a
/// pod are not, and names are compared as numbers.
static OPERATING_MODE: LazyLock<Name> = LazyLock::new(|| Name::new(keys::POD_OPERATING_MODE));

/// Returns the name of the reservation that a pod is.
pub(super) fn name_of(pod: &Pod) -> Option<Name> {
    let is_mode = |mode: &Name| mode.as_str() == MODE && pod.stands_for.is_none();
    pod.spec.wide_labels.get(&OPERATING_MODE).is_some_and(is_mode).then(|| Name::new(&pod.key.to_string()))
}

/// Whether owners may have the pod's room: it runs and is ready.
pub(super) fn is_open(pod: &Pod) -> bool {
    pod.phase == PodPhase::Running && pod.is_ready && !pod.deleting
}

/// Reads a pod as a reservation.
pub(super) fn known(pod: &Pod) -> Option<Known> {
    let (owners, unreadable) =
        match pod.marks.text(keys::RESERVATION_OWNERS).map(serde_json::from_str::<Value>) {
            None => (Value::Null, None),
            Some(Ok(owners)) => (owners, None),
            Some(Err(error)) => {
                (Value::Null, Some(format!("annotation {}: no JSON: {error}", keys::RESERVATION_OWNERS)))
            }
        };
    let is_used = pod.marks.text(keys::RESERVATION_CURRENT_OWNER).is_some_and(|text| !text.is_empty());
    let phase = match pod.phase {
        PodPhase::Succeeded | PodPhase::Failed => "Failed",
        _ if is_open(pod) && is_used => "Succeeded",
        _ if is_open(pod) => "Available",
        _ => "Pending",
    };
    let labels: Map<String, Value> =
        pod.labels.iter().map(|(key, value)| (key.to_string(), json!(value.as_str()))).collect();
    let manifest = json!({
        "metadata": {"name": pod.key.to_string(), "uid": &*pod.uid, "labels": labels},
        "spec": {
            "owners": owners, "allocateOnce": true, "allocatePolicy": "Aligned", "ttl": "0s", "template": {},
        },
        "status": {"phase": phase, "nodeName": pod.node_name.as_ref().map(|node| node.to_string())},
    });
    let read: Result<Reservation, FieldError> = Reservation::read(&manifest);
    let spec = Arc::new(read.ok()?);
    let problem = unreadable.or_else(|| spec.problem()).map(Arc::from);
    let (uid, resource_version) = (pod.uid.clone(), Arc::from(""));
    Some(Known { spec, uid, resource_version, problem, is_pod: true })
}
