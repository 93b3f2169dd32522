//! The members of a gang by stage.
//!
//! Invariant: created = gated + pending + waiting + permitted + bound + finished.

use std::collections::BTreeMap;

use pellucid_api::rest::gangs::{GangCounts, GangMember, HeldResources};
use pellucid_cluster::gangs::{Gang, LastTry, Member};
use pellucid_cluster::{PodRecord, Stage};
use pellucid_cycle::Snapshot;
use pellucid_model::pod::PodPhase;
use pellucid_model::quantity::format_amount;
use pellucid_model::{GangKey, Now, PodId, PodKey};
use pellucid_queue::QueueStage;
use pellucid_recording::rfc3339;

use crate::meta::unit_of;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberState {
    Gated,
    Queued,
    Failed,
    Evaluated,
    NotEvaluated,
    Waiting,
    Permitted,
    Bound,
    Finished,
}

impl MemberState {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Gated => "Gated",
            Self::Queued => "Queued",
            Self::Failed => "Failed",
            Self::Evaluated => "Evaluated",
            Self::NotEvaluated => "NotEvaluated",
            Self::Waiting => "Waiting",
            Self::Permitted => "Permitted",
            Self::Bound => "Bound",
            Self::Finished => "Finished",
        }
    }

    /// Returns whether the member is in the queue, whatever the last attempt came to.
    pub(super) fn is_pending(self) -> bool {
        matches!(self, Self::Queued | Self::Failed | Self::Evaluated | Self::NotEvaluated)
    }

    /// Returns whether the member has a place and is not bound.
    pub(super) fn is_held(self) -> bool {
        matches!(self, Self::Waiting | Self::Permitted)
    }
}

/// A gang member, live or ended.
pub(super) struct MemberView<'r> {
    pub(super) key: &'r PodKey,
    pub(super) state: MemberState,
    /// `None` for a member that has ended.
    pub(super) live: Option<(PodId, &'r PodRecord, &'r Member)>,
    phase: Option<PodPhase>,
}

/// A gang with its members, sorted by name.
pub(super) struct GangStatus<'r> {
    pub(super) gang: &'r Gang,
    pub(super) members: Vec<MemberView<'r>>,
    pub(super) counts: GangCounts,
}

/// Counts the members of a gang in the unit of its group: neither placed nor gated on their own.
pub(super) fn ready(snapshot: &Snapshot, gang: &Gang) -> u32 {
    gang.members.keys().filter(|id| is_in_gang_unit(snapshot, **id)).count() as u32
}

/// Returns whether a pod is in the unit of its gang group.
pub(super) fn is_in_gang_unit(snapshot: &Snapshot, id: PodId) -> bool {
    unit_of(snapshot, id).is_some_and(|unit| unit.gang.is_some())
}

fn state_of(snapshot: &Snapshot, id: PodId, record: &PodRecord, member: &Member) -> MemberState {
    match record.stage {
        Stage::Waiting => return MemberState::Waiting,
        Stage::Reserved | Stage::Permitted | Stage::PreBinding | Stage::Binding => {
            return MemberState::Permitted;
        }
        Stage::Bound => return MemberState::Bound,
        Stage::Pending => {}
    }
    let unit = unit_of(snapshot, id);
    if unit.is_some_and(|u| u.stage == QueueStage::Gated) {
        return MemberState::Gated;
    }
    if unit.is_some_and(|u| u.gang.is_none()) {
        // The pod is tried on its own, so its own verdict decides.
        return if snapshot.refusal(id).is_some() { MemberState::Failed } else { MemberState::Queued };
    }
    match member.last {
        LastTry::None => MemberState::Queued,
        LastTry::Placeable => MemberState::Evaluated,
        LastTry::Failed => MemberState::Failed,
        LastTry::NotEvaluated => MemberState::NotEvaluated,
    }
}

impl<'r> GangStatus<'r> {
    /// Returns the status of a gang, or `None` if it is unknown.
    pub(super) fn of(snapshot: &'r Snapshot, key: &GangKey) -> Option<Self> {
        Some(Self::of_gang(snapshot, snapshot.cluster.gangs().get(key)?))
    }

    pub(super) fn of_gang(snapshot: &'r Snapshot, gang: &'r Gang) -> Self {
        let live = gang.members.iter().filter_map(|(id, member)| {
            let record = snapshot.cluster.pod(*id)?;
            let state = state_of(snapshot, *id, record, member);
            Some(MemberView { key: &record.pod.key, state, live: Some((*id, record, member)), phase: None })
        });
        let ended = gang.finished.iter().map(|(key, finished)| MemberView {
            key,
            state: MemberState::Finished,
            live: None,
            phase: Some(finished.phase),
        });
        let mut members: Vec<_> = live.chain(ended).collect();
        members.sort_by(|a, b| a.key.cmp(b.key));
        let counts = counts(&members);
        Self { gang, members, counts }
    }

    /// Returns the members whose state `which` accepts, as bodies by name.
    pub(super) fn map(
        &self,
        snapshot: &Snapshot,
        now: Now,
        which: impl Fn(MemberState) -> bool,
    ) -> BTreeMap<String, GangMember> {
        let chosen = self.members.iter().filter(|m| which(m.state));
        chosen.map(|m| (m.key.to_string(), m.body(snapshot, now))).collect()
    }

    /// Returns the resources that waiting and permitted members hold.
    pub(super) fn held(&self) -> HeldResources {
        held(self.members.iter().filter(|m| m.state.is_held()).filter_map(|m| Some(m.live?.1)))
    }

    /// Returns the earliest deadline of the waiting members, on the monotonic clock.
    pub(super) fn wait_ends(&self) -> Option<std::time::Duration> {
        let waiting = self.members.iter().filter(|m| m.state == MemberState::Waiting);
        waiting.filter_map(|m| m.live?.2.deadline).min()
    }
}

fn counts(members: &[MemberView<'_>]) -> GangCounts {
    let mut counts = GangCounts { created: members.len() as u32, ..GangCounts::default() };
    for member in members {
        let stage = match member.state {
            MemberState::Gated => &mut counts.gated,
            MemberState::Waiting => &mut counts.waiting,
            MemberState::Permitted => &mut counts.permitted,
            MemberState::Bound => &mut counts.bound,
            MemberState::Finished => &mut counts.finished,
            MemberState::Queued
            | MemberState::Failed
            | MemberState::Evaluated
            | MemberState::NotEvaluated => &mut counts.pending,
        };
        *stage += 1;
    }
    counts
}

/// Sums the requests of pods.
pub(super) fn held<'r>(pods: impl Iterator<Item = &'r PodRecord>) -> HeldResources {
    let mut held = HeldResources::default();
    for record in pods {
        held.pods += 1;
        for (name, amount) in record.pod.spec.requests.list.named() {
            let sum = held.amounts.entry(name.to_string()).or_default();
            *sum = sum.saturating_add(amount);
        }
    }
    held.cpu_milli = held.amounts.get("cpu").copied().unwrap_or(0);
    held.memory_bytes = held.amounts.get("memory").copied().unwrap_or(0);
    held.text = text_of(&held.amounts);
    held
}

pub(super) fn text_of(amounts: &BTreeMap<String, i64>) -> BTreeMap<String, String> {
    amounts.iter().map(|(name, amount)| (name.clone(), format_amount(name, *amount))).collect()
}

impl MemberView<'_> {
    pub(super) fn body(&self, snapshot: &Snapshot, now: Now) -> GangMember {
        let mut body = GangMember {
            pod: self.key.to_string(),
            state: self.state.as_str().into(),
            stage: self.phase.map_or("", PodPhase::as_str).into(),
            ..GangMember::default()
        };
        let Some((id, record, member)) = self.live else { return body };
        body.stage = record.stage.as_str().into();
        body.node = record.node.map(|n| snapshot.cluster.node_name(n).to_string());
        body.since = member.since.map(|at| rfc3339(at.wall));
        body.deadline = member.deadline.map(|at| rfc3339(now.wall_at(at)));
        if record.node.is_none() {
            body.queue_stage = unit_of(snapshot, id).map(|unit| unit.stage.as_str().into());
            if let Some(refusal) = snapshot.refusal(id) {
                body.code = refusal.reasons().next().map(|(reason, _)| reason.code.as_str().into());
                body.reason = Some(refusal.message().to_string());
            }
        }
        body
    }
}
