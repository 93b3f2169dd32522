//! Moves of units with many pods: members join and leave, a placed member is a unit of its own in flight, and a refused
//! unit waits for any event that could help one of its members.

use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::EventKinds;
use pellucid_model::collections::FxHashSet;
use pellucid_model::{GangKey, PodId, PodKey};
use smallvec::SmallVec;

use super::{
    EventObject, Queue, QueueStage, RefusedBy, SeenEvent, Unit, UnitId, WakeGroup, Wakeup, WakeupReason,
};

/// Maximum number of wake-up groups of one gang. A gang whose members were refused in more ways is woken by event kind,
/// without asking the plugins about each of its pods.
const MAX_WAYS: usize = 32;

impl Queue {
    /// Adds a unit for a pod that is placed already, in flight.
    pub fn add_in_flight(&mut self, unit: Unit) -> UnitId {
        let id = self.insert(unit);
        self.set_stage(id, QueueStage::InFlight);
        id
    }

    /// Adds a pod to a unit.
    pub fn attach(&mut self, id: UnitId, pod: PodId) {
        let Some(unit) = self.unit_mut(id) else { return };
        unit.pods.push(pod);
        self.unit_of.set(pod.index(), Some(id));
    }

    /// Removes a pod from its unit, and the unit too if no pod is left. Another pod stands for its wake-up groups.
    pub fn detach(&mut self, pod: PodId) {
        let Some(id) = self.unit_of(pod) else { return };
        self.unit_of.set(pod.index(), None);
        let Some(unit) = self.unit(id) else { return };
        if unit.pods.as_slice() == [pod] {
            self.remove(id);
            return;
        }
        let (stage, asked) = (unit.stage, unit.waits.iter().any(|(_, p)| *p == pod));
        let waits = stage == QueueStage::Unschedulable && (asked || unit.waits.is_empty());
        if waits {
            self.leave_stage(id);
        }
        let Some(unit) = self.unit_mut(id) else { return };
        unit.pods.retain(|p| *p != pod);
        if asked {
            hand_over(unit, pod);
        }
        let (now, expires_at) = (unit.queued_at, unit.expires_at);
        if waits {
            self.enter_unschedulable(id, now.max(expires_at.saturating_sub(self.limits.max_unschedulable)));
        }
    }

    /// Gives a unit the name and age of its gang group, whose gangs have changed. The unit keeps its stage.
    pub fn rename(&mut self, id: UnitId, gang: GangKey, created: i64) {
        let Some(unit) = self.unit_mut(id) else { return };
        let (before, until) = (unit.order_key(), unit.backoff_until);
        unit.key = PodKey { namespace: gang.namespace.clone(), name: (*gang.name).into() };
        (unit.gang, unit.created) = (Some(gang), created);
        let now = unit.order_key();
        self.put_in_order(id, until, &before, &now);
    }

    /// Records that a gang was refused: it waits for an event that could help one of its members (`ways` holds how each
    /// was refused, then those that gave up their places), then for its backoff, which lasts `at_least` or longer.
    pub fn refuse_gang(
        &mut self,
        id: UnitId,
        ways: impl IntoIterator<Item = (WakeGroup, PodId)>,
        at_least: Duration,
        now: Duration,
    ) {
        let paused_at = self.unit(id).filter(|u| u.is_paused).map(|u| u.popped_at_event);
        self.leave_stage(id);
        let waits = apart(ways);
        let Some(first) = waits.first().map(|(way, _)| *way) else { return self.fail(id, now) };
        self.count_refusal(id, first.shape, first.plugins, now);
        if let Some(unit) = self.unit_mut(id) {
            unit.waits = waits;
            unit.held_until = now + at_least;
            unit.backoff_until = unit.backoff_until.max(unit.held_until);
        }
        self.enter_unschedulable(id, now);
        if let Some(number) = paused_at {
            self.wake_for_what_happened(id, number, now);
        }
    }

    /// Wakes a unit whose attempt was paused if its plugins listen to an event after `number`. While paused, the unit
    /// was in no wake-up group that the event could have woken.
    fn wake_for_what_happened(&mut self, id: UnitId, number: u64, now: Duration) {
        let Some(unit) = self.unit(id) else { return };
        let listens = |way: &WakeGroup| self.listening.of_any(way.profile, way.plugins);
        let kinds = EventKinds::union(unit.waits.iter().map(|(way, _)| listens(way)));
        if self.events.has_any_since(kinds, number) {
            let object = EventObject::Nothing;
            let event = SeenEvent { number: self.events.number(), at: now, kinds, object };
            self.wake_unit(id, Arc::new(Wakeup { event, reason: WakeupReason::Meanwhile }), now);
        }
    }

    /// Puts a unit into backoff until `until`, for a backoff that began earlier. No event is needed to wake it.
    pub fn hold_back(&mut self, id: UnitId, refusals: u32, until: Duration, now: Duration) {
        self.leave_stage(id);
        if let Some(unit) = self.unit_mut(id) {
            unit.refusals = unit.refusals.max(refusals);
            (unit.backoff_until, unit.held_until) = (until, until);
        }
        self.enter_backoff(id, now);
    }

    /// Records that a placed unit failed: it is tried again after a backoff, before others of its rank. `was` holds
    /// attempts, first queue time and errors of the pod's own unit. A gated gang stays gated.
    pub fn fail_in_front(&mut self, id: UnitId, was: Option<(u32, Duration, u32)>, now: Duration) {
        let (attempts, first, errors) = was.unwrap_or((0, now, 0));
        let Some(unit) = self.unit_mut(id) else { return };
        let is_gang = unit.gang.is_some();
        // Another member that came back with it may have counted the failure already.
        let is_counted = unit.stage == QueueStage::ErrorBackoff && unit.errors > errors;
        if unit.stage == QueueStage::Gated || is_counted {
            return;
        }
        unit.errors = unit.errors.max(errors);
        self.fail(id, now);
        let Some(stage) = self.unit(id).map(|u| u.stage) else { return };
        self.leave_stage(id);
        if let Some(unit) = self.unit_mut(id) {
            unit.queued_at = Duration::ZERO;
            if !is_gang {
                (unit.attempts, unit.first_queued_at) = (attempts, first);
            }
        }
        if stage == QueueStage::ErrorBackoff { self.enter_error_backoff(id) } else { self.enter_active(id) }
    }

    /// Puts a gang that gave its places up into backoff, for `at_least` or longer. The queue does not take it early,
    /// even when idle, because the gang would take its places again at once. Other units can use the room until then.
    pub fn back_off(&mut self, id: UnitId, at_least: Duration, now: Duration) {
        let Some(unit) = self.unit(id).filter(|u| u.stage != QueueStage::Gated) else { return };
        let shape = unit.shape;
        self.leave_stage(id);
        self.count_refusal(id, shape, RefusedBy::default(), now);
        if let Some(unit) = self.unit_mut(id) {
            unit.backoff_until = unit.backoff_until.max(now + at_least);
            unit.held_until = unit.backoff_until;
        }
        self.enter_backoff(id, now);
    }
}

type Ways = SmallVec<[(WakeGroup, PodId); 0]>;

/// Hands the ways of a pod that left to another pod of the unit. Plugins are not asked about that pod, which may be of
/// another shape: any event that they listen to wakes the unit.
fn hand_over(unit: &mut Unit, gone: PodId) {
    let Some(other) = unit.pods.first().copied() else { return };
    let of = |(way, pod): &(WakeGroup, PodId)| {
        if *pod == gone { (way.by_kind(), other) } else { (*way, *pod) }
    };
    unit.waits = apart(unit.waits.iter().map(of));
}

/// Removes duplicate ways, and merges ways when there are more than [`MAX_WAYS`].
fn apart(ways: impl IntoIterator<Item = (WakeGroup, PodId)>) -> Ways {
    let ways = each_once(ways);
    if ways.len() <= MAX_WAYS {
        return ways;
    }
    let by_kind = ways.iter().map(|(way, pod)| (way.by_kind(), *pod));
    let by_kind = each_once(by_kind);
    if by_kind.len() <= MAX_WAYS {
        return by_kind;
    }
    let (refused, had_places): (Ways, Ways) = by_kind.into_iter().partition(|(way, _)| !way.has_place);
    [refused, had_places].iter().filter_map(|ways| merged(ways)).collect()
}

/// Merges ways into one that is woken by whatever wakes one of them.
fn merged(ways: &[(WakeGroup, PodId)]) -> Option<(WakeGroup, PodId)> {
    let (mut all, pod) = *ways.first()?;
    // A way without plugins is woken by any event.
    let is_any = ways.iter().any(|(way, _)| way.plugins.is_empty() || way.profile != all.profile);
    let plugins = ways.iter().fold(0, |plugins, (way, _)| plugins | way.plugins.0);
    all.plugins = RefusedBy(if is_any { 0 } else { plugins });
    Some((all, pod))
}

fn each_once(ways: impl IntoIterator<Item = (WakeGroup, PodId)>) -> Ways {
    let mut seen: FxHashSet<WakeGroup> = FxHashSet::default();
    ways.into_iter().filter(|(way, _)| seen.insert(*way)).collect()
}
