//! Gangs end to end: a sandbox, a scheduler connected to it, and what both show over HTTP.
//!
//! - `articles`, `koordinator`: the scenarios of the articles that this scheduler answers
//! - `kube_batch`: two Jobs in one group
//! - `dialects`: the same gang declared in five ways
//! - `contest`: gangs competing for room
//! - `deadlock`: two gangs that hold what the other needs
//! - `sets`: the sets of members while they wait and are bound
//! - `rounds`: attempt counters
//! - `odd`: unusable definitions

mod articles;
mod contest;
mod deadlock;
mod dialects;
mod koordinator;
mod kube_batch;
mod made;
mod odd;
mod rounds;
mod sets;
