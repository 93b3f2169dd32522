//! What the pods of each gang declare, aggregated. [`define`](super::definition::define) reads its answers
//! here instead of from thousands of pods, so a member that joins or leaves costs the logarithm of their number.
//!
//! Owned by the writer. A copy for readers starts empty, and reads the declarations of a gang when the gang changes.

use std::collections::BTreeMap;

use pellucid_model::collections::{FxHashMap, Lasting};
use pellucid_model::gang::{Controller, Dialect, GangDeclaration, GangProblem};
use pellucid_model::{GangKey, Name, ObjectKind, Pod, PodId, PodKey};

/// Order of members: first those whose declaration can be used, then the others; oldest first within each.
type Seniority = (bool, i64, PodKey);

/// The members of one gang that have not ended, aggregated by what they declare.
#[derive(Debug, Default)]
pub(crate) struct GangDeclarations {
    by_age: BTreeMap<Seniority, PodId>,
    /// Number of members by declared quorum; members that declare none are left out.
    quorums: BTreeMap<u32, u32>,
    dialects: [u32; Dialect::ALL.len()],
    /// Number of members that need a PodGroup.
    needs_group: u32,
    /// Values that a default replaces, with the number of members that declare them.
    warnings: BTreeMap<GangProblem, u32>,
    /// Values that make a declaration unusable, stored as warnings, with the number of members that declare them.
    faults: BTreeMap<GangProblem, u32>,
    controllers: BTreeMap<Option<Controller>, u32>,
}

impl GangDeclarations {
    /// Returns the number of members that have not ended.
    pub(super) fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Returns the creation time and key of the oldest member.
    pub(super) fn oldest(&self) -> Option<(i64, PodKey)> {
        let first_of = |is_fatal: bool| {
            let from = before_all(is_fatal);
            let found = self.by_age.range(from..).next().filter(|((fatal, ..), _)| *fatal == is_fatal);
            found.map(|((_, created, key), _)| (*created, key.clone()))
        };
        first_of(false).into_iter().chain(first_of(true)).min()
    }

    /// Returns the member whose declaration takes precedence: the oldest with a usable one, else the oldest.
    pub(super) fn first(&self) -> Option<PodId> {
        self.by_age.first_key_value().map(|(_, id)| *id)
    }

    /// Returns the oldest member whose declaration cannot be used.
    pub(super) fn first_unusable(&self) -> Option<PodId> {
        self.by_age.range(before_all(true)..).next().map(|(_, id)| *id)
    }

    /// Returns the smallest declared quorum that differs from `than`, or `None`.
    pub(super) fn other_quorum(&self, than: Option<u32>) -> Option<u32> {
        self.quorums.keys().copied().find(|min| Some(*min) != than)
    }

    /// Returns a dialect that some member uses and that differs from `than`, or `None`.
    pub(super) fn other_dialect(&self, than: Dialect) -> Option<Dialect> {
        Dialect::ALL.into_iter().find(|dialect| self.dialects[*dialect as usize] > 0 && *dialect != than)
    }

    /// Returns whether some member needs a PodGroup.
    pub(super) fn needs_group(&self) -> bool {
        self.needs_group > 0
    }

    /// Iterates over the values that members declare and a default replaces, sorted, without duplicates.
    pub(super) fn warnings(&self) -> impl Iterator<Item = &GangProblem> {
        self.warnings.keys()
    }

    /// Iterates over the values that make declarations unusable, as warnings, sorted, without duplicates.
    pub(super) fn faults(&self) -> impl Iterator<Item = &GangProblem> {
        self.faults.keys()
    }

    /// Returns the controller of the members when all have the same one, else `None`.
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
        count_down(&mut self.controllers, &pod.controller);
    }
}

/// Returns a bound before every member whose declaration can (`false`) or cannot (`true`) be used.
fn before_all(is_fatal: bool) -> Seniority {
    (is_fatal, i64::MIN, PodKey { namespace: Name::default(), name: "".into() })
}

fn seniority(mark: &GangDeclaration, pod: &Pod) -> Seniority {
    (mark.problems.iter().any(|p| p.is_fatal), pod.created, pod.key.clone())
}

/// Turns a fatal problem into a warning, for when an older member or the PodGroup declares the value correctly.
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

/// Kind, namespace and name of a controller of pods, to find its gangs.
type ControllerKey = (ObjectKind, Name, Name);

/// The declarations of all gangs.
#[derive(Debug)]
pub(crate) struct DeclarationIndex {
    of: FxHashMap<GangKey, GangDeclarations>,
    /// Gangs by the controllers of their members, with the number of those members. `None` when declarations are read
    /// on demand, because then not all gangs are known.
    by_controller: Option<FxHashMap<ControllerKey, BTreeMap<GangKey, u32>>>,
    /// Declarations of a gang without members.
    none: GangDeclarations,
}

impl Default for DeclarationIndex {
    /// Makes the index of an empty state, which will see every member.
    fn default() -> Self {
        Self { by_controller: Some(FxHashMap::default()), ..Self::on_demand() }
    }
}

impl DeclarationIndex {
    /// Makes the index of a state that has members already; those of a gang are read on demand.
    pub(crate) fn on_demand() -> Self {
        Self { of: FxHashMap::default(), by_controller: None, none: GangDeclarations::default() }
    }

    /// Returns a gang's declarations, read from `members` when they are not known. A gang without members leaves nothing
    /// behind in an index that sees every member.
    pub(super) fn get<'p>(
        &mut self,
        key: &GangKey,
        members: impl Iterator<Item = (PodId, &'p Pod)>,
    ) -> &GangDeclarations {
        let is_known = self.of.contains_key(key);
        if !is_known && self.by_controller.is_some() {
            return &self.none;
        }
        let declarations = self.of.entry(key.clone()).or_default();
        if !is_known {
            members.for_each(|(id, pod)| declarations.add(id, pod));
        }
        declarations
    }

    /// Adds a pod to its gang's declarations.
    pub(super) fn join(&mut self, key: &GangKey, id: PodId, pod: &Pod) {
        if self.by_controller.is_none() && !self.of.contains_key(key) {
            // They are read from all members on demand.
            return;
        }
        self.of.make_room();
        self.of.entry(key.clone()).or_default().add(id, pod);
        if let (Some(all), Some(of)) = (&mut self.by_controller, controller_key(pod)) {
            all.make_room();
            *all.entry(of).or_default().entry(key.clone()).or_default() += 1;
        }
    }

    /// Removes a pod from its gang's declarations; `pod` is the object as it was added.
    pub(super) fn leave(&mut self, key: &GangKey, pod: &Pod) {
        let Some(declarations) = self.of.get_mut(key) else { return };
        declarations.remove(pod);
        if declarations.len() == 0 && self.by_controller.is_some() {
            self.of.remove(key);
            self.of.give_back();
        }
        if let (Some(all), Some(of)) = (&mut self.by_controller, controller_key(pod))
            && let Some(gangs) = all.get_mut(&of)
        {
            count_down(gangs, key);
            if gangs.is_empty() {
                all.remove(&of);
                all.give_back();
            }
        }
    }

    /// Returns the gangs with members of a controller, sorted by key, or `None` when that is not known.
    pub(super) fn of_controller(&self, kind: ObjectKind, at: (&Name, &Name)) -> Option<Vec<GangKey>> {
        let all = self.by_controller.as_ref()?;
        let gangs = all.get(&(kind, at.0.clone(), at.1.clone()));
        Some(gangs.map(|gangs| gangs.keys().cloned().collect()).unwrap_or_default())
    }
}

/// Returns the object kind of a controller whose replicas bound the size of a gang, or `None` for other kinds.
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
