//! Random histories of reservations of CPUs: no CPU is held by two pods, or by a pod and what is left of a reservation.

use std::collections::BTreeSet;
use std::time::Duration;

use pellucid::model::PodKey;
use serde_json::{Value, json};

use crate::common::rng::Rng;
use crate::reservation_card_histories::taken;
use crate::reservation_cluster::{Case, text};
use crate::reservation_rules::{node, pod, reservation};
use crate::reservation_shares::{cpus, numa_cluster, pinned};

/// Returns the CPUs that an object holds.
fn held(object: &Value) -> BTreeSet<u32> {
    let number = |text: &str| text.parse::<u32>().expect("a CPU");
    let texts = cpus(object);
    let ranges = texts.split(',').filter(|range| !range.is_empty());
    let all = ranges.flat_map(|range| match range.split_once('-') {
        Some((first, last)) => number(first)..=number(last),
        None => number(range)..=number(range),
    });
    all.collect()
}

/// Checks the CPUs by what stands on the objects. Returns how many owners have CPUs of their reservation.
fn check(case: &Case, at: &str) -> usize {
    let (mut all, mut owners) = (BTreeSet::new(), 0);
    let mut hold = |whose: &str, cpus: BTreeSet<u32>| {
        for cpu in cpus {
            assert!(all.insert(cpu), "{at}: CPU {cpu} is held twice, by {whose} too");
        }
    };
    let bound: Vec<&Value> = case.pods.values().filter(|pod| pod["spec"]["nodeName"].is_string()).collect();
    for pod in &bound {
        hold(text(&pod["metadata"]["name"]), held(pod));
    }
    for reservation in case.reservations.values().filter(|of| of["status"]["phase"] == "Available") {
        let (uid, mut left) = (text(&reservation["metadata"]["uid"]), held(reservation));
        for own in bound.iter().filter(|pod| taken(pod).as_deref() == Some(uid)).map(|pod| held(pod)) {
            owners += usize::from(!own.is_disjoint(&left));
            if reservation["spec"]["allocatePolicy"] == "Restricted" {
                assert!(own.is_subset(&left), "{at}: {uid} gives its own CPUs alone");
            }
            left.retain(|cpu| !own.contains(cpu));
        }
        hold(uid, left);
    }
    owners
}

#[test]
fn no_cpu_is_held_twice_whatever_happens() {
    let mut owners = 0;
    for seed in 1..=30u64 {
        let mut random = Rng::new(seed);
        let mut case = numa_cluster(json!([]));
        for step in 0..60 {
            let at = format!("seed {seed}, step {step}");
            let cpu = ["2", "2", "4"][random.below(3)];
            match random.below(8) {
                0 | 1 => {
                    let policy = ["Aligned", "Restricted"][random.below(2)];
                    let more =
                        json!({"allocatePolicy": policy, "allocateOnce": random.below(3) == 0, "ttl": "0s"});
                    let name = format!("r{step}");
                    let mut made = pinned(reservation(&name, cpu, &more), cpu);
                    made["metadata"]["uid"] = json!(format!("{name}-uid"));
                    made["metadata"]["creationTimestamp"] = json!(case.moment());
                    case.put_reservation(made);
                }
                2..=4 => {
                    let app = ["web", "web", "db"][random.below(3)];
                    drop(case.create_pod(&pinned(pod(&format!("p{step}"), app, "2"), "2")));
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
                let order = [step % 40 == 19, step % 40 != 19];
                check(&case.restarted(&[node("n", "8")], order), &format!("{at}, after a restart"));
            }
        }
    }
    assert!(owners > 300, "{owners}: owners do have CPUs of their reservations");
}
