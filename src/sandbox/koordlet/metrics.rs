//! What nodes use, as koordlet reports it: one NodeMetric (`slo.koordinator.sh/v1alpha1`) per node, with its name.
//!
//! A node reports when it is created, and then all nodes do at a fixed interval. A report adds up the running pods and
//! what the node itself needs. It has no aggregated usages. The kubelet makes the reports between its other steps, so
//! that on a manual clock a report shows what had happened by its time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pellucid_model::quantity::format_amount;
use serde_json::{Map, Value, json};

use crate::clock::{later, seconds};
use crate::fields::text;
use crate::follow::Follower;
use crate::kinds::annotations::usage::{self, Amounts};
use crate::kinds::pods::{NODE_NAME, PHASE};
use crate::kinds::registry::Kind;
use crate::options::{DeleteOptions, Options};
use crate::requests::server::Server;
use crate::store::{Change, Key};

const NODE_METRICS: &str = "nodemetrics.slo.koordinator.sh";
/// Label with Koordinator's priority class of a pod.
const PRIORITY_CLASS: &str = "koordinator.sh/priority-class";
/// CPU that a node itself uses, in thousandths of a core.
const SYSTEM_CPU: i64 = 100;
/// Memory that a node itself uses, in bytes.
const SYSTEM_MEMORY: i64 = 256 << 20;

/// What a pod uses.
struct PodUse {
    key: Key,
    priority: String,
    used: Amounts,
}

/// The reports of all nodes.
pub(crate) struct Reports {
    server: Arc<Server>,
    nodes: Follower,
    every: Duration,
    /// When the last report was due; at first the start.
    last: Timestamp,
}

impl Reports {
    /// Returns the reports from now on, at least a second apart.
    pub(crate) fn new(server: &Arc<Server>, every: Duration) -> Self {
        Self {
            server: server.clone(),
            nodes: Follower::new(server, "nodes"),
            every: every.max(Duration::from_secs(1)),
            last: server.api.clock.now(),
        }
    }

    /// Returns when the next report is due.
    pub(crate) fn next_due(&self) -> Timestamp {
        later(self.last, self.every)
    }

    /// Returns the latest time up to `now` at which a report is due. Earlier ones that were missed are left out.
    pub(crate) fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let passed = Duration::try_from(now.duration_since(self.last)).ok()?;
        if passed < self.every {
            return None;
        }
        let beyond = Duration::from_nanos((passed.as_nanos() % self.every.as_nanos()) as u64);
        Some(later(self.last, passed - beyond))
    }

    /// Reports the nodes that are new, and all of them for `due`. Returns whether there was anything to do.
    pub(crate) fn carry_out(&mut self, due: Option<Timestamp>) -> bool {
        let news = self.nodes.take();
        let api = &self.server.api;
        let Some(kind) = api.kind_of(NODE_METRICS) else {
            // Somebody has deleted the definition.
            self.last = due.unwrap_or(self.last);
            return !news.is_empty() || due.is_some();
        };
        let mut wanted: BTreeMap<Arc<str>, Timestamp> = BTreeMap::new();
        for event in &news.events {
            let (node, name) = (&event.object, event.object.key.1.clone());
            match event.change {
                Change::Added => _ = wanted.insert(name, node.written),
                Change::Modified => {}
                Change::Deleted => {
                    wanted.remove(&name);
                    // It may be deleted already.
                    let _ = api.delete(&kind, &node.key, &DeleteOptions::default());
                }
            }
        }
        if let Some(due) = due {
            self.last = due;
            let nodes = api.store.list("nodes", "").items;
            wanted.extend(nodes.iter().map(|node| (node.key.1.clone(), due)));
        }
        self.report(&kind, &wanted);
        !news.is_empty() || due.is_some()
    }

    /// Writes the reports of nodes, each of a time.
    fn report(&self, kind: &Kind, wanted: &BTreeMap<Arc<str>, Timestamp>) {
        if wanted.is_empty() {
            return;
        }
        let uses = self.uses();
        let spec = json!({"metricCollectPolicy": {"reportIntervalSeconds": self.every.as_secs()}});
        for (node, at) in wanted {
            let pods: &[PodUse] = uses.get(&**node).map_or(&[], Vec::as_slice);
            self.write(kind, node, &spec, &status(pods, *at));
        }
    }

    /// Returns what the running pods use, by node.
    fn uses(&self) -> BTreeMap<Box<str>, Vec<PodUse>> {
        let mut uses: BTreeMap<Box<str>, Vec<PodUse>> = BTreeMap::new();
        let pods = self.server.api.store.list("pods", "").items;
        for pod in pods.iter().filter(|pod| pod.field(PHASE) == "Running") {
            let value = pod.value();
            let priority = priority_class(&value).to_owned();
            let used = PodUse { key: pod.key.clone(), priority, used: usage::of(&value) };
            uses.entry(pod.field(NODE_NAME).into()).or_default().push(used);
        }
        uses
    }

    fn write(&self, kind: &Kind, node: &Arc<str>, spec: &Value, status: &Value) {
        let api = &self.server.api;
        let key: Key = ("".into(), node.clone());
        if api.store.get(NODE_METRICS, &key).is_none() {
            let object = json!({"metadata": {"name": &**node}, "spec": spec});
            // Somebody may have created it just now.
            let _ = api.create(kind, "", object, &Options::internal());
        }
        // One that is gone again is written with the next report.
        api.edit(kind, &key, |metric| {
            metric["spec"] = spec.clone();
            metric["status"] = status.clone();
            Ok(())
        });
    }
}

/// Waits until there may be a new node; forever if nothing is reported.
pub(crate) async fn changed(reports: Option<&mut Reports>) {
    match reports {
        Some(reports) => reports.nodes.changed().await,
        None => std::future::pending().await,
    }
}

/// Returns the status of a NodeMetric for the running pods of its node.
fn status(pods: &[PodUse], at: Timestamp) -> Value {
    let system: Amounts = [("cpu".to_owned(), SYSTEM_CPU), ("memory".to_owned(), SYSTEM_MEMORY)].into();
    let mut node = system.clone();
    pods.iter().for_each(|pod| usage::add(&mut node, &pod.used));
    let of_pod = |pod: &PodUse| {
        json!({
            "namespace": &*pod.key.0, "name": &*pod.key.1, "priority": pod.priority, "podUsage": resources(&pod.used),
        })
    };
    json!({
        "updateTime": seconds(at),
        "nodeMetric": {"nodeUsage": resources(&node), "systemUsage": resources(&system)},
        "podsMetric": pods.iter().map(of_pod).collect::<Vec<_>>(),
    })
}

fn resources(amounts: &Amounts) -> Value {
    let amount = |(name, amount): (&String, &i64)| (name.clone(), Value::from(format_amount(name, *amount)));
    let named: Map<String, Value> = amounts.iter().map(amount).collect();
    json!({"resources": named})
}

/// Returns Koordinator's priority class of a pod: by its label, else its priority, else its QoS.
fn priority_class(pod: &Value) -> &str {
    let label = text(&pod["metadata"]["labels"][PRIORITY_CLASS]);
    match pod["spec"]["priority"].as_i64().unwrap_or_default() {
        _ if !label.is_empty() => label,
        9000..=9999 => "koord-prod",
        7000..=7999 => "koord-mid",
        5000..=5999 => "koord-batch",
        3000..=3999 => "koord-free",
        _ if pod["status"]["qosClass"] == "BestEffort" => "koord-batch",
        _ => "koord-prod",
    }
}
