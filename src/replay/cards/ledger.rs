//! Counts what each card gives away, from the annotations that Bindings write, and finds what is given twice.
//!
//! A card has 100 of computing power, of the memory ratio and its memory. A pod must get what it requests: a share of
//! one card, or as many cards for itself alone. Each violation is a line of text; one is enough for the run to fail.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::{TraceNode, TracePod};

/// Resources of a card, in the order of [`Card::used`].
const RESOURCES: [&str; 3] =
    ["koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio", "koordinator.sh/gpu-memory"];
/// What a card has of each; memory in bytes.
const OF_A_CARD: [i128; 3] = [100, 100, 16 << 30];

/// What one card gave away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Card {
    used: [i128; 3],
    pods: u32,
    /// Whether a pod has it for itself alone.
    is_whole: bool,
}

/// A node with what is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeRoom {
    pub(super) model: String,
    pub(super) free_cpu_milli: i64,
    cards: Vec<Card>,
}

impl NodeRoom {
    /// Iterates over what is left of each card, in percent.
    pub(super) fn left(&self) -> impl Iterator<Item = u64> + Clone {
        let left = |card: &Card| 100 - card.used[0].max(card.used[1]).min(100);
        self.cards.iter().map(move |card| left(card) as u64)
    }
}

/// The nodes of a trace and what their cards gave away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CardLedger {
    nodes: BTreeMap<String, NodeRoom>,
    /// What is wrong.
    pub(super) faults: Vec<String>,
}

impl CardLedger {
    pub(super) fn new(nodes: &[TraceNode]) -> Self {
        let room = |node: &TraceNode| NodeRoom {
            model: node.model.clone(),
            free_cpu_milli: node.cpu_milli as i64,
            cards: vec![Card::default(); node.gpus as usize],
        };
        let nodes = nodes.iter().map(|node| (node.name.clone(), room(node))).collect();
        Self { nodes, faults: Vec::new() }
    }

    #[cfg(test)]
    pub(super) fn node(&self, name: &str) -> Option<&NodeRoom> {
        self.nodes.get(name)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &NodeRoom> {
        self.nodes.values()
    }

    /// Books a pod that was bound to a node with this annotation, empty when it has none.
    pub(super) fn book(&mut self, pod: &TracePod, node: &str, allocated: &str) {
        let Some(room) = self.nodes.get_mut(node) else {
            self.faults.push(format!("{} is on {node}, which does not exist", pod.name));
            return;
        };
        room.free_cpu_milli -= pod.cpu_milli as i64;
        if let Err(fault) = room.give(pod, allocated) {
            self.faults.push(format!("{} on {node}: {fault}", pod.name));
        }
    }
}

impl NodeRoom {
    fn give(&mut self, pod: &TracePod, allocated: &str) -> Result<(), String> {
        let given = read(allocated)?;
        if given.len() as u64 != pod.gpus {
            return Err(format!("it has {} cards and requests {}", given.len(), pod.gpus));
        }
        let percent = i128::from(pod.gpu_milli.div_ceil(10));
        let mut minors: Vec<usize> = given.iter().map(|(minor, _)| *minor).collect();
        minors.sort_unstable();
        minors.dedup();
        if minors.len() != given.len() {
            return Err("it has a card twice".into());
        }
        let is_whole = percent == 100;
        for (minor, amounts) in given {
            let card = self.cards.get_mut(minor).ok_or_else(|| format!("there is no card {minor}"))?;
            if amounts[..2] != [percent; 2] {
                let [core, ratio, _] = amounts;
                return Err(format!("card {minor}: core {core} and ratio {ratio} instead of {percent}"));
            }
            if card.is_whole || is_whole && card.pods > 0 {
                return Err(format!("card {minor} is shared, although a pod has it for itself alone"));
            }
            for (at, amount) in amounts.into_iter().enumerate() {
                card.used[at] += amount;
                if card.used[at] > OF_A_CARD[at] {
                    return Err(format!(
                        "card {minor}: {} of {} {}",
                        card.used[at], OF_A_CARD[at], RESOURCES[at]
                    ));
                }
            }
            card.pods += 1;
            card.is_whole = is_whole;
        }
        Ok(())
    }
}

/// Reads the annotation: minors, each with its amounts.
fn read(allocated: &str) -> Result<Vec<(usize, [i128; 3])>, String> {
    if allocated.is_empty() {
        return Ok(Vec::new());
    }
    let value: Value =
        serde_json::from_str(allocated).map_err(|problem| format!("{allocated}: {problem}"))?;
    let entry = |entry: &Value| {
        let minor = entry["minor"].as_u64().ok_or_else(|| format!("{entry} has no minor"))?;
        let amount = |name: &str| {
            let text = entry["resources"][name].as_str().unwrap_or("0");
            let whole = super::super::quantity::parse(text).map(|n| n / super::super::quantity::ONE);
            whole.ok_or_else(|| format!("{text} is no quantity"))
        };
        Ok((minor as usize, [amount(RESOURCES[0])?, amount(RESOURCES[1])?, amount(RESOURCES[2])?]))
    };
    value["gpu"].as_array().into_iter().flatten().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{node, pod};
    use super::*;

    fn given(minors: &[u64], percent: u64) -> String {
        let memory = (16 << 30) * percent / 100;
        let amounts = serde_json::json!({RESOURCES[0]: percent.to_string(), RESOURCES[1]: percent.to_string(),
            RESOURCES[2]: memory.to_string()});
        let entries: Vec<Value> =
            minors.iter().map(|minor| serde_json::json!({"minor": minor, "resources": amounts})).collect();
        serde_json::json!({ "gpu": entries }).to_string()
    }

    #[test]
    fn what_is_right_is_counted() {
        let mut ledger = CardLedger::new(&[node("a", 4)]);
        ledger.book(&pod("p", 1, 460), "a", &given(&[1], 46));
        ledger.book(&pod("q", 1, 540), "a", &given(&[1], 54));
        ledger.book(&pod("r", 2, 1000), "a", &given(&[0, 3], 100));
        ledger.book(&pod("s", 0, 0), "a", "");
        assert_eq!(ledger.faults, [""; 0]);
        let room = ledger.node("a").expect("it is there");
        assert_eq!(room.left().collect::<Vec<_>>(), [0, 0, 100, 0]);
        assert_eq!(room.free_cpu_milli, 64_000 - 4 * 1500);
    }

    #[test]
    fn what_is_given_twice_or_not_as_requested_is_a_fault() {
        let fault = |first: (&TracePod, &str), second: (&TracePod, &str)| {
            let mut ledger = CardLedger::new(&[node("a", 2)]);
            ledger.book(first.0, "a", first.1);
            ledger.book(second.0, "a", second.1);
            ledger.faults.join("; ")
        };
        let (share, whole, none) = (pod("p", 1, 600), pod("w", 1, 1000), pod("n", 0, 0));
        for (first, second, expected) in [
            ((&share, given(&[0], 60)), (&share, given(&[0], 60)), "p on a: card 0: 120 of 100"),
            ((&share, given(&[0], 60)), (&whole, given(&[0], 100)), "w on a: card 0 is shared"),
            ((&whole, given(&[0], 100)), (&share, given(&[0], 60)), "p on a: card 0 is shared"),
            ((&none, String::new()), (&share, given(&[2], 60)), "p on a: there is no card 2"),
            ((&none, String::new()), (&share, given(&[0], 50)), "p on a: card 0: core 50 and ratio 50"),
            ((&none, String::new()), (&share, String::new()), "p on a: it has 0 cards and requests 1"),
            (
                (&none, String::new()),
                (&pod("d", 2, 1000), given(&[1, 1], 100)),
                "d on a: it has a card twice",
            ),
            ((&none, String::new()), (&share, "{".into()), "p on a: {: EOF"),
        ] {
            let said = fault((first.0, &first.1), (second.0, &second.1));
            assert!(said.starts_with(expected), "{said}");
        }
        let mut ledger = CardLedger::new(&[]);
        ledger.book(&share, "b", "");
        assert_eq!(ledger.faults, ["p is on b, which does not exist"]);
    }
}
