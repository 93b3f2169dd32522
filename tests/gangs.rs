//! Gangs in the core: units, transactions, waiting, Bindings, rounds and sessions, on a simulated clock.
//!
//! - `strict`: all-or-nothing placement; `waiting`: NonStrict mode
//! - `gated`: gangs that cannot be planned yet
//! - `binding`: after the decision; `barrier`: Bindings that begin together
//! - `preempting`: victims for a whole gang
//! - `patience`: reads that can be abandoned
//! - `sessions`: what is remembered and forgotten
//! - `reading`: what users read about gangs
//! - `large`: groups of many gangs; `slices`: attempts that take long
//! - `random`: what must hold in any history

#[path = "common/driver.rs"]
mod driver;

#[path = "gangs/made.rs"]
mod made;

#[path = "gangs/barrier.rs"]
mod barrier;
#[path = "gangs/binding.rs"]
mod binding;
#[path = "gangs/gated.rs"]
mod gated;
#[path = "gangs/large.rs"]
mod large;
#[path = "gangs/patience.rs"]
mod patience;
#[path = "gangs/preempting.rs"]
mod preempting;
#[path = "gangs/random.rs"]
mod random;
#[path = "gangs/reading.rs"]
mod reading;
#[path = "gangs/sessions.rs"]
mod sessions;
#[path = "gangs/simulating.rs"]
mod simulating;
#[path = "gangs/slices.rs"]
mod slices;
#[path = "gangs/strict.rs"]
mod strict;
#[path = "gangs/waiting.rs"]
mod waiting;
