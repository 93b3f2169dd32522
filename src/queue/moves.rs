//! The moves of a unit between stages.
//!
//! A decision is made between two inputs, so no event can fall between [`Queue::pop`] and [`Queue::refuse`]: what
//! the plugins saw is current. A placed unit that comes back later is tried again after a backoff, whatever happened
//! meanwhile. `gangs` has the moves that only units of many pods make.

use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::{EventKinds, ShapeId};
use pellucid_model::PodId;

use super::{EventObject, OrderKey, Queue, QueueStage, RefusedBy, SeenEvent, Unit, UnitId, WakeGroup};
use super::{Wakeup, WakeupReason};

/// An event, as passed to [`Queue::wake`].
#[derive(Clone, Copy)]
pub struct QueueEvent<'a> {
    /// Kinds of the event.
    pub kinds: EventKinds,
    /// When it happened, on the monotonic clock.
    pub at: Duration,
    /// Names the object of the event; called only when the event is kept.
    pub object: &'a dyn Fn() -> EventObject,
    /// The unit that caused the event, for example by giving its place up; the event does not wake it.
    pub own: Option<UnitId>,
}

impl Queue {
    /// Adds a unit to the active stage.
    pub fn add(&mut self, unit: Unit, now: Duration) -> UnitId {
        let id = self.insert(unit);
        self.queue_up(id, now);
        self.enter_active(id);
        id
    }

    /// Adds a unit to the gated stage.
    pub fn add_gated(&mut self, unit: Unit, now: Duration) -> UnitId {
        let id = self.insert(unit);
        self.queue_up(id, now);
        self.set_stage(id, QueueStage::Gated);
        id
    }

    /// Removes a unit, whatever its stage, and returns it.
    pub fn remove(&mut self, id: UnitId) -> Option<Unit> {
        self.leave_stage(id);
        let unit = self.units.get_mut(id.index())?.take()?;
        for pod in &unit.pods {
            self.unit_of.set(pod.index(), None);
        }
        self.slots.give(id.index());
        self.units.shorten(self.slots.len());
        Some(unit)
    }

    /// Takes the first active unit. When there is none, takes the first paused unit, else (if the limits allow it) the
    /// unit whose backoff ends first, because the scheduler would be idle otherwise. Units that failed with an error
    /// keep their backoff. The unit is in flight until one of the methods below moves it.
    pub fn pop(&mut self) -> Option<UnitId> {
        let id = if let Some((_, id)) = self.active.pop_first() {
            self.count(QueueStage::Active, -1);
            id
        } else if !self.paused.is_empty() {
            return self.pop_paused();
        } else if self.limits.pop_from_backoff {
            let (_, _, id) = self.backoff.pop_first()?;
            self.count(QueueStage::Backoff, -1);
            id
        } else {
            return None;
        };
        self.count(QueueStage::InFlight, 1);
        let newest = self.events.number();
        if let Some(unit) = self.unit_mut(id) {
            unit.stage = QueueStage::InFlight;
            unit.attempts += 1;
            unit.popped_at_event = newest;
            unit.activate_on_return = false;
        }
        Some(id)
    }

    /// Takes the first paused unit, to continue its attempt.
    pub fn pop_paused(&mut self) -> Option<UnitId> {
        let (_, id) = self.paused.pop_first()?;
        self.count(QueueStage::Active, -1);
        self.count(QueueStage::InFlight, 1);
        if let Some(unit) = self.unit_mut(id) {
            unit.stage = QueueStage::InFlight;
        }
        Some(id)
    }

    /// Pauses the attempt of a unit, so that other units are taken before it continues.
    pub fn pause(&mut self, id: UnitId) {
        self.leave_stage(id);
        self.set_stage(id, QueueStage::Active);
        let Some(unit) = self.unit_mut(id) else { return };
        unit.is_paused = true;
        let key = unit.order_key();
        self.paused.insert((key, id));
    }

    /// Records that plugins refused a unit: it waits for an event that could help, then for its backoff.
    pub fn refuse(&mut self, id: UnitId, shape: ShapeId, refused_by: RefusedBy, now: Duration) {
        self.leave_stage(id);
        self.count_refusal(id, shape, refused_by, now);
        self.enter_unschedulable(id, now);
    }

    /// Records that a unit failed with an error, not by the verdict of a plugin (the binding was refused, a plugin
    /// panicked): it is tried again after a backoff.
    pub fn fail(&mut self, id: UnitId, now: Duration) {
        self.leave_stage(id);
        let limits = self.limits;
        self.queue_up(id, now);
        let Some(unit) = self.unit_mut(id) else { return };
        unit.errors += 1;
        unit.refused_by = RefusedBy::default();
        unit.waits.clear();
        unit.backoff_until = limits.backoff_end(unit.errors, now);
        let is_over = std::mem::take(&mut unit.activate_on_return) || unit.backoff_until <= now;
        if is_over { self.enter_active(id) } else { self.enter_error_backoff(id) }
    }

    /// Activates a unit on behalf of a plugin, whatever it waits for; a gated unit stays gated. A unit in flight is
    /// tried at once if it comes back.
    pub fn activate(&mut self, id: UnitId, now: Duration) {
        let newest = self.events.number();
        let Some(unit) = self.unit_mut(id) else { return };
        match unit.stage {
            QueueStage::InFlight => unit.activate_on_return = true,
            QueueStage::Unschedulable | QueueStage::Backoff | QueueStage::ErrorBackoff => {
                let reason = WakeupReason::Activated;
                unit.wakeup = Some(Arc::new(Wakeup { event: by_itself(newest, now), reason }));
                self.leave_stage(id);
                self.enter_active(id);
            }
            QueueStage::Active | QueueStage::Gated | QueueStage::New => {}
        }
    }

    /// Moves a gated unit to the active stage.
    pub fn ungate(&mut self, id: UnitId, now: Duration) {
        if self.unit(id).is_some_and(|u| u.stage == QueueStage::Gated) {
            self.leave_stage(id);
            self.queue_up(id, now);
            self.enter_active(id);
        }
    }

    /// Moves a unit to the gated stage.
    pub fn gate(&mut self, id: UnitId) {
        self.leave_stage(id);
        self.set_stage(id, QueueStage::Gated);
    }

    /// Changes the rank of a unit, which keeps its stage.
    pub fn reorder(&mut self, id: UnitId, rank: i64) {
        let Some(unit) = self.unit(id).filter(|unit| unit.rank != rank) else { return };
        let (key, until) = (unit.order_key(), unit.backoff_until);
        let now = OrderKey { rank: std::cmp::Reverse(rank), ..key.clone() };
        self.put_in_order(id, until, &key, &now);
        if let Some(unit) = self.unit_mut(id) {
            unit.rank = rank;
        }
    }

    /// Changes since when a unit is in the queue, which keeps its stage. For simulations, which take units over from
    /// another queue.
    pub fn requeue_since(&mut self, id: UnitId, queued_at: Duration) {
        let Some(unit) = self.unit(id) else { return };
        let (key, until) = (unit.order_key(), unit.backoff_until);
        let now = unit.order_key_at(queued_at);
        self.put_in_order(id, until, &key, &now);
        if let Some(unit) = self.unit_mut(id) {
            unit.queued_at = queued_at;
        }
    }

    /// Lets a unit wait as a refused unit of another queue does: for an event that could help it, its backoff included.
    /// For simulations, which take units over from another queue.
    pub fn wait_as(&mut self, id: UnitId, other: &Unit, now: Duration) {
        self.leave_stage(id);
        if let Some(unit) = self.unit_mut(id) {
            (unit.shape, unit.refused_by, unit.waits) = (other.shape, other.refused_by, other.waits.clone());
            (unit.attempts, unit.refusals) = (other.attempts, other.refusals);
            (unit.backoff_until, unit.held_until) = (other.backoff_until, other.held_until);
        }
        self.enter_unschedulable(id, now);
    }

    /// Takes back the attempts of a single pod, which is made anew: it backs off as a new one does, and not now. For simulations,
    /// in which it keeps its unit.
    pub fn renew(&mut self, id: UnitId) {
        let Some(stage) = self.unit(id).filter(|unit| unit.gang.is_none()).map(|unit| unit.stage) else {
            return;
        };
        let backs_off = matches!(stage, QueueStage::Backoff | QueueStage::ErrorBackoff);
        if backs_off {
            self.leave_stage(id);
        }
        if let Some(unit) = self.unit_mut(id) {
            (unit.attempts, unit.refusals, unit.errors, unit.backoff_until) = (0, 0, 0, Duration::ZERO);
        }
        if backs_off {
            self.enter_active(id);
        }
    }

    /// Moves a unit within its stage after its order key changed.
    pub(super) fn put_in_order(&mut self, id: UnitId, until: Duration, before: &OrderKey, now: &OrderKey) {
        for set in [&mut self.active, &mut self.paused] {
            if set.remove(&(before.clone(), id)) {
                set.insert((now.clone(), id));
            }
        }
        for set in [&mut self.backoff, &mut self.error_backoff] {
            if set.remove(&(until, before.clone(), id)) {
                set.insert((until, now.clone(), id));
            }
        }
    }

    /// Wakes the refused units that an event could help: they move to backoff, or to active when their backoff is over.
    /// `ask` gets a group that listens to the event, one of its pods and the plugins to ask, and returns the plugins
    /// that answer Queue. Units that no plugin refused are woken without asking.
    pub fn wake(
        &mut self,
        event: QueueEvent<'_>,
        mut ask: impl FnMut(&WakeGroup, PodId, RefusedBy) -> RefusedBy,
    ) {
        let has_listener = self.unschedulable.has_listener(event.kinds);
        let Some(seen) = self.events.push(event, has_listener) else { return };
        let mut woken: Vec<(UnitId, Arc<Wakeup>)> = Vec::new();
        for entry in self.unschedulable.listening(event.kinds) {
            let Some(pod) = entry.asked(event.own) else { continue };
            let group = &entry.group;
            let asked = self.listening.asked(group.profile, group.plugins, event.kinds);
            let is_clear = asked.is_empty() || group.is_by_kind;
            let queue = if is_clear { asked } else { ask(group, pod, asked) };
            if !queue.is_empty() || group.plugins.is_empty() {
                let reason = WakeupReason::Hints { asked, queue };
                let by = Arc::new(Wakeup { event: (*seen).clone(), reason });
                let units = entry.units.keys().filter(|id| Some(**id) != event.own);
                woken.extend(units.map(|id| (*id, by.clone())));
            }
        }
        for (id, by) in woken {
            self.wake_unit(id, by, event.at);
        }
    }

    /// Wakes a refused unit because of a change to its own pod; `reason` says which change.
    pub fn wake_changed(&mut self, id: UnitId, reason: WakeupReason, now: Duration) {
        let Some(unit) = self.unit(id) else { return };
        let object = EventObject::Pod(unit.key.clone());
        let event = SeenEvent { number: self.events.number(), at: now, kinds: EventKinds::POD_SELF, object };
        self.wake_unit(id, Arc::new(Wakeup { event, reason }), now);
    }

    /// Moves the units whose backoff or expiry is due.
    pub fn flush(&mut self, now: Duration) {
        while let Some((at, id)) = self.expiries.first().copied().filter(|(at, _)| *at <= now) {
            let event = by_itself(self.events.number(), now);
            self.wake_unit(id, Arc::new(Wakeup { event, reason: WakeupReason::Timeout }), now);
            self.expiries.remove(&(at, id));
        }
        loop {
            let due = [&self.backoff, &self.error_backoff].map(|set| set.first().filter(|e| e.0 <= now));
            let Some((_, _, id)) = due.into_iter().flatten().next() else { break };
            let id = *id;
            self.leave_stage(id);
            self.enter_active(id);
        }
    }

    pub(super) fn unit_mut(&mut self, id: UnitId) -> Option<&mut Unit> {
        self.units.get_mut(id.index()).and_then(Option::as_mut)
    }

    pub(super) fn insert(&mut self, unit: Unit) -> UnitId {
        let id = UnitId(self.slots.take() as u32);
        for pod in &unit.pods {
            self.unit_of.set(pod.index(), Some(id));
        }
        self.units.set(id.index(), Some(unit));
        id
    }

    /// Sets when a unit entered the queue, so that it queues behind its equals. Called while the unit is in no stage,
    /// because this changes its order key.
    pub(super) fn queue_up(&mut self, id: UnitId, now: Duration) {
        if let Some(unit) = self.unit_mut(id) {
            unit.queued_at = now;
            if unit.attempts == 0 {
                unit.first_queued_at = now;
            }
        }
    }

    pub(super) fn count_refusal(&mut self, id: UnitId, shape: ShapeId, refused_by: RefusedBy, now: Duration) {
        let limits = self.limits;
        self.queue_up(id, now);
        let Some(unit) = self.unit_mut(id) else { return };
        unit.refusals += 1;
        unit.errors = 0;
        unit.refused_by = refused_by;
        unit.waits.clear();
        unit.shape = shape;
        unit.backoff_until = limits.backoff_end(unit.refusals, now);
    }

    pub(super) fn wake_unit(&mut self, id: UnitId, by: Arc<Wakeup>, now: Duration) {
        let Some(unit) = self.unit_mut(id).filter(|unit| unit.stage == QueueStage::Unschedulable) else {
            return;
        };
        unit.wakeup = Some(by);
        self.leave_stage(id);
        self.enter_backoff(id, now);
    }

    pub(super) fn enter_active(&mut self, id: UnitId) {
        self.set_stage(id, QueueStage::Active);
        if let Some(key) = self.unit(id).map(Unit::order_key) {
            self.active.insert((key, id));
        }
    }

    pub(super) fn enter_error_backoff(&mut self, id: UnitId) {
        let Some((until, key)) = self.unit(id).map(|u| (u.backoff_until, u.order_key())) else { return };
        self.set_stage(id, QueueStage::ErrorBackoff);
        self.error_backoff.insert((until, key, id));
    }

    /// Moves a unit to backoff, or to active when its backoff is over.
    pub(super) fn enter_backoff(&mut self, id: UnitId, now: Duration) {
        let Some(unit) = self.unit(id) else { return };
        if unit.backoff_until <= now {
            return self.enter_active(id);
        }
        if unit.held_until > now {
            return self.enter_error_backoff(id);
        }
        let entry = (unit.backoff_until, unit.order_key(), id);
        self.set_stage(id, QueueStage::Backoff);
        self.backoff.insert(entry);
    }

    pub(super) fn enter_unschedulable(&mut self, id: UnitId, now: Duration) {
        self.set_stage(id, QueueStage::Unschedulable);
        let (expires_at, newest) = (now + self.limits.max_unschedulable, self.events.number());
        let Some(unit) = self.unit_mut(id) else { return };
        unit.expires_at = expires_at;
        unit.refused_at_event = newest;
        let groups = unit.wake_groups();
        let listening = &self.listening;
        for (group, pod) in groups {
            self.unschedulable.insert(group, (id, pod), || listening.of_any(group.profile, group.plugins));
        }
        self.expiries.insert((expires_at, id));
    }

    pub(super) fn set_stage(&mut self, id: UnitId, stage: QueueStage) {
        self.count(stage, 1);
        if let Some(unit) = self.unit_mut(id) {
            unit.stage = stage;
        }
    }

    pub(super) fn leave_stage(&mut self, id: UnitId) {
        let Some(unit) = self.unit(id).filter(|unit| unit.stage != QueueStage::New) else { return };
        let (stage, key, until) = (unit.stage, unit.order_key(), unit.backoff_until);
        let (groups, expires_at, is_paused) = (unit.wake_groups(), unit.expires_at, unit.is_paused);
        self.count(stage, -1);
        match stage {
            QueueStage::Active if is_paused => drop(self.paused.remove(&(key, id))),
            QueueStage::Active => drop(self.active.remove(&(key, id))),
            QueueStage::Backoff => drop(self.backoff.remove(&(until, key, id))),
            QueueStage::ErrorBackoff => drop(self.error_backoff.remove(&(until, key, id))),
            QueueStage::Unschedulable => {
                self.expiries.remove(&(expires_at, id));
                for (group, _) in &groups {
                    self.unschedulable.remove(group, id);
                }
            }
            QueueStage::New | QueueStage::Gated | QueueStage::InFlight => {}
        }
        if let Some(unit) = self.unit_mut(id) {
            unit.stage = QueueStage::New;
            unit.is_paused = false;
        }
    }

    fn count(&mut self, stage: QueueStage, by: isize) {
        let counts = &mut self.counts;
        let count = match stage {
            QueueStage::Active => &mut counts.active,
            QueueStage::Backoff => &mut counts.backoff,
            QueueStage::ErrorBackoff => {
                counts.error_backoff = counts.error_backoff.saturating_add_signed(by);
                &mut counts.backoff
            }
            QueueStage::Unschedulable => &mut counts.unschedulable,
            QueueStage::Gated => &mut counts.gated,
            QueueStage::New | QueueStage::InFlight => &mut counts.in_flight,
        };
        *count = count.saturating_add_signed(by);
    }
}

/// Makes an event that is about no object.
fn by_itself(number: u64, at: Duration) -> SeenEvent {
    SeenEvent { number, at, kinds: EventKinds::NONE, object: EventObject::Nothing }
}
