//! Preemption by cards: who must go is judged card by card, and the preemptor gets the card that they leave.

use pellucid::model::PodKey;
use serde_json::{Value, json};

use crate::reservation_cluster::Case;
use crate::reservation_rules::pod;
use crate::reservation_shares::{cards, gpu_cluster, with_cards};

fn of_priority(name: &str, hundredths: i64, priority: i32) -> Value {
    let mut made = with_cards(pod(name, "none", "1"), hundredths);
    made["spec"]["priority"] = json!(priority);
    made
}

/// Returns the cards that a pod has.
fn minors(case: &Case, name: &str) -> Vec<i64> {
    let pod = &case.pods[&PodKey::new("default", name)];
    cards(pod).into_iter().map(|(minor, _)| minor).collect()
}

#[test]
fn the_pods_of_one_card_go_and_the_preemptor_gets_it() {
    let mut case = gpu_cluster(2, json!([]));
    for (name, hundredths, priority) in [("a", 60, 6), ("b", 60, 5), ("c", 40, 6)] {
        case.create_pod(&of_priority(name, hundredths, priority));
        case.settle();
    }
    let names = ["a", "b", "c"];
    let before = names.map(|name| minors(&case, name));
    assert_ne!(before[0], before[1], "60 and 60 are more than a card");
    assert!(before[..2].contains(&before[2]), "each of both has 40 left");
    case.create_pod(&of_priority("whole", 100, 10));
    for _ in 0..4 {
        case.settle();
        case.core.wait(std::time::Duration::from_secs(60));
    }
    case.settle();
    let own = minors(&case, "whole");
    assert_eq!(own.len(), 1, "it has a card");
    let on_it = names.into_iter().zip(&before).filter(|(_, card)| **card == own);
    let mut evicted = case.evicted.clone();
    evicted.sort();
    assert_eq!(evicted, on_it.map(|(name, _)| PodKey::new("default", name)).collect::<Vec<_>>());
}
