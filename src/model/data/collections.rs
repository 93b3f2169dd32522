//! The map types of this project. Clippy bans those of `std`, so that readers see which hash is meant.
//!
//! Names come from anybody who may create objects, so their hash has a random seed. It is foldhash, because with std's
//! SipHash nearly half of the work on an input was hashing.
//!
//! Invariant: iteration order of these maps never decides anything; code that iterates sorts first.
//!
//! A table of `std` that is inserted into and removed from all the time doubles once it is more than half full, because
//! removed entries leave marks behind that use up its room, and it never becomes smaller. Tables that live as long as the process
//! therefore call [`Lasting`], so that their size follows what they hold now.
#![expect(clippy::disallowed_types, reason = "this is the one place that names std's maps")]

use std::hash::{BuildHasher, Hash};

pub use foldhash::fast::RandomState;

/// A map whose keys are user-supplied strings, hashed with a random seed.
pub type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
/// A set whose members are user-supplied strings, hashed with a random seed.
pub type HashSet<K> = std::collections::HashSet<K, RandomState>;
/// A map keyed by our own integers or by [`Name`](super::Name) pointers.
pub type FxHashMap<K, V> = rustc_hash::FxHashMap<K, V>;
/// A set of our own integers or of [`Name`](super::Name) pointers.
pub type FxHashSet<K> = rustc_hash::FxHashSet<K>;

/// Capacity up to which a table is never made smaller.
const SMALL: usize = 28;

/// Keeps the size of a table near what it holds, however often entries come and go.
pub trait Lasting {
    /// Makes room for an entry. Call it before inserting. A table without room is built anew, with room for a third more than
    /// it holds, so an insertion moves four entries at most on average.
    fn make_room(&mut self);

    /// Gives memory back when only an eighth is in use. Call it after removing.
    fn give_back(&mut self);
}

macro_rules! lasting {
    ($table:ident, $($of:ident),+) => {
        impl<K: Eq + Hash, $($of),+> Lasting for std::collections::$table<K, $($of),+>
        where
            S: BuildHasher + Clone,
        {
            #[inline]
            fn make_room(&mut self) {
                if self.len() == self.capacity() {
                    let mut table = Self::with_capacity_and_hasher(roomy(self.len()), self.hasher().clone());
                    table.extend(self.drain());
                    *self = table;
                }
            }

            #[inline]
            fn give_back(&mut self) {
                if is_wide(self.len(), self.capacity()) {
                    self.shrink_to(2 * self.len());
                }
            }
        }
    };
}

lasting!(HashMap, V, S);
lasting!(HashSet, S);

pub(super) fn roomy(len: usize) -> usize {
    len + len / 3 + 1
}

pub(super) fn is_wide(len: usize, capacity: usize) -> bool {
    capacity > SMALL && len < capacity / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inserts and removes so that `len` of the youngest entries stay, and returns the greatest capacity seen.
    fn greatest(map: &mut FxHashMap<u64, u64>, next: &mut u64, len: u64) -> usize {
        let mut greatest = 0;
        for _ in 0..100_000 {
            map.make_room();
            map.insert(*next, 0);
            map.remove(&next.wrapping_sub(len));
            map.give_back();
            *next += 1;
            greatest = greatest.max(map.capacity());
        }
        greatest
    }

    #[test]
    fn a_table_that_is_always_changed_keeps_its_size() {
        let (mut map, mut next) = (FxHashMap::default(), 0);
        assert!(greatest(&mut map, &mut next, 600) <= 896);
        assert_eq!(map.len(), 600);
    }

    #[test]
    fn a_table_that_is_nearly_empty_becomes_small() {
        let mut set: HashSet<u64> = (0..10_000).collect();
        for n in 100..10_000 {
            set.remove(&n);
            set.give_back();
        }
        assert!(set.capacity() < 1_800, "{}", set.capacity());
        assert!((0..100).all(|n| set.contains(&n)));
    }
}
