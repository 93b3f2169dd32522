//! Which gangs form a group: those that name each other, directly or through others.
//!
//! Kept with every change of a definition, not worked out when asked: a gang that joins a group costs what it names, one
//! that leaves costs at most the smaller parts that are left. Gangs that stand alone are not in here. How many may form a
//! group is bounded ([`GroupLimits`]); what is beyond is no group, and each of its gangs says so.

use std::collections::VecDeque;
use std::sync::Arc;

use pellucid_model::collections::FxHashMap;
use pellucid_model::{CowMap, GangKey};

use super::Gangs;

/// How large a gang group may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimits {
    /// Gangs.
    pub gangs: u32,
    /// Pods of all its gangs together.
    pub members: u32,
}

impl Default for GroupLimits {
    fn default() -> Self {
        Self { gangs: u32::MAX, members: u32::MAX }
    }
}

/// The sets of two gangs and more.
#[derive(Clone, Default)]
pub(super) struct Partners {
    of: CowMap<GangKey, u64>,
    /// Gangs of each set, by key.
    sets: CowMap<u64, Arc<Vec<GangKey>>>,
    next: u64,
}

impl Partners {
    fn set(&self, key: &GangKey) -> Option<&Arc<Vec<GangKey>>> {
        self.sets.get(self.of.get(key)?)
    }

    /// Makes one set of those of two gangs. Costs the smaller one, and a copy when somebody holds the larger one.
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
            // Two sorted runs, which the sort merges.
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

    /// Takes parts out of the set that they were in. What is left stays.
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
    /// Returns the gangs that form a group with one, itself included, by key; `None` when it is planned by itself: it
    /// names none that names it back, or they are more than may form a group.
    pub fn group(&self, key: &GangKey) -> Option<&Arc<Vec<GangKey>>> {
        self.partners.set(key).filter(|set| set.len() <= self.limits.gangs as usize)
    }

    /// Returns the gangs that must reach their quorum together with one, itself included, by key.
    pub fn group_of(&self, key: &GangKey) -> Vec<GangKey> {
        self.group(key).map_or_else(|| vec![key.clone()], |set| set.to_vec())
    }

    /// Returns how many gangs name each other around one, when they are more than may form a group.
    pub fn too_many(&self, key: &GangKey) -> Option<usize> {
        let size = self.partners.set(key)?.len();
        (size > self.limits.gangs as usize).then_some(size)
    }

    /// Returns how large groups may be.
    pub fn limits(&self) -> GroupLimits {
        self.limits
    }

    /// Sets how large groups may be. Called before there are gangs.
    pub fn set_limits(&mut self, limits: GroupLimits) {
        self.limits = limits;
    }

    /// Returns the gangs that one names and that do not name it back, or do not exist.
    pub fn one_sided(&self, key: &GangKey) -> Vec<GangKey> {
        if self.get(key).is_none_or(|gang| gang.one_sided == 0) {
            return Vec::new();
        }
        self.named(key).filter(|named| !self.names(named, key)).cloned().collect()
    }

    /// Iterates over the gangs that one names beside itself.
    fn named<'g>(&'g self, key: &'g GangKey) -> impl Iterator<Item = &'g GangKey> {
        let named = self.get(key).into_iter().flat_map(|gang| gang.definition.groups.iter());
        named.filter(move |named| *named != key)
    }

    fn names(&self, key: &GangKey, other: &GangKey) -> bool {
        self.get(key).is_some_and(|gang| gang.definition.groups.binary_search(other).is_ok())
    }

    /// A gang names others than before; its definition says which already. Whoever is concerned counts as changed: each
    /// gang on the other side, so at least one of every set that became another one.
    pub(super) fn relink(&mut self, key: &GangKey, before: &[GangKey]) {
        let named = self.get(key).map(|gang| gang.definition.groups.clone()).unwrap_or_default();
        let lost = before.iter().filter(|k| *k != key && named.binary_search(k).is_err());
        let lost: Vec<GangKey> = lost.filter(|k| self.names(k, key)).cloned().collect();
        let is_new = |k: &&GangKey| *k != key && before.binary_search(k).is_err();
        let gained: Vec<GangKey> =
            named.iter().filter(is_new).filter(|k| self.names(k, key)).cloned().collect();
        for other in &lost {
            self.change(other, |gang| gang.one_sided += 1);
        }
        for other in &gained {
            self.change(other, |gang| gang.one_sided = gang.one_sided.saturating_sub(1));
            self.partners.unite(key, other);
        }
        let one_sided = self.named(key).filter(|other| !self.names(other, key)).count() as u32;
        if self.get(key).is_some_and(|gang| gang.one_sided != one_sided) {
            self.change(key, |gang| gang.one_sided = one_sided);
        }
        if !lost.is_empty() {
            let parts = Search::of(lost.into_iter().chain([key.clone()])).run(self);
            self.partners.part(parts);
        }
    }
}

/// Walks from several gangs at once, a gang at a time each, until all walks but one have ended: what those found are
/// parts of their own, and what the last one would still find need not be looked at.
struct Search {
    /// The walk that came to a gang first.
    found_by: FxHashMap<GangKey, usize>,
    /// For each walk, the one that it became a part of.
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

    /// Returns what the walks that ended have found.
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

    /// Looks around one gang. Returns false when the walk has ended.
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

    /// Another walk becomes a part of one that met it.
    fn join(&mut self, walk: usize, other: usize) {
        self.parent[other] = walk;
        let Walk { open, done } = std::mem::take(&mut self.walks[other]);
        self.walks[walk].open.extend(open);
        self.walks[walk].done.extend(done);
    }
}
