//! What is known about each kind of object: where it is served, how it is read, defaulted, validated and shown.
//!
//! `catalog` has one row per built-in kind, `crd` brings kinds while the sandbox runs, `registry` finds a kind by its path.
//! `storage` has volumes and claims, `groups` PodGroups, `annotations` the sandbox's own annotations. The others are rules that rows name. Not here: what happens to an
//! object after it is stored.
//!
//! The schemas of kinds are here and nowhere else, also of those that a client reads: a server that took them from its
//! clients could not tell a client that it is wrong.

pub(crate) mod annotations;
pub(crate) mod catalog;
pub(crate) mod crd;
pub(crate) mod decode;
pub(crate) mod defaults;
pub(crate) mod events;
pub(crate) mod groups;
pub(crate) mod installation;
pub(crate) mod meta;
pub(crate) mod placement;
pub(crate) mod pod_diff;
pub(crate) mod pods;
pub(crate) mod ports;
pub(crate) mod printers;
pub(crate) mod registry;
pub(crate) mod scale;
pub(crate) mod schema;
pub(crate) mod storage;
pub(crate) mod validate;
pub(crate) mod webhooks;
