//! Holds the sandbox's log of writes against who held the Lease.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pellucid::sandbox::{Handle, LoggedWrite};
use serde_json::Value;

use crate::leader::replicas::LEASE;

/// What the log says.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// Writes of replicas that are not of the Lease.
    pub(crate) n: usize,
    /// Times that the Lease went to another replica.
    pub(crate) hand_overs: usize,
    /// Pods that were bound.
    pub(crate) bound: usize,
    /// Bindings that the API server refused.
    pub(crate) refused_bindings: usize,
}

/// From when to when a replica held the Lease, as the API server saw it.
struct Term {
    agent: String,
    from: Timestamp,
    until: Option<Timestamp>,
    /// When its renewals arrived, in the order in which they were carried out.
    renewals: Vec<Timestamp>,
}

/// Checks that every write of a replica arrived while it held the Lease and had renewed it, and that every pod was bound
/// once.
pub(crate) fn check(sandbox: &Handle) -> Writes {
    let log = sandbox.writes();
    let terms = terms(&log);
    let mut writes = Writes { hand_overs: terms.len().saturating_sub(1), ..Writes::default() };
    let of_replicas = log.iter().filter(|write| write.user_agent.starts_with("replica-"));
    for write in of_replicas.filter(|write| !is_lease(write)) {
        writes.n += 1;
        let LoggedWrite { arrived, user_agent, path, .. } = write;
        let held = terms.iter().find(|term| {
            term.agent == *user_agent
                && term.from <= *arrived
                && term.until.is_none_or(|until| *arrived <= until)
        });
        let term = held.unwrap_or_else(|| panic!("{user_agent} wrote {path} at {arrived} without the lease"));
        let renewed = last_renewal(term, *arrived);
        let age = arrived.duration_since(renewed);
        assert!(age < LEASE.try_into().expect("short"), "{user_agent} wrote {path} {age:?} after a renewal");
    }
    let bindings = log.iter().filter(|write| write.path.contains("/binding"));
    let mut bound: BTreeMap<&str, usize> = BTreeMap::new();
    for binding in bindings {
        if binding.is_success() {
            *bound.entry(&binding.path).or_default() += 1;
        } else {
            writes.refused_bindings += usize::from(binding.done.is_some());
        }
    }
    writes.bound = bound.len();
    let twice: Vec<_> = bound.iter().filter(|(_, n)| **n > 1).collect();
    assert!(twice.is_empty(), "bound more than once: {twice:?}");
    writes
}

fn is_lease(write: &LoggedWrite) -> bool {
    write.path.contains("/leases")
}

/// Returns the holder that a write of the Lease names, and when it was carried out; `None` if it was refused.
fn holder(write: &LoggedWrite) -> Option<(String, Timestamp)> {
    let (at, _, body) = write.done.as_ref().filter(|_| write.is_success())?;
    let body: Value = serde_json::from_slice(body).expect("a Lease");
    Some((body["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned(), *at))
}

/// Returns who held the Lease from when to when.
fn terms(log: &[LoggedWrite]) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    let mut carried_out: Vec<_> = log
        .iter()
        .filter(|write| is_lease(write))
        .filter_map(|write| Some((holder(write)?, write)))
        .collect();
    carried_out.sort_by_key(|((_, at), _)| *at);
    for ((holder, at), write) in carried_out {
        let is_same = terms.last().is_some_and(|term| term.agent == write.user_agent);
        if let Some(last) = terms.last_mut().filter(|last| last.until.is_none()) {
            if holder.is_empty() {
                // A release ends the right when it is sent.
                last.until = Some(write.arrived);
                continue;
            }
            if is_same {
                last.renewals.push(write.arrived);
                continue;
            }
            last.until = Some(at);
        }
        let agent = write.user_agent.clone();
        terms.push(Term { agent, from: at, until: None, renewals: vec![write.arrived] });
    }
    terms
}

/// Returns when the last renewal before a time arrived.
fn last_renewal(term: &Term, before: Timestamp) -> Timestamp {
    let earlier = term.renewals.iter().rev().find(|at| **at <= before);
    *earlier.expect("it was acquired before")
}
