//! ElasticQuota: what quotas may use, which pods they admit, and who is evicted inside them.
//!
//! Cases with a tag in `quirks` show faults of the original. Their pods are placed as recorded, and what the fault does
//! not touch must agree: what pods request and use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::cycle::NodeResultCache;
use pellucid::cycle::attempt::node_result_cache::CycleContext;
use pellucid::cycle::scheduler::PluginTally;
use pellucid::framework::endpoint::{PathParams, ReadContext};
use pellucid::framework::list::List;
use pellucid::framework::profile::Profile;
use pellucid::framework::{Cause, View};
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::effect::Effect;
use pellucid::model::{CustomKindRef, Name, PodKey, quantity};
use pellucid::plugins::elastic_quota::{ELASTIC_QUOTA, NAME};
use pellucid::plugins::registry;
use pellucid::recording::Outcome;
use serde_json::{Value, json};

use crate::common::driver::{Core, settings};
use crate::{lines, own_copy};

mod rules;

/// Number of cases of this repository.
const ALL: usize = 142;
const DEFAULT_QUOTA: &str = "koordinator-default-quota";

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// The priority classes of a case, from which the API server fills in what pods leave out.
#[derive(Default)]
pub(crate) struct PriorityClasses {
    /// Objects by name.
    known: BTreeMap<String, Value>,
}

impl PriorityClasses {
    pub(crate) fn put(&mut self, class: &Value) {
        self.known.insert(text(&class["metadata"]["name"]).to_owned(), class.clone());
    }

    fn delete(&mut self, class: &Value) {
        self.known.remove(text(&class["metadata"]["name"]));
    }

    /// Returns the class of a name: its object, one of Kubernetes, or one of the recordings, which say what they are: `p5` has
    /// the value 5, and `n5` does not preempt besides.
    fn named(&self, name: &str) -> Value {
        let of_digits = |at: usize| name.get(at..).and_then(|digits| digits.parse::<i64>().ok());
        let recorded = of_digits(1).filter(|_| name.starts_with(['p', 'n']));
        let value = match name {
            "system-cluster-critical" => 2_000_000_000,
            "system-node-critical" => 2_000_001_000,
            _ => recorded.unwrap_or(0),
        };
        let policy = if recorded.is_some() && name.starts_with('n') { json!("Never") } else { Value::Null };
        self.known.get(name).cloned().unwrap_or_else(|| json!({"value": value, "preemptionPolicy": policy}))
    }

    /// Fills in a pod's priority and whether it preempts, where the pod says nothing of them.
    pub(crate) fn admit(&self, pod: &mut Value) {
        let class = self.named(text(&pod["spec"]["priorityClassName"]));
        for (field, of_class) in [("priority", "value"), ("preemptionPolicy", "preemptionPolicy")] {
            if pod["spec"][field].is_null() && !class[of_class].is_null() {
                pod["spec"][field] = class[of_class].clone();
            }
        }
    }
}

fn profile(args: &Value) -> Profile {
    let first = json!([{"name": NAME}, {"name": "DefaultPreemption"}]);
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": "koord-scheduler",
            "plugins": {
                "multiPoint": {"enabled": [{"name": NAME}]},
                "postFilter": {"disabled": [{"name": "*"}], "enabled": first},
            },
            "pluginConfig": [{"name": NAME, "args": args}],
        }],
    });
    let mut parsed =
        pellucid::config::parse(&config.to_string(), "case", &registry()).expect("valid arguments");
    parsed.profiles.remove(0)
}

struct Case {
    id: String,
    is_tagged: bool,
    core: Core,
    profile: Profile,
    decoder: Decoder,
    version: u64,
    classes: PriorityClasses,
}

impl Case {
    fn new(case: &Value) -> Self {
        let profile = profile(&case["args"]);
        let core = Core::new(settings(profile.clone()));
        let mut made = Self {
            id: text(&case["id"]).to_owned(),
            is_tagged: !array(&case["quirks"]).is_empty(),
            core,
            profile,
            decoder: Decoder::of(&registry()),
            version: 0,
            classes: PriorityClasses::default(),
        };
        for object in array(&case["objects"]) {
            made.apply(object);
        }
        made.settle();
        made
    }

    fn settle(&mut self) {
        self.core.scheduler.tick(self.core.now);
    }

    fn apply(&mut self, object: &Value) {
        self.version += 1;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let input = match text(&object["kind"]) {
            "Node" => Input::NodeApplied(Arc::new(self.decoder.node(&object).expect("a node"))),
            "Pod" => {
                self.classes.admit(&mut object);
                object["metadata"]["uid"] = json!(format!("{}-uid", text(&object["metadata"]["name"])));
                Input::PodApplied(Arc::new(self.decoder.pod(&object).expect("a pod")))
            }
            "ElasticQuota" => {
                let kind = CustomKindRef(&ELASTIC_QUOTA);
                Input::CustomApplied(Arc::new(self.decoder.custom(kind, &object).expect("a quota")))
            }
            "PriorityClass" => return self.classes.put(&object),
            // Nothing of them is read.
            "Namespace" => return,
            other => panic!("{}: {other} is not read", self.id),
        };
        self.core.apply(input);
    }

    fn delete(&mut self, object: &Value) {
        let name = text(&object["metadata"]["name"]);
        let namespace = text(&object["metadata"]["namespace"]);
        self.core.apply(match text(&object["kind"]) {
            "Node" => Input::NodeDeleted(name.into()),
            "Pod" => Input::PodDeleted(PodKey::new(namespace, name)),
            "ElasticQuota" => {
                Input::CustomDeleted(CustomKindRef(&ELASTIC_QUOTA), (namespace.into(), name.into()))
            }
            "PriorityClass" => return self.classes.delete(object),
            "Namespace" => return,
            other => panic!("{}: {other} is not read", self.id),
        });
    }

    fn quotas(&self) -> Value {
        let registry = registry();
        let factory = registry.iter().find(|f| f.name() == NAME).expect("it is registered");
        let endpoint = factory.endpoints().into_iter().find(|e| e.path == "quotas").expect("it is there");
        let params = PathParams::from([("includePods".to_owned(), "true".to_owned())]);
        let view = View::new(self.core.scheduler.cluster());
        let cx = ReadContext { view, params: &params, now: self.core.now, list: &List::default() };
        (endpoint.read)(&cx).expect("an answer")
    }

    /// Compares the summaries of quotas. Returns how many were compared.
    fn check_quotas(&self, theirs: &Value, at: &str) -> usize {
        let all = self.quotas();
        let theirs = theirs.as_object().expect("quotas by name");
        for (name, theirs) in theirs {
            let (ours, at) = (&all[name], format!("{} {at}: {name}", self.id));
            assert!(ours.is_object(), "{at}: there is no such quota");
            self.check_quota(ours, theirs, &at);
        }
        theirs.len()
    }

    fn check_quota(&self, ours: &Value, theirs: &Value, at: &str) {
        let is_default = text(&theirs["name"]) == DEFAULT_QUOTA || at.ends_with(DEFAULT_QUOTA);
        for field in ["parentName", "isParent", "allowLentResource"] {
            assert_eq!(ours[field], theirs[field], "{at}: {field}");
        }
        let pods = |of: &Value| -> BTreeMap<String, (bool, BTreeMap<String, i64>)> {
            let pods = of["podCache"].as_object().into_iter().flatten();
            let pod = |pod: &Value| (pod["isAssigned"] == json!(true), amounts(&pod["resource"], false));
            pods.map(|(key, of)| (key.clone(), pod(of))).collect()
        };
        if theirs.get("podCache").is_some() || theirs.get("name").is_some() {
            assert_eq!(pods(ours), pods(theirs), "{at}: podCache");
        }
        for field in [
            "used",
            "nonPreemptibleUsed",
            "request",
            "nonPreemptibleRequest",
            "childRequest",
            "selfUsed",
            "selfNonPreemptibleUsed",
            "selfRequest",
            "selfNonPreemptibleRequest",
        ] {
            assert_eq!(amounts(&ours[field], false), amounts(&theirs[field], false), "{at}: {field}");
        }
        // CPU of the default quota's max is beyond what thousandths in 64 bits can say.
        if is_default {
            return;
        }
        for field in ["min", "max"] {
            assert_eq!(amounts(&ours[field], true), amounts(&theirs[field], true), "{at}: {field}");
        }
        if theirs.get("sharedWeight").is_some() {
            let field = "sharedWeight";
            assert_eq!(amounts(&ours[field], true), amounts(&theirs[field], true), "{at}: {field}");
        }
        if !self.is_tagged {
            for field in ["autoScaleMin", "runtime"] {
                assert_eq!(amounts(&ours[field], true), amounts(&theirs[field], true), "{at}: {field}");
            }
        }
    }

    /// Returns why all nodes refuse a pending pod as a whole, or whether one takes it.
    fn judge(&self, pod: &Value) -> Result<bool, Cause> {
        let key = PodKey::new(text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]));
        let cluster = self.core.scheduler.cluster();
        let record = cluster.find_pod(&key).and_then(|id| cluster.pod(id)).expect("the pod waits");
        let ctx = CycleContext::new(&self.profile, View::new(cluster), &record.pod.spec);
        let mut tally = vec![PluginTally::default(); self.profile.plugins.len()];
        let mut results = NodeResultCache::default();
        results.run_filters(&ctx, true, &mut tally);
        results.run_global_filters(&ctx, &mut tally);
        match results.refused_as_a_whole() {
            Some(cause) => Err(cause.clone()),
            None => Ok(results.feasible().next().is_some()),
        }
    }

    /// Replays arrivals. Returns how many decisions were compared.
    fn check_steps(&mut self, steps: &[Value]) -> usize {
        for step in steps {
            let pod = &step["pod"];
            let name = text(&pod["metadata"]["name"]).to_owned();
            self.apply(pod);
            self.settle();
            if !self.is_tagged {
                let at = format!("{}: {name}", self.id);
                match (self.judge(pod), step["node"].as_str()) {
                    (Ok(takes), node) => assert_eq!(takes, node.is_some(), "{at}: {}", step["message"]),
                    (Err(cause), None) => same_message(&cause.message(), text(&step["message"]), &at),
                    (Err(cause), Some(_)) => panic!("{at}: refused, {}", cause.message()),
                }
            }
            if let Some(node) = step["node"].as_str() {
                let mut placed = pod.clone();
                placed["spec"]["nodeName"] = json!(node);
                self.apply(&placed);
            }
            self.settle();
        }
        if self.is_tagged { 0 } else { steps.len() }
    }

    /// Plays further changes. Returns how many summaries were compared.
    fn check_changes(&mut self, steps: &[Value]) -> usize {
        let mut compared = 0;
        for (i, step) in steps.iter().enumerate() {
            for change in ["create", "update"] {
                if step[change].is_object() {
                    self.apply(&step[change]);
                }
            }
            if step["delete"].is_object() {
                self.delete(&step["delete"]);
            }
            self.settle();
            compared += self.check_quotas(&step["quotas"], &format!("step {i}"));
        }
        compared
    }

    /// Lets the target arrive, and compares who is evicted for it.
    fn check_preemption(&mut self, case: &Value) {
        let target = &case["target"];
        self.apply(target);
        self.settle();
        self.check_quotas(&case["before"], "before");
        if self.is_tagged {
            return;
        }
        let steps = self.core.run();
        let refusal = steps.first().and_then(|step| match &step.verdict.outcome {
            Outcome::Refused(refusal) => Some(refusal.message().to_string()),
            _ => None,
        });
        let mut victims = BTreeSet::new();
        let mut node = None;
        for effect in self.core.scheduler.take_effects() {
            match effect {
                Effect::Evict(order) => drop(victims.insert(order.victim.key.name.to_string())),
                Effect::Bind(order) => node = Some((*order.node).clone()),
                _ => {}
            }
        }
        let key = PodKey::new("default", text(&target["metadata"]["name"]));
        let cluster = self.core.scheduler.cluster();
        let id = cluster.find_pod(&key).expect("the target");
        let node: Option<Name> = node.or_else(|| cluster.nominator().of(id).map(|n| n.node.clone()));
        let nodes = cluster.present().len();
        let fits = |seen: &Value| {
            let theirs: BTreeSet<String> =
                array(&seen["victims"]).iter().map(|v| text(v).to_owned()).collect();
            // With several nodes other choices can be right.
            match seen["node"].as_str() {
                Some(name) => {
                    node.as_deref() == Some(name) && theirs == victims || nodes > 1 && node.is_some()
                }
                None => node.is_none() && theirs == victims,
            }
        };
        let observed = array(&case["result"]["observed"]);
        assert!(observed.iter().any(fits), "{}: {node:?} {victims:?} {refusal:?}, {observed:?}", self.id);
        if node.is_none() {
            let theirs = text(&observed[0]["message"]);
            let ours = refusal.expect("a refusal");
            let (ours, _) = ours.split_once(" preemption:").unwrap_or((&ours, ""));
            let ours = ours.split_once("available: ").map_or(ours, |(_, rest)| rest);
            same_message(ours.trim_end_matches('.'), theirs, &self.id);
        }
    }
}

/// Reads a resource list by value. Without `zeros` amounts of 0 are left out.
fn amounts(list: &Value, zeros: bool) -> BTreeMap<String, i64> {
    let parse = |name: &str, value: &Value| {
        let text = text(value);
        let parsed = if name == "cpu" { quantity::milli(text) } else { quantity::units(text) };
        parsed.unwrap_or_else(|_| panic!("{name}: {value}"))
    };
    let named = list.as_object().into_iter().flatten();
    named.map(|(n, v)| (n.clone(), parse(n, v))).filter(|(_, amount)| zeros || *amount != 0).collect()
}

/// Compares a quota's refusal with a recorded message: the words, the amounts by value, and the resources as a set.
fn same_message(ours: &str, theirs: &str, at: &str) {
    let theirs = theirs.split_once(" preemption:").map_or(theirs, |(first, _)| first);
    let theirs = theirs.split_once("available: ").map_or(theirs, |(_, rest)| rest);
    let (ours, theirs) = (parts(ours), parts(theirs.trim_end_matches('.')));
    assert_eq!(ours, theirs, "{at}");
}

/// Takes a message apart: `name: value` by name, where lists of amounts are read.
fn parts(message: &str) -> Vec<(String, BTreeMap<String, i64>)> {
    let mut all = Vec::new();
    for part in message.split(", ") {
        let (name, value) = part.split_once(": ").unwrap_or((part, ""));
        let mut read = BTreeMap::new();
        if let Some(names) = value.strip_prefix('[') {
            read.extend(names.trim_end_matches(']').split_whitespace().map(|name| (name.to_owned(), 0)));
        } else if value.contains(':') {
            let list: serde_json::Map<String, Value> = value
                .split(',')
                .filter_map(|entry| entry.split_once(':'))
                .map(|(name, amount)| (name.to_owned(), json!(amount)))
                .collect();
            read = amounts(&Value::Object(list), false);
        } else if !value.is_empty() && value != "<empty>" {
            read.insert(value.to_owned(), 0);
        }
        all.push((name.to_owned(), read));
    }
    all
}

#[test]
fn elastic_quota_agrees_with_koordinator() {
    let cases = lines("elasticquota.jsonl");
    let (mut decided, mut summaries, mut preemptions) = (0, 0, 0);
    for recorded in &cases {
        let mut case = Case::new(recorded);
        match text(&recorded["kind"]) {
            "steps" => {
                decided += case.check_steps(array(&recorded["steps"]));
                summaries += case.check_quotas(&recorded["result"]["quotas"], "at the end");
            }
            "runtime" => {
                summaries += case.check_quotas(&recorded["result"]["quotas"], "at first");
                summaries += case.check_changes(array(&recorded["steps"]));
            }
            "preempt" => {
                case.check_preemption(recorded);
                preemptions += usize::from(!case.is_tagged);
            }
            other => panic!("{}: {other}", case.id),
        }
    }
    println!(
        "{} cases: {decided} arrivals, {summaries} summaries, {preemptions} preemptions agree",
        cases.len()
    );
    if own_copy() {
        assert!(cases.len() >= ALL, "{} cases", cases.len());
        assert!(
            decided >= 358 && summaries > 1_300 && preemptions >= 18,
            "{decided} {summaries} {preemptions}"
        );
    }
}
