//! What the documents name in their text and tables: metrics with their labels, and paths of the REST API.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::client::put;
use crate::common::demo::Demo;
use crate::document::Document;
use crate::documents;

/// Metrics that a demo does not have: of traces, of leader election and of shadow mode, which `tests/app` reads, and of queues,
/// which `tests/gangs` reads.
const ELSEWHERE: [&str; 13] = [
    "pellucid_trace_spans_exported_total",
    "pellucid_trace_spans_dropped_total",
    "pellucid_leader_election_hand_over_seconds",
    "pellucid_shadow_decisions_total",
    "pellucid_leader_election_catch_up_seconds",
    "pellucid_leader_election_refused_writes_total",
    "pellucid_leader_election_cut_off_writes_total",
    "pellucid_leader_election_failed_requests_total",
    "pellucid_reservation_status_phase",
    "pellucid_reservation_resource",
    "pellucid_proportion_queue",
    "pellucid_proportion_queue_weight",
    "pellucid_proportion_queue_pending_pods",
];
/// Plugins of the guide, which a demo does not have.
const EXAMPLES: [&str; 2] = ["FavouriteNode", "LicenceSeats"];
/// Document with the table of metrics.
const TABLE: &str = "docs/operations.md";

/// Metric name to the labels of its samples.
type Metrics = BTreeMap<String, BTreeSet<String>>;

/// Parses a metrics page. The parts of a histogram count as the histogram.
fn metrics_of(page: &str) -> Metrics {
    let mut all = Metrics::new();
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let types: BTreeMap<&str, &str> = types.collect();
    for (name, kind) in &types {
        let suffix = if *kind == "counter" { "_total" } else { "" };
        all.insert(format!("{name}{suffix}"), BTreeSet::new());
    }
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
        let metric = of_histogram.filter(|base| types.contains_key(base)).unwrap_or(name);
        let labels = line.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(l, _)| l);
        let labels = labels.split("\",").filter_map(|label| label.split_once('=')).map(|(key, _)| key);
        let known = all.entry(metric.to_owned()).or_default();
        known.extend(labels.filter(|key| *key != "le").map(str::to_owned));
    }
    all
}

/// Returns the words in backticks of a document's text, with their line, outside of fenced blocks.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let (mut is_fenced, mut all) = (false, Vec::new());
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            all.extend(line.split('`').skip(1).step_by(2).map(|word| (number + 1, word)));
        }
    }
    all
}

/// Returns the paths of the REST API in a quoted text.
fn paths(quoted: &str) -> impl Iterator<Item = &str> {
    let words = quoted.split([' ', '"', '\'', ',', ';']).map(|word| word.trim_start_matches("$S"));
    let is_own = |word: &str| !word.contains('…') && !EXAMPLES.iter().any(|plugin| word.contains(plugin));
    let is_path =
        move |word: &&str| (word.starts_with("/apis/") || word.starts_with("/debug/")) && is_own(word);
    words.filter(is_path).map(|word| word.split('?').next().unwrap_or(word))
}

/// Returns whether a path is one of a template, or of the paths below it that a document names as a whole.
fn is_of(path: &str, template: &str) -> bool {
    let (path, template): (Vec<&str>, Vec<&str>) = (path.split('/').collect(), template.split('/').collect());
    let is_free = |part: &str| part.starts_with([':', '<']);
    let fits = |(one, other): (&&str, &&str)| one == other || is_free(one) || is_free(other);
    path.len() <= template.len() && path.iter().zip(&template).all(fits)
}

#[test]
fn every_path_in_the_text_is_served_and_every_metric_is_there_with_its_labels() {
    let demo = Demo::start(&["--still"]);
    assert_eq!(put(demo.rest, "/debug/flags/s", "3").status, 200);
    let services = demo.get("/apis/v1/__services__").json();
    let by_method = services.as_object().expect("methods").values();
    let served: Vec<&str> = by_method
        .flat_map(|paths| paths.as_array().into_iter().flatten())
        .filter_map(|p| p.as_str())
        .collect();
    let metrics = metrics_of(demo.get("/metrics").text());
    let (mut wrong, mut n) = (Vec::new(), 0);
    for name in documents() {
        let document = Document::read(&name);
        for (line, word) in quoted(document.text()) {
            let unknown = paths(word).filter(|path| !served.iter().any(|template| is_of(path, template)));
            wrong.extend(unknown.map(|path| format!("{name}:{line}: {path} is not served")));
            let is_metric =
                |prefix| word.starts_with(prefix) && word.chars().all(|c| c.is_alphanumeric() || c == '_');
            if ["pellucid_", "scheduler_"].into_iter().any(is_metric) {
                n += 1;
                let is_there = metrics.contains_key(word) || ELSEWHERE.contains(&word);
                wrong.extend((!is_there).then(|| format!("{name}:{line}: there is no metric {word}")));
            }
        }
    }
    wrong.extend(wrong_rows(Document::read(TABLE).text(), &metrics));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n > 40, "only {n} metrics are named");
}

/// Compares the table of metrics with the samples: every metric is in it, and its labels are those of its samples.
fn wrong_rows(text: &str, metrics: &Metrics) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut rows = BTreeSet::new();
    for (number, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [name, labels, _] = cells[..] else { continue };
        let Some(name) = name.strip_prefix("| `").and_then(|name| name.strip_suffix('`')) else { continue };
        let Some(known) = metrics.get(name) else { continue };
        rows.insert(name);
        let shown: BTreeSet<String> = labels.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        if !known.is_empty() && shown != *known {
            wrong.push(format!(
                "{TABLE}:{}: {name} has the labels {known:?}, {shown:?} are shown",
                number + 1
            ));
        }
    }
    let ours = |name: &&String| ["pellucid_", "scheduler_"].iter().any(|of| name.starts_with(of));
    let missing = metrics.keys().filter(ours).filter(|name| !rows.contains(name.as_str()));
    wrong.extend(missing.map(|name| format!("{TABLE}: {name} is not in the table")));
    wrong
}
