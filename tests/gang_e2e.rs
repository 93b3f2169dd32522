//! Gangs from end to end: a sandbox, a scheduler on it, and what both show over HTTP.
//!
//! `articles` and `koordinator` play the stories of the articles that this scheduler answers, `kube_batch` those of
//! two Jobs in one group, `dialects` the same gang in five ways. `contest` lets gangs fight for room, `deadlock`
//! lets two of them hold what the other needs, `sets` looks at members while they wait and are bound, `rounds` at
//! the counters of their attempts, `odd` at definitions that cannot be used.

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
