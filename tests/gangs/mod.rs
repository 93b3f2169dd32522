//! Gangs in the core: units, transactions, waiting, Bindings, rounds and sessions, on a simulated clock.
//!
//! - `strict`: all-or-nothing placement; `waiting`: NonStrict mode
//! - `waking`: what wakes a refused gang; `gated`: gangs that cannot be planned yet
//! - `binding`: after the decision; `barrier`: Bindings that begin together
//! - `preempting`: victims for a whole gang
//! - `patience`: reads that can be abandoned
//! - `sessions`: what is remembered and forgotten
//! - `reading`: what users read about gangs
//! - `large`: groups of many gangs; `slices`: attempts that take long
//! - `outlook`, `outlook_random`: whether a quorum fits now, later or never, and that it is true when tried
//! - `topology`: whether one zone, rack or node has places for all
//! - `queues`: kube-batch's Queues
//! - `random`: what must hold in any history

mod barrier;
mod binding;
mod gated;
mod large;
mod made;
mod outlook;
mod outlook_random;
mod patience;
mod preempting;
mod queues;
mod random;
mod reading;
mod sessions;
mod simulating;
mod slices;
mod strict;
mod topology;
mod waiting;
mod waking;
