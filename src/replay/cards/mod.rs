//! Replays of pods on cards: how well a strategy packs GPUs, card by card. The protocol is that of FGD ("Beware of
//! Fragmentation", USENIX ATC 2023) and its artifact.
//!
//! `arrivals` draws the pods of a run, `objects` makes Nodes, Devices and pods of them, `ledger` counts what each card
//! gives away and finds what is given twice, `fragments` measures fragmentation on the ledger, `run` follows one run and
//! `report` sums up all of them. Nothing here shares code with the scheduler: sums and definitions are its own.

mod arrivals;
mod fragments;
mod ledger;
mod objects;
mod report;
mod run;
#[cfg(test)]
mod testing;

pub use arrivals::{Arrivals, arrivals};
pub use fragments::{Typical, typical_pods};
pub use objects::{to_card_node_json, to_card_pod_json, to_device_json, typical_json};
pub use report::{PackingReport, RunResult};
pub use run::PackingRun;
