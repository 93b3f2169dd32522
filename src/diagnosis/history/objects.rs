//! The history of an object that is scheduled as a pod is: that of the pod which stands for it, and what its plugin tells
//! of the object beside it, in the order in which it happened.

use pellucid_api::rest::history::PodHistory;
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::custom::stand_in_name;
use pellucid_model::{Name, Now, PodId};
use pellucid_recording::flight::{FlightEvent, object_subject};

use super::of_entries;

/// Returns the recorded history of an object without a namespace. Fails when nothing is recorded.
pub(crate) fn of_object(
    snapshot: &Snapshot,
    (kind, name): (&str, &str),
    now: Now,
) -> Result<PodHistory, ReadError> {
    let (stand_in, own) = (stand_in_name(kind, name), object_subject(kind, name));
    let is_subject = |namespace: &str, known: &str| known == stand_in || namespace.is_empty() && known == own;
    let pod = pod_of(snapshot, (kind, name));
    let (mut all, names) = snapshot.flight.about_any(is_subject, pod, &snapshot.cluster);
    all.retain(|(chunk, entry)| {
        !matches!(chunk.event(entry), FlightEvent::Gang(_) | FlightEvent::NotRecorded)
    });
    if all.is_empty() {
        let message = format!(
            "nothing is recorded of {kind} {name}: there was none, it was placed before this process began, or what was \
             recorded has been pushed out ({} entries were)",
            snapshot.flight.dropped
        );
        return Err(ReadError::NotFound { code: "HistoryNotFound", message });
    }
    let of = PodHistory { name: name.to_owned(), ..PodHistory::default() };
    Ok(of_entries(snapshot, (&all, &names), of, now))
}

/// Returns the pod that stands for the object now.
fn pod_of(snapshot: &Snapshot, (kind, name): (&str, &str)) -> Option<PodId> {
    let cluster = &snapshot.cluster;
    let mut kinds = cluster.custom_objects().kinds();
    let kind = kinds.find(|known| known.0.kind == kind && known.0.pod.is_some())?;
    let object = cluster.custom_objects().get(kind, &(Name::default(), Name::new(name)))?;
    cluster.find_pod(&object.pod.as_ref()?.as_ref().ok()?.key)
}
