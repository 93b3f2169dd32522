//! The scheduling queue: every pending unit in exactly one stage.
//!
//! PURE. Active units are taken in order; a refused one waits for an event that could help it, and for its
//! backoff; a gated one waits for its gates. The queue knows nothing of plugins: whether an event wakes a
//! group of units is asked through a closure ([`Queue::wake`]).

mod order;
mod unit;

use std::collections::BTreeSet;
use std::time::Duration;

pub use order::OrderKey;
pub use unit::{QueueStage, RefusedBy, Unit, UnitId};

use crate::cluster::ShapeId;
use crate::model::collections::FxHashMap;
use crate::model::{Pages, PodId};

/// Limits of the queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Backoff after the first refusal; doubles with each further one.
    pub initial_backoff: Duration,
    /// The longest backoff; 0 turns backoff off.
    pub max_backoff: Duration,
    /// A refused unit is tried again after this long even if no event named it.
    pub max_unschedulable: Duration,
}

impl Default for QueueLimits {
    /// kube-scheduler's numbers: 1 s, 10 s, 5 min.
    fn default() -> Self {
        Self {
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(10),
            max_unschedulable: Duration::from_secs(300),
        }
    }
}

/// Units that were refused alike: the same events wake them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WakeGroup {
    /// Shape of their pods.
    pub shape: ShapeId,
    /// Profile.
    pub profile: usize,
    /// Plugins that refused them.
    pub refused_by: RefusedBy,
}

/// The queue. See the module.
#[derive(Default)]
pub struct Queue {
    limits: QueueLimits,
    units: Pages<Option<Unit>>,
    unit_of: Pages<Option<UnitId>>,
    free: Vec<UnitId>,
    active: BTreeSet<(OrderKey, UnitId)>,
    backoff: BTreeSet<(Duration, OrderKey, UnitId)>,
    unschedulable: FxHashMap<WakeGroup, BTreeSet<UnitId>>,
    /// When each unschedulable unit is tried again in any case.
    expiries: BTreeSet<(Duration, UnitId)>,
    counts: QueueStages,
}

/// Number of units per stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStages {
    /// Ready to be tried.
    pub active: usize,
    /// Waiting for their backoff to end.
    pub backoff: usize,
    /// Waiting for an event.
    pub unschedulable: usize,
    /// Held before the queue.
    pub gated: usize,
    /// Being planned, or placed and not yet confirmed.
    pub in_flight: usize,
}

impl Queue {
    /// Makes an empty queue.
    pub fn new(limits: QueueLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns a copy for readers: units and counts, without the orders.
    pub fn fork(&self) -> Self {
        Self {
            limits: self.limits,
            units: self.units.clone(),
            unit_of: self.unit_of.clone(),
            counts: self.counts,
            ..Self::default()
        }
    }

    // === reading ===

    /// Returns a unit.
    pub fn unit(&self, id: UnitId) -> Option<&Unit> {
        self.units.get(id.index()).and_then(Option::as_ref)
    }

    /// Returns the unit of a pod.
    pub fn unit_of(&self, pod: PodId) -> Option<UnitId> {
        self.unit_of.get(pod.index()).copied().flatten()
    }

    /// Iterates over all units, in no order that means anything.
    pub fn units(&self) -> impl Iterator<Item = (UnitId, &Unit)> {
        self.units.iter().enumerate().filter_map(|(i, u)| u.as_ref().map(|u| (UnitId(i as u32), u)))
    }

    /// Returns how many units are in each stage.
    pub fn counts(&self) -> QueueStages {
        self.counts
    }

    /// Returns when something falls due: the end of a backoff or an expiry. The loop may sleep until then.
    pub fn next_deadline(&self) -> Option<Duration> {
        let backoff = self.backoff.first().map(|(until, ..)| *until);
        let expiry = self.expiries.first().map(|(at, _)| *at);
        backoff.into_iter().chain(expiry).min()
    }

    /// Whether a unit is ready to be tried.
    pub fn has_active(&self) -> bool {
        !self.active.is_empty()
    }

    // === moving units ===

    /// Adds a unit, active.
    pub fn add(&mut self, unit: Unit, now: Duration) -> UnitId {
        let id = self.insert(unit);
        self.activate(id, now);
        id
    }

    /// Adds a unit, gated.
    pub fn add_gated(&mut self, unit: Unit, now: Duration) -> UnitId {
        let id = self.insert(unit);
        self.set_stage(id, QueueStage::Gated);
        if let Some(unit) = self.unit_mut(id) {
            unit.queued_at = now;
        }
        id
    }

    /// Removes a unit, in whatever stage it is.
    pub fn remove(&mut self, id: UnitId) -> Option<Unit> {
        self.leave_stage(id);
        let unit = self.units.get_mut(id.index())?.take()?;
        for pod in &unit.pods {
            self.unit_of.set(pod.index(), None);
        }
        self.free.push(id);
        Some(unit)
    }

    /// Takes the first active unit. It is in flight until one of the calls below.
    pub fn pop(&mut self) -> Option<UnitId> {
        let (_, id) = self.active.pop_first()?;
        self.counts.active -= 1;
        self.counts.in_flight += 1;
        if let Some(unit) = self.unit_mut(id) {
            unit.stage = QueueStage::InFlight;
            unit.attempts += 1;
        }
        Some(id)
    }

    /// A unit was refused by plugins: it waits for an event that could help, then for its backoff.
    pub fn refuse(&mut self, id: UnitId, shape: ShapeId, refused_by: RefusedBy, now: Duration) {
        self.leave_stage(id);
        let max_unschedulable = self.limits.max_unschedulable;
        let limits = self.limits;
        let Some(unit) = self.unit_mut(id) else { return };
        unit.refusals += 1;
        unit.errors = 0;
        unit.refused_by = refused_by;
        unit.shape = shape;
        unit.backoff_until = now + backoff(limits, unit.refusals);
        unit.expires_at = now + max_unschedulable;
        unit.stage = QueueStage::Unschedulable;
        let (group, expires_at) = (unit.wake_group(), unit.expires_at);
        self.unschedulable.entry(group).or_default().insert(id);
        self.expiries.insert((expires_at, id));
        self.counts.unschedulable += 1;
    }

    /// A unit failed for a reason that is nobody's verdict (a binding was refused, a plugin broke): it is
    /// tried again after a backoff.
    pub fn fail(&mut self, id: UnitId, now: Duration) {
        self.leave_stage(id);
        let limits = self.limits;
        let Some(unit) = self.unit_mut(id) else { return };
        unit.errors += 1;
        unit.refused_by = RefusedBy::default();
        unit.backoff_until = now + backoff(limits, unit.errors);
        self.enter_backoff(id);
    }

    /// A gated unit may enter the queue.
    pub fn ungate(&mut self, id: UnitId, now: Duration) {
        if self.unit(id).is_some_and(|u| u.stage == QueueStage::Gated) {
            self.leave_stage(id);
            self.activate(id, now);
        }
    }

    /// A waiting unit may no longer enter the queue.
    pub fn gate(&mut self, id: UnitId) {
        self.leave_stage(id);
        self.set_stage(id, QueueStage::Gated);
    }

    /// Changes what orders a unit; it keeps its stage.
    pub fn reorder(&mut self, id: UnitId, rank: i64) {
        let Some(unit) = self.unit(id) else { return };
        if unit.rank == rank {
            return;
        }
        let (key, until) = (unit.order_key(), unit.backoff_until);
        let was_active = self.active.remove(&(key.clone(), id));
        let was_backoff = self.backoff.remove(&(until, key.clone(), id));
        let key = OrderKey { rank: std::cmp::Reverse(rank), ..key };
        if was_active {
            self.active.insert((key.clone(), id));
        }
        if was_backoff {
            self.backoff.insert((until, key, id));
        }
        if let Some(unit) = self.unit_mut(id) {
            unit.rank = rank;
        }
    }

    /// Asks about every group of refused units whether an event wakes it, and moves those it wakes to
    /// backoff, or to active when their backoff is over. `pod` is one of the group's.
    pub fn wake(&mut self, now: Duration, mut wakes: impl FnMut(WakeGroup, PodId) -> bool) {
        let mut woken: Vec<UnitId> = Vec::new();
        for (group, units) in &self.unschedulable {
            let Some(pod) = units.first().and_then(|id| self.unit(*id)).map(|u| u.pods[0]) else { continue };
            if wakes(*group, pod) {
                woken.extend(units);
            }
        }
        for id in woken {
            self.wake_unit(id, now);
        }
    }

    /// Wakes one refused unit.
    pub fn wake_unit(&mut self, id: UnitId, now: Duration) {
        let Some(unit) = self.unit(id) else { return };
        if unit.stage != QueueStage::Unschedulable {
            return;
        }
        let backoff_over = unit.backoff_until <= now;
        self.leave_stage(id);
        if backoff_over {
            self.activate(id, now);
        } else {
            self.enter_backoff(id);
        }
    }

    /// Puts a unit that waits for an event or for its backoff at once among those that are tried next.
    pub fn activate_now(&mut self, id: UnitId, now: Duration) {
        if self.unit(id).is_some_and(|u| matches!(u.stage, QueueStage::Unschedulable | QueueStage::Backoff)) {
            self.leave_stage(id);
            self.activate(id, now);
        }
    }

    /// Moves units whose backoff or expiry is due.
    pub fn flush(&mut self, now: Duration) {
        while let Some((at, id)) = self.expiries.first().copied() {
            if at > now {
                break;
            }
            self.wake_unit(id, now);
            self.expiries.remove(&(at, id));
        }
        while self.backoff.first().is_some_and(|(until, ..)| *until <= now) {
            if let Some((_, _, id)) = self.backoff.pop_first() {
                self.counts.backoff -= 1;
                self.activate(id, now);
            }
        }
    }

    // === inside ===

    fn unit_mut(&mut self, id: UnitId) -> Option<&mut Unit> {
        self.units.get_mut(id.index()).and_then(Option::as_mut)
    }

    fn insert(&mut self, unit: Unit) -> UnitId {
        let id = self.free.pop().unwrap_or(UnitId(self.units.len() as u32));
        for pod in &unit.pods {
            self.unit_of.set(pod.index(), Some(id));
        }
        self.units.set(id.index(), Some(unit));
        id
    }

    fn activate(&mut self, id: UnitId, now: Duration) {
        let Some(unit) = self.unit_mut(id) else { return };
        unit.stage = QueueStage::Active;
        unit.queued_at = now;
        let key = unit.order_key();
        self.active.insert((key, id));
        self.counts.active += 1;
    }

    fn enter_backoff(&mut self, id: UnitId) {
        self.set_stage(id, QueueStage::Backoff);
        if let Some((until, key)) = self.unit(id).map(|u| (u.backoff_until, u.order_key())) {
            self.backoff.insert((until, key, id));
        }
    }

    fn set_stage(&mut self, id: UnitId, stage: QueueStage) {
        *self.count(stage) += 1;
        if let Some(unit) = self.unit_mut(id) {
            unit.stage = stage;
        }
    }

    fn leave_stage(&mut self, id: UnitId) {
        let Some(unit) = self.unit(id) else { return };
        let (stage, key, until) = (unit.stage, unit.order_key(), unit.backoff_until);
        let (group, expires_at) = (unit.wake_group(), unit.expires_at);
        if stage == QueueStage::New {
            return;
        }
        *self.count(stage) -= 1;
        match stage {
            QueueStage::Active => drop(self.active.remove(&(key, id))),
            QueueStage::Backoff => drop(self.backoff.remove(&(until, key, id))),
            QueueStage::Unschedulable => {
                self.expiries.remove(&(expires_at, id));
                if let Some(units) = self.unschedulable.get_mut(&group) {
                    units.remove(&id);
                    if units.is_empty() {
                        self.unschedulable.remove(&group);
                    }
                }
            }
            QueueStage::New | QueueStage::Gated | QueueStage::InFlight => {}
        }
        if let Some(unit) = self.unit_mut(id) {
            unit.stage = QueueStage::New;
        }
    }

    fn count(&mut self, stage: QueueStage) -> &mut usize {
        match stage {
            QueueStage::Active => &mut self.counts.active,
            QueueStage::Backoff => &mut self.counts.backoff,
            QueueStage::Unschedulable => &mut self.counts.unschedulable,
            QueueStage::Gated => &mut self.counts.gated,
            QueueStage::New | QueueStage::InFlight => &mut self.counts.in_flight,
        }
    }
}

/// Returns the backoff after so many failures in a row: the initial one, doubled each time, up to the
/// longest.
fn backoff(limits: QueueLimits, failures: u32) -> Duration {
    let doubled = limits.initial_backoff.saturating_mul(1 << failures.saturating_sub(1).min(30));
    doubled.min(limits.max_backoff)
}

#[cfg(test)]
mod tests;
