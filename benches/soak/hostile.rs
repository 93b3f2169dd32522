//! Creates hostile objects at a steady rate, and deletes old ones.

use std::time::Duration;

use super::population::Population;
use super::rng::Rng;
use super::state::Soak;
use super::{gangs, nodes, pods};

/// Interval between two actions.
const EVERY: Duration = Duration::from_millis(200);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Maximum number of low-priority pods that fill the cluster.
const VICTIMS: usize = 700;

/// Runs until the load is over.
pub(crate) fn keep_creating(soak: &Soak) {
    let mut rng = soak.rng(3);
    let (mut population, mut next, mut number) = (Population::default(), soak.now(), 0);
    while soak.pause(LOOK_EVERY) {
        population.thin(soak);
        if soak.now() < next {
            continue;
        }
        next = (next + EVERY).max(soak.now().saturating_sub(EVERY));
        number += 1;
        act(soak, &mut rng, &mut population, number);
    }
}

fn seconds(rng: &mut Rng, least: i64, most: i64) -> Duration {
    rng.millis(least * 1_000, most * 1_000)
}

/// Performs one random action.
fn act(soak: &Soak, rng: &mut Rng, population: &mut Population, number: usize) {
    match rng.below(100) {
        0..50 => {
            let lives = seconds(rng, 5, 90);
            population.put(soak, "pods", pods::odd(rng, number), lives);
        }
        50..56 => {
            // The pod is most likely deleted while it is being bound.
            let lives = rng.millis(0, 30);
            population.put(soak, "pods", pods::small(&format!("brief-{number}")), lives);
        }
        56..66 => {
            let n = rng.below(nodes::COMMON);
            let patch = nodes::change(rng, n);
            if soak.sandbox.merge("nodes", "", &nodes::common_name(n), &patch).is_err() {
                soak.count("refused change of a node");
            }
        }
        66..70 => {
            let there = soak.sandbox.count("nodes");
            if there < 1 + nodes::GANG_NODES + nodes::COMMON + nodes::PASSING {
                let lives = seconds(rng, 5, 60);
                population.put(soak, "nodes", nodes::passing(rng, number), lives);
            }
        }
        70..80 => {
            for n in 0..rng.below(40) {
                if soak.sandbox.count("pods") > VICTIMS {
                    break;
                }
                let lives = seconds(rng, 60, 120);
                population.put(soak, "pods", pods::victim(rng, &format!("victim-{number}-{n}")), lives);
            }
        }
        80..88 => {
            let lives = seconds(rng, 10, 60);
            for (table, object) in gangs::nonsense(rng, number) {
                population.put(soak, table, object, lives);
            }
        }
        88..97 => put_gang(soak, population, gangs::related(rng, number), seconds(rng, 20, 60)),
        97 => put_gang(soak, population, gangs::equal(rng, number), seconds(rng, 20, 60)),
        98 => put_gang(soak, population, gangs::different(rng, number), seconds(rng, 20, 60)),
        _ if rng.chance(25) => {
            for n in 0..20 {
                put_gang(soak, population, gangs::related(rng, number * 100 + n), seconds(rng, 20, 40));
            }
        }
        _ => {
            let name = pods::random_name(soak, rng);
            let patch = pods::change(rng);
            if soak.sandbox.merge("pods", "default", &name, &patch).is_err() {
                soak.count("refused change of a pod");
            }
        }
    }
}

fn put_gang(soak: &Soak, population: &mut Population, pods: Vec<serde_json::Value>, lives: Duration) {
    gangs::remember(soak, &pods);
    for pod in pods {
        population.put(soak, "pods", pod, lives);
    }
}
