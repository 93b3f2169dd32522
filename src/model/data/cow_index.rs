//! A sharded table of numbers by what they stand for, whose shards are copied on write while a reader still holds them.
//!
//! The companion of [`CowMap`](super::cow_map::CowMap) for what is numbered elsewhere: it holds no keys, and the caller
//! compares what a number stands for. So copying a shard copies numbers alone; copies of keys would count users of names,
//! which lie far away. Unordered. As with [`Lasting`](super::collections::Lasting), its size follows what it holds.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::HashTable;

use super::collections::{RandomState, is_wide, roomy};

const SHARDS: usize = 128;

/// A number with the hash of what it stands for.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    number: u32,
}

type Shards = [Arc<HashTable<Entry>>; SHARDS];

/// Numbers in copy-on-write shards.
#[derive(Clone, Debug, Default)]
pub struct CowIndex {
    hasher: RandomState,
    shards: Option<Arc<Shards>>,
}

impl CowIndex {
    /// Returns the number that stands for a key: that of which `is_it` holds, among those with the key's hash.
    #[inline]
    pub fn find<Q: Hash + ?Sized>(&self, key: &Q, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        let shard = &self.shards.as_ref()?[shard_of(hash)];
        shard.find(hash, |entry| entry.hash == hash && is_it(entry.number)).map(|entry| entry.number)
    }

    /// Adds the number of a key that has none.
    pub fn insert<Q: Hash + ?Sized>(&mut self, key: &Q, number: u32) {
        let hash = self.hasher.hash_one(key);
        let shards = self.shards.get_or_insert_with(|| {
            let empty = Arc::default();
            Arc::new(std::array::from_fn(|_| Arc::clone(&empty)))
        });
        let shard = Arc::make_mut(&mut Arc::make_mut(shards)[shard_of(hash)]);
        if shard.len() == shard.capacity() {
            // Removed entries leave marks behind that use up its room.
            let mut table = HashTable::with_capacity(roomy(shard.len()));
            for entry in shard.iter() {
                table.insert_unique(entry.hash, *entry, |entry| entry.hash);
            }
            *shard = table;
        }
        shard.insert_unique(hash, Entry { hash, number }, |entry| entry.hash);
    }

    /// Removes the number of a key.
    pub fn remove<Q: Hash + ?Sized>(&mut self, key: &Q, number: u32) {
        let hash = self.hasher.hash_one(key);
        let Some(shards) = &mut self.shards else { return };
        let shard = Arc::make_mut(&mut Arc::make_mut(shards)[shard_of(hash)]);
        if let Ok(entry) = shard.find_entry(hash, |entry| entry.hash == hash && entry.number == number) {
            entry.remove();
        }
        if is_wide(shard.len(), shard.capacity()) {
            shard.shrink_to(2 * shard.len(), |entry| entry.hash);
        }
    }
}

/// Takes bits from the middle of the hash: a table takes its own from both ends.
fn shard_of(hash: u64) -> usize {
    (hash >> 32) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_keeps_what_it_saw_and_numbers_of_one_hash_are_told_apart() {
        let names = ["a", "b", "c"];
        let mut live = CowIndex::default();
        let find = |index: &CowIndex, name: &str| index.find(name, |number| names[number as usize] == name);
        assert_eq!(find(&live, "a"), None);
        live.insert("a", 0);
        let seen = live.clone();
        live.insert("b", 1);
        live.remove("a", 0);
        assert_eq!(names.map(|name| find(&live, name)), [None, Some(1), None]);
        assert_eq!(names.map(|name| find(&seen, name)), [Some(0), None, None]);
        // Two keys of one hash.
        live.insert("b", 2);
        assert_eq!([1, 2].map(|wanted| live.find("b", |number| number == wanted)), [Some(1), Some(2)]);
        live.remove("b", 1);
        assert_eq!([1, 2].map(|wanted| live.find("b", |number| number == wanted)), [None, Some(2)]);
    }

    #[test]
    fn its_size_follows_what_it_holds() {
        let mut index = CowIndex::default();
        let capacity = |index: &CowIndex| -> usize {
            index.shards.iter().flat_map(|shards| shards.iter()).map(|shard| shard.capacity()).sum()
        };
        (0..20_000).for_each(|i: u32| index.insert(&i, i));
        let peak = capacity(&index);
        for i in 20_000..200_000u32 {
            index.remove(&(i - 20_000), i - 20_000);
            index.insert(&i, i);
        }
        assert!(capacity(&index) < 2 * peak, "{} after {peak}", capacity(&index));
        (180_000..200_000u32).for_each(|i| index.remove(&i, i));
        assert!(capacity(&index) <= SHARDS * 28, "{}", capacity(&index));
    }
}
