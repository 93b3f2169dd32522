//! Determines the state of a gang: its name, and a verdict with one code and its message.
//!
//! The state is derived from the current snapshot; the last attempt counts only as far as it still applies. Codes of
//! gangs that lack nothing are not reasons, so they are not in the registry; docs/diagnostics.md lists them.

use std::collections::BTreeMap;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::gang_explain::GangVerdict as VerdictBody;
use pellucid_api::rest::gangs::PartiallyBound;
use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::gangs::gate::{Block, block};
use pellucid_model::{GangKey, Now};
use pellucid_recording::gang_verdict::{PLUGIN, member_refusal};
use pellucid_recording::{GangOutcome, Outcome, Refusal, rfc3339};

use super::outlook::GangOutlook;
use super::status::{GangStatus, MemberState, ready};

/// Names of all gang states, for metrics.
pub(super) const STATES: [&str; 11] = [
    "Empty",
    "Finished",
    "NotScheduled",
    "PartiallyBound",
    "Running",
    "Placed",
    "Gated",
    "Waiting",
    "Unschedulable",
    "Released",
    "Queued",
];

pub(super) struct GangState {
    /// One of [`STATES`].
    pub(super) name: &'static str,
    pub(super) verdict: VerdictBody,
    /// What prevents the gang from being planned.
    pub(super) block: Option<Block>,
}

/// Returns a verdict with a code of the reason registry.
pub(crate) fn reason(code: ReasonCode, message: String) -> VerdictBody {
    let entry = code.entry();
    VerdictBody {
        code: code.as_str().into(),
        message,
        remedy: entry.remedy.into(),
        resolver: entry.resolver.as_str().into(),
    }
}

/// Returns the state of a gang that lacks nothing. Its code, such as `GangRunning`, is made from the name.
fn good(name: &'static str, message: String) -> GangState {
    let verdict = VerdictBody { code: format!("Gang{name}"), message, ..VerdictBody::default() };
    GangState { name, verdict, block: None }
}

/// Returns what prevents a gang from being planned, from this gang's point of view.
pub(super) fn block_of(snapshot: &Snapshot, key: &GangKey) -> Option<Block> {
    let gangs = snapshot.cluster.gangs();
    block(gangs, key, |k| gangs.get(k).map_or(0, |gang| ready(snapshot, gang)))
}

/// Returns whether a gang member's last verdict no longer says what holds it back: pods of its group came or went, or
/// the group was planned since.
pub(crate) fn is_outdated(snapshot: &Snapshot, key: &GangKey, is_held: bool, said: &Outcome) -> bool {
    let Outcome::Gated(refusal) = said else { return is_held };
    let now = block_of(snapshot, key).filter(|_| is_held).map(|block| block.cause());
    now.is_none() || now != refusal.pod_cause
}

/// Why gated members are held back now. What keeps a gang from being planned is worked out once.
pub(crate) struct HeldBack<'s> {
    snapshot: &'s Snapshot,
    known: BTreeMap<GangKey, Option<Block>>,
}

impl<'s> HeldBack<'s> {
    pub(crate) fn new(snapshot: &'s Snapshot) -> Self {
        Self { snapshot, known: BTreeMap::new() }
    }

    /// Returns why a member is held back now, if that differs from what its last report said.
    pub(crate) fn now(&mut self, record: &PodRecord, said: &Refusal) -> Option<Refusal> {
        let gang = record.pod.member_of().filter(|_| record.pod.gates.is_empty())?;
        let of_gang = said.pod_cause.as_ref().filter(|cause| cause.plugin == PLUGIN)?;
        if !self.known.contains_key(gang) {
            self.known.insert(gang.clone(), block_of(self.snapshot, gang));
        }
        let block = self.known.get(gang)?.as_ref().filter(|block| block.cause() != *of_gang)?;
        Some(member_refusal(block.code, &block.subject, self.snapshot.cluster.present().len()))
    }
}

/// Returns whether no profile of a gang's pods schedules gangs; `false` for a gang without live pods.
pub(super) fn is_off(snapshot: &Snapshot, status: &GangStatus<'_>) -> bool {
    let mut names = status.members.iter().filter_map(|m| Some(&m.live?.1.pod.scheduler_name)).peekable();
    let schedules = |name: &pellucid_model::Name| {
        snapshot.profiles.iter().any(|p| p.scheduler_name == *name && p.gang_rules().is_some())
    };
    names.peek().is_some() && !names.any(schedules)
}

/// Determines the state and verdict of a gang, with the numbers, remedy and resolver of a plan made now, if there is one.
pub(super) fn planned_state(
    snapshot: &Snapshot,
    status: &GangStatus<'_>,
    look: Option<&GangOutlook>,
    now: Now,
) -> GangState {
    let mut state = gang_state(snapshot, status, now);
    let Some(look) = look else { return state };
    let key = &status.gang.key;
    state.verdict = match (state.name, &look.refusal) {
        ("Waiting", Some(refusal)) => {
            let message = format!("{}; {}", waits(status, now), refusal.message);
            return good("Waiting", message);
        }
        ("Unschedulable", Some(refusal)) => reason(refusal.code, refusal.code.message(&refusal.message)),
        ("Unschedulable" | "Released", None) if look.fits_now() => {
            let message = format!("gang {key} has places for its quorum now and is tried again");
            good("Queued", message).verdict
        }
        ("Released", _) => state.verdict,
        _ => return state,
    };
    (state.verdict.remedy, state.verdict.resolver) = (look.remedy.clone(), look.resolver.clone());
    state
}

/// Returns a sentence on members that have a place and wait for the others.
fn waits(status: &GangStatus<'_>, now: Now) -> String {
    let (gang, until) =
        (status.gang, status.wait_ends().map(|at| format!(" until {}", rfc3339(now.wall_at(at)))));
    format!(
        "{} of {} members of gang {} have a place and wait for the others{}",
        gang.counted(),
        gang.definition.min,
        gang.key,
        until.unwrap_or_default()
    )
}

/// Determines the state and verdict of a gang.
pub(super) fn gang_state(snapshot: &Snapshot, status: &GangStatus<'_>, now: Now) -> GangState {
    let (gang, counts) = (status.gang, status.counts);
    let (key, min) = (&gang.key, gang.definition.min);
    if counts.created == 0 {
        return good("Empty", format!("gang {key} has no pods"));
    }
    let (succeeded, failed) = gang.ended();
    if counts.finished == counts.created {
        let message = format!("all pods of gang {key} ended: {succeeded} succeeded, {failed} failed");
        return good("Finished", message);
    }
    if is_off(snapshot, status) {
        let message =
            format!("no profile of gang {key}'s pods enables Coscheduling: they are scheduled one by one");
        return good("NotScheduled", message);
    }
    if let Some(part) = partially_bound(snapshot, status) {
        return good("PartiallyBound", format!("gang {key} is partially bound: {}", part.reason));
    }
    let done = counts.bound + succeeded;
    let is_idle = counts.waiting + counts.permitted + counts.pending + counts.gated == 0;
    if counts.bound > 0 && (done >= min || gang.is_satisfied() && is_idle) {
        let message = format!("gang {key} has its quorum: {done} bound or ended well, {min} needed");
        return good("Running", message);
    }
    if gang.is_satisfied() && counts.permitted > 0 {
        let (permitted, bound) = (counts.permitted, counts.bound);
        let message = format!("the quorum of gang {key} is placed: {permitted} to be bound, {bound} bound");
        return good("Placed", message);
    }
    if let Some(block) = block_of(snapshot, key) {
        let verdict = reason(block.code, block.message());
        return GangState { name: "Gated", verdict, block: Some(block) };
    }
    of_attempt(snapshot, status, now)
}

/// Determines the state of a gang that can be planned from its last attempt.
fn of_attempt(snapshot: &Snapshot, status: &GangStatus<'_>, now: Now) -> GangState {
    let (gang, counts) = (status.gang, status.counts);
    let key = &gang.key;
    let failed = |name, verdict| GangState { name, verdict, block: None };
    let outcome = snapshot.gang_verdicts.get(key).map(|v| &v.outcome);
    if counts.waiting > 0 {
        let mut message = waits(status, now);
        if let Some(GangOutcome::Waiting { refusal, .. }) = outcome {
            message = format!("{message}; {}", refusal.message);
        }
        return good("Waiting", message);
    }
    match outcome.filter(|_| !gang.is_satisfied()) {
        Some(GangOutcome::Refused(refusal) | GangOutcome::Waiting { refusal, .. }) => {
            failed("Unschedulable", reason(refusal.code, refusal.code.message(&refusal.message)))
        }
        Some(GangOutcome::Released { code, message, .. }) => {
            failed("Released", reason(*code, code.message(message)))
        }
        Some(GangOutcome::Placed { .. }) | None if gang.is_satisfied() => {
            good("Queued", format!("gang {key} had its quorum; its pods are scheduled one by one"))
        }
        Some(GangOutcome::Placed { .. }) | None => {
            good("Queued", format!("gang {key} has the pods of its quorum and waits for its turn"))
        }
    }
}

/// Returns why a quorum that was permitted is not bound as a whole, or `None` if the gang is not partially bound.
pub(super) fn partially_bound(snapshot: &Snapshot, status: &GangStatus<'_>) -> Option<PartiallyBound> {
    let (gang, counts) = (status.gang, status.counts);
    if !gang.history.is_partial || counts.bound == 0 {
        return None;
    }
    let min = gang.definition.min;
    let mut parts = vec![format!("{} of {min} are bound", counts.bound)];
    if counts.permitted > 0 {
        parts.push(format!("{} are on the way", counts.permitted));
    }
    let lost = status.members.iter().filter(|m| m.state.is_pending() || m.state == MemberState::Gated);
    let refused = lost.filter_map(|m| Some((m, snapshot.refusal(m.live?.0)?))).next();
    if let Some((member, refusal)) = refused {
        parts.push(format!("{} is pending: {}", member.key, refusal.message()));
    }
    Some(PartiallyBound { bound: counts.bound, min, reason: parts.join("; ") })
}

/// Returns which of a gang's declarations are ignored, and other warnings for its owner.
pub(super) fn warnings(snapshot: &Snapshot, status: &GangStatus<'_>) -> Vec<String> {
    let mut all: Vec<String> = status.gang.definition.warnings.iter().map(ToString::to_string).collect();
    if is_off(snapshot, status) {
        all.push("Coscheduling is not enabled at Permit in the profile of these pods".into());
    }
    if status.counts.bound > 0 && status.gang.definition.undefined.is_some() {
        let block = block_of(snapshot, &status.gang.key);
        all.extend(block.map(|block| format!("pods that come now are held back: {}", block.message())));
    }
    all
}
