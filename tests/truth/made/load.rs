//! NodeMetrics: what koordlet reports of nodes, new or long ago, and the thresholds of single nodes.

use serde_json::{Value, json};

use crate::model::{allocatable, requests};
use crate::objects::{Objects, text};
use crate::random::Rng;
use crate::trial::START;

const THRESHOLDS: &str = "scheduling.koordinator.sh/usage-thresholds";

/// Adds a NodeMetric for some nodes, with the usage of some of their pods.
pub(super) fn add(rng: &mut Rng, objects: &mut Objects) {
    if !rng.chance(60) {
        return;
    }
    date_pods(rng, objects);
    let nodes: Vec<String> = objects.nodes.keys().cloned().collect();
    for node in nodes {
        if rng.chance(65) {
            let report = report(rng, objects, &node);
            objects.put(report);
        }
        if rng.chance(20) {
            let own = thresholds(rng);
            objects.change_node(&node, |json| json["metadata"]["annotations"][THRESHOLDS] = own.into());
        }
    }
}

/// Some of the pods on nodes were scheduled long before the last report.
fn date_pods(rng: &mut Rng, objects: &mut Objects) {
    let placed: Vec<String> = objects.placed().map(|(key, _)| key.clone()).collect();
    for key in placed {
        if rng.chance(60) {
            objects.change_pod(&key, |json| {
                json["status"]["conditions"] = json!([
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-31T20:00:00Z"},
                ]);
            });
        }
    }
}

fn report(rng: &mut Rng, objects: &Objects, node: &str) -> Value {
    let of_node = |resource: &str| allocatable(objects.node(node), resource);
    let system = [
        of_node("cpu") * rng.pick(&[5, 20, 40, 55, 62, 70]) / 100,
        of_node("memory") * rng.pick(&[5, 30, 30, 60, 90, 96]) / 100,
    ];
    let mut sum = system;
    let mut pods = Vec::new();
    for (_, pod) in objects.on(node) {
        let own = requests(pod);
        let own = |resource: &str| own.get(resource).copied().unwrap_or(0);
        if rng.chance(50) {
            let share = rng.between(10, 130) as i64;
            let used = [own("cpu") * share / 100, own("memory") * share / 100];
            (0..2).for_each(|at| sum[at] += used[at]);
            let priority = rng.pick(&["koord-prod", "koord-prod", ""]);
            pods.push(json!({
                "namespace": pod["metadata"]["namespace"], "name": pod["metadata"]["name"],
                "podUsage": usage(used), "priority": priority,
            }));
        }
    }
    let updated = if rng.chance(10) { "2026-01-29T00:00:00Z" } else { START };
    let often = [sum[0] * rng.between(60, 130) as i64 / 100, sum[1]];
    json!({
        "apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric",
        "metadata": {"name": node, "uid": format!("uid-metric-{node}")},
        "spec": {"metricCollectPolicy": {"reportIntervalSeconds": 60}},
        "status": {
            "updateTime": updated,
            "nodeMetric": {
                "nodeUsage": usage(sum), "systemUsage": usage(system),
                "aggregatedNodeUsages": [{"duration": "5m0s", "usage": {"p95": usage(often)}}],
            },
            "podsMetric": pods,
        },
    })
}

fn usage([cpu, memory]: [i64; 2]) -> Value {
    json!({"resources": {"cpu": format!("{cpu}m"), "memory": memory.to_string()}})
}

fn thresholds(rng: &mut Rng) -> String {
    let percents = json!({"cpu": rng.pick(&[30, 50, 80]), "memory": rng.pick(&[50, 80])});
    let own = match rng.below(3) {
        0 => json!({"usageThresholds": percents}),
        1 => json!({"prodUsageThresholds": percents}),
        _ => json!({"aggregatedUsage": {
            "usageThresholds": percents, "usageAggregationType": "p95", "usageAggregatedDuration": "5m",
        }}),
    };
    own.to_string()
}

/// Takes what pods used that are gone out of the reports, as koordlet does with its next ones.
pub(crate) fn report_anew(objects: &mut Objects) {
    let reports: Vec<Value> = objects.of_kind("NodeMetric").cloned().collect();
    for mut report in reports {
        let is_gone = |pod: &Value| {
            let key = format!("{}/{}", text(&pod["namespace"]), text(&pod["name"]));
            !objects.pods.contains_key(&key)
        };
        let (gone, rest): (Vec<Value>, Vec<Value>) =
            crate::objects::list(&report["status"]["podsMetric"]).iter().cloned().partition(is_gone);
        report["status"]["podsMetric"] = rest.into();
        for pod in gone {
            lower(&mut report, &pod["podUsage"]["resources"]);
        }
        objects.put(report);
    }
}

/// Takes amounts from all that a report says of its node.
fn lower(report: &mut Value, by: &Value) {
    let metric = &mut report["status"]["nodeMetric"];
    for (resource, amount) in by.as_object().into_iter().flatten() {
        take(&mut metric["nodeUsage"]["resources"], resource, crate::model::amount(resource, amount));
        for period in metric["aggregatedNodeUsages"].as_array_mut().into_iter().flatten() {
            for (_, usage) in period["usage"].as_object_mut().into_iter().flatten() {
                take(&mut usage["resources"], resource, crate::model::amount(resource, amount));
            }
        }
    }
}

/// Takes an amount from a reported usage, which does not fall below nothing.
fn take(resources: &mut Value, resource: &str, amount: i64) {
    let known = crate::model::amount(resource, &resources[resource]);
    let unit = if resource == "cpu" { "m" } else { "" };
    resources[resource] = format!("{}{unit}", (known - amount).max(0)).into();
}
