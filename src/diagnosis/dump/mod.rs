//! A snapshot as one document: all that a decision depends on, and what was decided.
//!
//! [`Dump::of`] makes it, [`restore`] makes a scheduler of it, which decides as the original did. It is in two parts.
//! The *state* is what can be rebuilt: objects, places, nominations, gangs, the seed, the configuration. Made of a rebuilt
//! scheduler it is the same again, byte for byte. The *record* is what was seen then: verdicts with the hashes of their
//! decisions, and the queue.
//!
//! Everything is in the order of names, so one snapshot gives one document. Environment, commands, secrets and annotations
//! are not in the model and therefore not in here. `redact` leaves out what people wrote and no decision reads:
//! labels that nobody selects by, messages of conditions and verdicts, values of objects that cannot be read.
//!
//! The account of preemptions under way is not rebuilt: it decides when a pod is tried, not what comes of it. Nominations
//! are.

mod check;
mod make;
mod record;
pub mod restore;
mod state;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use make::Source;
pub use record::{PastVerdict, QueuedUnit, Record, Victims};
pub use state::{EndedPod, KnownGang, KnownNomination, PlacedPod, State, Unreadable};

/// What the document says it is.
pub const KIND: &str = "PellucidSnapshot";
/// The version of the form. A document of another version is not read.
pub const VERSION: u32 = 1;

/// The document.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dump {
    /// [`KIND`].
    pub kind: String,
    /// [`VERSION`].
    pub version: u32,
    /// Whether free text was left out.
    pub redacted: bool,
    /// The generation of the snapshot.
    pub generation: u64,
    /// When it was published, nanoseconds since 1970.
    pub published: u64,
    /// The KubeSchedulerConfiguration in force, with nothing left to defaults.
    pub configuration: Value,
    /// What can be rebuilt.
    pub state: State,
    /// What was seen.
    pub record: Record,
}

impl Dump {
    /// Makes the document of a snapshot.
    pub fn of(source: &Source<'_>) -> Self {
        make::make(source)
    }

    /// Writes it as JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Reads it. The error says what is wrong with the document: that it is none, or what in it cannot be.
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
