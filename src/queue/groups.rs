//! Wake-up groups: an index of refused units by the events that may wake them. Units that were refused alike form one
//! group, and an event finds the groups that listen to it without visiting the others.

use std::collections::BTreeMap;

use pellucid_cluster::{EventKinds, ShapeId};
use pellucid_model::collections::{FxHashMap, Lasting};
use pellucid_model::{PodId, Slots};

use super::{RefusedBy, UnitId};

/// Identifies units that were refused alike, which the same events wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WakeGroup {
    /// Shape of the units' pods.
    pub shape: ShapeId,
    /// Index of the units' profile.
    pub profile: usize,
    /// Plugins that are asked about events: those that refused the units, or, of units that `has_place`, those that
    /// filter nodes for them.
    pub plugins: RefusedBy,
    /// Whether no plugin refused these members of gangs: they had places, and gave them up because siblings had none.
    pub has_place: bool,
    /// Whether any event of a kind that the plugins listen to wakes the units, because they have too many kinds of pods
    /// to ask the plugins about.
    pub is_by_kind: bool,
}

impl WakeGroup {
    /// Makes the group of pods of one shape that these plugins refused.
    #[inline]
    pub fn new(shape: ShapeId, profile: usize, refused_by: RefusedBy) -> Self {
        Self { shape, profile, plugins: refused_by, has_place: false, is_by_kind: false }
    }

    /// Makes the group of members of one shape that gave up their places; `filters` filter nodes for them.
    #[inline]
    pub fn with_place(shape: ShapeId, profile: usize, filters: RefusedBy) -> Self {
        Self { has_place: true, ..Self::new(shape, profile, filters) }
    }

    /// Returns the group that covers pods of every shape and is woken by event kind.
    pub(super) fn by_kind(self) -> Self {
        Self { shape: ShapeId::default(), is_by_kind: true, ..self }
    }
}

/// A wake-up group with its units.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) group: WakeGroup,
    kinds: EventKinds,
    /// The units of the group, each with its first pod.
    pub(super) units: BTreeMap<UnitId, PodId>,
    /// The first unit and its pod. Plugins are asked about one pod for the whole group, so most events need no other.
    first: (UnitId, PodId),
}

impl Entry {
    /// Returns the pod that plugins are asked about for the group, from a unit other than `own`.
    pub(super) fn asked(&self, own: Option<UnitId>) -> Option<PodId> {
        if Some(self.first.0) != own {
            return Some(self.first.1);
        }
        self.units.values().nth(1).copied()
    }
}

/// All wake-up groups. Each event kind has a bit set with one bit per group that listens to it.
#[derive(Debug, Default)]
pub(super) struct Groups {
    entries: Vec<Option<Entry>>,
    index: FxHashMap<WakeGroup, usize>,
    /// Which of `entries` are free.
    slots: Slots,
    listening: Vec<Vec<u64>>,
    n_listening: Vec<usize>,
}

impl Groups {
    /// Adds a unit to its group. `kinds` is called when the group is new.
    pub(super) fn insert(
        &mut self,
        group: WakeGroup,
        unit: (UnitId, PodId),
        kinds: impl FnOnce() -> EventKinds,
    ) {
        let at = match self.index.get(&group) {
            Some(at) => *at,
            None => self.make(group, kinds(), unit),
        };
        if let Some(entry) = &mut self.entries[at] {
            entry.units.insert(unit.0, unit.1);
            entry.first = entry.first.min(unit);
        }
    }

    /// Removes a unit from its group, and the group with its last unit.
    pub(super) fn remove(&mut self, group: &WakeGroup, unit: UnitId) {
        let Some(&at) = self.index.get(group) else { return };
        let Some(entry) = &mut self.entries[at] else { return };
        entry.units.remove(&unit);
        if let Some((first, pod)) = entry.units.first_key_value() {
            entry.first = (*first, *pod);
        } else {
            let kinds = entry.kinds;
            self.set(at, kinds, false);
            self.entries[at] = None;
            self.index.remove(group);
            self.index.give_back();
            self.slots.give(at);
            self.entries.truncate(self.slots.len());
        }
    }

    /// Returns whether some group listens to one of the kinds.
    pub(super) fn has_listener(&self, kinds: EventKinds) -> bool {
        bits(kinds.0).any(|kind| self.n_listening.get(kind).is_some_and(|n| *n > 0))
    }

    /// Iterates over the groups that listen to one of the kinds, each once.
    pub(super) fn listening(&self, kinds: EventKinds) -> impl Iterator<Item = &Entry> {
        let sets: Vec<&[u64]> =
            bits(kinds.0).filter_map(|kind| self.listening.get(kind)).map(Vec::as_slice).collect();
        let words = sets.iter().map(|set| set.len()).max().unwrap_or(0);
        (0..words).flat_map(move |word| {
            let any = sets.iter().filter_map(|set| set.get(word)).fold(0, |all, bits| all | bits);
            bits(any).filter_map(move |bit| self.entries[word * 64 + bit].as_ref())
        })
    }

    /// Returns whether there is no group.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty() && self.n_listening.iter().all(|n| *n == 0)
    }

    fn make(&mut self, group: WakeGroup, kinds: EventKinds, first: (UnitId, PodId)) -> usize {
        let at = self.slots.take();
        if at == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[at] = Some(Entry { group, kinds, units: BTreeMap::new(), first });
        self.index.make_room();
        self.index.insert(group, at);
        self.set(at, kinds, true);
        at
    }

    fn set(&mut self, at: usize, kinds: EventKinds, listens: bool) {
        for kind in bits(kinds.0) {
            if self.listening.len() <= kind {
                self.listening.resize(kind + 1, Vec::new());
                self.n_listening.resize(kind + 1, 0);
            }
            let set = &mut self.listening[kind];
            if set.len() <= at / 64 {
                set.resize(at / 64 + 1, 0);
            }
            if listens {
                set[at / 64] |= 1 << (at % 64);
                self.n_listening[kind] += 1;
            } else {
                set[at / 64] &= !(1 << (at % 64));
                self.n_listening[kind] -= 1;
            }
        }
    }
}

/// Iterates over the positions of the set bits, in ascending order.
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (at < 64).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(shape: u32) -> WakeGroup {
        WakeGroup::new(ShapeId(shape), 0, RefusedBy(1))
    }

    fn found(groups: &Groups, kinds: EventKinds) -> Vec<u32> {
        groups.listening(kinds).map(|e| e.group.shape.0).collect()
    }

    fn unit(n: u32) -> (UnitId, PodId) {
        (UnitId(n), PodId(100 + n))
    }

    #[test]
    fn an_event_finds_those_that_listen_once_each() {
        let mut groups = Groups::default();
        let both = EventKinds::NODE_LABEL.with(EventKinds::NODE_TAINT);
        groups.insert(group(1), unit(1), || EventKinds::NODE_LABEL);
        groups.insert(group(2), unit(2), || EventKinds::NODE_TAINT);
        groups.insert(group(3), unit(3), || both);
        groups.insert(group(3), unit(4), || EventKinds::POD_ADD);
        assert_eq!(found(&groups, EventKinds::NODE_LABEL), [1, 3]);
        assert_eq!(found(&groups, both), [1, 2, 3]);
        assert!(!groups.has_listener(EventKinds::POD_ADD) && found(&groups, EventKinds::POD_ADD).is_empty());
        let of_three = |own| groups.entries[2].as_ref().and_then(|e| e.asked(own));
        assert_eq!(of_three(None), Some(PodId(103)));
        assert_eq!(of_three(Some(UnitId(3))), Some(PodId(104)));
        groups.remove(&group(3), UnitId(3));
        assert_eq!(groups.entries[2].as_ref().and_then(|e| e.asked(None)), Some(PodId(104)));
        assert_eq!(groups.entries[2].as_ref().and_then(|e| e.asked(Some(UnitId(4)))), None);
        assert_eq!(found(&groups, both), [1, 2, 3], "one unit is left");
        groups.remove(&group(3), UnitId(4));
        groups.remove(&group(1), UnitId(1));
        assert_eq!(found(&groups, both), [2]);
        assert!(!groups.has_listener(EventKinds::NODE_LABEL));
        for shape in 10..200 {
            groups.insert(group(shape), unit(shape), || EventKinds::NODE_LABEL);
        }
        assert_eq!(found(&groups, EventKinds::NODE_LABEL).len(), 190);
        assert_eq!(groups.entries.len(), 191, "slots are used again");
    }
}
