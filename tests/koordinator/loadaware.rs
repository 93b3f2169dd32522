//! LoadAwareScheduling: which nodes pass, what they score, and what the endpoint says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::cycle::NodeResultCache;
use pellucid::cycle::attempt::node_result_cache::CycleContext;
use pellucid::cycle::scheduler::PluginTally;
use pellucid::framework::endpoint::{PathParams, ReadContext};
use pellucid::framework::list::List;
use pellucid::framework::profile::Profile;
use pellucid::framework::{Cause, Reason, View};
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::{CustomKindRef, Name, NodeIdx, Pod, PodKey, quantity};
use pellucid::plugins::load_aware_scheduling::{NAME, NODE_METRIC};
use pellucid::plugins::registry;
use serde_json::{Value, json};

use crate::common::driver::{Core, settings};
use crate::{lines, own_copy};

/// Number of cases of this repository.
const ALL: usize = 88;
/// When the cases start, in seconds since 1970.
pub(crate) const START: i64 = 1_800_000_000;
/// The nodes of random histories.
pub(crate) const NAMES: [&str; 3] = ["n0", "n1", "n2"];

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Replaces `@-N` by the time N seconds before the start.
fn dated(mut value: Value) -> Value {
    match &mut value {
        Value::String(text) => {
            if let Some(ago) = text.strip_prefix("@-").and_then(|ago| ago.parse::<i64>().ok()) {
                let at = jiff::Timestamp::from_second(START - ago).expect("a time");
                return json!(at.to_string());
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|v| *v = dated(v.take())),
        Value::Object(all) => all.values_mut().for_each(|v| *v = dated(v.take())),
        _ => {}
    }
    value
}

/// Fills in what the API server does.
fn admitted(pod: &Value) -> Value {
    let mut pod = dated(pod.clone());
    let priority = match pod["spec"]["priorityClassName"].as_str() {
        Some("koord-prod") => 9000,
        Some("koord-mid") => 7000,
        Some("koord-batch") => 5000,
        Some("koord-free") => 3000,
        _ => 0,
    };
    if pod["spec"]["priority"].is_null() && priority > 0 {
        pod["spec"]["priority"] = json!(priority);
    }
    pod["metadata"]["uid"] = json!(format!("{}-uid", pod["metadata"]["name"]));
    pod
}

fn profile(args: &Value) -> Profile {
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": "koord-scheduler",
            "plugins": {"multiPoint": {"enabled": [{"name": NAME}]}},
            "pluginConfig": [{"name": NAME, "args": args}],
        }],
    });
    let mut parsed =
        pellucid::config::parse(&config.to_string(), "case", &registry()).expect("valid arguments");
    parsed.profiles.remove(0)
}

pub(crate) struct Case {
    id: String,
    pub(crate) core: Core,
    profile: Profile,
    decoder: Decoder,
    metrics: BTreeMap<String, Value>,
}

impl Case {
    fn new(case: &Value) -> Self {
        let nodes: Vec<Value> = array(&case["objects"]["nodes"]).iter().cloned().map(dated).collect();
        let mut made = Self::of(&case["args"], &nodes);
        made.id = case["id"].as_str().expect("an id").to_owned();
        for pod in array(&case["objects"]["pods"]) {
            made.place(pod);
        }
        for metric in array(&case["objects"]["nodeMetrics"]) {
            made.report(&metric["metadata"]["name"], metric.clone());
        }
        made
    }

    /// Makes a scheduler with these arguments and nodes.
    pub(crate) fn of(args: &Value, nodes: &[Value]) -> Self {
        let profile = profile(args);
        let mut core = Core::new(settings(profile.clone()));
        core.wait(Duration::from_secs(START.unsigned_abs()));
        let decoder = Decoder::of(&registry());
        for node in nodes {
            let node = decoder.node(node).expect("a node that can be read");
            core.apply(Input::NodeApplied(Arc::new(node)));
        }
        Self { id: String::new(), core, profile, decoder, metrics: BTreeMap::new() }
    }

    /// Leaves only this plugin's filter.
    pub(crate) fn alone(mut self) -> Self {
        self.profile.filter.retain(|e| e.plugin.name() == NAME);
        self.profile.pre_filter.retain(|e| e.plugin.name() == NAME);
        self
    }

    pub(crate) fn forget(&mut self, name: &str) {
        let key = (Name::default(), name.into());
        self.core.apply(Input::CustomDeleted(CustomKindRef(&NODE_METRIC), key));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.core.apply(Input::PodDeleted(PodKey::new("default", name)));
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.core.wait(time);
    }

    /// Returns per node which resources refuse a pod, `*` for an expired NodeMetric, and its score on feasible nodes.
    pub(crate) fn judge(&mut self, pod: &Value) -> BTreeMap<String, (Vec<&'static str>, Option<i64>)> {
        let pod = self.waiting(pod);
        let plugin = self.profile.score.iter().position(|e| e.plugin.name() == NAME).expect("it scores");
        let view = View::new(self.core.scheduler.cluster());
        let refused = |cause: Option<&Cause>| match cause {
            None => Vec::new(),
            Some(cause) if cause.plugin != NAME => panic!("{cause:?}"),
            Some(cause) => {
                let word = |reason: &Reason| match reason.subject.as_deref() {
                    None => "*",
                    Some("cpu") => "cpu",
                    Some(_) => "memory",
                };
                cause.reasons.iter().map(word).collect()
            }
        };
        let judged = self.with_results(&pod, |results, ctx, tally| {
            let feasible: Vec<NodeIdx> = results.feasible().collect();
            let mut all = BTreeMap::new();
            for node in view.nodes() {
                all.insert(view.name(*node).to_string(), (refused(results.cause(*node)), None));
            }
            for scored in results.top_of(ctx, &feasible, usize::MAX, tally) {
                let weighted = scored.shares[plugin].map_or(0, |(_, _, weighted)| weighted);
                all.get_mut(view.name(scored.node).as_str()).expect("a node").1 = Some(weighted);
            }
            all
        });
        self.core.apply(Input::PodDeleted(pod.key));
        judged
    }

    /// Lets a pod wait, and returns it as the state has it.
    fn waiting(&mut self, pod: &Value) -> Pod {
        let pod = self.pod(pod);
        self.core.apply(Input::PodApplied(Arc::new(pod.clone())));
        let known = self.core.scheduler.cluster();
        let record = known.find_pod(&pod.key).and_then(|id| known.pod(id)).expect("the pod waits");
        Pod { spec: record.pod.spec.clone(), ..pod }
    }

    fn pod(&self, pod: &Value) -> Pod {
        self.decoder.pod(&admitted(pod)).expect("a pod that can be read")
    }

    pub(crate) fn place(&mut self, pod: &Value) {
        let pod = self.pod(pod);
        self.core.apply(Input::PodApplied(Arc::new(pod)));
    }

    pub(crate) fn report(&mut self, name: &Value, metric: Value) {
        let object = self.decoder.custom(CustomKindRef(&NODE_METRIC), &dated(metric.clone()));
        self.core.apply(Input::CustomApplied(Arc::new(object.expect("a NodeMetric that can be read"))));
        self.metrics.insert(name.as_str().expect("a name").to_owned(), metric);
    }

    fn report_status(&mut self, step: &Value) {
        let name = &step["name"];
        let mut metric = self.metrics[name.as_str().expect("a name")].clone();
        metric["status"] = step["status"].clone();
        self.report(name, metric);
    }

    fn node(&self, name: &str) -> NodeIdx {
        self.core.scheduler.cluster().find_node(&name.into()).expect("a node of the case")
    }

    fn with_results<T>(
        &self,
        pod: &Pod,
        ask: impl FnOnce(&mut NodeResultCache, &CycleContext<'_>, &mut [PluginTally]) -> T,
    ) -> T {
        let view = View::new(self.core.scheduler.cluster());
        let ctx = CycleContext::new(&self.profile, view, &pod.spec);
        let mut tally = vec![PluginTally::default(); self.profile.plugins.len()];
        let mut results = NodeResultCache::default();
        results.run_filters(&ctx, true, &mut tally);
        results.run_global_filters(&ctx, &mut tally);
        ask(&mut results, &ctx, &mut tally)
    }

    /// Compares which nodes pass. Returns the number of nodes.
    fn check_filter(&self, pod: &Pod, step: &Value) -> usize {
        let view = View::new(self.core.scheduler.cluster());
        self.with_results(pod, |results, _, _| {
            for node in view.nodes() {
                let name = view.name(*node).as_str();
                let (ours, theirs) = (results.cause(*node), step["refused"].get(name));
                let at = format!("{}: {} on {name}", self.id, pod.key);
                match theirs.map(|t| (t["plugin"].as_str().unwrap_or(""), t["reason"].as_str().unwrap_or("")))
                {
                    None => assert!(ours.is_none(), "{at}: {ours:?}"),
                    Some((NAME, reason)) => {
                        let ours = ours.unwrap_or_else(|| panic!("{at}: feasible instead of {reason}"));
                        assert_eq!(ours.plugin, NAME, "{at}");
                        assert_eq!(ours.message(), reason, "{at}");
                    }
                    Some((plugin, _)) => {
                        assert_eq!(ours.map(|cause| cause.plugin), Some(plugin), "{at}");
                    }
                }
            }
        });
        view.nodes().len()
    }

    /// Compares the scores of the recorded feasible nodes. Returns how many were compared.
    fn check_scores(&self, pod: &Pod, step: &Value) -> usize {
        let Some(recorded) = step["scores"].as_object() else { return 0 };
        let nodes: Vec<NodeIdx> = recorded.keys().map(|name| self.node(name)).collect();
        let ours =
            self.with_results(pod, |results, ctx, tally| results.top_of(ctx, &nodes, usize::MAX, tally));
        let plugin = self.profile.score.iter().position(|e| e.plugin.name() == NAME).expect("it scores");
        for scored in &ours {
            let name = self.core.scheduler.cluster().node_name(scored.node).to_string();
            let weighted = scored.shares[plugin].map_or(0, |(_, _, weighted)| weighted);
            assert_eq!(json!(weighted), recorded[&name][NAME], "{}: {} on {name}", self.id, pod.key);
        }
        ours.len()
    }

    /// Compares the answers of the endpoint. Returns how many were compared.
    fn check_endpoint(&self, result: &Value) -> usize {
        let registry = registry();
        let factory = registry.iter().find(|f| f.name() == NAME).expect("it is registered");
        let endpoint = factory.endpoints().into_iter().find(|e| e.path == "node/:nodeName");
        let endpoint = endpoint.expect("it is registered");
        let results = result.as_object().expect("answers by node");
        for (node, theirs) in results {
            let params = PathParams::from([("nodeName".to_owned(), node.clone())]);
            let view = View::new(self.core.scheduler.cluster());
            let cx = ReadContext { view, params: &params, now: self.core.now, list: &List::default() };
            let ours = (endpoint.read)(&cx).expect("an answer");
            // Koordinator's handler panics for a node without NodeMetric.
            if theirs["panic"] == json!(true) {
                assert!(!array(&ours["pods"]).is_empty(), "{}: {node}", self.id);
                continue;
            }
            self.check_answer(node, &ours, theirs);
        }
        results.len()
    }

    fn check_answer(&self, node: &str, ours: &Value, theirs: &Value) {
        let at = format!("{}: {node}", self.id);
        let names: BTreeSet<&str> =
            array(&ours["pods"]).iter().filter_map(|p| p["pod"]["metadata"]["name"].as_str()).collect();
        let want: BTreeSet<&str> = array(&theirs["pods"]).iter().filter_map(Value::as_str).collect();
        assert_eq!(names, want, "{at}");
        for field in ["nodeDeltaPods", "prodDeltaPods", "nodeEstimatedPods"] {
            // Their sums are absent without a NodeMetric.
            if theirs.get("nodeDelta").is_some() {
                assert_eq!(array(&ours[field]), array(&theirs[field]), "{at}: {field}");
            }
        }
        for field in ["prodUsage", "nodeDelta", "prodDelta", "nodeEstimated"] {
            for (resource, amount) in theirs[field].as_object().into_iter().flatten() {
                let parse = |value: &Value| {
                    let text = value.as_str().unwrap_or("");
                    if resource == "cpu" { quantity::milli(text) } else { quantity::units(text) }
                };
                assert_eq!(parse(&ours[field][resource]), parse(amount), "{at}: {field} {resource}");
            }
        }
    }
}

#[test]
fn load_aware_scheduling_agrees_with_koordinator() {
    let cases = lines("loadaware.jsonl");
    let (mut judged, mut scored, mut answers) = (0, 0, 0);
    for recorded in &cases {
        let mut case = Case::new(recorded);
        for step in array(&recorded["steps"]) {
            if step.get("metric").is_some() {
                case.report_status(&step["metric"]);
                continue;
            }
            let pod = case.waiting(&step["pod"]);
            judged += case.check_filter(&pod, step);
            scored += case.check_scores(&pod, step);
            case.core.apply(Input::PodDeleted(pod.key));
            if let Some(node) = step["node"].as_str() {
                let mut placed = step["pod"].clone();
                placed["spec"]["nodeName"] = json!(node);
                case.place(&placed);
            }
        }
        answers += case.check_endpoint(&recorded["result"]);
    }
    println!("{} cases: {judged} nodes judged, {scored} scored, {answers} answers agree", cases.len());
    if own_copy() {
        assert!(cases.len() >= ALL, "{} cases", cases.len());
        assert!(judged > 900 && scored > 400 && answers > 300, "{judged} {scored} {answers}");
    }
}
