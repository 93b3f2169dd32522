//! LoadAwareScheduling against a naive model: random NodeMetrics, pods, arguments and times.
//!
//! The model computes every sum from the manifests each time it is asked, in exact fractions, as the reference has it.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::loadaware::{Case, NAMES, START};

const RESOURCES: [&str; 2] = ["cpu", "memory"];
/// Allocatable CPU in thousandths, and memory in MiB.
const ALLOCATABLE: [i64; 2] = [8_000, 16_384];

type Amounts = [i64; 2];

/// A pod of a history. Amounts are requests, 0 for none; limits equal requests or are absent.
#[derive(Clone, Debug)]
struct ModelPod {
    name: String,
    requests: Amounts,
    is_limited: bool,
    /// 0 prod, 1 mid, 2 batch, 3 free.
    class: usize,
    /// When it was initialized, in seconds since 1970.
    initialized: Option<i64>,
}

/// A NodeMetric of a history.
#[derive(Clone, Debug)]
struct ModelMetric {
    updated: i64,
    interval: i64,
    usage: Amounts,
    system: Amounts,
    p95: Option<Amounts>,
    /// Usage by pod, and whether it is reported as prod.
    pods: BTreeMap<String, (Amounts, bool)>,
}

#[derive(Clone, Debug)]
enum Op {
    Report {
        node: usize,
        age: i64,
        interval: i64,
        usage: Amounts,
        system: Amounts,
        p95: Option<Amounts>,
        share: i64,
    },
    Forget {
        node: usize,
    },
    Place {
        node: usize,
        requests: Amounts,
        is_limited: bool,
        class: usize,
        /// Seconds since its initialization.
        initialized: Option<i64>,
    },
    Remove {
        at: usize,
    },
    Wait {
        seconds: i64,
    },
}

fn amounts() -> impl Strategy<Value = Amounts> {
    (0..9_000i64, 0..17_000i64).prop_map(|(cpu, memory)| [cpu, memory])
}

fn requests() -> impl Strategy<Value = Amounts> {
    (prop_oneof![Just(0i64), 1..4_000i64], prop_oneof![Just(0i64), 1..8_000i64]).prop_map(|(c, m)| [c, m])
}

fn op() -> impl Strategy<Value = Op> {
    let report = (0..NAMES.len(), 0..100i64, 10..90i64, amounts(), amounts(), option::of(amounts()), 0..3i64);
    prop_oneof![
        4 => report.prop_map(|(node, age, interval, usage, system, p95, share)| {
            Op::Report { node, age, interval, usage, system, p95, share }
        }),
        1 => (0..NAMES.len()).prop_map(|node| Op::Forget { node }),
        5 => (0..NAMES.len(), requests(), any::<bool>(), 0..4usize, option::of(0..60i64)).prop_map(
            |(node, requests, is_limited, class, initialized)| {
                Op::Place { node, requests, is_limited, class, initialized }
            },
        ),
        2 => (0..20usize).prop_map(|at| Op::Remove { at }),
        3 => prop_oneof![1..20i64, 100..200i64].prop_map(|seconds| Op::Wait { seconds }),
    ]
}

fn args() -> impl Strategy<Value = Value> {
    let thresholds =
        || (20..100i64, 20..100i64).prop_map(|(cpu, memory)| json!({"cpu": cpu, "memory": memory}));
    let thresholds = || prop_oneof![9 => thresholds(), 1 => Just(json!({"cpu": 0, "memory": 0}))];
    let seconds = || option::of(5..120i64);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), 0..3i64);
    (thresholds(), option::of(thresholds()), option::of(thresholds()), (seconds(), seconds()), switches)
        .prop_map(
            |(
                plain,
                prod,
                aggregated,
                (window, initialized),
                (system, by_prod, filters, schedules, dominant),
            )| {
                let mut args = json!({
                    "usageThresholds": plain,
                    "prodUsageIncludeSys": system,
                    "scoreAccordingProdUsage": by_prod,
                    "filterExpiredNodeMetrics": filters,
                    "enableScheduleWhenNodeMetricsExpired": schedules,
                    "dominantResourceWeight": dominant,
                    "resourceWeights": {"cpu": 2, "memory": 1},
                });
                if let Some(prod) = prod {
                    args["prodUsageThresholds"] = prod;
                }
                if let Some(percents) = aggregated {
                    args["aggregated"] = json!({"usageThresholds": percents, "usageAggregationType": "p95"});
                }
                if let Some(window) = window {
                    args["estimatedSecondsAfterPodScheduled"] = json!(window);
                }
                if let Some(initialized) = initialized {
                    args["estimatedSecondsAfterInitialized"] = json!(initialized);
                }
                args
            },
        )
}

/// A node in the model.
#[derive(Clone, Debug, Default)]
struct ModelNode {
    metric: Option<ModelMetric>,
    /// Pods with the second of their assignment.
    pods: Vec<(ModelPod, i64)>,
}

struct Model<'a> {
    args: &'a Value,
    now: i64,
}

/// Multiplies memory in MiB to bytes.
fn unit(i: usize) -> i64 {
    if i == 0 { 1 } else { 1 << 20 }
}

impl Model<'_> {
    fn estimate(&self, pod: &ModelPod) -> Amounts {
        std::array::from_fn(|i| {
            let base = pod.requests[i] * unit(i);
            match (pod.class, base) {
                (3, _) | (1, 0) => 0,
                (_, 0) => [250, 200 << 20][i],
                // Requested under the name of their class; never above the limit, which equals the request.
                _ => (base * [85, 70][i] + 50) / 100,
            }
        })
    }

    /// Returns usage of prod pods, what estimates add to the node's and to theirs, and all estimates.
    fn sums(&self, node: &ModelNode) -> [Amounts; 4] {
        let mut sums = [[0; 2]; 4];
        let metric = node.metric.as_ref();
        if let Some(metric) = metric.filter(|_| self.args["prodUsageIncludeSys"] == json!(true)) {
            (0..2).for_each(|i| sums[0][i] += metric.system[i] * unit(i));
        }
        for (pod, since) in &node.pods {
            let estimate = self.estimate(pod);
            let reported = metric.and_then(|m| m.pods.get(&pod.name));
            let after = |seconds: &str, from: i64| Some(from + self.args[seconds].as_i64()?);
            let ends = pod.initialized.and_then(|at| after("estimatedSecondsAfterInitialized", at));
            let ends = ends.or_else(|| after("estimatedSecondsAfterPodScheduled", *since));
            let counts = metric.is_none_or(|m| *since > m.updated - m.interval)
                || reported.is_none()
                || metric.zip(ends).is_some_and(|(m, ends)| ends > m.updated);
            let is_reported_prod = pod.class == 0 && reported.is_some_and(|(_, prod)| *prod);
            for i in 0..2 {
                let used = reported.map_or(0, |(usage, _)| usage[i] * unit(i));
                let beyond = (estimate[i] - used).max(0);
                sums[3][i] += estimate[i];
                sums[1][i] += if counts { beyond } else { 0 };
                sums[0][i] += if is_reported_prod { used } else { 0 };
                sums[2][i] += match (pod.class == 0, is_reported_prod) {
                    (true, true) if counts => beyond,
                    (true, false) => estimate[i],
                    _ => 0,
                };
            }
        }
        sums
    }

    fn is_expired(&self, metric: &ModelMetric) -> bool {
        self.now - metric.updated >= 180
    }

    /// Returns the resources that refuse the node, `*` when its NodeMetric is expired.
    fn refused(&self, node: &ModelNode, pod: &ModelPod) -> Vec<&'static str> {
        let Some(metric) = &node.metric else { return Vec::new() };
        let is_set = |percents: &Value| RESOURCES.iter().any(|resource| percents[resource] != json!(0));
        let prod = Some(&self.args["prodUsageThresholds"]).filter(|percents| percents.is_object());
        let prod = prod.filter(|percents| pod.class == 0 && is_set(percents));
        let aggregated = self.args["aggregated"].get("usageThresholds");
        let thresholds = prod.or(aggregated).unwrap_or(&self.args["usageThresholds"]);
        if !is_set(thresholds) {
            return Vec::new();
        }
        if self.is_expired(metric) && self.args["filterExpiredNodeMetrics"] == json!(true) {
            let schedules = self.args["enableScheduleWhenNodeMetricsExpired"] == json!(true);
            return if schedules { Vec::new() } else { vec!["*"] };
        }
        let [prod_usage, node_delta, prod_delta, _] = self.sums(node);
        let estimate = self.estimate(pod);
        let usage = aggregated.and(metric.p95).unwrap_or(metric.usage);
        let base: Amounts = std::array::from_fn(|i| match prod {
            Some(_) => prod_usage[i] + prod_delta[i],
            None => usage[i] * unit(i) + node_delta[i],
        });
        let limit = |i: usize| thresholds[RESOURCES[i]].as_i64().expect("a threshold");
        let exceeds = |i: &usize| {
            let (used, all) = (base[*i] + estimate[*i], ALLOCATABLE[*i] * unit(*i));
            // Percent, rounded half up.
            let percent = (i128::from(used) * 200 + i128::from(all)) / (2 * i128::from(all));
            limit(*i) > 0 && percent > i128::from(limit(*i))
        };
        (0..2).filter(exceeds).map(|i| RESOURCES[i]).collect()
    }

    fn score(&self, node: &ModelNode, pod: &ModelPod) -> i64 {
        let Some(metric) = node.metric.as_ref().filter(|m| !self.is_expired(m)) else { return 0 };
        let [prod_usage, node_delta, prod_delta, _] = self.sums(node);
        let estimate = self.estimate(pod);
        let by_prod = pod.class == 0 && self.args["scoreAccordingProdUsage"] == json!(true);
        let each: Amounts = std::array::from_fn(|i| {
            let base = match by_prod {
                true => prod_usage[i] + prod_delta[i],
                false => metric.usage[i] * unit(i) + node_delta[i],
            };
            let (used, all) = (base + estimate[i], ALLOCATABLE[i] * unit(i));
            if used > all { 0 } else { ((i128::from(all - used) * 100) / i128::from(all)) as i64 }
        });
        let dominant = self.args["dominantResourceWeight"].as_i64().expect("a weight");
        (2 * each[0] + each[1] + dominant * each[0].min(each[1])) / (3 + dominant)
    }
}

fn pod_manifest(pod: &ModelPod) -> Value {
    let class = ["koord-prod", "koord-mid", "koord-batch", "koord-free"][pod.class];
    let prefix = ["", "kubernetes.io/mid-", "kubernetes.io/batch-", ""][pod.class];
    let mut requests = json!({});
    for (i, resource) in RESOURCES.iter().enumerate().filter(|(i, _)| pod.requests[*i] > 0) {
        let amount = match (i, pod.class) {
            (0, 0 | 3) => format!("{}m", pod.requests[0]),
            (0, _) => pod.requests[0].to_string(),
            _ => format!("{}Mi", pod.requests[1]),
        };
        requests[format!("{prefix}{resource}")] = json!(amount);
    }
    let mut resources = json!({"requests": requests});
    if pod.is_limited {
        resources["limits"] = requests;
    }
    let initialized = pod
        .initialized
        .map(|at| json!({"type": "Initialized", "status": "True", "lastTransitionTime": moment(at)}));
    json!({
        "metadata": {"name": pod.name, "namespace": "default", "labels": {"koordinator.sh/priority-class": class}},
        "spec": {"schedulerName": "koord-scheduler", "containers": [{"name": "c", "resources": resources}]},
        "status": {"conditions": initialized.into_iter().collect::<Value>()},
    })
}

fn moment(second: i64) -> String {
    jiff::Timestamp::from_second(second).expect("a time").to_string()
}

fn usage_manifest(usage: &Amounts) -> Value {
    json!({"resources": {"cpu": format!("{}m", usage[0]), "memory": format!("{}Mi", usage[1])}})
}

fn metric_manifest(name: &str, metric: &ModelMetric) -> Value {
    let pods = metric.pods.iter().map(|(name, (usage, is_prod))| {
        let priority = if *is_prod { "koord-prod" } else { "koord-batch" };
        json!({"namespace": "default", "name": name, "podUsage": usage_manifest(usage), "priority": priority})
    });
    let mut node = json!({
        "nodeUsage": usage_manifest(&metric.usage),
        "systemUsage": usage_manifest(&metric.system),
    });
    if let Some(p95) = &metric.p95 {
        node["aggregatedNodeUsages"] = json!([{"duration": "5m0s", "usage": {"p95": usage_manifest(p95)}}]);
    }
    json!({
        "metadata": {"name": name},
        "spec": {"metricCollectPolicy": {"reportIntervalSeconds": metric.interval}},
        "status": {
            "updateTime": moment(metric.updated),
            "nodeMetric": node,
            "podsMetric": pods.collect::<Value>(),
        },
    })
}

/// Runs one operation on the scheduler and in the model.
fn run(op: Op, number: usize, case: &mut Case, nodes: &mut [ModelNode], now: &mut i64) {
    match op {
        Op::Report { node, age, interval, usage, system, p95, share } => {
            let reported = nodes[node].pods.iter().enumerate().filter(|(i, _)| *i as i64 % 3 != share);
            let pods = reported.map(|(i, (pod, _))| {
                let usage = [pod.requests[0] / (share + 1), pod.requests[1] / 2];
                (pod.name.clone(), (usage, pod.class == 0 && i % 2 == 0))
            });
            let pods = pods.collect();
            let metric = ModelMetric { updated: *now - age, interval, usage, system, p95, pods };
            case.report(&json!(NAMES[node]), metric_manifest(NAMES[node], &metric));
            nodes[node].metric = Some(metric);
        }
        Op::Forget { node } => {
            case.forget(NAMES[node]);
            nodes[node].metric = None;
        }
        Op::Place { node, requests, is_limited, class, initialized } => {
            let initialized = initialized.map(|seconds| *now - seconds);
            let pod = ModelPod { name: format!("p{number}"), requests, is_limited, class, initialized };
            let mut manifest = pod_manifest(&pod);
            manifest["spec"]["nodeName"] = json!(NAMES[node]);
            case.place(&manifest);
            nodes[node].pods.push((pod, *now));
        }
        Op::Remove { at } => {
            let all: Vec<(usize, usize)> = nodes
                .iter()
                .enumerate()
                .flat_map(|(n, node)| (0..node.pods.len()).map(move |p| (n, p)))
                .collect();
            if let Some((node, pod)) = all.get(at % all.len().max(1)) {
                let (pod, _) = nodes[*node].pods.remove(*pod);
                case.remove(&pod.name);
            }
        }
        Op::Wait { seconds } => {
            *now += seconds;
            case.wait(Duration::from_secs(seconds.unsigned_abs()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn histories_agree_with_a_naive_model(
        args in args(),
        ops in vec(op(), 1..40),
        asked in vec((requests(), any::<bool>(), 0..4usize), 4),
    ) {
        let mut case = Case::of(&args, &NAMES.map(node_manifest)).alone();
        let mut nodes = vec![ModelNode::default(); NAMES.len()];
        let mut now = START;
        for (number, op) in ops.into_iter().enumerate() {
            run(op, number, &mut case, &mut nodes, &mut now);
            let (requests, is_limited, class) = asked[number % asked.len()];
            let pod = ModelPod { name: "asked".to_owned(), requests, is_limited, class, initialized: None };
            let model = Model { args: &args, now };
            let got = case.judge(&pod_manifest(&pod));
            for (name, node) in NAMES.iter().zip(&nodes) {
                let (refused, score) = &got[*name];
                // The message names the first resource alone.
                let first: Vec<&str> = model.refused(node, &pod).into_iter().take(1).collect();
                prop_assert_eq!(refused, &first, "{}: {:?} {:?}", name, pod, node);
                if let Some(score) = score {
                    prop_assert_eq!(*score, model.score(node, &pod), "{}: {:?} {:?}", name, pod, node);
                }
            }
        }
    }
}

fn node_manifest(name: &str) -> Value {
    let (cpu, memory) = (format!("{}m", ALLOCATABLE[0]), format!("{}Mi", ALLOCATABLE[1]));
    let amounts = json!({"cpu": cpu, "memory": memory, "pods": "110"});
    json!({"metadata": {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}})
}
