//! A snapshot as one document: everything that a decision depends on, and what was decided.
//!
//! Start with [`Dump::of`], which makes a document, and [`restore`], which makes a scheduler that decides as the
//! original did. A dump has two parts:
//! - The *state* can be rebuilt: objects, places, nominations, gangs, the seed, the configuration. A dump of the
//!   rebuilt scheduler has the same state, byte for byte.
//! - The *record* is what was observed: verdicts with the hashes of their decisions, and the queue.
//!
//! Everything is sorted by name, so a snapshot always gives the same document. The model has no environment
//! variables, commands or secrets, and no annotations but those that plugins declare, so a dump has no others. `redact`
//! omits what people wrote and no decision
//! reads: labels that nobody selects by, messages of conditions and verdicts, values of objects that cannot be read.
//!
//! Preemptions in progress are not rebuilt: they decide when a pod is tried, not the outcome. Nominations are
//! rebuilt.

mod check;
mod make;
mod record;
pub mod restore;
mod state;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use make::Source;
pub use record::{PastVerdict, QueuedUnit, Record, Victims};
pub use state::{EndedPod, KnownGang, KnownNomination, PlacedPod, PluginObject, State, Unreadable};

/// Value of the field `kind` of a dump.
pub const KIND: &str = "PellucidSnapshot";
/// Version of the format. A document of another version is rejected.
pub const VERSION: u32 = 2;

/// A snapshot as a document.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dump {
    /// Always [`KIND`].
    pub kind: String,
    /// Always [`VERSION`].
    pub version: u32,
    /// Whether free text was omitted.
    pub redacted: bool,
    /// Generation of the snapshot.
    pub generation: u64,
    /// When the snapshot was published, in nanoseconds since 1970.
    pub published: u64,
    /// The KubeSchedulerConfiguration in force, with every default written out.
    pub configuration: Value,
    /// The part that can be rebuilt.
    pub state: State,
    /// The part that was observed.
    pub record: Record,
}

impl Dump {
    /// Writes the dump as JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Reads a dump. The error says that the document is not a dump of this version, or what in it is wrong.
    pub fn from_json(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            kind: String,
            version: u32,
        }
        let head: Head = serde_json::from_slice(bytes)
            .map_err(|error| format!("it is not a snapshot, or not a whole one: {error}"))?;
        if head.kind != KIND {
            return Err(format!("it is a {:?}, not a {KIND}", head.kind));
        }
        if head.version != VERSION {
            return Err(format!("it has version {}; this program reads version {VERSION}", head.version));
        }
        let read: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("a part of it cannot be read: {error}"))?;
        check::check(&read).map_err(|why| format!("it contradicts itself: {why}"))?;
        Ok(read)
    }
}
