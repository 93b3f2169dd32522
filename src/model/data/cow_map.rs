//! A sharded hash map whose shards are copied on write while a reader still holds them.
//!
//! The companion of [`Pages`](super::Pages) for lookups by name: cloning costs one reference count per shard, writing
//! copies at most one shard. Unordered; code that lists entries must sort.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use crate::collections::HashMap;

const SHARDS: usize = 128;

/// A map from `K` to `V` in copy-on-write shards.
#[derive(Debug)]
pub struct CowMap<K, V> {
    hasher: RandomState,
    shards: Vec<Arc<HashMap<K, V>>>,
}

impl<K, V> Clone for CowMap<K, V> {
    #[inline]
    fn clone(&self) -> Self {
        Self { hasher: self.hasher.clone(), shards: self.shards.clone() }
    }
}

impl<K, V> Default for CowMap<K, V> {
    #[inline]
    fn default() -> Self {
        Self { hasher: RandomState::new(), shards: (0..SHARDS).map(|_| Arc::default()).collect() }
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
        self.shards[self.shard(key)].get(key)
    }

    /// Returns the value of a key for writing, copying its shard when a reader holds it.
    pub fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let shard = self.shard(key);
        if self.shards[shard].contains_key(key) {
            Arc::make_mut(&mut self.shards[shard]).get_mut(key)
        } else {
            None
        }
    }

    /// Sets the value of a key and returns the previous one.
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let shard = self.shard(&key);
        Arc::make_mut(&mut self.shards[shard]).insert(key, value)
    }

    /// Removes a key and returns its value.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let shard = self.shard(key);
        if self.shards[shard].contains_key(key) {
            Arc::make_mut(&mut self.shards[shard]).remove(key)
        } else {
            None
        }
    }

    /// Iterates over all entries in no particular order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.shards.iter().flat_map(|s| s.iter())
    }

    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|s| s.len()).sum()
    }

    /// Returns whether the map has no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
        assert_eq!((live.get("a"), live.len()), (Some(&2), 2));
        assert_eq!(live.remove("a"), Some(2));
        assert_eq!(live.remove("a"), None);
        assert_eq!(seen.len(), 1);
    }
}
