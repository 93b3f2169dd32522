//! A sharded hash map whose shards are copied on write while a reader still holds them.
//!
//! The companion of [`Pages`](super::Pages) for lookups by name: cloning costs one reference count, the first write after
//! that one per shard, and a write copies at most one shard. An empty map that was never written to has no shards.
//! Unordered; code that lists entries must sort.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use crate::collections::{HashMap, Lasting, RandomState};

const SHARDS: usize = 128;

type Shards<K, V> = [Arc<HashMap<K, V>>; SHARDS];

/// A map from `K` to `V` in copy-on-write shards.
#[derive(Clone, Debug)]
pub struct CowMap<K, V> {
    hasher: RandomState,
    shards: Option<Arc<Shards<K, V>>>,
}

impl<K, V> Default for CowMap<K, V> {
    #[inline]
    fn default() -> Self {
        Self { hasher: RandomState::default(), shards: None }
    }
}

impl<K: Eq + Hash + Clone, V: Clone> CowMap<K, V> {
    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        self.hasher.hash_one(key) as usize % SHARDS
    }

    /// Returns the value of a key.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.shards.as_ref()?[self.shard(key)].get(key)
    }

    /// Returns the shard of a key for writing, copied when a reader holds it, or `None` when the key is not there.
    fn shard_with<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut HashMap<K, V>>
    where
        K: Borrow<Q>,
    {
        let shard = self.shard(key);
        let shards = self.shards.as_mut()?;
        shards[shard].contains_key(key).then(|| Arc::make_mut(&mut Arc::make_mut(shards)[shard]))
    }

    /// Returns the value of a key for writing, copying its shard when a reader holds it.
    pub fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.shard_with(key)?.get_mut(key)
    }

    /// Sets the value of a key and returns the previous one.
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let shard = self.shard(&key);
        let shards = self.shards.get_or_insert_with(|| {
            let empty = Arc::default();
            Arc::new(std::array::from_fn(|_| Arc::clone(&empty)))
        });
        let shard = Arc::make_mut(&mut Arc::make_mut(shards)[shard]);
        shard.make_room();
        shard.insert(key, value)
    }

    /// Removes a key and returns its value.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let shard = self.shard_with(key)?;
        let removed = shard.remove(key);
        shard.give_back();
        removed
    }

    /// Iterates over all entries in no particular order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.shards.iter().flat_map(|shards| shards.iter()).flat_map(|shard| shard.iter())
    }

    /// Returns whether the map has no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shards.as_ref().is_none_or(|shards| shards.iter().all(|shard| shard.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_keeps_what_it_saw() {
        let mut live: CowMap<Arc<str>, u32> = CowMap::default();
        live.insert("a".into(), 1);
        let seen = live.clone();
        live.insert("a".into(), 2);
        live.insert("b".into(), 3);
        assert_eq!((seen.get("a"), seen.get("b")), (Some(&1), None));
        assert_eq!((live.get("a"), live.iter().count()), (Some(&2), 2));
        assert_eq!(live.remove("a"), Some(2));
        assert_eq!(live.remove("a"), None);
        assert_eq!(seen.iter().count(), 1);
    }
}
