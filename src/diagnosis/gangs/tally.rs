//! Counts gangs and their members for metrics.

use std::collections::BTreeMap;

use pellucid_cycle::Snapshot;

use super::gang_state::{STATES, gang_state};
use super::status::GangStatus;

/// Gangs by state and members by stage. Every state and stage is present, with 0 when there are none.
pub struct GangTally {
    /// Number of gangs by state.
    pub states: BTreeMap<&'static str, u64>,
    /// Number of members by stage.
    pub members: [(&'static str, u64); 6],
    /// Number of gang groups with members in the queue.
    pub waiting_groups: u64,
}

/// Counts the gangs and members of a snapshot.
pub fn tally(snapshot: &Snapshot) -> GangTally {
    let mut states: BTreeMap<&'static str, u64> = STATES.map(|state| (state, 0)).into();
    let mut members =
        ["gated", "pending", "waiting", "permitted", "bound", "finished"].map(|stage| (stage, 0));
    for gang in snapshot.cluster.gangs().all().into_values() {
        let status = GangStatus::of_gang(snapshot, gang);
        *states.entry(gang_state(snapshot, &status, snapshot.published).name).or_default() += 1;
        let counts = status.counts;
        let of_gang =
            [counts.gated, counts.pending, counts.waiting, counts.permitted, counts.bound, counts.finished];
        for ((_, sum), n) in members.iter_mut().zip(of_gang) {
            *sum += u64::from(n);
        }
    }
    let waiting_groups = snapshot.queue.units().filter(|(_, unit)| unit.gang.is_some()).count() as u64;
    GangTally { states, members, waiting_groups }
}
