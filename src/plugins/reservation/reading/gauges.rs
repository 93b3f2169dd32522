//! Gauges of reservations, under Koordinator's names: their phases, and what each holds, gives and has left.
//!
//! The number of series is bounded: beyond the bound, reservations later in the order of names have none, and a gauge says
//! how many those are.

use pellucid_framework::View;
use pellucid_framework::gauges::GaugeFamily;
use pellucid_model::Name;

use super::super::entry::{Entry, Known};
use super::super::object::Phase;
use super::super::reservations::Reservations;

/// Largest number of reservations with gauges.
const MOST: usize = 500;

pub(crate) static ALL: [GaugeFamily; 4] = [
    GaugeFamily {
        name: "pellucid_reservations",
        help: "Reservations by phase",
        labels: &["phase"],
        read: phases,
    },
    GaugeFamily {
        name: "pellucid_reservation_status_phase",
        help: "1 for the phase that a Reservation is in",
        labels: &["name", "phase"],
        read: |view| {
            let phase = |(name, _, known): (&Name, &Entry, &Known)| {
                (vec![name.to_string(), known.spec.status.phase.as_str().to_owned()], 1.0)
            };
            listed(view).into_iter().map(phase).collect()
        },
    },
    GaugeFamily {
        name: "pellucid_reservation_resource",
        help: "Amounts of available Reservations in cores, bytes or units: allocatable, allocated (by owners, also beyond what \
               is allocatable), left",
        labels: &["name", "resource", "type"],
        read: amounts,
    },
    GaugeFamily {
        name: "pellucid_reservations_left_out",
        help: "Reservations without gauges of their own, because there are more than 500",
        labels: &[],
        read: |view| {
            let n = view.state::<Reservations>().map_or(0, |all| all.iter().count());
            vec![(Vec::new(), n.saturating_sub(MOST) as f64)]
        },
    },
];

/// Returns the reservations with gauges, by name.
fn listed(view: View<'_>) -> Vec<(&Name, &Entry, &Known)> {
    let Some(all) = view.state::<Reservations>() else { return Vec::new() };
    let mut all: Vec<_> = all.iter().collect();
    all.sort_by(|a, b| a.0.cmp(b.0));
    all.truncate(MOST);
    all
}

fn phases(view: View<'_>) -> Vec<(Vec<String>, f64)> {
    let Some(all) = view.state::<Reservations>() else { return Vec::new() };
    let phases = [Phase::Pending, Phase::Available, Phase::Succeeded, Phase::Failed].map(Phase::as_str);
    let count =
        |phase: &str| all.iter().filter(|(.., known)| known.spec.status.phase.as_str() == phase).count();
    phases.into_iter().map(|phase| (vec![phase.to_owned()], count(phase) as f64)).collect()
}

fn amounts(view: View<'_>) -> Vec<(Vec<String>, f64)> {
    let open = listed(view).into_iter().filter(|(.., known)| known.spec.status.phase == Phase::Available);
    let mut samples = Vec::new();
    for (name, entry, _) in open {
        for (resource, all) in entry.allocatable() {
            let unit = if &**resource == "cpu" { 1000.0 } else { 1.0 };
            let values =
                [("allocatable", *all), ("allocated", entry.used(resource)), ("left", entry.left(resource))];
            samples.extend(values.map(|(kind, amount)| {
                (vec![name.to_string(), resource.to_string(), kind.to_owned()], amount as f64 / unit)
            }));
        }
    }
    samples
}
