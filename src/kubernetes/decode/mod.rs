//! Readers of JSON objects and their fields, which kinds share. An object that cannot be read is quarantined with the
//! exact field, never guessed.
//!
//! `wire` declares fields that are read; its types reject no value (`lenient`). The readers validate them: start with
//! `item` and `objects`, then `fields`. What is read of each kind is in `kinds`, one file per kind. Defaults that an
//! API server fills in (a request that only has a limit, host ports of pods on the host network, protocols, policies)
//! are filled in here too, because simulate, replay and tests decode manifests that no API server has seen.
#![expect(
    clippy::result_large_err,
    reason = "unreadable objects are rare, and a readable pod is larger still"
)]

pub(crate) mod containers;
mod decoder;
pub(crate) mod fields;
pub(crate) mod gangs;
mod item;
pub(crate) mod lenient;
pub(crate) mod objects;
pub(crate) mod relations;
pub(crate) mod requests;
pub(crate) mod volumes;
pub(crate) mod wire;

use std::sync::Arc;

pub use decoder::Decoder;
pub(crate) use item::{Decoded, Event, Item, from_manifest};

use pellucid_cluster::input::Quarantined;
use pellucid_model::Name;

use self::lenient::{Fault, Lenient};

/// Creates the record of an unreadable object, with as much of its identity as can be read.
pub(crate) fn quarantined(
    kind: &'static str,
    meta: Option<&wire::Meta>,
    scheduler_name: Option<Name>,
    fault: Fault,
) -> Quarantined {
    let text = |field: Option<&Lenient<Arc<str>>>| field.and_then(Lenient::good).cloned();
    Quarantined {
        kind,
        namespace: meta.and_then(|m| m.namespace.good()).cloned().unwrap_or_default(),
        name: text(meta.map(|m| &m.name)).unwrap_or_else(|| "".into()),
        uid: text(meta.map(|m| &m.uid)).unwrap_or_else(|| "".into()),
        scheduler_name,
        is_bound: false,
        field: fault.field.into(),
        value: fault.value.into(),
        problem: fault.problem.into(),
    }
}

#[cfg(test)]
mod tests;
