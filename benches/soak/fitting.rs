//! Gangs that fit on their own nodes after preempting pods of low priority. Each gang must be placed.

use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::gangs::member;
use super::nodes::{CORES, GANG_NODES, GANGS};
use super::pods::requesting;
use super::state::Soak;

const EVERY: Duration = Duration::from_secs(15);
/// Maximum time for a gang, excluding outages. Its victims take one second to end.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Number of victims with one core each: they use all cores of the nodes.
const VICTIMS: usize = GANG_NODES * CORES;

/// Creation time and duration of each placed gang.
#[derive(Default)]
pub(crate) struct Fitting(Mutex<Vec<(Duration, Duration)>>);

impl Fitting {
    /// Returns the number of gangs placed that were created between two times, and the longest duration.
    pub(crate) fn between(&self, from: Duration, to: Duration) -> (usize, Duration) {
        let took = self.0.lock();
        let within = took.iter().filter(|(created, _)| from <= *created && *created < to);
        within.fold((0, Duration::ZERO), |(n, most), (_, took)| (n + 1, most.max(*took)))
    }
}

/// Restricts a pod to the nodes for fitting gangs.
fn there(mut pod: Value) -> Value {
    pod["spec"]["nodeSelector"] = json!({"own": GANGS});
    pod["spec"]["tolerations"] =
        json!([{"key": "own", "operator": "Equal", "value": GANGS, "effect": "NoSchedule"}]);
    pod["metadata"]["labels"]["app"] = "fitting".into();
    pod
}

/// Repeats until the load is over: fills the nodes with victims, creates a gang, waits until it is placed, and deletes
/// all pods.
pub(crate) fn keep_creating(soak: &Soak) {
    let mut rng = soak.rng(4);
    let mut number = 0;
    while soak.pause(EVERY) {
        number += 1;
        let victims: Vec<String> = (0..VICTIMS).map(|n| format!("evicted-{number}-{n}")).collect();
        for name in &victims {
            soak.create(there(requesting(name, 1_000, "low")));
        }
        wait(soak, &victims);
        let members = VICTIMS / 4 + rng.below(VICTIMS / 2);
        let gang = format!("fitting-{number}");
        let names: Vec<String> = (0..members).map(|n| format!("{gang}-{n}")).collect();
        let created = soak.now();
        for name in &names {
            soak.create(member(there(requesting(name, 1_000, "high")), &gang, members));
        }
        match wait(soak, &names) {
            None => soak.fitting.0.lock().push((created, soak.now() - created)),
            Some(_) if soak.is_load_over() => {}
            Some(missing) => soak.complain(format!(
                "gang {gang} of {members}, created at {:.1} s, fits and {missing} members are not bound after {PATIENCE:?}",
                created.as_secs_f64()
            )),
        }
        for name in names.iter().chain(&victims) {
            // Evicted pods are already gone.
            let _ = soak.sandbox.delete("pods", "default", name, Some(0));
        }
    }
}

/// Waits until all of the pods are bound. Returns the number of unbound pods on timeout.
fn wait(soak: &Soak, names: &[String]) -> Option<usize> {
    let mut left = PATIENCE;
    let mut before = soak.now();
    loop {
        let missing = names.iter().filter(|name| soak.sandbox.node_of("default", name).is_none()).count();
        if missing == 0 {
            return None;
        }
        let now = soak.now();
        if !soak.outages.touch(before, now, Duration::ZERO) {
            left = left.saturating_sub(now - before);
        }
        before = now;
        if left.is_zero() || !soak.pause(LOOK_EVERY) {
            return Some(missing);
        }
    }
}
