//! The same is said everywhere: sentence, key reason, remedy, the pending summary and the metrics against the nearest
//! nodes.

use std::collections::BTreeMap;

use pellucid::app::metrics;
use serde_json::Value;

use crate::case::Case;
use crate::objects::{list, text};
use crate::report::Tally;

pub(crate) fn look(case: &Case, pods: usize, tally: &mut Tally) {
    let mut keys: BTreeMap<String, i64> = BTreeMap::new();
    for key in &case.waiting {
        let body = case.of_pod(key, "");
        *keys.entry(key_code(&body)).or_default() += 1;
    }
    let all = case.ask("/apis/v1/explain/pods");
    for key in case.sample(pods) {
        let body = case.of_pod(&key, "");
        sentence(case, &key, &body, tally);
        nearest(case, &key, &body, tally);
        waiting(case, &key, &body, tally);
        listed(case, (&key, &body), &all, tally);
    }
    summary(case, &keys, tally);
}

/// Returns the code under which a pod counts: its own reason, else the first of the nearest nodes.
fn key_code(body: &Value) -> String {
    let own = list(&body["podReasons"]).first();
    let nearest = || list(&body["nearest"]["reasons"]).first();
    let reason = if body["keyReason"].is_object() { Some(&body["keyReason"]) } else { own.or_else(nearest) };
    reason.map_or("none", |reason| text(&reason["code"])).to_owned()
}

fn sentence(case: &Case, key: &str, body: &Value, tally: &mut Tally) {
    let summary = text(&body["summary"]);
    if let Some(own) = body["keyReason"].as_object() {
        // Of a pod that never fits, only what stands when all pods have left that can.
        let few = if body["outlook"]["code"] == "NeverFits" { usize::MAX } else { 1 };
        // Where a quota refuses the pod by now, no nearest nodes are told, but what the nodes said before.
        let groups = list(&body["nodeGroups"]).iter().flat_map(|group| list(&group["reasons"]));
        let all = list(&body["podReasons"]).iter().chain(list(&body["nearest"]["reasons"])).chain(groups);
        let first: Vec<_> = all.map(|reason| (&reason["code"], &reason["subject"])).take(few).collect();
        let is_gang = body["gang"].is_object();
        tally.agree(
            case,
            "key reason",
            is_gang || first.contains(&(&own["code"], &body["keyReason"]["subject"])),
            || format!("{key}: keyReason {}, first is {first:?}", own["code"]),
        );
    }
    // Every reason of the nearest nodes is in the sentence, for who makes only the first good is refused again.
    if list(&body["podReasons"]).is_empty() {
        for reason in list(&body["nearest"]["reasons"]) {
            tally.agree(
                case,
                "sentence without a reason",
                summary.contains(text(&reason["message"])),
                || format!("{key}: {} is not in: {summary}", reason["code"]),
            );
        }
    }
    let remedy = text(&body["remedy"]);
    if !remedy.is_empty() {
        tally.agree(case, "sentence and remedy", summary.contains(remedy), || {
            format!("{key}: remedy {remedy:?} is not in: {summary}")
        });
    }
}

/// The nearest nodes of the explanation are those of the list, for the same reasons.
fn nearest(case: &Case, key: &str, body: &Value, tally: &mut Tally) {
    let group = &body["nearest"];
    if !group.is_object() {
        return;
    }
    let all = case.of_pod(key, "/nearest?k=1");
    let first = &all["nodes"][0];
    let codes = |reasons: &Value| {
        let mut codes: Vec<String> =
            list(reasons).iter().map(|r| format!("{} {}", text(&r["code"]), text(&r["subject"]))).collect();
        codes.sort();
        codes
    };
    let (said, listed) = (codes(&group["reasons"]), codes(&first["failed"]));
    tally.agree(case, "nearest and its list", said == listed, || {
        format!("{key}: explain says {said:?}, the list {listed:?} of {}", first["node"])
    });
}

/// Nobody is told to wait for what will never be.
fn waiting(case: &Case, key: &str, body: &Value, tally: &mut Tally) {
    let code = match body["outlook"]["code"].as_str() {
        Some(code) => code.to_owned(),
        None => text(&case.of_pod(key, "/feasibility?copies=1")["verdict"]["code"]).to_owned(),
    };
    if code != "NeverFits" {
        return;
    }
    // A reason tells of a wait that is over.
    let summary = text(&body["summary"]).replace("the wait for the other members ran out", "");
    let says_wait = ["Wait for", "wait for the other", "or wait"].iter().any(|words| summary.contains(words));
    tally.agree(case, "wait against never", !says_wait && body["resolver"] != "time", || {
        format!("{key}: NeverFits, resolver {}: {summary}", body["resolver"])
    });
}

/// The list of pending pods says the same.
fn listed(case: &Case, (key, body): (&str, &Value), all: &Value, tally: &mut Tally) {
    let (namespace, name) = key.split_once('/').expect("namespace/name");
    let own = list(&all["pods"]).iter().find(|pod| pod["namespace"] == namespace && pod["name"] == name);
    let is_same =
        own.is_some_and(|own| own["verdict"] == body["verdict"] && own["message"] == body["message"]);
    tally.agree(case, "list of pending pods", is_same, || {
        format!("{key}: {} {} in the list {own:?}", body["verdict"], body["message"])
    });
}

/// The roll-up and the metrics count each pod once, under its key reason.
fn summary(case: &Case, keys: &BTreeMap<String, i64>, tally: &mut Tally) {
    let body = case.ask("/apis/v1/summary/pending?by=code");
    let rows: BTreeMap<String, i64> = list(&body["rows"])
        .iter()
        .map(|row| (text(&row["code"]).to_owned(), row["pods"].as_i64().unwrap_or_default()))
        .collect();
    let total: i64 = rows.values().sum();
    tally.agree(case, "sum of the summary", body["totalPending"] == total, || {
        format!("totalPending {}, rows {rows:?}", body["totalPending"])
    });
    tally.agree(case, "all that wait", total == case.waiting.len() as i64, || {
        format!("rows {rows:?}, {} pods wait", case.waiting.len())
    });
    for code in rows.keys().chain(keys.keys()) {
        let (said, own) = (rows.get(code).copied().unwrap_or(0), keys.get(code).copied().unwrap_or(0));
        tally.agree(case, "summary against nearest", said == own, || {
            format!("{code}: {said} pods in the summary, {own} by their explanations; {rows:?}, {keys:?}")
        });
    }
    let shown = metrics::of_snapshot(&case.snapshot);
    let family = "pellucid_pending_reasons{code=\"";
    let samples = shown.lines().filter_map(|line| {
        let (code, rest) = line.strip_prefix(family)?.split_once('"')?;
        Some((code.to_owned(), rest.rsplit_once(' ')?.1.parse::<i64>().ok()?))
    });
    let samples: BTreeMap<String, i64> = samples.collect();
    tally.agree(case, "metrics against the summary", samples == rows, || {
        format!("metrics {samples:?}, summary {rows:?}")
    });
}
