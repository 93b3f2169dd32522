//! The kubelet of all nodes: starts pods after a delay, ends them after their run time, removes them after deletion.
//!
//! Each step is due at a fixed time after the one before it, no matter when this task learns of that, so that a manual
//! clock gives the same lifecycle every time. A pod that is in trouble does not end until the trouble is lifted.
//!
//! Between these steps it reports what nodes use, if that is wanted (`koordlet::metrics`).
//!
//! One task serves all nodes. It runs no containers; the annotation [`RUN_SECONDS`] of a pod sets how long it runs. A
//! node that does not exist runs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::{later, seconds};
use crate::faults::Trouble;
use crate::follow::{Follower, News};
use crate::handle::Kubelet;
use crate::kinds::meta;
use crate::kinds::pods::{self, NODE_NAME, PHASE};
use crate::kinds::registry::Kind;
use crate::koordlet::metrics::{self, Reports};
use crate::requests::server::Server;
use crate::store::{Change, Key, Object};

/// Seconds that a pod runs before it succeeds; decimals are allowed.
pub(super) const RUN_SECONDS: &str = "sandbox.pellucid.dev/run-seconds";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Start,
    Succeed,
    Remove,
}

struct Node {
    server: Arc<Server>,
    kind: Arc<Kind>,
    delays: Kubelet,
    /// Steps by the time at which they are due; the number keeps steps of the same moment apart and in order.
    plan: BTreeMap<(Timestamp, u64), (Key, Box<str>, Step)>,
    planned: u64,
    /// Pods whose end is due and held up by a trouble.
    held: BTreeMap<Key, Box<str>>,
    /// Pods that this task has started; their end is already planned.
    started: BTreeSet<Box<str>>,
}

/// Runs until the sandbox stops.
pub(super) async fn run(server: Arc<Server>, delays: Kubelet, mut reports: Option<Reports>) {
    let Some(kind) = server.api.kind_of("pods") else { return };
    let mut follower = Follower::new(&server, "pods");
    let mut troubles = server.faults.subscribe();
    let mut node = Node {
        server: server.clone(),
        kind,
        delays,
        plan: BTreeMap::new(),
        planned: 0,
        held: BTreeMap::new(),
        started: BTreeSet::new(),
    };
    loop {
        if troubles.has_changed().unwrap_or_default() {
            troubles.borrow_and_update();
            node.release();
        }
        // Before the news, so that all that happened before the clock moved is among them.
        let now = server.api.clock.now();
        let news = follower.take();
        node.read(&news);
        let report = reports.as_ref().and_then(|reports| reports.due(now));
        // A report shows the steps up to its time, and no later ones.
        let mut did_something = node.carry_out(report.unwrap_or(now));
        if news.is_empty() && !did_something {
            did_something = reports.as_mut().is_some_and(|reports| reports.carry_out(report));
        }
        if !news.is_empty() || did_something {
            tokio::task::yield_now().await;
            continue;
        }
        let next = node.plan.keys().next().map(|(time, _)| *time);
        let next = next.into_iter().chain(reports.as_ref().map(Reports::next_due)).min();
        tokio::select! {
            () = follower.changed() => {}
            () = metrics::changed(reports.as_mut()) => {}
            _ = troubles.changed() => node.release(),
            () = server.api.clock.wait_until_some(next) => {}
            () = server.shutdown.cancelled() => return,
        }
    }
}

impl Node {
    fn plan(&mut self, at: Timestamp, key: Key, uid: Box<str>, step: Step) {
        self.planned += 1;
        self.plan.insert((at, self.planned), (key, uid, step));
    }

    fn plan_after(&mut self, pod: &Object, after: Duration, step: Step) {
        self.plan(later(pod.written, after), pod.key.clone(), pod.uid.clone(), step);
    }

    fn read(&mut self, news: &News) {
        if news.starts_over {
            self.plan.clear();
        }
        for event in &news.events {
            if event.change == Change::Deleted {
                self.started.remove(&event.object.uid);
                self.held.remove(&event.object.key);
            } else {
                self.notice(event.previous.as_deref(), &event.object);
            }
        }
    }

    /// Plans the steps that a change of a pod requires.
    fn notice(&mut self, previous: Option<&Object>, pod: &Object) {
        let previous = previous.filter(|old| old.uid == pod.uid);
        let was = |fact: fn(&Object) -> bool| previous.is_some_and(fact);
        let is_on_node = |pod: &Object| !pod.field(NODE_NAME).is_empty();
        if pod.is_deleting {
            // A shorter grace period may follow: plan another step, the earlier one wins.
            let grace = pod.value()["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or_default();
            if grace > 0 {
                self.plan_after(pod, Duration::from_secs(grace).min(self.delays.stop_delay), Step::Remove);
            }
        } else if is_on_node(pod) && pod.field(PHASE) == "Pending" && !was(is_on_node) {
            self.plan_after(pod, self.delays.start_delay, Step::Start);
        } else if pod.field(PHASE) == "Running" && !was(|old| old.field(PHASE) == "Running") {
            let time = run_time(pod).filter(|_| !self.started.contains(&pod.uid));
            if let Some(time) = time {
                self.plan_after(pod, time, Step::Succeed);
            }
        }
    }

    /// Carries out the steps that are due by a time. Returns whether there were any.
    fn carry_out(&mut self, until: Timestamp) -> bool {
        let mut did_something = false;
        while let Some(entry) = self.plan.first_entry().filter(|entry| entry.key().0 <= until) {
            let due = entry.key().0;
            let (key, uid, step) = entry.remove();
            did_something = true;
            match step {
                Step::Remove if self.refuses(&key) => _ = self.held.insert(key, uid),
                Step::Remove => self.server.api.finish(&self.kind, &key, &uid),
                Step::Succeed => _ = self.set(&key, &uid, succeeded),
                Step::Start => {
                    let started = self.set(&key, &uid, running);
                    if let Some(time) = started.and_then(|pod| run_time(&pod)) {
                        self.started.insert(uid.clone());
                        self.plan(later(due, time), key, uid, Step::Succeed);
                    }
                }
            }
        }
        did_something
    }

    /// Returns whether a trouble keeps a pod from ending.
    fn refuses(&self, key: &Key) -> bool {
        let pod = self.server.api.store.get(&self.kind.storage, key);
        let never_ends = |trouble| trouble == Trouble::PodNeverEnds;
        pod.is_some_and(|pod| self.server.faults.meet(&pod, never_ends).is_some())
    }

    /// Retries the pods whose end was held up.
    fn release(&mut self) {
        let now = self.server.api.clock.now();
        for (key, uid) in std::mem::take(&mut self.held) {
            self.plan(now, key, uid, Step::Remove);
        }
    }

    /// Updates the status of a pod, unless it was replaced or is being deleted.
    fn set(&self, key: &Key, uid: &str, change: fn(&mut Value, &str)) -> Option<Arc<Object>> {
        let now = seconds(self.server.api.clock.now());
        // A pod that is gone needs no status.
        self.server.api.edit(&self.kind, key, |pod| {
            if meta::text(pod, "uid") == uid && !meta::is_deleting(pod) {
                change(pod, &now);
            }
            Ok(())
        })
    }
}

fn run_time(pod: &Object) -> Option<Duration> {
    // Most pods have no such annotation, and this is cheaper than to parse each.
    if !pod.mentions(RUN_SECONDS) {
        return None;
    }
    let pod = pod.value();
    let text = pod["metadata"]["annotations"][RUN_SECONDS].as_str()?;
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

fn running(pod: &mut Value, now: &str) {
    if pod["status"]["phase"] != "Pending" {
        return;
    }
    pod["status"]["phase"] = "Running".into();
    pod["status"]["startTime"] = now.into();
    pod["status"]["hostIP"] = "127.0.0.1".into();
    pod["status"]["containerStatuses"] = containers(pod, true, &json!({"running": {"startedAt": now}}));
    for kind in ["Initialized", "ContainersReady", "Ready"] {
        pods::set_condition(pod, json!({"type": kind, "status": "True"}), now);
    }
}

fn succeeded(pod: &mut Value, now: &str) {
    if pod["status"]["phase"] != "Running" {
        return;
    }
    pod["status"]["phase"] = "Succeeded".into();
    let state = json!({"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": pod["status"]["startTime"], "finishedAt": now
    }});
    pod["status"]["containerStatuses"] = containers(pod, false, &state);
    for kind in ["ContainersReady", "Ready"] {
        let condition = json!({"type": kind, "status": "False", "reason": "PodCompleted"});
        pods::set_condition(pod, condition, now);
    }
}

fn containers(pod: &Value, is_ready: bool, state: &Value) -> Value {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers
        .map(|c| {
            json!({
                "name": c["name"], "image": c["image"], "imageID": "", "ready": is_ready, "started": is_ready,
                "restartCount": 0, "state": state
            })
        })
        .collect()
}
