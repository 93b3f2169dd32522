//! Gang groups as they are planned: their gangs, the pending members in their unit, and the readiness of each gang.
//!
//! The cluster state decides which gangs belong together (`cluster::gangs`). This module follows its changes: gangs
//! that join bring their pods to the existing unit, and gangs that leave take theirs along. The readiness of a gang is
//! updated when it changes, so that looking at a group does not visit each of its gangs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::gangs::Gangs;
use pellucid_model::collections::FxHashMap;
use pellucid_model::{GangKey, Now, PodId};
use pellucid_queue::{UnitId, WakeupReason};

use super::attempt_progress::AttemptProgress;
use super::gate;
use crate::scheduler::Scheduler;

/// Readiness of one gang of a group. A gang that no longer exists wants nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct GangReadiness {
    /// Whether the gang lacks its quorum.
    is_short: bool,
    /// Whether the gang itself keeps the group from being planned; see [`gate::is_blocked`].
    is_blocked: bool,
    /// Number of its pods that have not ended.
    members: u32,
    /// The priority that its PodGroup sets.
    priority: Option<i32>,
}

impl GangReadiness {
    fn of(gangs: &Gangs, key: &GangKey, ready: u32) -> Self {
        let Some(gang) = gangs.get(key) else { return Self::default() };
        Self {
            is_short: gang.definition.undefined.is_some() || !gang.is_satisfied(),
            is_blocked: gate::is_blocked(gangs, gang, ready),
            members: gang.members.len() as u32,
            priority: gang.definition.priority,
        }
    }
}

/// A gang group and its state in the queue.
#[derive(Default)]
pub(super) struct Group {
    /// Its gangs, sorted by key.
    pub(super) keys: Vec<GangKey>,
    /// The cluster state's own copy of `keys`, if there are several.
    set: Option<Arc<Vec<GangKey>>>,
    /// Per gang, the number of members that are neither placed nor held by scheduling gates of their own.
    pub(super) ready: Vec<u32>,
    readiness: Vec<GangReadiness>,
    unsatisfied: usize,
    blocked: usize,
    /// Number of its pods that have not ended.
    pub(super) members: u64,
    /// The highest priority that its PodGroups set.
    pub(super) own_priority: Option<i32>,
    /// Whether pods left the unit when the group was formed.
    is_smaller: bool,
    /// The unit of its pending members.
    pub(super) unit: Option<UnitId>,
    /// Whether every gang had its quorum at the last review.
    pub(super) is_satisfied: bool,
    /// Whether the last review held the group back; `None` before the first review since its gangs or
    /// its quorum changed.
    pub(super) is_held_back: Option<bool>,
    /// Monotonic time of the next check of the group.
    pub(super) check_at: Option<Duration>,
    /// Members needed per gang at the last refusal; empty if there was none.
    pub(super) refused_with: Vec<u32>,
    /// Number of reports to its pods. The time to the next report doubles with each.
    pub(super) reports: u32,
    /// The last report to each pod while the group is held back.
    pub(super) reported: FxHashMap<PodId, Arc<str>>,
    /// The gang that each pod of the unit counts for; the pod itself may name another one by now.
    pub(super) gang_of: FxHashMap<PodId, GangKey>,
    /// Pods that joined since the last review.
    pub(super) joined: Vec<PodId>,
    pub(super) attempt_progress: Option<Box<AttemptProgress>>,
}

impl Group {
    pub(super) fn at(&self, key: &GangKey) -> Option<usize> {
        self.keys.binary_search(key).ok()
    }

    /// Returns the first gang by key, which represents the group.
    pub(super) fn rep(&self) -> &GangKey {
        &self.keys[0]
    }

    /// Whether every gang has its quorum now.
    pub(super) fn has_quorum(&self) -> bool {
        self.unsatisfied == 0
    }

    /// Returns the index of the first gang that itself keeps the group from being planned.
    pub(super) fn first_blocked(&self) -> Option<usize> {
        if self.blocked == 0 {
            return None;
        }
        self.readiness.iter().position(|readiness| readiness.is_blocked)
    }

    /// Updates the readiness of the gang at an index.
    pub(super) fn update_readiness(&mut self, gangs: &Gangs, at: usize) {
        let now = GangReadiness::of(gangs, &self.keys[at], self.ready[at]);
        let was = std::mem::replace(&mut self.readiness[at], now);
        self.unsatisfied = self.unsatisfied + usize::from(now.is_short) - usize::from(was.is_short);
        self.blocked = self.blocked + usize::from(now.is_blocked) - usize::from(was.is_blocked);
        self.members = self.members + u64::from(now.members) - u64::from(was.members);
        if now.priority != was.priority {
            self.own_priority = self.readiness.iter().filter_map(|readiness| readiness.priority).max();
        }
    }

    fn new(keys: Vec<GangKey>, set: Option<Arc<Vec<GangKey>>>) -> Self {
        let n = keys.len();
        Self { keys, set, ready: vec![0; n], readiness: vec![GangReadiness::default(); n], ..Self::default() }
    }
}

/// All groups, indexed by each of their gangs.
#[derive(Default)]
pub(super) struct Groups {
    of: FxHashMap<GangKey, usize>,
    slots: Vec<Option<Group>>,
    free: Vec<usize>,
}

impl Groups {
    pub(super) fn get(&self, key: &GangKey) -> Option<&Group> {
        self.slots[*self.of.get(key)?].as_ref()
    }

    pub(super) fn get_mut(&mut self, key: &GangKey) -> Option<&mut Group> {
        self.slots[*self.of.get(key)?].as_mut()
    }

    fn insert(&mut self, group: Group) {
        let at = self.free.pop().unwrap_or(self.slots.len());
        for key in &group.keys {
            self.of.insert(key.clone(), at);
        }
        if at == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[at] = Some(group);
    }

    fn take(&mut self, key: &GangKey) -> Option<Group> {
        let at = *self.of.get(key)?;
        let group = self.slots[at].take()?;
        self.free.push(at);
        for key in &group.keys {
            self.of.remove(key);
        }
        Some(group)
    }

    /// Whether the group of a gang matches the cluster state.
    fn is_formed(&self, gangs: &Gangs, key: &GangKey) -> bool {
        match (self.get(key), gangs.group(key)) {
            (None, _) => gangs.get(key).is_none(),
            (Some(group), None) => group.set.is_none() && gangs.get(key).is_some(),
            (Some(group), Some(set)) => group.set.as_ref().is_some_and(|known| Arc::ptr_eq(known, set)),
        }
    }
}

/// A regrouping: the old groups and those that replace them.
#[derive(Default)]
struct Change {
    /// The old groups, sorted by their first gang.
    old: Vec<Group>,
    /// The new groups, as the cluster state has them.
    new: Vec<Group>,
    /// Index in `new` of each gang's group.
    of: FxHashMap<GangKey, usize>,
    /// Whether the old group of each gang had its quorum.
    was_satisfied: FxHashMap<GangKey, bool>,
}

impl Scheduler {
    /// Makes the group of a gang match the cluster state. Pods stay in an inherited unit; all others are enqueued anew.
    pub(super) fn form_group(&mut self, key: &GangKey, now: Now) {
        if self.gangs.groups.is_formed(self.cluster.gangs(), key) {
            return;
        }
        let mut change = self.take_groups(key);
        let mut moved = Vec::new();
        let heirs = self.choose_heirs(&change);
        for (old, heir) in std::mem::take(&mut change.old).into_iter().zip(heirs) {
            moved.extend(self.hand_over(old, heir, &mut change));
        }
        for group in std::mem::take(&mut change.new) {
            moved.extend(self.settle_group(group, &change.was_satisfied, now));
        }
        moved.sort_by_cached_key(|id| self.cluster.pod(*id).map(|r| r.pod.key.clone()));
        for id in moved {
            self.enqueue(id, now);
        }
    }

    /// Removes every group that a change of one gang's group affects, and creates their replacements.
    fn take_groups(&mut self, key: &GangKey) -> Change {
        let gangs = self.cluster.gangs();
        let mut change = Change::default();
        let mut seen: BTreeSet<GangKey> = BTreeSet::new();
        let mut open = vec![key.clone()];
        while let Some(key) = open.pop() {
            if !seen.insert(key.clone()) {
                continue;
            }
            if let Some(group) = self.gangs.groups.take(&key) {
                if let Some(at) = group.check_at {
                    self.gangs.deadlines.remove(&(at, group.rep().clone()));
                }
                open.extend(group.keys.iter().cloned());
                change.old.push(group);
            }
            if let Some(set) = gangs.group(&key)
                && !change.of.contains_key(&key)
            {
                change.of.extend(set.iter().map(|key| (key.clone(), change.new.len())));
                open.extend(set.iter().cloned());
                change.new.push(Group::new(set.to_vec(), Some(set.clone())));
            } else if gangs.get(&key).is_some() && gangs.group(&key).is_none() {
                change.of.insert(key.clone(), change.new.len());
                change.new.push(Group::new(vec![key], None));
            }
        }
        change.old.sort_by(|a, b| a.rep().cmp(b.rep()));
        change
    }

    /// Returns the new group that inherits the unit of each old one: that of its first gang that still exists. If
    /// several have the same heir, the one that was queued first passes on its unit.
    fn choose_heirs(&self, change: &Change) -> Vec<Option<usize>> {
        let mut best: FxHashMap<usize, (bool, Duration, usize)> = FxHashMap::default();
        for (at, old) in change.old.iter().enumerate() {
            let Some(&new) = old.keys.iter().find_map(|key| change.of.get(key)) else { continue };
            let queued = old.unit.and_then(|unit| self.queue.unit(unit)).map(|unit| unit.first_queued_at);
            let rank = (queued.is_none(), queued.unwrap_or_default(), at);
            let known = best.entry(new).or_insert(rank);
            *known = rank.min(*known);
        }
        let mut heirs = vec![None; change.old.len()];
        for (new, (.., at)) in best {
            heirs[at] = Some(new);
        }
        heirs
    }

    /// Hands over an old group's unit and reports to the new groups. Returns the pods that are in no unit now.
    fn hand_over(&mut self, mut old: Group, heir: Option<usize>, change: &mut Change) -> Vec<PodId> {
        change.was_satisfied.extend(old.keys.iter().map(|key| (key.clone(), old.is_satisfied)));
        let pods = old.unit.and_then(|unit| self.queue.unit(unit)).map(|u| u.pods.to_vec());
        let mut leaving = pods.unwrap_or_default();
        let n = leaving.len();
        if heir.is_some() && old.keys.iter().all(|key| change.of.get(key).copied() == heir) {
            leaving.clear();
        }
        let goes_to = |id: &PodId| change.of.get(old.gang_of.get(id)?).copied();
        leaving.retain(|id| heir.is_none() || goes_to(id) != heir);
        let unit = old.unit.filter(|_| leaving.len() < n);
        match (old.unit, unit) {
            (Some(ended), None) => drop(self.queue.remove(ended)),
            _ => leaving.iter().for_each(|id| self.queue.detach(*id)),
        }
        for id in &leaving {
            let at = old.gang_of.remove(id).and_then(|key| change.of.get(&key).copied());
            if let (Some(at), Some(message)) = (at, old.reported.remove(id)) {
                change.new[at].reported.insert(*id, message);
            }
        }
        let Some(group) = heir.map(|at| &mut change.new[at]) else { return leaving };
        for (key, ready) in old.keys.iter().zip(&old.ready) {
            if let Some(at) = group.at(key).filter(|_| unit.is_some()) {
                group.ready[at] = *ready;
            }
        }
        group.reported.extend(old.reported);
        (group.unit, group.reports, group.check_at) = (unit, old.reports, old.check_at);
        group.gang_of = old.gang_of;
        group.is_smaller = !leaving.is_empty();
        leaving
    }

    /// Inserts a new group. Returns the pods that are in no unit now.
    fn settle_group(
        &mut self,
        mut group: Group,
        was_satisfied: &FxHashMap<GangKey, bool>,
        now: Now,
    ) -> Vec<PodId> {
        for at in 0..group.keys.len() {
            group.update_readiness(self.cluster.gangs(), at);
        }
        group.is_satisfied = group.has_quorum();
        let (keys, mut moved) = (group.keys.clone(), Vec::new());
        if group.is_satisfied {
            group.ready.fill(0);
            group.gang_of.clear();
            let unit = group.unit.take().and_then(|unit| self.queue.remove(unit));
            moved.extend(unit.into_iter().flat_map(|unit| unit.pods.to_vec()));
        } else {
            // Members of a group that had its quorum have units of their own.
            let alone = keys.iter().filter(|key| was_satisfied.get(*key) == Some(&true)).cloned();
            moved.extend(self.singles_of(&alone.collect::<Vec<_>>()));
        }
        let (unit, rep, is_satisfied) = (group.unit, keys[0].clone(), group.is_satisfied);
        let is_ranked_anew = group.is_smaller || group.own_priority.is_some();
        if let Some(at) = group.check_at {
            self.gangs.deadlines.insert((at, rep.clone()));
        }
        self.gangs.groups.insert(group);
        if let Some(unit) = unit {
            let created =
                keys.iter().filter_map(|key| Some(self.cluster.gangs().get(key)?.definition.created));
            let created = created.min().unwrap_or(i64::MAX);
            self.queue.rename(unit, rep.clone(), created);
            if let Some(rank) = is_ranked_anew.then(|| self.gang_rank(unit)).flatten() {
                self.queue.reorder(unit, rank);
            }
            self.queue.wake_changed(unit, WakeupReason::Changed, now.monotonic);
        }
        if is_satisfied && keys.iter().any(|key| was_satisfied.get(key) == Some(&false)) {
            self.permit_waiting(&keys, now);
        }
        // The next review decides whether the group is held back, when all changes are in.
        self.cluster.gangs_mut().update(&rep, |_| ());
        moved
    }
}
