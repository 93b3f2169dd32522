//! Who could use a reservation and does not: the pending pods that it has as owners, each with what keeps it from it; and
//! the same for the reservations of a pod.

use std::sync::Arc;

use pellucid_api::rest::reservation::{PodReservation, PodReservations, ReservationCandidate};
use pellucid_framework::View;
use pellucid_model::quantity::format_amount;
use pellucid_model::{Name, Pod};

use super::super::affinity::ignores_all;
use super::super::choosing::{Lack, Stand, choose};
use super::super::entry::{Entry, Known};
use super::super::matching::Seeker;
use super::super::object::Phase;
use super::super::owners;
use super::super::reservations::Reservations;
use pellucid_plugin_helper::listing::{cut, pending};

/// Largest number of pods listed.
const MOST: usize = 100;

/// Returns the pending owners of a reservation, by namespace and name, and whether there are more.
pub(super) fn of(
    view: View<'_>,
    (name, entry, known): (&Name, &Entry, &Known),
) -> (Vec<ReservationCandidate>, bool) {
    let Ok(terms) = &known.spec.owners else { return (Vec::new(), false) };
    let pods = pending(view).map(|record| &record.pod);
    let is_owner = |pod: &&Arc<Pod>| pod.stands_for.is_none() && owners::matches(terms, pod);
    let mut all: Vec<&Arc<Pod>> = pods.filter(is_owner).collect();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    let (all, truncated) = cut(all, MOST);
    let candidate = |pod: &Arc<Pod>| ReservationCandidate {
        pod: pod.key.to_string(),
        reason: why(view, pod, (name, entry, known)),
    };
    (all.into_iter().map(candidate).collect(), truncated)
}

/// Returns the reservations that have a pending pod as an owner.
pub(crate) fn reservations_of(view: View<'_>, pod: &Pod) -> PodReservations {
    let Some(all) = view.state::<Reservations>() else { return PodReservations::default() };
    let is_owner = |known: &Known| known.spec.owners.as_ref().is_ok_and(|terms| owners::matches(terms, pod));
    let mut rows: Vec<_> = all.iter().filter(|(.., known)| is_owner(known)).collect();
    rows.sort_by(|a, b| a.0.cmp(b.0));
    let (rows, truncated) = cut(rows, MOST);
    let row = |(name, entry, known): (&Name, &Entry, &Known)| PodReservation {
        reservation: name.to_string(),
        phase: known.spec.status.phase.as_str().into(),
        node: known.spec.status.node.as_ref().map(ToString::to_string),
        reason: why(view, pod, (name, entry, known)),
    };
    PodReservations { rows: rows.into_iter().map(row).collect(), truncated }
}

/// Says what keeps an owner from a reservation.
fn why(view: View<'_>, pod: &Pod, (name, entry, known): (&Name, &Entry, &Known)) -> String {
    let spec = &known.spec;
    if ignores_all(&pod.spec) {
        return "the pod ignores reservations (label reservation-ignored)".into();
    }
    if entry.is_expired {
        return "the reservation has expired".into();
    }
    if spec.status.phase != Phase::Available {
        return format!("the reservation is {}", spec.status.phase.as_str());
    }
    if let Some(owner) = entry.owners().next().filter(|_| spec.once) {
        return format!("{} uses the reservation up", owner.key);
    }
    let seeker = match Seeker::of(view, pod, &pod.spec) {
        Ok(Some(seeker)) => seeker,
        Ok(None) => return "the reservation is not there to be used".into(),
        Err(problem) => return problem,
    };
    match seeker.judge(name, entry) {
        None => "the pod does not select the reservation's node".into(),
        Some(Err(mismatch)) => format!("the reservation {}", mismatch.words()),
        Some(Ok(found)) => {
            let choice = choose(&seeker, found.node, Stand::Outside);
            match choice.taken {
                Some(taken) if taken.name == name => {
                    "none of the reservation: another plugin keeps the pod from the node, or it was not tried since".into()
                }
                Some(taken) => format!("of the reservations on the node, {} is taken first", taken.name),
                None => {
                    let lacks: Vec<String> = choice.tried.iter().map(lacking).collect();
                    if lacks.is_empty() { "the pod requests nothing of it that counts for its policy".into() } else { lacks.join(", ") }
                }
            }
        }
    }
}

fn lacking(lack: &Lack) -> String {
    match lack {
        Lack::Node(resource) => {
            format!("too little {resource} on the node, with what is left of the reservation")
        }
        Lack::Reservation { resource, requested, used, capacity } => {
            let text = |amount: &i64| format_amount(resource, *amount);
            let (requested, used, capacity) = (text(requested), text(used), text(capacity));
            format!("too little {resource} left: {requested} requested, {used} of {capacity} in use")
        }
    }
}
