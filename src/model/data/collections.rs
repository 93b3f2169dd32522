//! The map types of this project. Clippy bans those of `std`, so that readers see which hash is meant.
//!
//! Names come from anybody who may create objects, so their hash has a random seed. It is foldhash, because with std's
//! SipHash nearly half of the work on an input was hashing.
//!
//! Invariant: iteration order of these maps never decides anything; code that iterates sorts first.
#![expect(clippy::disallowed_types, reason = "this is the one place that names std's maps")]

pub use foldhash::fast::RandomState;

/// A map whose keys are user-supplied strings, hashed with a random seed.
pub type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
/// A set whose members are user-supplied strings, hashed with a random seed.
pub type HashSet<K> = std::collections::HashSet<K, RandomState>;
/// A map keyed by our own integers or by [`Name`](super::Name) pointers.
pub type FxHashMap<K, V> = rustc_hash::FxHashMap<K, V>;
/// A set of our own integers or of [`Name`](super::Name) pointers.
pub type FxHashSet<K> = rustc_hash::FxHashSet<K>;
