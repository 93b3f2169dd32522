//! Injects every fault of the sandbox, one after another for about a second each, while a scheduler binds pods over
//! HTTP. No pod is lost or bound twice, and everything is bound afterwards.
//!
//! `tests/app/run.rs` tests single faults of Bindings, `tests/kubernetes/outages.rs` long outages in virtual time.
//! `benches/soak.rs` injects the same faults at random for any duration, with hostile objects and readers.

use std::collections::BTreeMap;
use std::time::Duration;

use pellucid::cluster::Stage;
use pellucid::model::PodKey;
use pellucid::sandbox::{Fault, Handle, Match};
use tokio::time::Instant;

use crate::common::PATIENCE;
use crate::common::running::{Running, node, pod, start_on_real_time};

/// Duration of a fault that lasts for a time.
const LASTS: Duration = Duration::from_secs(1);
/// Duration of a fault that swallows requests for good. A probe must notice it, and probes run every 5 s; a shorter
/// fault may go unnoticed until the watches' silence timeout of 80 s.
const IS_NOTICED: Duration = Duration::from_secs(7);
/// Number of pods created before, during and after each fault.
const EACH: usize = 3;
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Injects a fault.
type Order = fn(&Handle);

/// Matches any watch, including the test's own watch of all pods.
fn watches() -> Match {
    Match { is_watch: Some(true), ..Match::new("GET", "") }
}

/// Returns the faults of a number of requests or watches, and the one that takes longest.
fn single_faults() -> Vec<(&'static str, Order)> {
    vec![
        ("409", |s| s.faults().times(Match::new("POST", "/binding"), Fault::Status(409), 3)),
        ("410", |s| s.faults().times(watches(), Fault::GoneEvent, 6)),
        ("503 after commit", |s| {
            s.faults().times(Match::new("POST", "/binding"), Fault::StatusAfterCommit(503), 3)
        }),
        ("dropped", |s| s.faults().times(Match::new("POST", "/binding"), Fault::Drop, 3)),
        ("dropped after commit", |s| {
            s.faults().times(Match::new("POST", "/binding"), Fault::DropAfterCommit, 3)
        }),
        ("late", |s| s.faults().times(Match::all(), Fault::Delay(LASTS), 3)),
        ("broken off in a line", |s| s.faults().times(watches(), Fault::DropMidLine, 6)),
        ("events twice", |s| s.faults().times(watches(), Fault::DuplicateEvent, 6)),
        ("event not readable", |s| s.faults().times(watches(), Fault::UndecodableEvent, 6)),
        ("hangs for good", |s| s.faults().during(Match::all(), Fault::BlackHole, IS_NOTICED)),
    ]
}

/// Returns the faults that affect the whole server for a while.
fn outages() -> Vec<(&'static str, Order)> {
    vec![
        ("hangs", |s| s.faults().during(Match::all(), Fault::Hang, LASTS)),
        ("503", |s| s.faults().during(Match::all(), Fault::Status(503), LASTS)),
        ("429", |s| s.faults().during(Match::all(), Fault::RetryAfter(429, 3600), LASTS)),
        ("reset", |s| s.faults().during(Match::all(), Fault::Reset, LASTS)),
    ]
}

/// Returns the ways in which the server's connections and watches end.
fn restarts() -> Vec<(&'static str, Order)> {
    vec![
        ("closed", |s| {
            s.faults().during(Match::all(), Fault::Drop, LASTS);
            s.restart(Duration::ZERO);
        }),
        ("watches end at once", |s| {
            s.faults().during(watches(), Fault::EndWatch, LASTS);
            s.restart(Duration::ZERO);
        }),
        ("restart", |s| s.restart(LASTS)),
        ("restart without the changes", |s| {
            s.restart(LASTS);
            s.compact(s.revision() + 1_000);
        }),
    ]
}

/// Pods and their nodes according to the API server. Invariant: a place that was seen once does not change.
#[derive(Default)]
struct Places(BTreeMap<String, Option<String>>);

impl Places {
    fn create(&mut self, running: &Running, what: &str, n: usize) {
        for _ in 0..n {
            let name = format!("p{}", self.0.len());
            let mut made = pod(&name, 100);
            made["metadata"]["annotations"]["chaos.example/created"] = what.into();
            running.create([made]);
            self.0.insert(name, None);
        }
    }

    /// Reads the places of all pods; returns those that are not bound.
    fn look(&mut self, running: &Running) -> Vec<String> {
        for (name, place) in &mut self.0 {
            let now = running.sandbox.node_of("default", name);
            assert!(place.is_none() || *place == now, "{name} was on {place:?} and is on {now:?}");
            *place = now;
        }
        self.0.iter().filter(|(_, place)| place.is_none()).map(|(name, _)| name.clone()).collect()
    }

    /// Waits until every pod is bound.
    async fn settle(&mut self, running: &Running, what: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let missing = self.look(running);
            if missing.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "{what}: not bound: {missing:?}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_faults_lose_nothing_and_bind_nothing_twice() {
    everything_survives(single_faults()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outages_lose_nothing_and_bind_nothing_twice() {
    everything_survives(outages()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_lose_nothing_and_bind_nothing_twice() {
    everything_survives(restarts()).await;
}

/// Injects faults one after another, with pods created before, during and after each.
#[expect(clippy::print_stdout, reason = "how long each takes is worth a look")]
async fn everything_survives(orders: Vec<(&'static str, Order)>) {
    let nodes = (0..4).map(|n| node(&format!("n{n}"), "z", 32)).collect();
    let running = start_on_real_time(nodes).await;
    let mut places = Places::default();
    for (what, order) in orders {
        let begun = Instant::now();
        places.create(&running, what, EACH);
        order(&running.sandbox);
        places.create(&running, what, EACH);
        places.settle(&running, what).await;
        // A fault that no request met, or that has not ended, must not affect the next one.
        running.sandbox.faults().clear();
        places.create(&running, what, EACH);
        places.settle(&running, what).await;
        println!("{what}: {:?}", begun.elapsed());
    }
    // The scheduler agrees about every pod and has nothing left to do.
    let n = places.0.len();
    running
        .until("all is bound and known", || {
            let snapshot = running.instance.snapshot();
            snapshot.cluster.pods().filter(|(_, r)| r.stage == Stage::Bound).count() == n
                && snapshot.queue.units().count() == 0
        })
        .await;
    let snapshot = running.instance.snapshot();
    for (name, place) in &places.0 {
        let id = snapshot.cluster.find_pod(&PodKey::new("default", name));
        let record = id.and_then(|id| snapshot.cluster.pod(id)).expect("known");
        let ours = record.node.map(|node| snapshot.cluster.node_name(node).to_string());
        assert_eq!(&ours, place, "{name}");
    }
    running
        .until("all watches are well", || {
            let watches = &running.instance.io.watches;
            watches.iter().all(|(_, w)| {
                let report = w.report();
                report.synced && report.failing.is_none() && (report.connected || report.unserved)
            })
        })
        .await;
    assert_eq!(running.status_of("/readyz"), 200);
    running.stop().await;
}
