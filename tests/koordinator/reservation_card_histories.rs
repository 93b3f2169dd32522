//! Random histories of reservations of cards: what pods and reservations hold of a card is never more than it has.

use std::collections::BTreeMap;
use std::time::Duration;

use pellucid::model::PodKey;
use serde_json::{Value, json};

use crate::common::rng::Rng;
use crate::reservation_cluster::{Case, text};
use crate::reservation_rules::{pod, reservation};
use crate::reservation_shares::{cards, gpu_cluster, with_cards};

const CARDS: i64 = 3;

/// Returns what an object holds of each card, in hundredths.
fn held(object: &Value) -> BTreeMap<i64, i64> {
    cards(object).into_iter().map(|(minor, core)| (minor, core.parse().expect("a number"))).collect()
}

/// Returns the uid of the reservation that a pod stands in.
pub(crate) fn taken(pod: &Value) -> Option<String> {
    let text = pod["metadata"]["annotations"]["scheduling.koordinator.sh/reservation-allocated"].as_str()?;
    let value: Value = serde_json::from_str(text).expect("JSON");
    Some(value["uid"].as_str()?.to_owned())
}

/// Checks the cards by what stands on the objects. Returns how many owners have cards of their reservation.
fn check(case: &Case, at: &str) -> usize {
    let (mut sums, mut owners): (BTreeMap<i64, i64>, usize) = (BTreeMap::new(), 0);
    let pods = || case.pods.values().filter(|pod| pod["spec"]["nodeName"].is_string());
    for (card, amount) in pods().flat_map(held) {
        *sums.entry(card).or_default() += amount;
    }
    for reservation in case.reservations.values().filter(|of| of["status"]["phase"] == "Available") {
        let uid = text(&reservation["metadata"]["uid"]);
        let mut left = held(reservation);
        for (card, amount) in pods().filter(|pod| taken(pod).as_deref() == Some(uid)).flat_map(held) {
            if let Some(left) = left.get_mut(&card) {
                owners += 1;
                *left = (*left - amount).max(0);
            }
            if reservation["spec"]["allocatePolicy"] == "Restricted" {
                assert!(left.contains_key(&card), "{at}: {uid} gives its own cards alone");
            }
        }
        left.into_iter().for_each(|(card, amount)| *sums.entry(card).or_default() += amount);
    }
    assert!(sums.values().all(|sum| *sum <= 100), "{at}: {sums:?}");
    owners
}

#[test]
fn no_card_is_held_twice_whatever_happens() {
    let mut owners = 0;
    for seed in 1..=40u64 {
        let mut random = Rng::new(seed);
        let mut case = gpu_cluster(CARDS, json!([]));
        for step in 0..60 {
            let at = format!("seed {seed}, step {step}");
            let amount = [30, 50, 100, 100, 200][random.below(5)];
            match random.below(8) {
                0 | 1 => {
                    let policy = ["Aligned", "Restricted"][random.below(2)];
                    let more =
                        json!({"allocatePolicy": policy, "allocateOnce": random.below(3) == 0, "ttl": "0s"});
                    let name = format!("r{step}");
                    let mut made = with_cards(reservation(&name, "1", &more), amount);
                    made["metadata"]["uid"] = json!(format!("{name}-uid"));
                    made["metadata"]["creationTimestamp"] = json!(case.moment());
                    case.put_reservation(made);
                }
                2..=4 => {
                    let app = ["web", "web", "db"][random.below(3)];
                    drop(case.create_pod(&with_cards(pod(&format!("p{step}"), app, "1"), amount)));
                }
                5 => {
                    let all: Vec<PodKey> = case.pods.keys().cloned().collect();
                    if let Some(key) = all.get(random.below(all.len().max(1))) {
                        case.delete_pod(key);
                    }
                }
                6 if random.below(2) == 0 => {
                    let all: Vec<String> = case.reservations.keys().cloned().collect();
                    if let Some(name) = all.get(random.below(all.len().max(1))) {
                        case.delete_reservation(name);
                    }
                }
                _ => case.core.wait(Duration::from_secs(20)),
            }
            case.settle();
            owners += check(&case, &at);
            if step % 20 == 19 {
                let nodes = [crate::reservation_shares::gpu_node(CARDS)];
                let mut again = case.rebuilt(&nodes, [step % 40 == 19, step % 40 != 19]);
                again.settle();
                check(&again, &format!("{at}, after a restart"));
            }
        }
    }
    assert!(owners > 500, "{owners}: owners do have cards of their reservations");
}
