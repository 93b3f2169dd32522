//! The map types of the house. `std`'s are banned by clippy so that a reader sees which hash is meant.
//!
//! Iteration order of these maps never decides anything: whoever iterates sorts first.
#![expect(clippy::disallowed_types, reason = "this is the one place that names std's maps")]

/// A map whose keys are strings of users: hashed with a random seed.
pub type HashMap<K, V> = std::collections::HashMap<K, V>;
/// A set whose members are strings of users: hashed with a random seed.
pub type HashSet<K> = std::collections::HashSet<K>;
/// A map keyed by our own integers or by [`Name`](super::Name) pointers.
pub type FxHashMap<K, V> = rustc_hash::FxHashMap<K, V>;
/// A set of our own integers or of [`Name`](super::Name) pointers.
pub type FxHashSet<K> = rustc_hash::FxHashSet<K>;
