//! The map types of this project. Clippy bans those of `std`, so that readers see which hash is meant.
//!
//! Invariant: iteration order of these maps never decides anything; code that iterates sorts first.
#![expect(clippy::disallowed_types, reason = "this is the one place that names std's maps")]

/// A map whose keys are user-supplied strings, hashed with a random seed.
pub type HashMap<K, V> = std::collections::HashMap<K, V>;
/// A set whose members are user-supplied strings, hashed with a random seed.
pub type HashSet<K> = std::collections::HashSet<K>;
/// A map keyed by our own integers or by [`Name`](super::Name) pointers.
pub type FxHashMap<K, V> = rustc_hash::FxHashMap<K, V>;
/// A set of our own integers or of [`Name`](super::Name) pointers.
pub type FxHashSet<K> = rustc_hash::FxHashSet<K>;
