//! Gangs in the core: units, the transaction, waiting, Bindings, rounds and sessions, on a clock of numbers.
//!
//! `strict` is the transaction, `waiting` NonStrict, `gated` what cannot be planned yet, `binding` what happens
//! after the decision, `barrier` that Bindings begin together, `preempting` victims for a whole gang, `patience` that reads can be given up, `sessions` what is remembered and forgotten, `reading`
//! what people are told, `large` groups of many gangs, `slices` attempts that take long, `random` what must hold whatever happens.

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
