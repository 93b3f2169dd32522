//! Tracks what each node holds across watch events: the audit for replays in which pods come and go.
//!
//! The ledger reads API objects with the arithmetic of [`super::audit`] and shares nothing else. After every event it
//! checks the node of the event. It stores a few numbers per pod, not the objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Overcommitted;
use super::audit::{Amounts, CHECKED, amounts, is_finished, requests, text};

#[derive(Debug, Default)]
struct Room {
    allocatable: Amounts,
    requested: Amounts,
    /// Resources that were overcommitted after the last event.
    over: BTreeSet<&'static str>,
}

#[derive(Debug)]
struct Held {
    node: String,
    amounts: Amounts,
}

/// Problems that a watch event revealed on its node.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// Resources overcommitted since this event.
    pub overcommitted: Vec<Overcommitted>,
    /// Descriptions of what could not be checked.
    pub unclear: Vec<String>,
}

/// What all nodes hold.
#[derive(Debug, Default)]
pub(super) struct NodeLedger {
    rooms: BTreeMap<String, Room>,
    /// By pod uid.
    held: BTreeMap<String, Held>,
}

impl NodeLedger {
    /// Creates a ledger for these nodes. Also returns descriptions of amounts that cannot be parsed.
    pub(super) fn new(nodes: &[Value]) -> (Self, Vec<String>) {
        let mut unclear = Vec::new();
        let mut ledger = Self::default();
        for node in nodes {
            let name = text(node, "/metadata/name");
            let allocatable = amounts(node.pointer("/status/allocatable"), name, &mut unclear);
            ledger.rooms.insert(name.to_owned(), Room { allocatable, ..Room::default() });
        }
        (ledger, unclear)
    }

    /// Records the current state of a pod, or its deletion.
    pub(super) fn book(&mut self, pod: &Value, is_deleted: bool) -> Findings {
        let mut findings = Findings::default();
        let uid = text(pod, "/metadata/uid");
        let node = text(pod, "/spec/nodeName");
        let holds = !is_deleted && !node.is_empty() && !is_finished(pod);
        let is_known = self.held.get(uid).is_some_and(|held| held.node == node);
        if !holds || !is_known {
            self.release(uid);
        }
        if !holds {
            return findings;
        }
        let Some(room) = self.rooms.get_mut(node) else {
            let name = text(pod, "/metadata/name");
            findings.unclear.push(format!("{name} is on {node}, which does not exist"));
            return findings;
        };
        // A known pod is recorded again at every event, because in-place resize changes its requests.
        if let Some(old) = self.held.remove(uid) {
            room.change(&old.amounts, -1);
        }
        let amounts = requests(pod, &mut findings.unclear);
        room.change(&amounts, 1);
        findings.overcommitted = room.newly_over(node);
        self.held.insert(uid.to_owned(), Held { node: node.to_owned(), amounts });
        findings
    }

    fn release(&mut self, uid: &str) {
        let Some(held) = self.held.remove(uid) else { return };
        if let Some(room) = self.rooms.get_mut(&held.node) {
            room.change(&held.amounts, -1);
            // Update `over`, so that a later overcommit of the same resource counts as a new fault.
            room.newly_over(&held.node);
        }
    }
}

impl Room {
    fn change(&mut self, amounts: &Amounts, sign: i128) {
        for (resource, amount) in amounts {
            *self.requested.entry(resource).or_default() += sign * amount;
        }
    }

    fn newly_over(&mut self, node: &str) -> Vec<Overcommitted> {
        let mut found = Vec::new();
        for resource in CHECKED {
            let amount = |of: &Amounts| of.get(resource).copied().unwrap_or(0);
            let (allocatable, requested) = (amount(&self.allocatable), amount(&self.requested));
            if requested <= allocatable {
                self.over.remove(resource);
            } else if self.over.insert(resource) {
                let (node, resource) = (node.to_owned(), resource.to_owned());
                found.push(Overcommitted { node, resource, allocatable, requested });
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::quantity::ONE;
    use super::super::{GPU, SyntheticNodes};
    use super::*;

    fn ledger() -> NodeLedger {
        let (ledger, unclear) = NodeLedger::new(&SyntheticNodes { nodes: 2, gpus: 2 }.to_json());
        assert!(unclear.is_empty(), "{unclear:?}");
        ledger
    }

    fn pod(name: &str, node: &str, phase: &str) -> Value {
        let one = json!({ GPU: "1" });
        json!({
            "metadata": { "namespace": "default", "name": name, "uid": name },
            "spec": { "nodeName": node, "containers": [{ "resources": { "requests": one, "limits": one } }] },
            "status": { "phase": phase },
        })
    }

    fn over(findings: &Findings) -> Vec<(&str, i128, i128)> {
        let of = |o: &Overcommitted| (o.requested / ONE, o.allocatable / ONE);
        findings.overcommitted.iter().map(|o| (o.resource.as_str(), of(o).0, of(o).1)).collect()
    }

    #[test]
    fn one_gpu_too_many_is_seen_at_its_event_and_once() {
        let mut ledger = ledger();
        for name in ["a", "b"] {
            assert_eq!(ledger.book(&pod(name, "gpu-0", "Pending"), false), Findings::default());
            assert_eq!(ledger.book(&pod(name, "gpu-0", "Running"), false), Findings::default());
        }
        assert_eq!(over(&ledger.book(&pod("c", "gpu-0", "Pending"), false)), [(GPU, 3, 2)]);
        assert!(over(&ledger.book(&pod("c", "gpu-0", "Running"), false)).is_empty());
        assert!(over(&ledger.book(&pod("c", "gpu-0", "Succeeded"), false)).is_empty());
        assert_eq!(over(&ledger.book(&pod("d", "gpu-0", "Pending"), false)), [(GPU, 3, 2)]);
    }

    #[test]
    fn who_ended_or_was_deleted_holds_nothing() {
        let mut ledger = ledger();
        for (name, phase, is_deleted) in [("a", "Succeeded", false), ("b", "Running", true)] {
            ledger.book(&pod(name, "gpu-1", "Running"), false);
            ledger.book(&pod(name, "gpu-1", phase), is_deleted);
        }
        for name in ["c", "d"] {
            assert!(over(&ledger.book(&pod(name, "gpu-1", "Pending"), false)).is_empty());
        }
        assert_eq!(ledger.held.len(), 2);
    }

    #[test]
    fn a_pod_on_a_node_that_does_not_exist_is_said() {
        let findings = ledger().book(&pod("a", "gone", "Pending"), false);
        assert_eq!(findings.unclear, ["a is on gone, which does not exist"]);
    }
}
