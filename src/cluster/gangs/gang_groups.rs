//! Gang groups: gangs that name each other, directly or through others.
//!
//! Groups are updated with every change of a definition, not computed on demand. A gang that joins costs as much as the
//! gangs it names; a gang that leaves costs at most the size of the smaller remaining parts. Gangs without a group are
//! not listed here. The size of a group is bounded ([`GroupLimits`]): gangs beyond the limit form no group, and each of
//! them reports it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pellucid_model::collections::FxHashMap;
use pellucid_model::gang::MatchPolicy;
use pellucid_model::{CowMap, GangKey};

use super::Gangs;

/// Upper bounds of a gang group, and what gangs of Koordinator's dialect have that do not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimits {
    /// How long their members wait; `None`: the dialect's default.
    pub wait: Option<Duration>,
    /// Their match policy; `None`: the dialect's default.
    pub policy: Option<MatchPolicy>,
    /// Maximum number of gangs in a group.
    pub gangs: u32,
    /// Maximum number of pods in a group, over all its gangs.
    pub members: u32,
}

impl Default for GroupLimits {
    fn default() -> Self {
        Self { wait: None, policy: None, gangs: u32::MAX, members: u32::MAX }
    }
}

/// Disjoint sets of two or more gangs that name each other.
#[derive(Clone, Default)]
pub(super) struct GangGroups {
    of: CowMap<GangKey, u64>,
    /// Gangs of each set, sorted by key.
    sets: CowMap<u64, Arc<Vec<GangKey>>>,
    next: u64,
}

impl GangGroups {
    fn set(&self, key: &GangKey) -> Option<&Arc<Vec<GangKey>>> {
        self.sets.get(self.of.get(key)?)
    }

    /// Merges the sets of two gangs. Costs the size of the smaller set, plus a copy when a reader shares the larger
    /// one.
    fn unite(&mut self, a: &GangKey, b: &GangKey) {
        let size = |of: Option<&u64>| of.and_then(|id| self.sets.get(id)).map_or(1, |set| set.len());
        let (of_a, of_b) = (self.of.get(a), self.of.get(b));
        if of_a.is_some() && of_a == of_b {
            return;
        }
        let (small, large) = if size(of_a) < size(of_b) { (a, b) } else { (b, a) };
        let moved = match self.of.get(small).copied() {
            Some(id) => self.sets.remove(&id).map_or_else(Vec::new, Arc::unwrap_or_clone),
            None => vec![small.clone()],
        };
        let id = match self.of.get(large).copied() {
            Some(id) => id,
            None => self.add(vec![large.clone()]),
        };
        for key in &moved {
            self.of.insert(key.clone(), id);
        }
        if let Some(set) = self.sets.get_mut(&id) {
            let set = Arc::make_mut(set);
            set.extend(moved);
            // The set is two sorted runs, which the sort merges.
            set.sort();
        }
    }

    fn add(&mut self, keys: Vec<GangKey>) -> u64 {
        let id = self.next;
        self.next += 1;
        for key in &keys {
            self.of.insert(key.clone(), id);
        }
        self.sets.insert(id, Arc::new(keys));
        id
    }

    /// Moves parts out of their common set into sets of their own. The remaining gangs keep the set.
    fn part(&mut self, parts: Vec<Vec<GangKey>>) {
        let Some(id) = parts.first().and_then(|part| self.of.get(part.first()?)).copied() else { return };
        for mut part in parts {
            for key in &part {
                self.of.remove(key);
            }
            if part.len() > 1 {
                part.sort();
                self.add(part);
            }
        }
        let left: Vec<GangKey> = match self.sets.get(&id) {
            Some(set) => set.iter().filter(|key| self.of.get(*key) == Some(&id)).cloned().collect(),
            None => return,
        };
        if left.len() > 1 {
            self.sets.insert(id, Arc::new(left));
            return;
        }
        self.sets.remove(&id);
        for key in &left {
            self.of.remove(key);
        }
    }
}

impl Gangs {
    /// Returns the gangs that form a group with this one, itself included, sorted by key. Returns `None` when the gang
    /// is planned by itself: no gang that it names names it back, or the group exceeds the limit.
    pub fn group(&self, key: &GangKey) -> Option<&Arc<Vec<GangKey>>> {
        self.gang_groups.set(key).filter(|set| set.len() <= self.limits.gangs as usize)
    }

    /// Returns the gangs that must reach their quorum together with this one, itself included, sorted by key.
    pub fn group_of(&self, key: &GangKey) -> Vec<GangKey> {
        self.group(key).map_or_else(|| vec![key.clone()], |set| set.to_vec())
    }

    /// Returns the number of gangs that name each other around this one if it exceeds the limit of a group, else
    /// `None`.
    pub fn too_many(&self, key: &GangKey) -> Option<usize> {
        let size = self.gang_groups.set(key)?.len();
        (size > self.limits.gangs as usize).then_some(size)
    }

    /// Returns the upper bounds of a group.
    pub fn limits(&self) -> GroupLimits {
        self.limits
    }

    /// Sets the upper bounds of a group. Called before there are gangs.
    pub fn set_limits(&mut self, limits: GroupLimits) {
        self.limits = limits;
    }

    /// Returns the gangs that this one names and that do not name it back or do not exist.
    pub fn one_sided(&self, key: &GangKey) -> Vec<GangKey> {
        if self.get(key).is_none_or(|gang| gang.one_sided == 0) {
            return Vec::new();
        }
        self.named(key).filter(|named| !self.names(named, key)).cloned().collect()
    }

    /// Iterates over the gangs that one names, without itself.
    fn named<'g>(&'g self, key: &'g GangKey) -> impl Iterator<Item = &'g GangKey> {
        let named = self.get(key).into_iter().flat_map(|gang| gang.definition.groups.iter());
        named.filter(move |named| *named != key)
    }

    fn names(&self, key: &GangKey, other: &GangKey) -> bool {
        self.get(key).is_some_and(|gang| gang.definition.groups.binary_search(other).is_ok())
    }

    /// Updates the groups after a gang's definition, already stored, changed the gangs that it names. Marks every gang
    /// on the other side as changed, so at least one gang of every set that changed.
    pub(super) fn relink(&mut self, key: &GangKey, before: &[GangKey]) {
        let named = self.get(key).map(|gang| gang.definition.groups.clone()).unwrap_or_default();
        let lost = before.iter().filter(|k| *k != key && named.binary_search(k).is_err());
        let lost: Vec<GangKey> = lost.filter(|k| self.names(k, key)).cloned().collect();
        let is_new = |k: &&GangKey| *k != key && before.binary_search(k).is_err();
        let gained: Vec<GangKey> =
            named.iter().filter(is_new).filter(|k| self.names(k, key)).cloned().collect();
        for other in &lost {
            self.update(other, |gang| gang.one_sided += 1);
        }
        for other in &gained {
            self.update(other, |gang| gang.one_sided = gang.one_sided.saturating_sub(1));
            self.gang_groups.unite(key, other);
        }
        let one_sided = self.named(key).filter(|other| !self.names(other, key)).count() as u32;
        if self.get(key).is_some_and(|gang| gang.one_sided != one_sided) {
            self.update(key, |gang| gang.one_sided = one_sided);
        }
        if !lost.is_empty() {
            let parts = Search::of(lost.into_iter().chain([key.clone()])).run(self);
            self.gang_groups.part(parts);
        }
    }
}

/// Searches from several gangs at once, advancing each walk by one gang in turn, until at most one walk is left. Each
/// walk that ended found a part of its own; what the last walk would still find need not be visited.
struct Search {
    /// The walk that reached each gang first.
    found_by: FxHashMap<GangKey, usize>,
    /// For each walk, the walk that it was merged into, or itself.
    parent: Vec<usize>,
    walks: Vec<Walk>,
}

#[derive(Default)]
struct Walk {
    open: VecDeque<GangKey>,
    done: Vec<GangKey>,
}

impl Search {
    fn of(starts: impl Iterator<Item = GangKey>) -> Self {
        let mut search = Self { found_by: FxHashMap::default(), parent: Vec::new(), walks: Vec::new() };
        for (at, start) in starts.enumerate() {
            search.found_by.insert(start.clone(), at);
            search.parent.push(at);
            search.walks.push(Walk { open: VecDeque::from([start]), done: Vec::new() });
        }
        search
    }

    /// Runs the search. Returns the parts found by the walks that ended.
    fn run(mut self, gangs: &Gangs) -> Vec<Vec<GangKey>> {
        let mut going: Vec<usize> = (0..self.walks.len()).collect();
        let mut ended: Vec<usize> = Vec::new();
        while going.len() > 1 {
            for walk in going.clone() {
                if self.parent[walk] == walk && !self.step(walk, gangs) {
                    ended.push(walk);
                }
            }
            going.retain(|walk| self.parent[*walk] == *walk && !ended.contains(walk));
        }
        ended.into_iter().map(|walk| std::mem::take(&mut self.walks[walk].done)).collect()
    }

    /// Visits one gang of a walk. Returns false when the walk has ended.
    fn step(&mut self, walk: usize, gangs: &Gangs) -> bool {
        let Some(at) = self.walks[walk].open.pop_front() else { return false };
        for next in gangs.named(&at).filter(|next| gangs.names(next, &at)) {
            match self.found_by.get(next).map(|by| self.root(*by)) {
                None => {
                    self.found_by.insert(next.clone(), walk);
                    self.walks[walk].open.push_back(next.clone());
                }
                Some(other) if other != walk => self.join(walk, other),
                Some(_) => {}
            }
        }
        self.walks[walk].done.push(at);
        true
    }

    fn root(&self, mut walk: usize) -> usize {
        while self.parent[walk] != walk {
            walk = self.parent[walk];
        }
        walk
    }

    /// Merges `other` into `walk`, because they met.
    fn join(&mut self, walk: usize, other: usize) {
        self.parent[other] = walk;
        let Walk { open, done } = std::mem::take(&mut self.walks[other]);
        self.walks[walk].open.extend(open);
        self.walks[walk].done.extend(done);
    }
}
