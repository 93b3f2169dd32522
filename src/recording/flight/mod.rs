//! The flight recorder: what happened to each pod and gang, always on, bounded by bytes.
//!
//! The scheduling thread writes one small entry per event ([`Flight`]): numbers, the names as bytes in one
//! buffer per chunk, and for refusals the shared refusal itself. No text is made and nothing is allocated per
//! entry. Placements, one per decision, are numbers alone: their [`Names`] are written down when their pod or node
//! goes. A snapshot shares the chunks ([`FlightLog`]) and `diagnosis::history` makes text of them.
//!
//! **Ids** rise by one per entry and are never given twice. An attempt that fails again for the same reasons
//! becomes a new entry with a new id that takes the old one's place: it says `replaces`, keeps `first` and
//! counts on. So whoever has read up to an id finds everything that happened since behind it. Replaced entries
//! are cleared away when most of their chunk is; until then a reader may still meet them.
//!
//! **What is pushed out** is the oldest chunk. The log knows the highest id among those, so a reader whose cursor
//! is behind it is told of the gap.
//!
//! It does not record what other schedulers do, nor pods that came with a node.

mod chunk;
mod closed;
mod entry;
mod line;
mod names;
mod ring;
mod sameness;

pub use chunk::Chunk;
pub use entry::{Entry, Gone, Numbers, What};
pub use names::Names;
pub use ring::{Flight, FlightLog, Noted, Recorded};

/// Bytes the recorder may take unless told otherwise.
pub const DEFAULT_BYTES: usize = 16 << 20;
