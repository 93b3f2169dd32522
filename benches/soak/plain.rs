//! Plain pods: one every 100 ms with its own node, and the time from creation to Binding of each.
//!
//! The sandbox's store is polled in-process every few milliseconds, so that only the scheduler and its requests are
//! measured. A pod whose wait overlaps with an outage, or with the recovery after one, is excluded from the
//! percentiles.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::nodes::PLAIN;
use super::outages::RECOVERY;
use super::state::Soak;

const EVERY: Duration = Duration::from_millis(100);
/// Lifetime of a pod after it is bound.
const LIVES: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The wait of one pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) created: Duration,
    pub(crate) took: Duration,
    /// Whether the wait overlaps with no outage, so that it counts.
    pub(crate) is_calm: bool,
}

/// All plain pods so far.
#[derive(Default)]
pub(crate) struct Plain {
    waits: Mutex<Vec<Wait>>,
    pending: Mutex<VecDeque<(Duration, String)>>,
}

/// Statistics of a period, usually one minute.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Minute {
    pub(crate) pods: usize,
    pub(crate) left_out: usize,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) max: Duration,
}

impl Plain {
    /// Returns the statistics of the pods created between two times.
    pub(crate) fn between(&self, from: Duration, to: Duration) -> Minute {
        let waits = self.waits.lock();
        let all = waits.iter().filter(|wait| from <= wait.created && wait.created < to);
        let (calm, others): (Vec<&Wait>, Vec<&Wait>) = all.partition(|wait| wait.is_calm);
        let mut took: Vec<Duration> = calm.iter().map(|wait| wait.took).collect();
        took.sort_unstable();
        // Nearest rank: at least `percent` of a hundred took no longer.
        let at = |percent: usize| took.get((took.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Minute {
            pods: took.len(),
            left_out: others.len(),
            p50: at(50).unwrap_or_default(),
            p99: at(99).unwrap_or_default(),
            max: took.last().copied().unwrap_or_default(),
        }
    }

    /// Returns the pods without a node, ordered by creation.
    pub(crate) fn unbound(&self) -> Vec<(Duration, String)> {
        self.pending.lock().iter().cloned().collect()
    }
}

fn pod(name: &str) -> Value {
    let requests = json!({"cpu": "10m", "memory": "16Mi"});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": {"app": "plain"}},
        "spec": {
            "schedulerName": "pellucid", "nodeSelector": {"own": PLAIN},
            "tolerations": [{"key": "own", "operator": "Equal", "value": PLAIN, "effect": "NoSchedule"}],
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]
        },
    })
}

/// Creates pods until the load is over, and observes them until the end of the test.
pub(crate) fn keep_creating(soak: &Soak) {
    let (mut next, mut number) = (soak.now(), 0);
    let mut living: VecDeque<(Duration, String)> = VecDeque::new();
    let mut seen = 0;
    while !soak.is_over() {
        let now = soak.now();
        if now >= next && !soak.is_load_over() {
            // After a long pause of the machine, do not create all missed pods at once.
            next = (next + EVERY).max(now.saturating_sub(EVERY));
            number += 1;
            let name = format!("plain-{number}");
            let created = soak.now();
            if soak.create(pod(&name)) {
                soak.plain.pending.lock().push_back((created, name));
            } else {
                soak.complain(format!("plain pod {name} was refused by the sandbox"));
            }
        }
        let revision = soak.sandbox.revision();
        if revision != seen {
            seen = revision;
            look(soak, &mut living);
        }
        while living.front().is_some_and(|(at, _)| *at <= soak.now()) {
            let Some((_, name)) = living.pop_front() else { break };
            if let Err(error) = soak.sandbox.delete("pods", "default", &name, Some(0)) {
                soak.complain(format!("plain pod {name} is gone before its time: {error}"));
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Records the pods that have been bound.
fn look(soak: &Soak, living: &mut VecDeque<(Duration, String)>) {
    soak.plain.pending.lock().retain(|(created, name)| {
        let Some(node) = soak.sandbox.node_of("default", name) else { return true };
        let bound = soak.now();
        if node != PLAIN {
            soak.complain(format!("plain pod {name} is on {node}"));
        }
        let is_calm = !soak.outages.touch(*created, bound, RECOVERY);
        soak.plain.waits.lock().push(Wait { created: *created, took: bound - *created, is_calm });
        soak.outages.note_bound(*created, bound);
        living.push_back((bound + LIVES, name.clone()));
        false
    });
}

/// Waits after the load until every plain pod is bound. Complains about the others after `patience`.
pub(crate) fn settle(soak: &Soak, patience: Duration) {
    let until = soak.now() + patience;
    while soak.now() < until && !soak.plain.pending.lock().is_empty() {
        std::thread::sleep(LOOK_EVERY);
    }
    for (created, name) in soak.plain.unbound() {
        let at = created.as_secs_f64();
        soak.complain(format!("plain pod {name}, created at {at:.1} s, is not bound"));
    }
}
