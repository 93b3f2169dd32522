//! Interned names: equal strings share one allocation, so equality and hashing use the pointer.
//!
//! Label keys and values, taints, resources, images, namespaces and nodes are compared far more often than they are
//! created. All threads share the table (each watch decodes on its own); a name is removed when its last owner drops
//! it. Names are ordered by their text, so interning never decides anything.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::collections::{HashSet, Lasting, RandomState};

/// Number of shards; more shards mean less contention between the decoders of different watches.
const SHARDS: usize = 64;

struct Table {
    hasher: RandomState,
    shards: Vec<Mutex<HashSet<Arc<str>>>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table {
    hasher: RandomState::default(),
    shards: (0..SHARDS).map(|_| Mutex::new(HashSet::default())).collect(),
});

impl Table {
    #[inline]
    fn shard(&self, text: &str) -> &Mutex<HashSet<Arc<str>>> {
        &self.shards[self.hasher.hash_one(text) as usize % SHARDS]
    }
}

/// An interned string. Two names are equal exactly when their texts are.
#[derive(Clone)]
pub struct Name(Arc<str>);

impl Name {
    /// Returns the name with this text, interning it when it is new.
    #[inline]
    pub fn new(text: &str) -> Self {
        let mut shard = TABLE.shard(text).lock();
        if let Some(known) = shard.get(text) {
            return Self(known.clone());
        }
        let made: Arc<str> = text.into();
        shard.make_room();
        shard.insert(made.clone());
        Self(made)
    }

    /// Returns the text.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // Two owners are left: the table and this name. A third could come only from the table, under the shard's
        // lock, or from cloning a `Name`, and ours is the only one left.
        if Arc::strong_count(&self.0) == 2 {
            let mut shard = TABLE.shard(&self.0).lock();
            if Arc::strong_count(&self.0) == 2 {
                shard.remove(&*self.0);
                shard.give_back();
            }
        }
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Ok(Self::new(&text))
    }
}

impl Deref for Name {
    type Target = str;
    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Name {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.0.as_ptr() as usize);
    }
}

impl PartialOrd for Name {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if self == other { Ordering::Equal } else { self.0.as_ref().cmp(other.0.as_ref()) }
    }
}

impl Default for Name {
    #[inline]
    fn default() -> Self {
        Self::new("")
    }
}

impl From<&String> for Name {
    #[inline]
    fn from(text: &String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Name {
    #[inline]
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_name() {
        let (a, b) = (Name::new("zone-equal"), Name::new(&String::from("zone-equal")));
        assert_eq!(a, b);
        assert!(Arc::ptr_eq(&a.0, &b.0));
        assert_ne!(a, Name::new("zone-other"));
    }

    #[test]
    fn order_is_the_order_of_the_text() {
        let mut names = [Name::new("b"), Name::new("a"), Name::new("c")];
        names.sort();
        assert_eq!(names.map(|n| n.to_string()), ["a", "b", "c"]);
    }

    #[test]
    fn a_name_is_forgotten_with_its_last_holder() {
        let text = "only-this-test-uses-this-name";
        let held = Name::new(text);
        let copy = held.clone();
        drop(held);
        assert!(TABLE.shard(text).lock().contains(text));
        drop(copy);
        assert!(!TABLE.shard(text).lock().contains(text));
    }
}
