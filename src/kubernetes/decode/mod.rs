//! Decodes objects from JSON into the model. An object that cannot be read is quarantined with the exact field, never
//! guessed.
//!
//! `slim` and `slim_objects` declare the fields that are read; they reject no value (`lenient`). The readers validate
//! them: start with `item`, then `pod`, `node` and `objects`. Defaults that an API server fills in (a request that
//! only has a limit, host ports of pods on the host network, protocols, policies) are filled in here too, because
//! simulate, replay and tests decode manifests that no API server has seen.
#![expect(
    clippy::result_large_err,
    reason = "unreadable objects are rare, and a readable pod is larger still"
)]

mod containers;
mod decoder;
mod fields;
mod gangs;
mod item;
mod lenient;
mod node;
mod objects;
mod persistent_volume;
mod pod;
mod relations;
mod requests;
mod slim;
mod slim_objects;
mod storage;
mod volumes;
mod workloads;

use std::sync::Arc;

pub use decoder::Decoder;
pub(super) use item::{Decoded, Event, Item};

use pellucid_cluster::input::Quarantined;
use pellucid_model::Name;

use self::lenient::{Fault, Lenient};

/// Creates the record of an unreadable object, with as much of its identity as can be read.
fn quarantined(
    kind: &'static str,
    meta: Option<&slim::Meta>,
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
