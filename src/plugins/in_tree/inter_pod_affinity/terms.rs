//! The affinity terms of placed pods: each distinct term once, with its number of pods per node.
//!
//! An index by label finds the terms that match a pod, so a pod that no term matches costs one look-up per label,
//! however many terms exist.

use std::sync::Arc;

use pellucid_cluster::derived::{Placed, is_counted};
use pellucid_cluster::{DerivedState, Given};
use pellucid_framework::View;
use pellucid_model::relations::PodAffinityTerm;
use pellucid_model::selector::{LabelSelector, Labels, Operator};
use pellucid_model::{CowMap, Name, Pages, PodSpec};
use smallvec::SmallVec;

use super::super::relations::{NodeCounts, insert, remove};

type GroupId = u32;

/// What a term demands of the pods that match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Matching pods must be in the same domain.
    RequireNear,
    /// Matching pods must be in another domain.
    RequireFar,
    /// Matching pods should be in the same domain.
    PreferNear,
    /// Matching pods should be in another domain.
    PreferFar,
}

impl Kind {
    /// Returns the text used in response bodies.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::RequireNear => "required affinity",
            Self::RequireFar => "required anti-affinity",
            Self::PreferNear => "preferred affinity",
            Self::PreferFar => "preferred anti-affinity",
        }
    }
}

/// A term of a placed pod, with its namespaces resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Term {
    pub(super) kind: Kind,
    /// Weight of a preferred term; 0 for a required one.
    pub(super) weight: i32,
    /// The term. If it named no namespaces, it lists the namespace of its pod.
    pub(super) term: PodAffinityTerm,
}

/// Placed pods with the same term.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) term: Term,
    /// Number of pods with the term, per node slot.
    pub(super) counts: NodeCounts,
}

/// Returns the term with the namespace of its pod filled in when it names no namespaces.
pub(super) fn resolved(term: &PodAffinityTerm, namespace: &Name) -> PodAffinityTerm {
    let mut term = term.clone();
    if term.namespaces.is_empty() && term.namespace_selector.is_none() {
        term.namespaces = Box::new([namespace.clone()]);
    }
    term
}

/// Returns whether a term of a pod in namespace `home` matches a pod with these labels in `namespace`.
pub(super) fn is_about(
    view: View<'_>,
    term: &PodAffinityTerm,
    home: &Name,
    (namespace, labels): (&Name, &Labels),
) -> bool {
    term.selector.as_ref().is_some_and(|s| s.matches(labels)) && reaches(view, term, home, namespace)
}

/// Returns whether a term of a pod in namespace `home` covers `namespace`.
pub(super) fn reaches(view: View<'_>, term: &PodAffinityTerm, home: &Name, namespace: &Name) -> bool {
    if term.namespaces.is_empty() && term.namespace_selector.is_none() {
        return home == namespace;
    }
    term.namespaces.contains(namespace)
        || term.namespace_selector.as_ref().is_some_and(|selector| {
            selector.is_empty() || selector.matches(&view.cluster().objects().namespace_labels(namespace))
        })
}

/// Index of terms by a label that a pod must have to match: any value listed by one of the term's `In` requirements.
#[derive(Clone, Debug, Default)]
struct ByLabel {
    listed: CowMap<(Name, Name), Arc<Vec<GroupId>>>,
    /// Terms without an `In` requirement.
    others: CowMap<(), Arc<Vec<GroupId>>>,
    len: usize,
}

impl ByLabel {
    /// Returns the labels under which a selector is indexed: those of its shortest `In` list.
    fn keys(selector: &LabelSelector) -> Vec<(Name, Name)> {
        let listed = selector.requirements().iter().filter(|r| r.operator == Operator::In);
        let Some(shortest) = listed.min_by_key(|r| r.values.len()) else { return Vec::new() };
        let mut keys: Vec<_> = shortest.values.iter().map(|v| (shortest.key.clone(), v.clone())).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    fn add(&mut self, selector: &LabelSelector, id: GroupId) {
        let keys = Self::keys(selector);
        if keys.is_empty() {
            insert(&mut self.others, (), id);
        }
        keys.into_iter().for_each(|key| insert(&mut self.listed, key, id));
        self.len += 1;
    }

    fn remove(&mut self, selector: &LabelSelector, id: GroupId) {
        let keys = Self::keys(selector);
        if keys.is_empty() {
            remove(&mut self.others, &(), id);
        }
        keys.iter().for_each(|key| remove(&mut self.listed, key, id));
        self.len -= 1;
    }

    fn candidates(&self, labels: &Labels) -> impl Iterator<Item = GroupId> {
        let listed = labels.iter().filter_map(|pair| self.listed.get(pair));
        let found = self.others.get(&()).into_iter().chain(listed);
        found.flat_map(|ids| ids.iter().copied())
    }
}

/// Holds the terms of all placed pods, indexed by label.
#[derive(Clone, Default)]
pub(super) struct Terms {
    all: Pages<Option<Arc<Group>>>,
    free: Vec<GroupId>,
    ids: CowMap<Term, GroupId>,
    /// Required anti-affinity terms, which refuse nodes.
    refusing: ByLabel,
    /// All other terms, which are scored.
    scoring: ByLabel,
    /// The last spec looked up: equal pods often arrive in a row.
    last: Option<(Arc<PodSpec>, SmallVec<[GroupId; 4]>)>,
}

/// Selects one of the two indexes of terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Required anti-affinity.
    Refusing,
    /// All other terms.
    Scoring,
}

impl Terms {
    /// Calls `with` for every group whose term matches a pod with this spec, in no particular order.
    pub(super) fn about<'a>(
        &'a self,
        view: View<'_>,
        spec: &PodSpec,
        which: Use,
        mut with: impl FnMut(&'a Group),
    ) {
        let index = if which == Use::Refusing { &self.refusing } else { &self.scoring };
        if index.len == 0 {
            return;
        }
        for id in index.candidates(&spec.labels) {
            let Some(group) = &self.all[id as usize] else { continue };
            // Group terms list their namespaces, so the `home` argument is never used.
            if is_about(view, &group.term.term, &spec.namespace, (&spec.namespace, &spec.labels)) {
                with(group);
            }
        }
    }

    /// Iterates over all groups, in no particular order.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Group> {
        self.all.iter().flatten().map(|group| &**group)
    }

    fn index_of(&mut self, kind: Kind) -> &mut ByLabel {
        if kind == Kind::RequireFar { &mut self.refusing } else { &mut self.scoring }
    }

    /// Returns the groups of a spec's terms, creating missing ones.
    fn ids_of(&mut self, spec: &Arc<PodSpec>) -> SmallVec<[GroupId; 4]> {
        if let Some((known, ids)) = &self.last
            && Arc::ptr_eq(known, spec)
        {
            return ids.clone();
        }
        let ids: SmallVec<[GroupId; 4]> = terms_of(spec).into_iter().map(|term| self.id_of(term)).collect();
        self.last = Some((spec.clone(), ids.clone()));
        ids
    }

    fn id_of(&mut self, term: Term) -> GroupId {
        if let Some(known) = self.ids.get(&term) {
            return *known;
        }
        let id = self.free.pop().unwrap_or(self.all.len() as GroupId);
        let selector = term.term.selector.clone().unwrap_or_default();
        self.index_of(term.kind).add(&selector, id);
        self.ids.insert(term.clone(), id);
        self.all.set(id as usize, Some(Arc::new(Group { term, counts: NodeCounts::default() })));
        id
    }

    fn forget_if_empty(&mut self, id: GroupId) {
        let Some(group) = self.all[id as usize].take_if(|g| g.counts.total() == 0) else { return };
        self.last = None;
        let term = &group.term;
        self.ids.remove(term);
        let selector = term.term.selector.clone().unwrap_or_default();
        self.index_of(term.kind).remove(&selector, id);
        self.free.push(id);
    }
}

/// Returns the terms of a pod that can match any pod, that is, those with a selector.
fn terms_of(spec: &PodSpec) -> Vec<Term> {
    let required = [
        (Kind::RequireNear, &spec.pod_affinity.required),
        (Kind::RequireFar, &spec.pod_anti_affinity.required),
    ];
    let preferred = [
        (Kind::PreferNear, &spec.pod_affinity.preferred),
        (Kind::PreferFar, &spec.pod_anti_affinity.preferred),
    ];
    let make = |kind, weight, term| Term { kind, weight, term: resolved(term, &spec.namespace) };
    let required = required.iter().flat_map(|(kind, all)| all.iter().map(|t| make(*kind, 0, t)));
    let preferred =
        preferred.iter().flat_map(|(kind, all)| all.iter().map(|w| make(*kind, w.weight, &w.term)));
    required.chain(preferred).filter(|t| t.term.selector.is_some()).collect()
}

impl Terms {
    fn count(&mut self, placed: &Placed<'_>, comes: bool) {
        let (node, pod) = (placed.node, placed.pod);
        if pod.spec.pod_affinity.is_empty() && pod.spec.pod_anti_affinity.is_empty() {
            return;
        }
        let ids = self.ids_of(&pod.spec);
        for id in &ids {
            let Some(group) = &mut self.all[*id as usize] else { continue };
            let counts = &mut Arc::make_mut(group).counts;
            if comes {
                counts.add(node);
            } else {
                counts.remove(node);
            }
        }
        if !comes {
            ids.into_iter().for_each(|id| self.forget_if_empty(id));
        }
    }
}

impl DerivedState for Terms {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn pod_added(&mut self, placed: &Placed<'_>) {
        if placed.counts() {
            self.count(placed, true);
        }
    }

    fn pod_removed(&mut self, placed: &Placed<'_>) {
        if placed.counts() {
            self.count(placed, false);
        }
    }

    fn given_changed(&mut self, placed: &Placed<'_>, before: Option<&Given>) {
        if placed.counts() != is_counted(before) {
            self.count(placed, placed.counts());
        }
    }
}
