//! Every metric and label that dashboards/ names is one that a running scheduler has.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "this test needs a part of it")]
#[path = "common/client.rs"]
mod client;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pellucid::app::clock;
use pellucid::app::instance::{Instance, InstanceConfig};
use pellucid::kubernetes::Connection;
use pellucid::sandbox::{Config, Sandbox};
use pellucid::{config, plugins};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);
/// Labels that Prometheus adds, or that are its own.
const OTHER_LABELS: &[&str] = &["instance", "le"];

/// Metric name as it is queried, to the labels of its samples.
type Known = BTreeMap<String, BTreeSet<String>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_metric_on_the_dashboards_exists() {
    let known = known(&metrics_of_a_running_scheduler().await);
    let mut complaints = Vec::new();
    let mut n = 0;
    for (place, expression) in expressions() {
        for (metric, labels) in used(&expression) {
            n += 1;
            match known.get(&metric) {
                None => complaints.push(format!("{place}: there is no metric {metric}")),
                Some(has) => {
                    let missing =
                        labels.iter().filter(|l| !has.contains(*l) && !OTHER_LABELS.contains(&l.as_str()));
                    complaints.extend(missing.map(|l| format!("{place}: {metric} has no label {l}")));
                }
            }
        }
    }
    assert!(n > 15, "only {n} uses of metrics were found");
    assert!(complaints.is_empty(), "{}\nthere are {:?}", complaints.join("\n"), known.keys());
}

/// Runs a scheduler until it has placed one pod and refused another, and returns its `/metrics`.
async fn metrics_of_a_running_scheduler() -> String {
    let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    let node = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
               "status": {"capacity": amounts, "allocatable": amounts,
                          "conditions": [{"type": "Ready", "status": "True"}]}})
    };
    let pod = |name: &str, cpu: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
               "spec": {"schedulerName": "pellucid", "containers": [
                   {"name": "main", "image": "registry.example/web:1", "resources": {"requests": {"cpu": cpu}}}]}})
    };
    let objects = vec![node("a"), node("b"), pod("fits", "1"), pod("too-big", "100")];
    let sandbox = Sandbox::start(Config { objects, ..Config::default() }).await.unwrap();
    let registry = Arc::new(plugins::registry());
    let connection =
        Connection::with_config(sandbox.kube_config(), "the test's sandbox", PATIENCE).await.unwrap();
    let mut instance = Instance::start(InstanceConfig {
        connection,
        configuration: config::default(&registry).unwrap(),
        registry,
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        seed: 0,
        shadow_of: None,
        log: None,
        clock: clock::system(),
        decisions: None,
    })
    .await
    .unwrap();
    let settled = async {
        while instance.root().counters.bound < 1 || instance.root().queue.counts().unschedulable < 1 {
            instance.next_root().await;
        }
    };
    tokio::time::timeout(PATIENCE, settled).await.expect("one pod is placed and one refused");
    // The first request is counted in what the second one answers.
    client::get(instance.address, "/metrics");
    let text = client::get(instance.address, "/metrics").text().to_owned();
    instance.stop().await;
    sandbox.stop().await;
    text
}

/// Reads the samples of an OpenMetrics text.
fn known(text: &str) -> Known {
    let mut known = Known::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let end = line.find(['{', ' ']).unwrap_or(line.len());
        let labels = known.entry(line[..end].to_owned()).or_default();
        let inside = line[end..].strip_prefix('{').and_then(|rest| rest.split("} ").next()).unwrap_or("");
        labels
            .extend(inside.split("\",").filter_map(|pair| pair.split_once("=\"")).map(|(l, _)| l.to_owned()));
    }
    known
}

/// Returns the PromQL expressions in dashboards/, each with where it stands.
fn expressions() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards");
    let mut found = Vec::new();
    let dashboard: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("pellucid.json")).unwrap()).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            found.push((format!("pellucid.json, {title:?}"), target["expr"].as_str().unwrap().to_owned()));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let query = variable["query"].as_str().unwrap();
        if let Some(inside) = query.strip_prefix("label_values(") {
            found.push(("pellucid.json, variables".to_owned(), inside.split(',').next().unwrap().to_owned()));
        }
    }
    let rules: Value =
        serde_saphyr::from_str(&fs::read_to_string(folder.join("alerts.yaml")).unwrap()).unwrap();
    for rule in rules["groups"].as_array().unwrap().iter().flat_map(|g| g["rules"].as_array().unwrap()) {
        let name = rule["alert"].as_str().unwrap();
        found.push((format!("alerts.yaml, {name}"), rule["expr"].as_str().unwrap().to_owned()));
        assert!(rule["annotations"]["summary"].is_string(), "{name} says what is the matter");
    }
    found
}

/// Returns the metrics of an expression, each with the labels that are asked of it: those in its selector,
/// and those of a `by (...)` anywhere in the expression.
fn used(expression: &str) -> Vec<(String, BTreeSet<String>)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = |text: &str| -> BTreeSet<String> {
        text.split(|c| !is_word(c)).filter(|w| !w.is_empty()).map(str::to_owned).collect()
    };
    let by: BTreeSet<String> = expression
        .split("by (")
        .skip(1)
        .flat_map(|rest| words(rest.split(')').next().unwrap_or_default()))
        .collect();
    let mut found = Vec::new();
    for prefix in ["scheduler_", "pellucid_"] {
        for (at, _) in expression.match_indices(prefix) {
            if expression[..at].ends_with(is_word) {
                continue;
            }
            let rest = &expression[at..];
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let selector = rest[end..].strip_prefix('{').and_then(|s| s.split('}').next()).unwrap_or("");
            let asked = selector.split(',').filter_map(|pair| pair.split(['=', '!']).next());
            let asked = asked.map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned);
            found.push((rest[..end].to_owned(), asked.chain(by.clone()).collect()));
        }
    }
    found
}

#[test]
fn metrics_and_labels_of_an_expression_are_found() {
    let found = used("sum by (a, le) (rate(pellucid_x_total{b=\"c\", d=~\"e\"}[5m])) / scheduler_y");
    let labels = |names: &str| names.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(
        found,
        [("scheduler_y".to_owned(), labels("a le")), ("pellucid_x_total".to_owned(), labels("a b d le"))]
    );
}
