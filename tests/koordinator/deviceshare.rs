//! DeviceShare: which cards a pod gets, how much of them, what refuses it, what nodes score, and what the endpoint says.
//!
//! After each step the scheduler is told what Koordinator decided, so a difference has no consequences.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::cluster::marks_of;
use pellucid::cycle::NodeResultCache;
use pellucid::cycle::attempt::node_result_cache::CycleContext;
use pellucid::cycle::attempt::reserve::place_nominee;
use pellucid::cycle::scheduler::PluginTally;
use pellucid::framework::View;
use pellucid::framework::endpoint::{PathParams, ReadContext};
use pellucid::framework::list::List;
use pellucid::framework::profile::Profile;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::{CustomKindRef, NodeIdx, Pod, PodKey, quantity};
use pellucid::plugins::device_share::{DEVICE, NAME};
use pellucid::plugins::registry;
use pellucid::recording::Outcome;
use serde_json::{Value, json};

use crate::common::driver::{Core, settings};
use crate::{lines, own_copy};

mod differences;
mod rules;

/// Number of cases of this repository.
const ALL: usize = 100;
/// Annotation with what a pod has.
const ALLOCATED: &str = "scheduling.koordinator.sh/device-allocated";

/// The pods of this repository's cases about which Koordinator decides by one of the [`rules`] that we do not follow.
const DIFFERENT: [&str; 3] = ["d11x20-p5", "d11x41-p2", "d12x39-p2"];

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
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

/// Resources by name, in whole units, without zeros: Koordinator goes on to name what was used once.
type Amounts = BTreeMap<String, i64>;

fn amounts(list: &Value) -> Amounts {
    let all = list.as_object().into_iter().flatten();
    let all = all.map(|(name, amount)| (name.clone(), quantity::units(text(amount)).expect("a quantity")));
    all.filter(|(_, amount)| *amount != 0).collect()
}

/// One device of an allocation: minor, amounts, id, and bus addresses of virtual functions.
type Given = (i64, Amounts, String, Vec<String>);

/// Reads an allocation, by type.
fn allocation(value: &Value) -> BTreeMap<String, Vec<Given>> {
    let mut all = BTreeMap::new();
    for (kind, list) in value.as_object().into_iter().flatten() {
        let given = |entry: &Value| {
            let functions = array(&entry["extension"]["vfs"]).iter().map(|f| text(&f["busID"]).to_owned());
            let minor = entry["minor"].as_i64().unwrap_or(0);
            (minor, amounts(&entry["resources"]), text(&entry["id"]).to_owned(), functions.collect())
        };
        let mut given: Vec<Given> = array(list).iter().map(given).collect();
        given.sort();
        if !given.is_empty() {
            all.insert(kind.clone(), given);
        }
    }
    all
}

/// Returns the comparable part of a message: without what preemption says, and with sorted names in brackets.
fn comparable(message: &str) -> String {
    let message = message.split(". preemption:").next().unwrap_or_default().trim_end_matches('.');
    let Some((start, rest)) = message.split_once('[') else { return message.to_owned() };
    let Some((inner, end)) = rest.split_once(']') else { return message.to_owned() };
    let mut names: Vec<&str> = inner.split_whitespace().collect();
    names.sort_unstable();
    format!("{start}[{}]{end}", names.join(" "))
}

/// Counts of what was compared.
#[derive(Default)]
struct Compared {
    placed: usize,
    refused: usize,
    scored: usize,
    /// Pods for which the best of several nodes was compared.
    won: usize,
    answers: usize,
    different: BTreeSet<String>,
}

struct Case {
    id: String,
    args: Value,
    /// Priorities by PriorityClass.
    priorities: BTreeMap<String, i64>,
    core: Core,
    profile: Profile,
    decoder: Decoder,
    /// The objects of the API server, by kind and name.
    objects: BTreeMap<(&'static str, String), Value>,
}

impl Case {
    fn new(case: &Value) -> Self {
        let profile = profile(&case["args"]);
        let core = Core::new(settings(profile.clone()));
        let decoder = Decoder::of(&registry());
        let id = text(&case["id"]).to_owned();
        let (args, priorities) = (case["args"].clone(), BTreeMap::new());
        let mut made = Self { id, args, priorities, core, profile, decoder, objects: BTreeMap::new() };
        array(&case["objects"]).iter().for_each(|object| made.apply(object));
        made
    }

    fn apply(&mut self, object: &Value) {
        let mut object = object.clone();
        let name = text(&object["metadata"]["name"]).to_owned();
        let version = format!("{}", self.objects.len() + 1);
        object["metadata"]["uid"] = json!(format!("{name}-uid"));
        let (kind, input) = match text(&object["kind"]) {
            "Node" => ("Node", Input::NodeApplied(Arc::new(self.decoder.node(&object).expect("readable")))),
            "Device" => {
                // Each replacement is another version.
                let before = self.objects.get(&("Device", name.clone()));
                let before = before.map_or("", |device| text(&device["metadata"]["resourceVersion"]));
                object["metadata"]["resourceVersion"] = json!(format!("{before}{version}"));
                let read = self.decoder.custom(CustomKindRef(&DEVICE), &object).expect("readable");
                ("Device", Input::CustomApplied(Arc::new(read)))
            }
            "Pod" => {
                object = self.admitted(&object);
                ("Pod", Input::PodApplied(Arc::new(self.decoder.pod(&object).expect("readable"))))
            }
            // The API server reads them, and no scheduler.
            "PriorityClass" => {
                self.priorities.insert(name, object["value"].as_i64().unwrap_or(0));
                return;
            }
            other => panic!("{}: objects of kind {other} are not known", self.id),
        };
        self.objects.insert((kind, name), object);
        self.core.apply(input);
    }

    /// Gives a pod the priority of its class, as the API server does.
    fn admitted(&self, pod: &Value) -> Value {
        let mut pod = pod.clone();
        let priority = self.priorities.get(text(&pod["spec"]["priorityClassName"]));
        if let Some(priority) = priority.filter(|_| pod["spec"]["priority"].is_null()) {
            pod["spec"]["priority"] = json!(priority);
        }
        pod
    }

    fn delete(&mut self, name: &str) {
        self.objects.remove(&("Pod", name.to_owned())).expect("a pod of the case");
        self.core.apply(Input::PodDeleted(PodKey::new("default", name)));
    }

    /// Starts the scheduler again: it knows what the objects say.
    fn restart(&mut self) {
        let before = self.summaries();
        self.core = Core::new(settings(self.profile.clone()));
        for ((kind, _), object) in std::mem::take(&mut self.objects) {
            // Pods come before the Nodes and Devices that they need.
            assert!(["Device", "Node", "Pod"].contains(&kind));
            self.apply(&object);
        }
        assert_eq!(self.summaries(), before, "{}: after a restart", self.id);
    }

    fn node(&self, name: &str) -> NodeIdx {
        self.core.scheduler.cluster().find_node(&name.into()).expect("a node of the case")
    }

    /// Lets a pod wait, and returns it as the state has it.
    fn waiting(&mut self, pod: &Value) -> Pod {
        let pod = self.decoder.pod(&self.admitted(pod)).expect("readable");
        self.core.apply(Input::PodApplied(Arc::new(pod.clone())));
        let known = self.core.scheduler.cluster();
        let record = known.find_pod(&pod.key).and_then(|id| known.pod(id)).expect("the pod waits");
        Pod { spec: record.pod.spec.clone(), ..pod }
    }

    /// Returns the message with which a pod is refused, or the node that it gets.
    fn refusal(&mut self) -> Result<String, String> {
        self.core.wait(Duration::from_secs(1));
        let step = self.core.step().expect("a pod waits");
        match &step.verdict.outcome {
            Outcome::Refused(refusal) => Ok(refusal.message().to_string()),
            _ => Err(format!("{:?}", step.verdict.placement())),
        }
    }

    /// Returns the weighted scores of each node that is feasible, by plugin.
    fn scores(&self, pod: &Pod) -> BTreeMap<String, BTreeMap<&'static str, i64>> {
        let view = View::new(self.core.scheduler.cluster());
        let ctx = CycleContext::new(&self.profile, view, &pod.spec);
        let mut tally = vec![PluginTally::default(); self.profile.plugins.len()];
        let mut results = NodeResultCache::default();
        results.run_filters(&ctx, true, &mut tally);
        results.run_global_filters(&ctx, &mut tally);
        let feasible: Vec<NodeIdx> = results.feasible().collect();
        let all = results.top_of(&ctx, &feasible, usize::MAX, &mut tally).into_iter();
        all.map(|scored| {
            let shares = self.profile.score.iter().zip(&scored.shares);
            let weighted = shares
                .map(|(entry, share)| (entry.plugin.name(), share.map_or(0, |(_, _, weighted)| weighted)));
            (view.name(scored.node).to_string(), weighted.collect())
        })
        .collect()
    }

    /// Returns what each node lacks that this plugin refuses.
    fn lacks(&self, pod: &Pod) -> BTreeMap<String, String> {
        let view = View::new(self.core.scheduler.cluster());
        let ctx = CycleContext::new(&self.profile, view, &pod.spec);
        let mut tally = vec![PluginTally::default(); self.profile.plugins.len()];
        let mut results = NodeResultCache::default();
        results.run_filters(&ctx, true, &mut tally);
        let nodes = self.objects.keys().filter(|(kind, _)| *kind == "Node").map(|(_, name)| name);
        let lack = |name: &String| results.cause(self.node(name)).filter(|cause| cause.plugin == NAME);
        nodes.filter_map(|name| Some((name.clone(), lack(name)?.message()))).collect()
    }

    /// Returns what a pod would get on a node.
    fn trial(&self, pod: &Pod, node: NodeIdx) -> Value {
        let mut copy = self.core.scheduler.cluster().fork();
        let id = copy.find_pod(&pod.key).expect("the pod waits");
        let marks = copy.probe(|copy| {
            place_nominee(copy, &self.profile, id, node);
            copy.pod(id).and_then(|record| marks_of(&record.holds))
        });
        let marks = marks.and_then(|marks| marks.annotations.get(ALLOCATED).cloned());
        marks.map_or(Value::Null, |text| serde_json::from_str(&text).expect("it is JSON"))
    }

    fn check_pod(&mut self, step: &Value, compared: &mut Compared) {
        let result = &step["result"];
        if let Some(difference) = self.difference(&step["pod"], result, compared) {
            let name = text(&step["pod"]["metadata"]["name"]);
            compared.different.insert(name.to_owned());
            let sharing = rules::sharing(&step["pod"]);
            let is_known = match sharing {
                // Of what the pod does not share Koordinator knows nothing; then it may follow another rule of its own.
                Some(pod) => {
                    self.difference(&pod, result, &mut Compared::default()).is_none()
                        || self.is_by_their_rules(&pod, result)
                }
                None => self.is_by_their_rules(&step["pod"], result),
            };
            let annotations = &step["pod"]["metadata"]["annotations"];
            assert!(is_known, "{}: {name} ({annotations}): {difference}", self.id);
        }
        if let Some(node) = result["node"].as_str() {
            let mut placed = step["pod"].clone();
            placed["spec"]["nodeName"] = json!(node);
            if let Some(allocated) = result.get("device-allocated") {
                placed["metadata"]["annotations"][ALLOCATED] = json!(allocated.to_string());
            }
            self.apply(&placed);
        }
    }

    /// Lets a pod wait, and returns how what becomes of it differs from what is recorded.
    fn difference(&mut self, pod: &Value, result: &Value, compared: &mut Compared) -> Option<String> {
        let pod = self.waiting(pod);
        let difference = match result["message"].as_str() {
            Some(message) => {
                compared.refused += 1;
                let ours = self.refusal().map(|ours| comparable(&ours));
                (ours.as_ref() != Ok(&comparable(message))).then(|| format!("{ours:?} instead of {message}"))
            }
            None => self.check_placement(&pod, result, compared),
        };
        self.core.apply(Input::PodDeleted(pod.key));
        difference
    }

    fn check_placement(&self, pod: &Pod, result: &Value, compared: &mut Compared) -> Option<String> {
        compared.placed += 1;
        let node = text(&result["node"]);
        let scores = self.scores(pod);
        if !scores.contains_key(node) {
            return Some(format!("{node} is refused"));
        }
        let ours = allocation(&self.trial(pod, self.node(node)));
        let theirs = allocation(&result["device-allocated"]);
        if ours != theirs {
            return Some(format!("{ours:?} instead of {theirs:?}"));
        }
        let Some(recorded) = result["scores"].as_object() else {
            // Without scores the node was the only one.
            return (scores.len() > 1).then(|| format!("{:?} instead of {node} alone", scores.keys()));
        };
        compared.scored += recorded.len();
        let own: BTreeMap<&String, i64> = scores.iter().map(|(node, all)| (node, all[NAME])).collect();
        let theirs: BTreeMap<&String, i64> =
            recorded.iter().map(|(node, all)| (node, all[NAME].as_i64().unwrap_or(0))).collect();
        if own != theirs {
            return Some(format!("scores {own:?} instead of {theirs:?}"));
        }
        // The node that wins, with what Koordinator's other plugins say. No tie is recorded.
        let total = |(name, all): (&String, &BTreeMap<&str, i64>)| {
            let others = recorded[name].as_object().into_iter().flatten();
            let others = others.filter(|(plugin, _)| !all.contains_key(plugin.as_str()));
            all.values().sum::<i64>() + others.filter_map(|(_, score)| score.as_i64()).sum::<i64>()
        };
        let mut totals: Vec<(i64, &String)> =
            scores.iter().map(|all| (total((all.0, all.1)), all.0)).collect();
        totals.sort_unstable();
        compared.won += 1;
        let winner = totals.last().map(|(_, name)| name.as_str());
        (winner != Some(node))
            .then(|| format!("{totals:?}: {winner:?} instead of {node}: {}", result["scores"]))
    }

    fn summary(&self, node: &str) -> Value {
        let registry = registry();
        let factory = registry.iter().find(|f| f.name() == NAME).expect("it is registered");
        let endpoint = factory.endpoints().into_iter().find(|e| e.path == "nodeDeviceSummaries/:name");
        let params = PathParams::from([("name".to_owned(), node.to_owned())]);
        let view = View::new(self.core.scheduler.cluster());
        let cx = ReadContext { view, params: &params, now: self.core.now, list: &List::default() };
        (endpoint.expect("it is registered").read)(&cx).expect("an answer")
    }

    fn summaries(&self) -> BTreeMap<String, Value> {
        let nodes = self.objects.keys().filter(|(kind, _)| *kind == "Node");
        nodes.map(|(_, name)| (name.clone(), self.summary(name))).collect()
    }

    fn check_answers(&self, result: &Value, compared: &mut Compared) {
        for (node, theirs) in result.as_object().expect("answers by node") {
            compared.answers += 1;
            let (ours, at) = (self.summary(node), format!("{}: {node}", self.id));
            for field in ["deviceTotal", "deviceFree", "deviceUsed"] {
                assert_eq!(amounts(&ours[field]), amounts(&theirs[field]), "{at}: {field}");
            }
            for field in ["deviceTotalDetail", "deviceFreeDetail"] {
                assert_eq!(by_key(&ours[field], 2), by_key(&theirs[field], 2), "{at}: {field}");
            }
            let used = |summary: &Value| {
                let mut used = by_key(&summary["deviceUsedDetail"], 2);
                used.retain(|_, amounts| !amounts.is_empty());
                used
            };
            assert_eq!(used(&ours), used(theirs), "{at}: deviceUsedDetail");
            assert_eq!(by_key(&ours["allocateSet"], 3), by_key(&theirs["allocateSet"], 3), "{at}");
        }
    }
}

/// Returns the number of entries of an object.
fn entries(value: &Value) -> usize {
    value.as_object().map_or(0, |all| all.len())
}

/// Flattens nested maps of resource lists: amounts by path.
fn by_key(value: &Value, depth: usize) -> BTreeMap<String, Amounts> {
    let mut all = BTreeMap::new();
    for (key, inner) in value.as_object().into_iter().flatten() {
        if depth == 1 {
            all.insert(key.clone(), amounts(inner));
        } else {
            let below = by_key(inner, depth - 1).into_iter();
            all.extend(below.map(|(path, amounts)| (format!("{key} {path}"), amounts)));
        }
    }
    all
}

#[test]
fn device_share_agrees_with_koordinator() {
    let cases = lines("deviceshare.jsonl");
    let mut compared = Compared::default();
    for recorded in &cases {
        let mut case = Case::new(recorded);
        for step in array(&recorded["steps"]) {
            match text(&step["op"]) {
                "pod" => case.check_pod(step, &mut compared),
                "bound" => case.apply(&step["pod"]),
                "delete" => case.delete(text(&step["name"])),
                "replace" => case.apply(&step["object"]),
                "restart" => case.restart(),
                other => panic!("{}: no step {other}", case.id),
            }
        }
        case.check_answers(&recorded["result"], &mut compared);
    }
    let Compared { placed, refused, scored, won, answers, different } = &compared;
    println!(
        "{} cases: {placed} placed, {refused} refused, {scored} scores, {won} best nodes, {answers} answers; {} differ",
        cases.len(),
        different.len()
    );
    if own_copy() {
        assert!(cases.len() >= ALL, "{} cases", cases.len());
        assert!(
            *placed > 330 && *refused > 300 && *scored > 120 && *won > 50 && *answers > 165,
            "{placed} {refused} {scored} {won} {answers}"
        );
        let known: BTreeSet<String> = DIFFERENT.iter().map(|pod| (*pod).to_owned()).collect();
        assert_eq!(*different, known, "what is listed as different is");
    }
}
