//! When a gang is tried again, and which events wake it.

use pellucid_api::rest::gang_explain::{GangRetry, GangTurn};
use pellucid_cycle::Snapshot;
use pellucid_model::Now;
use pellucid_queue::{QueueStage, Unit};
use pellucid_recording::rfc3339;

use super::gang_state::GangState;
use super::status::{GangStatus, MemberState};
use crate::meta::{backoff_end, next_retry, unit_of, wakes_on};

/// Returns when a gang is tried again: with the unit of its group, or with the unit of its first pending member if
/// that is tried on its own. Returns `None` when no member is pending.
pub(super) fn retry(
    snapshot: &Snapshot,
    status: &GangStatus<'_>,
    state: &GangState,
    now: Now,
) -> Option<GangRetry> {
    let pending = || {
        let waits = |s: MemberState| s.is_pending() || s == MemberState::Gated;
        let members = status.members.iter().filter(move |m| waits(m.state));
        members.filter_map(|m| unit_of(snapshot, m.live?.0))
    };
    let unit = pending().find(|unit| unit.gang.is_some()).or_else(|| pending().next())?;
    let at = |monotonic| rfc3339(now.wall_at(monotonic));
    Some(GangRetry {
        stage: unit.stage.as_str().into(),
        backoff_until: (unit.backoff_until > now.monotonic).then(|| at(unit.backoff_until)),
        at_the_latest: next_retry(unit).map(at),
        wait_ends: status.wait_ends().map(at),
        wakes_on: wakes_on(snapshot, unit),
        text: text(status, unit, state),
    })
}

fn text(status: &GangStatus<'_>, unit: &Unit, state: &GangState) -> String {
    let key = &status.gang.key;
    match (&state.block, unit.stage) {
        (Some(block), _) if block.gang != *key => format!("when gang {} is ready", block.gang),
        (Some(_), _) if status.counts.gated > 0 => {
            "at once when what is missing is there; see the remedy".into()
        }
        (_, QueueStage::Active) => "it is in the queue and tried in its turn".into(),
        (_, QueueStage::Backoff | QueueStage::ErrorBackoff) => "when its backoff ends".into(),
        (_, QueueStage::Unschedulable) => {
            "after an event that could help a member without a place, and its backoff".into()
        }
        (_, QueueStage::Gated) => "when the gates of its pods are removed".into(),
        (_, QueueStage::InFlight | QueueStage::New) => "it is being placed".into(),
    }
}

/// Returns the gang that is planned next: the first in the queue that is active or in backoff.
pub(super) fn turn(snapshot: &Snapshot, now: Now) -> Option<GangTurn> {
    let gangs = snapshot.queue.units().map(|(_, unit)| unit).filter(|unit| unit.gang.is_some());
    let open = gangs.filter(|u| u.stage == QueueStage::Active || backoff_end(u).is_some());
    let first = open.min_by_key(|unit| (backoff_end(unit).unwrap_or_default(), unit.order_key()))?;
    Some(GangTurn {
        gang: first.gang.as_ref()?.to_string(),
        stage: first.stage.as_str().into(),
        at: backoff_end(first).map(|at| rfc3339(now.wall_at(at))),
    })
}
