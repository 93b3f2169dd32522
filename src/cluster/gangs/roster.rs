//! What the pods of a gang say, added up: what [`define`](super::definition::define) asks of thousands of pods is read
//! off here, so a member that joins or leaves costs the logarithm of their number.
//!
//! Kept by the writer alone. A copy for readers starts without rosters and makes the one it needs when a gang changes.

use std::collections::BTreeMap;

use pellucid_model::collections::FxHashMap;
use pellucid_model::gang::{Controller, Dialect, GangMark, GangProblem};
use pellucid_model::{GangKey, Name, ObjectKind, Pod, PodId, PodKey};

/// Where a pod stands among the members: those whose mark cannot be used come last, then the oldest is first.
type Seniority = (bool, i64, PodKey);

/// The members of one gang that have not ended, by what they say.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    by_age: BTreeMap<Seniority, PodId>,
    /// Members by the quorum they declare; those that declare none are left out.
    quorums: BTreeMap<u32, u32>,
    dialects: [u32; Dialect::ALL.len()],
    /// Members that wait for a PodGroup.
    needs_group: u32,
    /// What stands in for something that cannot be used, by how many members say it.
    warnings: BTreeMap<GangProblem, u32>,
    /// The same of what makes a mark unusable.
    faults: BTreeMap<GangProblem, u32>,
    controllers: FxHashMap<Option<Controller>, u32>,
}

impl Roster {
    /// Returns the number of members.
    pub(super) fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Returns creation and name of the oldest member.
    pub(super) fn oldest(&self) -> Option<(i64, PodKey)> {
        let first_of = |is_fatal: bool| {
            let from = before_all(is_fatal);
            let found = self.by_age.range(from..).next().filter(|((fatal, ..), _)| *fatal == is_fatal);
            found.map(|((_, created, key), _)| (*created, key.clone()))
        };
        first_of(false).into_iter().chain(first_of(true)).min()
    }

    /// Returns the member whose mark counts: the oldest one that can be used, else the oldest.
    pub(super) fn first(&self) -> Option<PodId> {
        self.by_age.first_key_value().map(|(_, id)| *id)
    }

    /// Returns the oldest member whose mark cannot be used.
    pub(super) fn first_unusable(&self) -> Option<PodId> {
        self.by_age.range(before_all(true)..).next().map(|(_, id)| *id)
    }

    /// Returns a quorum that some member declares and that is not this one, the smallest.
    pub(super) fn other_quorum(&self, than: Option<u32>) -> Option<u32> {
        self.quorums.keys().copied().find(|min| Some(*min) != than)
    }

    /// Returns a dialect that some member uses and that is not this one.
    pub(super) fn other_dialect(&self, than: Dialect) -> Option<Dialect> {
        let used = Dialect::ALL.into_iter().filter(|dialect| self.dialects[*dialect as usize] > 0);
        used.into_iter().find(|dialect| *dialect != than)
    }

    /// Whether some member waits for a PodGroup.
    pub(super) fn needs_group(&self) -> bool {
        self.needs_group > 0
    }

    /// Iterates over what members say that cannot be used and has a default, each once, sorted.
    pub(super) fn warnings(&self) -> impl Iterator<Item = &GangProblem> {
        self.warnings.keys()
    }

    /// Iterates over what makes members' marks unusable, as warnings, each once, sorted.
    pub(super) fn faults(&self) -> impl Iterator<Item = &GangProblem> {
        self.faults.keys()
    }

    /// Returns the controller of all members, when they have the same one.
    pub(super) fn controller(&self) -> Option<&Controller> {
        if self.controllers.len() != 1 {
            return None;
        }
        self.controllers.keys().next()?.as_ref()
    }

    fn said(&mut self, problem: &GangProblem) -> &mut BTreeMap<GangProblem, u32> {
        if problem.is_fatal { &mut self.faults } else { &mut self.warnings }
    }

    fn add(&mut self, id: PodId, pod: &Pod) {
        let Some(mark) = pod.gang.as_deref() else { return };
        if self.by_age.insert(seniority(mark, pod), id).is_some() {
            return;
        }
        if let Some(min) = mark.terms.min {
            *self.quorums.entry(min).or_default() += 1;
        }
        self.dialects[mark.dialect as usize] += 1;
        self.needs_group += u32::from(mark.needs_group);
        for problem in mark.problems.iter() {
            *self.said(problem).entry(warning_of(problem)).or_default() += 1;
        }
        *self.controllers.entry(pod.controller.clone()).or_default() += 1;
    }

    fn remove(&mut self, pod: &Pod) {
        let Some(mark) = pod.gang.as_deref() else { return };
        if self.by_age.remove(&seniority(mark, pod)).is_none() {
            return;
        }
        if let Some(min) = mark.terms.min {
            count_down(&mut self.quorums, &min);
        }
        self.dialects[mark.dialect as usize] -= 1;
        self.needs_group -= u32::from(mark.needs_group);
        for problem in mark.problems.iter() {
            count_down(self.said(problem), &warning_of(problem));
        }
        if let Some(n) = self.controllers.get_mut(&pod.controller) {
            *n -= 1;
            if *n == 0 {
                self.controllers.remove(&pod.controller);
            }
        }
    }
}

/// Returns what is before every member of one part.
fn before_all(is_fatal: bool) -> Seniority {
    (is_fatal, i64::MIN, PodKey { namespace: Name::default(), name: "".into() })
}

fn seniority(mark: &GangMark, pod: &Pod) -> Seniority {
    (mark.problems.iter().any(|p| p.is_fatal), pod.created, pod.key.clone())
}

/// What a fatal problem is when an older member or the PodGroup says it well.
fn warning_of(problem: &GangProblem) -> GangProblem {
    GangProblem { is_fatal: false, ..problem.clone() }
}

fn count_down<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    if let Some(n) = counts.get_mut(key) {
        *n -= 1;
        if *n == 0 {
            counts.remove(key);
        }
    }
}

/// A controller of pods, by which its gangs are found.
type ControllerKey = (ObjectKind, Name, Name);

/// The rosters of all gangs.
#[derive(Debug)]
pub(crate) struct Rosters {
    of: FxHashMap<GangKey, Roster>,
    /// Gangs by a controller of their members, with the number of these. `None`: rosters are made when asked for, so
    /// not all gangs are known.
    by_controller: Option<FxHashMap<ControllerKey, BTreeMap<GangKey, u32>>>,
}

impl Rosters {
    /// Rosters that are told of every member.
    pub(crate) fn complete() -> Self {
        Self { of: FxHashMap::default(), by_controller: Some(FxHashMap::default()) }
    }

    /// Rosters of a state whose members are known already.
    pub(crate) fn on_demand() -> Self {
        Self { of: FxHashMap::default(), by_controller: None }
    }

    /// Returns a gang's roster, made of its members when it is not there.
    pub(super) fn get<'p>(
        &mut self,
        key: &GangKey,
        members: impl Iterator<Item = (PodId, &'p Pod)>,
    ) -> &Roster {
        let is_known = self.of.contains_key(key);
        let roster = self.of.entry(key.clone()).or_default();
        if !is_known {
            members.for_each(|(id, pod)| roster.add(id, pod));
        }
        roster
    }

    /// A pod joins a gang.
    pub(super) fn join(&mut self, key: &GangKey, id: PodId, pod: &Pod) {
        if self.by_controller.is_none() && !self.of.contains_key(key) {
            // Made of all members when it is asked for.
            return;
        }
        self.of.entry(key.clone()).or_default().add(id, pod);
        if let (Some(all), Some(of)) = (&mut self.by_controller, controller_key(pod)) {
            *all.entry(of).or_default().entry(key.clone()).or_default() += 1;
        }
    }

    /// A pod leaves a gang; `pod` is what it was when it joined.
    pub(super) fn leave(&mut self, key: &GangKey, pod: &Pod) {
        let Some(roster) = self.of.get_mut(key) else { return };
        roster.remove(pod);
        if roster.len() == 0 && self.by_controller.is_some() {
            self.of.remove(key);
        }
        if let (Some(all), Some(of)) = (&mut self.by_controller, controller_key(pod))
            && let Some(gangs) = all.get_mut(&of)
        {
            count_down(gangs, key);
            if gangs.is_empty() {
                all.remove(&of);
            }
        }
    }

    /// Returns the gangs with members of a controller, by key. `None`: it is not known which those are.
    pub(super) fn of_controller(&self, kind: ObjectKind, at: (&Name, &Name)) -> Option<Vec<GangKey>> {
        let all = self.by_controller.as_ref()?;
        let gangs = all.get(&(kind, at.0.clone(), at.1.clone()));
        Some(gangs.map(|gangs| gangs.keys().cloned().collect()).unwrap_or_default())
    }
}

/// Returns the kind of a controller whose number of replicas bounds a gang.
pub(super) fn controller_kind(of: &Controller) -> Option<ObjectKind> {
    match &*of.kind {
        "ReplicaSet" => Some(ObjectKind::ReplicaSet),
        "StatefulSet" => Some(ObjectKind::StatefulSet),
        "ReplicationController" => Some(ObjectKind::ReplicationController),
        _ => None,
    }
}

fn controller_key(pod: &Pod) -> Option<ControllerKey> {
    let of = pod.controller.as_ref()?;
    Some((controller_kind(of)?, pod.key.namespace.clone(), Name::new(&of.name)))
}
