//! What each node holds, kept from one watch event to the next: the audit of a replay in which pods come
//! and go.
//!
//! It reads API objects with the arithmetic of [`super::audit`], which it shares with nobody else, and judges
//! the node that an event is about after every event. It keeps a few numbers per pod, not the objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Overcommitted;
use super::audit::{Amounts, CHECKED, amounts, requests, text};
use super::quantity::ONE;

#[derive(Debug, Default)]
struct Room {
    allocatable: Amounts,
    requested: Amounts,
    /// Resources of which it held too much after the last event.
    over: BTreeSet<&'static str>,
}

#[derive(Debug)]
struct Held {
    node: String,
    amounts: Amounts,
}

/// What the watch event has changed about nodes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judgement {
    /// Resources of which a node holds too much since this event.
    pub overcommitted: Vec<Overcommitted>,
    /// What could not be judged, in words.
    pub unclear: Vec<String>,
}

/// The books of all nodes.
#[derive(Debug, Default)]
pub(super) struct NodeLedger {
    rooms: BTreeMap<String, Room>,
    /// By uid.
    held: BTreeMap<String, Held>,
}

impl NodeLedger {
    /// Opens the books. What cannot be read is said.
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

    /// Books a pod as it now is, or its end.
    pub(super) fn book(&mut self, pod: &Value, is_deleted: bool) -> Judgement {
        let mut judgement = Judgement::default();
        let uid = text(pod, "/metadata/uid");
        let node = text(pod, "/spec/nodeName");
        let is_terminal = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
        let holds = !is_deleted && !node.is_empty() && !is_terminal;
        let is_known = self.held.get(uid).is_some_and(|held| held.node == node);
        if !holds || !is_known {
            self.release(uid);
        }
        if !holds {
            return judgement;
        }
        let Some(room) = self.rooms.get_mut(node) else {
            let name = text(pod, "/metadata/name");
            judgement.unclear.push(format!("{name} is on {node}, which does not exist"));
            return judgement;
        };
        // A pod is booked anew at every event: in-place resize changes what it requests.
        if let Some(old) = self.held.remove(uid) {
            room.change(&old.amounts, -1);
        }
        let mut amounts = requests(pod, &mut judgement.unclear);
        amounts.insert("pods", ONE);
        room.change(&amounts, 1);
        judgement.overcommitted = room.newly_over(node);
        self.held.insert(uid.to_owned(), Held { node: node.to_owned(), amounts });
        judgement
    }

    fn release(&mut self, uid: &str) {
        let Some(held) = self.held.remove(uid) else { return };
        if let Some(room) = self.rooms.get_mut(&held.node) {
            room.change(&held.amounts, -1);
            // It may be over in the same resource again later, which is another fault.
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

    fn over(judgement: &Judgement) -> Vec<(&str, i128, i128)> {
        let of = |o: &Overcommitted| (o.requested / ONE, o.allocatable / ONE);
        judgement.overcommitted.iter().map(|o| (o.resource.as_str(), of(o).0, of(o).1)).collect()
    }

    #[test]
    fn one_gpu_too_many_is_seen_at_its_event_and_once() {
        let mut ledger = ledger();
        for name in ["a", "b"] {
            assert_eq!(ledger.book(&pod(name, "gpu-0", "Pending"), false), Judgement::default());
            assert_eq!(ledger.book(&pod(name, "gpu-0", "Running"), false), Judgement::default());
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
        let judgement = ledger().book(&pod("a", "gone", "Pending"), false);
        assert_eq!(judgement.unclear, ["a is on gone, which does not exist"]);
    }
}
