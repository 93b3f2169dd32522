//! The flight recorder: the event history of pods and gangs, and of objects that are scheduled as pods are. It is always on and bounded in bytes.
//!
//! The scheduling thread writes one small entry per event ([`FlightRecorder`]): numbers, the names as bytes in one
//! buffer per chunk, and for refusals the shared refusal itself. It renders no text and allocates nothing per entry.
//! Placements, one per decision, contain only numbers; their [`Names`] are written when pod or node leave the state. A
//! snapshot shares the chunks ([`FlightLog`]), and `diagnosis::history` renders text from them.
//!
//! **Ids** increase by one per entry and are never reused. An attempt that fails again for the same reasons becomes a
//! new entry with a new id that replaces the old one: it names the old id in `replaces`, keeps `first` and increments
//! the count. A reader that has read up to an id therefore finds everything that happened since after that id. Replaced
//! entries are removed when they are most of their chunk; until then a reader may still see them.
//!
//! **The bound** pushes out the oldest chunk. The log knows the highest id pushed out, so a reader whose cursor is
//! before it learns of the gap.
//!
//! Not recorded: what other schedulers do, and pods that were bound when they were first seen.

mod chunk;
mod closed;
mod entry;
mod line;
mod names;
mod ring;
mod sameness;

pub use chunk::Chunk;
pub use entry::{Departure, Entry, Eviction, FlightEvent, Numbers};
pub use names::{Names, object_subject};
pub use ring::{FlightLog, FlightRecorder, PodEvent, RecordedAt};

/// Default size limit of the recorder, in bytes.
pub const DEFAULT_BYTES: usize = 16 << 20;
