//! All gangs: the members of each, its definition, and its counts by stage.
//!
//! Part of the state. Membership follows the pods, counts follow their stages through place, release and undo,
//! and definitions follow PodGroups and the declarations of pods. What to do about a gang is decided in the cycle.

mod declarations;
mod definition;
mod gang;
mod gang_groups;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub(super) use declarations::DeclarationIndex;
pub use definition::{Definition, GangFrom, Undefined};
pub use gang::{Finished, Gang, GangCounts, History, LastTry, Member, Release};
pub use gang_groups::GroupLimits;

use pellucid_model::gang::{Dialect, PodGroup};
use pellucid_model::{CowMap, GangKey, Object, Pod, PodId, PodKey};

use crate::{Cluster, Stage};
use definition::Sources;
use gang_groups::GangGroups;

/// All gangs, part of [`Cluster`]. Cheap to clone.
#[derive(Clone, Default)]
pub struct Gangs {
    gangs: CowMap<GangKey, Arc<Gang>>,
    /// Gangs that changed since the last [`Self::take_changed`], without duplicates.
    dirty: Vec<GangKey>,
    gang_groups: GangGroups,
    limits: GroupLimits,
    /// Gangs without pods, by since when.
    empty: Arc<BTreeSet<(Duration, GangKey)>>,
}

impl Gangs {
    /// Returns a gang, or `None` when there is none of this name.
    pub fn get(&self, key: &GangKey) -> Option<&Arc<Gang>> {
        self.gangs.get(key)
    }

    /// Returns the gang that a pod is a member of, or `None`.
    pub fn of(&self, pod: &Pod) -> Option<&Arc<Gang>> {
        self.gangs.get(pod.member_of()?)
    }

    /// Returns all gangs, sorted by key.
    pub fn all(&self) -> BTreeMap<&GangKey, &Arc<Gang>> {
        self.gangs.iter().collect()
    }

    /// Takes the keys of the gangs that changed since the last call, sorted.
    pub fn take_changed(&mut self) -> Vec<GangKey> {
        let mut changed = std::mem::take(&mut self.dirty);
        for key in &changed {
            if let Some(gang) = self.gangs.get_mut(key) {
                Arc::make_mut(gang).is_dirty = false;
            }
        }
        changed.sort();
        changed
    }

    /// Returns whether the definition of a gang changed since the last call for it.
    pub fn take_redefined(&mut self, key: &GangKey) -> bool {
        let is_redefined = self.get(key).is_some_and(|gang| gang.is_redefined);
        if is_redefined && let Some(gang) = self.gangs.get_mut(key) {
            Arc::make_mut(gang).is_redefined = false;
        }
        is_redefined
    }

    /// Writes to a gang, such as to its history, and marks the gang as changed.
    pub fn update(&mut self, key: &GangKey, write: impl FnOnce(&mut Gang)) {
        let Some(gang) = self.gangs.get_mut(key) else { return };
        let gang = Arc::make_mut(gang);
        write(gang);
        if !std::mem::replace(&mut gang.is_dirty, true) {
            self.dirty.push(key.clone());
        }
    }

    /// Writes to the member record of a pod, and marks its gang as changed.
    pub fn update_member(&mut self, pod: &Pod, id: PodId, write: impl FnOnce(&mut Member)) {
        let Some(key) = pod.member_of() else { return };
        self.update(key, |gang| {
            if let Some(member) = gang.members.get_mut(&id) {
                write(member);
            }
        });
    }

    /// Returns when the next gang without pods is forgotten, or `None` when every gang has pods.
    pub fn next_expiry(&self, after: Duration) -> Option<Duration> {
        self.empty.first().map(|(since, _)| *since + after)
    }

    /// Records the time when a gang lost its last pod. Does nothing while the gang has pods.
    pub fn mark_empty(&mut self, key: &GangKey, now: Duration) {
        let Some(gang) = self.get(key) else { return };
        if gang.created() == 0 && gang.history.empty_since.is_none() {
            self.update(key, |gang| gang.history.empty_since = Some(now));
            Arc::make_mut(&mut self.empty).insert((now, key.clone()));
        }
    }

    fn ensure(&mut self, key: &GangKey) {
        if self.get(key).is_none() {
            self.gangs.insert(key.clone(), Arc::new(Gang::new(key.clone())));
            self.update(key, |_| ());
        }
    }

    fn remove(&mut self, key: &GangKey) {
        self.mark_filled(key);
        // Code that asks for changed gangs finds that this one is gone.
        self.update(key, |_| ());
        let named = self.gangs.remove(key).map(|gang| gang.definition.groups.clone()).unwrap_or_default();
        self.relink(key, &named);
    }

    fn mark_filled(&mut self, key: &GangKey) {
        if let Some(since) = self.get(key).and_then(|g| g.history.empty_since) {
            Arc::make_mut(&mut self.empty).remove(&(since, key.clone()));
            self.update(key, |gang| gang.history.empty_since = None);
        }
    }

    pub(super) fn stage_changed(&mut self, pod: &Pod, from: Stage, to: Stage) {
        let Some(key) = pod.member_of().filter(|_| from != to) else { return };
        self.update(key, |gang| {
            gang.count(from, -1);
            gang.count(to, 1);
        });
    }
}

impl Cluster {
    /// Returns the gangs.
    pub fn gangs(&self) -> &Gangs {
        &self.gangs
    }

    /// Returns the gangs for writing. Overlays undo the counts but not the history.
    pub fn gangs_mut(&mut self) -> &mut Gangs {
        &mut self.gangs
    }

    /// Forgets the gangs that have had no pods for at least `after`. Returns whether there were any.
    pub fn expire_gangs(&mut self, now: Duration, after: Duration) -> bool {
        let due = self.gangs.empty.iter().take_while(|(since, _)| *since + after <= now);
        let due: Vec<GangKey> = due.map(|(_, key)| key.clone()).collect();
        for key in &due {
            if self.has_pod_group(key) {
                // The gang lives as long as its PodGroup, but its history is forgotten.
                self.gangs.mark_filled(key);
                self.gangs.update(key, |gang| gang.history = Gang::new(key.clone()).history);
            } else {
                self.gangs.remove(key);
            }
        }
        !due.is_empty()
    }

    fn has_pod_group(&self, key: &GangKey) -> bool {
        definition::find_group(key, None, &self.objects).is_some()
    }

    /// Restores the parts of a gang that do not follow from objects, for a state rebuilt from a dump.
    pub fn restore_gang(&mut self, key: &GangKey, had_group: bool, write: impl FnOnce(&mut History)) {
        self.gangs.update(key, |gang| {
            write(&mut gang.history);
            gang.had_group = had_group;
        });
        self.define_gang(key, None);
    }

    pub(super) fn join_gang(&mut self, id: PodId) {
        let Some(record) = self.pod(id) else { return };
        let (stage, pod) = (record.stage, record.pod.clone());
        let Some(key) = pod.member_of() else { return };
        self.gangs.ensure(key);
        self.gangs.mark_filled(key);
        let owner = pod.controller.as_ref().map(|c| c.uid.clone());
        let age = (pod.created, pod.key.clone());
        self.gangs.update(key, |gang| {
            let has_other_owner = gang.history.last_owner.is_some() && gang.history.last_owner != owner;
            if gang.members.is_empty() && has_other_owner {
                // This is another gang of the same name: the history of the former gang does not apply.
                gang.history = Gang::new(key.clone()).history;
                gang.finished.clear();
            }
            gang.history.last_owner = owner.or(gang.history.last_owner.take());
            gang.finished.remove(&pod.key);
            // A member that waits at Permit and moves to another gang has waited long enough.
            let deadline = (stage == Stage::Waiting).then_some(Duration::ZERO);
            gang.members.insert(id, Member { deadline, ..Member::default() });
            gang.count(stage, 1);
        });
        self.declaration_index.join(key, id, &pod);
        let is_first = self.gangs.get(key).is_none_or(|g| g.first.as_ref().is_none_or(|first| age < *first));
        self.define_gang(key, (!is_first).then_some(&*pod));
    }

    /// Updates the gang of a member whose declaration or controller changed, if the member is still in the same gang.
    /// Returns whether it is.
    pub(super) fn stays_in_gang(&mut self, id: PodId, old: &Pod) -> bool {
        let Some(pod) = self.pod(id).map(|r| r.pod.clone()) else { return false };
        let (Some(before), Some(now)) = (old.member_of(), pod.member_of()) else { return false };
        if before == now {
            self.declaration_index.leave(now, old);
            self.declaration_index.join(now, id, &pod);
            self.define_gang(now, None);
        }
        before == now
    }

    pub(super) fn leave_gang(&mut self, id: PodId, pod: &Pod, stage: Stage) {
        let Some(key) = pod.member_of() else { return };
        self.gangs.update(key, |gang| {
            if gang.members.remove(&id).is_some() {
                gang.count(stage, -1);
            }
        });
        self.declaration_index.leave(key, pod);
        let concerns = |gang: &Arc<Gang>| {
            let is_first = gang.first.as_ref().is_some_and(|(_, key)| *key == pod.key);
            is_first || gang.definition.undefined.is_some() || !gang.definition.warnings.is_empty()
        };
        if self.gangs.get(key).is_some_and(concerns) {
            self.define_gang(key, None);
        }
    }

    /// Records a member whose pod ended while its object still exists.
    pub(super) fn record_ended(&mut self, pod: &Pod) {
        // The pod may have been in another gang when it ended.
        self.forget_ended(&pod.key);
        let Some(key) = pod.member_of() else { return };
        self.gangs.ensure(key);
        self.gangs.mark_filled(key);
        self.ended.insert(pod.key.clone(), key.clone());
        let finished = Finished { uid: pod.uid.clone(), phase: pod.phase };
        self.gangs.update(key, |gang| drop(gang.finished.insert(pod.key.clone(), finished)));
    }

    /// Forgets an ended pod whose object was deleted, or whose name another pod has now.
    pub(super) fn forget_ended(&mut self, key: &PodKey) {
        if let Some(gang) = self.ended.remove(key) {
            self.gangs.update(&gang, |gang| drop(gang.finished.remove(key)));
        }
    }

    /// Recomputes a gang's definition, unless the only change is a new pod that declares the same.
    fn define_gang(&mut self, key: &GangKey, added: Option<&Pod>) {
        let Some(gang) = self.gangs.get(key) else { return };
        if let Some(mark) = added.and_then(|p| p.gang.as_ref()) {
            let known = &gang.definition;
            let is_plain = mark.problems.is_empty() && mark.dialect == known.dialect;
            let agrees = mark.terms.min.is_none_or(|min| min == known.min);
            let may_complete = matches!(known.undefined, Some(Undefined::NeverComplete { .. }));
            if is_plain && agrees && !may_complete && gang.members.len() > 1 {
                return;
            }
        }
        let pods = &self.pods;
        let pod_of = |id: PodId| Some(&*pods.get(id.index())?.as_ref()?.pod);
        let members = gang.members.keys().filter_map(|id| Some((*id, pod_of(*id)?)));
        let declarations = self.declaration_index.get(key, members);
        let mark_of = |id: Option<PodId>| pod_of(id?)?.gang.as_deref();
        let fault = mark_of(declarations.first_unusable());
        let made = definition::define(
            key,
            &Sources {
                declarations,
                first: mark_of(declarations.first()),
                fault: fault.and_then(|mark| mark.problems.iter().find(|p| p.is_fatal)),
                objects: &self.objects,
                had_group: gang.had_group,
                limits: self.gangs.limits,
            },
        );
        let first = declarations.oldest();
        let has_group = self.has_pod_group(key);
        let before = gang.definition.clone();
        let is_new = *before != made;
        if is_new || gang.first != first || gang.had_group != (gang.had_group || has_group) {
            let named = made.groups.clone();
            self.gangs.update(key, |gang| {
                if is_new {
                    gang.definition = Arc::new(made);
                    gang.is_redefined = true;
                }
                gang.first = first;
                gang.had_group |= has_group;
            });
            if named != before.groups {
                self.gangs.relink(key, &before.groups);
            }
        }
    }

    /// Updates the gangs whose definition depends on an object that changed.
    pub(super) fn update_gangs_for_object(&mut self, old: Option<&Object>, new: Option<&Object>) {
        match (old, new) {
            (Some(Object::PodGroup(a)), Some(Object::PodGroup(b))) if defines_alike(a, b) => {}
            (_, Some(Object::PodGroup(group))) | (Some(Object::PodGroup(group)), None) => {
                self.update_gang_for_pod_group(&group.key, new.is_some());
            }
            // Only the existence of a queue matters.
            (None, Some(Object::QueueIncubator(_) | Object::QueueSigsDev(_)))
            | (Some(Object::QueueIncubator(_) | Object::QueueSigsDev(_)), None) => {
                self.define_gangs(|gang| gang.definition.dialect == Dialect::KubeBatch);
            }
            _ => {
                let replicas = |o: Option<&Object>| o.and_then(|o| o.controller()).map(|w| w.replicas);
                if let Some(object) = new.or(old)
                    && let Some(of) = object.controller()
                    && replicas(old) != replicas(new)
                {
                    match self.declaration_index.of_controller(object.kind(), (&of.namespace, &of.name)) {
                        Some(keys) => keys.iter().for_each(|key| self.define_gang(key, None)),
                        None => self.define_gangs(|gang| gang.key.namespace == of.namespace),
                    }
                }
            }
        }
    }

    fn update_gang_for_pod_group(&mut self, key: &GangKey, exists: bool) {
        if exists {
            self.gangs.ensure(key);
        }
        self.define_gang(key, None);
        if !self.has_pod_group(key) && self.gangs.get(key).is_some_and(|g| g.created() == 0) {
            self.gangs.remove(key);
        }
    }

    fn define_gangs(&mut self, which: impl Fn(&Gang) -> bool) {
        let concerned = self.gangs.gangs.iter().filter(|(_, gang)| which(gang));
        let mut keys: Vec<GangKey> = concerned.map(|(key, _)| key.clone()).collect();
        keys.sort();
        for key in keys {
            self.define_gang(&key, None);
        }
    }
}

/// Returns whether two versions of a PodGroup define the same gang; their status may differ.
fn defines_alike(a: &PodGroup, b: &PodGroup) -> bool {
    a.terms == b.terms && PodGroup { status: b.status.clone(), ..a.clone() } == *b
}
