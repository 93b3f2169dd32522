//! Every metric, label and label value that dashboards/ names exists on a running scheduler, and every alert says
//! what to do, with paths that are served.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use pellucid::app::instance::{Instance, InstanceConfig};
use serde_json::Value;

use crate::common::client;
use crate::common::running::{node, parts, pod, start_with};

/// Enables the plugins that have gauges.
const CONFIGURATION: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: pellucid
    plugins:
      multiPoint:
        enabled: [{name: ElasticQuota}, {name: DeviceShare}]
";

/// Labels that Prometheus adds or defines.
const OTHER_LABELS: &[&str] = &["instance", "job", "le"];

/// Labels whose values depend on what happens, so a quiet scheduler does not show all of them.
const OPEN_VALUES: &[&str] = &["path", "code", "plugin", "profile"];

/// Metric name as queried, to the labels of its samples and the values of each label.
type Known = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_metric_label_and_value_on_the_dashboards_exists() {
    let known = known(&metrics_of_running_schedulers().await);
    let (mut complaints, mut n) = (Vec::new(), 0);
    for (place, expression) in expressions() {
        for used in used(&expression) {
            n += 1;
            complaints.extend(unknown(&used, &known).into_iter().map(|what| format!("{place}: {what}")));
        }
    }
    assert!(n > 60, "only {n} uses of metrics were found");
    assert!(complaints.is_empty(), "{}\nthere are {:?}", complaints.join("\n"), known.keys());
}

/// Returns which parts of a metric's use do not exist.
fn unknown(used: &Used, known: &Known) -> Vec<String> {
    let metric = &used.metric;
    let Some(has) = known.get(metric) else { return vec![format!("there is no metric {metric}")] };
    let mut complaints = Vec::new();
    for (label, values) in &used.labels {
        match has.get(label) {
            _ if OTHER_LABELS.contains(&label.as_str()) => {}
            None => complaints.push(format!("{metric} has no label {label}")),
            Some(_) if OPEN_VALUES.contains(&label.as_str()) => {}
            Some(has) => {
                let missing = values.iter().filter(|value| !has.contains(*value));
                complaints.extend(missing.map(|v| format!("{metric} has no {label}={v}, but {has:?}")));
            }
        }
    }
    complaints
}

/// Runs a scheduler until it has placed two pods and refused another, one that takes part in leader election and one that
/// shadows another. Returns their `/metrics`.
async fn metrics_of_running_schedulers() -> String {
    let [definition, device] = crate::app::devices::broken_device("a");
    let objects = vec![
        definition,
        device,
        crate::app::quotas::definition(),
        crate::app::quotas::quota("team-a", "", 1, 2),
        crate::app::queues::queue("research", 1, 8),
        crate::app::queues::group("research"),
        crate::app::queues::member("of-research", "research"),
        node("a", "z", 4),
        node("b", "z", 4),
        pod("fits", 1000),
        pod("too-big", 100_000),
    ];
    // Decisions wait until quotas and devices are known.
    let running = start_with(objects, Some(CONFIGURATION), None).await;
    let settled = || {
        let snapshot = running.instance.snapshot();
        snapshot.counters.bound >= 2 && snapshot.queue.counts().unschedulable >= 1
    };
    running.until("two pods are placed and one refused", settled).await;
    // The second response counts the first request.
    running.metrics();
    let mut text = running.metrics();
    let elects = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                  leaderElection: {leaderElect: true}\n";
    let registry = pellucid::plugins::registry();
    let configuration = pellucid::config::parse(elects, "the test's", &registry).expect("a configuration");
    let parts = async || parts(running.sandbox.kube_config()).await;
    let electing = InstanceConfig { configuration, ..parts().await };
    let shadow = InstanceConfig { shadow_of: Some("theirs".into()), ..parts().await };
    for parts in [electing, shadow] {
        let instance = Instance::start(parts).await.expect("an instance");
        text += client::get(instance.address, "/metrics").text();
        instance.stop().await;
    }
    running.stop().await;
    text
}

/// Parses the samples of an OpenMetrics text.
fn known(text: &str) -> Known {
    let mut known = Known::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let end = line.find(['{', ' ']).unwrap_or(line.len());
        let labels = known.entry(line[..end].to_owned()).or_default();
        let inside = line[end..].strip_prefix('{').and_then(|rest| rest.split("} ").next()).unwrap_or("");
        for (label, value) in inside.split("\",").filter_map(|pair| pair.split_once("=\"")) {
            labels.entry(label.to_owned()).or_default().insert(value.trim_end_matches('"').to_owned());
        }
    }
    known
}

fn dashboard() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards/pellucid.json");
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Returns the alert rules of all groups.
fn alerts() -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards/alerts.yaml");
    let rules: Value = serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let groups = rules["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).cloned().collect()
}

/// Returns the PromQL expressions in dashboards/, each with its location.
fn expressions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let dashboard = dashboard();
    for panel in dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row") {
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
    for rule in alerts() {
        let name = rule["alert"].as_str().unwrap();
        found.push((format!("alerts.yaml, {name}"), rule["expr"].as_str().unwrap().to_owned()));
    }
    found
}

/// A use of a metric in an expression.
#[derive(Debug, PartialEq)]
struct Used {
    metric: String,
    /// Labels used in the metric's selector or in an enclosing `by (...)`, each with the values that the selector
    /// names.
    labels: BTreeMap<String, BTreeSet<String>>,
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the labels of every `by (...)` in an expression.
fn kept(expression: &str) -> BTreeSet<String> {
    let inside = expression.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
    inside.flat_map(|text| text.split(|c| !is_word(c))).filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

/// Returns the labels of each `by (...)` that encloses a position of an expression.
fn kept_at(expression: &str, at: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (start, _) in expression[..at].match_indices("by (") {
        let rest = &expression[start + 4..at];
        let Some((labels, between)) = rest.split_once(')') else { continue };
        let mut depth = 0;
        let leaves = |c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth <= 0
        };
        if !between.trim_start().chars().any(leaves) {
            found.extend(kept(&format!("by ({labels})")));
        }
    }
    found
}

/// Returns the metrics that an expression uses.
fn used(expression: &str) -> Vec<Used> {
    let mut found = Vec::new();
    for prefix in ["scheduler_", "pellucid_"] {
        for (at, _) in expression.match_indices(prefix) {
            if expression[..at].ends_with(is_word) {
                continue;
            }
            let rest = &expression[at..];
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let selector = rest[end..].strip_prefix('{').and_then(|s| s.split('}').next()).unwrap_or("");
            let mut labels: BTreeMap<String, BTreeSet<String>> =
                kept_at(expression, at).into_iter().map(|label| (label, BTreeSet::new())).collect();
            for matcher in selector.split(',').filter(|matcher| !matcher.trim().is_empty()) {
                let (label, value) = matcher.split_once(['=', '!']).unwrap();
                let value = value.trim_start_matches(['=', '~']).trim_matches('"');
                let values = value.split('|').filter(|value| value.chars().all(is_word)).map(str::to_owned);
                labels.entry(label.trim().to_owned()).or_default().extend(values);
            }
            found.push(Used { metric: rest[..end].to_owned(), labels });
        }
    }
    found
}

#[test]
fn every_alert_says_what_to_do() {
    let mut names = BTreeSet::new();
    for rule in alerts() {
        let name = rule["alert"].as_str().unwrap();
        assert!(name.starts_with("Pellucid") && names.insert(name.to_owned()), "{name} is a name of its own");
        let severity = rule["labels"]["severity"].as_str().unwrap();
        assert!(["info", "warning", "critical"].contains(&severity), "{name}: severity {severity}");
        assert!(rule["annotations"]["summary"].is_string(), "{name} says what is the matter");
        for field in ["description", "runbook"] {
            let text = rule["annotations"][field].as_str().unwrap_or_default();
            assert!(text.len() > 30 && text.ends_with('.'), "{name}: {field} is a sentence, not {text:?}");
        }
        let expression = rule["expr"].as_str().unwrap();
        let annotations = rule["annotations"].to_string();
        for rest in annotations.split("$labels.").skip(1) {
            let label = rest.split(|c| !is_word(c)).next().unwrap();
            let is_kept = kept(expression).contains(label) || !expression.contains("by (");
            assert!(is_kept, "{name}: {label} is aggregated away");
        }
    }
    assert!(names.iter().any(|name| name.contains("Gang")), "{names:?}");
}

#[test]
fn paths_in_alerts_are_served() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/openapi.json");
    let document: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    // A parameter is a word in capitals or a value.
    let fits = |template: &str, path: &str| {
        let (left, right): (Vec<&str>, Vec<&str>) =
            (template.split('/').collect(), path.split('/').collect());
        left.len() == right.len() && left.iter().zip(right).all(|(l, r)| *l == r || l.starts_with('{'))
    };
    let mut n = 0;
    for rule in alerts() {
        let text = rule["annotations"]["runbook"].as_str().unwrap().to_owned();
        for word in text.split_whitespace().filter(|word| word.starts_with('/')) {
            let path = word.trim_end_matches(['.', ',', ';']).split('?').next().unwrap();
            let is_served =
                document["paths"].as_object().unwrap().keys().any(|template| fits(template, path));
            assert!(is_served, "{}: nothing is served at {path}", rule["alert"]);
            n += 1;
        }
    }
    assert!(n > 10, "only {n} paths were found");
}

#[test]
fn panels_do_not_overlap_and_have_ids_of_their_own() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}: id twice", panel["title"]);
        let at = |field: &str| panel["gridPos"][field].as_u64().unwrap();
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{} stands on another panel", panel["title"]);
            }
        }
    }
}

#[test]
fn metrics_labels_and_values_of_an_expression_are_found() {
    let found =
        used("sum by (a, le) (rate(pellucid_x_total{b=\"c\", d=~\"e|f\"}[5m])) / scheduler_y{b!=\"g\"}");
    let labels = |pairs: &[(&str, &str)]| {
        let values = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
        pairs.iter().map(|(label, text)| ((*label).to_owned(), values(text))).collect::<BTreeMap<_, _>>()
    };
    let x = labels(&[("a", ""), ("le", ""), ("b", "c"), ("d", "e f")]);
    let y = labels(&[("b", "g")]);
    let one = |metric: &str, labels| Used { metric: metric.to_owned(), labels };
    assert_eq!(found, [one("scheduler_y", y), one("pellucid_x_total", x)]);
}

#[test]
fn what_does_not_exist_is_named() {
    let known = known("# HELP a b\npellucid_gangs{state=\"Gated\",x=\"1\"} 3\n");
    let complaints = |expression: &str| unknown(&used(expression)[0], &known);
    assert_eq!(complaints("pellucid_gangs{state=\"Gated\"}"), [""; 0]);
    assert_eq!(complaints("pellucid_gang"), ["there is no metric pellucid_gang"]);
    assert_eq!(complaints("sum by (y) (pellucid_gangs)"), ["pellucid_gangs has no label y"]);
    assert_eq!(complaints("pellucid_gangs{x=\"2\"}"), ["pellucid_gangs has no x=2, but {\"1\"}"]);
}
