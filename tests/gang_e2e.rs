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

#[path = "gang_e2e/articles.rs"]
mod articles;
#[allow(dead_code, reason = "this test needs a part of it")]
#[path = "common/client.rs"]
mod client;
#[path = "gang_e2e/contest.rs"]
mod contest;
#[path = "gang_e2e/deadlock.rs"]
mod deadlock;
#[path = "gang_e2e/dialects.rs"]
mod dialects;
#[path = "gang_e2e/koordinator.rs"]
mod koordinator;
#[path = "gang_e2e/kube_batch.rs"]
mod kube_batch;
#[path = "gang_e2e/made.rs"]
mod made;
#[path = "gang_e2e/odd.rs"]
mod odd;
#[path = "gang_e2e/rounds.rs"]
mod rounds;
#[path = "common/running.rs"]
mod running;
#[path = "gang_e2e/sets.rs"]
mod sets;
