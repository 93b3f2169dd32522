//! A recorded case, played step by step.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::framework::profile::Profile;
use pellucid::framework::topology::{NumaMask, NumaPolicy, ResourceHints, TopologyHint};
use pellucid::framework::{NumaAffinity, View};
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::custom::CustomKind;
use pellucid::model::{CustomKindRef, Pod, PodKey};
use pellucid::plugins::registry;
use serde_json::{Value, json};

use super::compare::{Compared, Expected, Model};
use super::merge::Hint;
use super::model::{Decision, Devices, Question, Rule};
use super::node::{Node, with_priority};
use super::{DEVICE_SHARE, DEVICES, STATUS, profile, text};
use crate::common::driver::{Core, settings};

pub(super) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a kind that some plugin brings.
fn kind_of(name: &str) -> Option<&'static CustomKind> {
    registry().iter().flat_map(|factory| factory.kinds()).find(|kind| kind.kind == name)
}

pub(super) struct Case {
    pub(super) id: String,
    args: Value,
    pub(super) core: Core,
    pub(super) profile: Profile,
    decoder: Decoder,
    version: u64,
    /// What the API server holds, by kind and name.
    objects: BTreeMap<(String, String), Value>,
}

impl Case {
    pub(super) fn new(case: &Value) -> Self {
        let profile = profile(&case["args"]);
        let mut made = Self {
            id: text(&case["id"]).to_owned(),
            args: case["args"].clone(),
            core: Core::new(settings(profile.clone())),
            profile,
            decoder: Decoder::of(&registry()),
            version: 0,
            objects: BTreeMap::new(),
        };
        for object in array(&case["objects"]) {
            made.apply(object);
        }
        made
    }

    /// Plays a case.
    pub(super) fn play(recorded: &Value, out: &mut Compared) {
        let mut case = Self::new(recorded);
        for step in array(&recorded["steps"]) {
            match text(&step["op"]) {
                "pod" => case.arrive(step, out),
                "bound" => case.apply(&step["pod"]),
                "delete" => case.delete(text(&step["name"])),
                "replace" => case.apply(&step["object"]),
                "restart" => case.restart(),
                other => panic!("{}: {other}", case.id),
            }
        }
        case.compare_answers(&recorded["result"], out);
    }

    fn of_kind(&self, kind: &'static str) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |((known, _), _)| known == kind).map(|(_, object)| object)
    }

    /// Fills in what the API server does.
    fn admitted(&self, pod: &Value) -> Value {
        let mut pod = with_priority(pod, self.of_kind("PriorityClass"));
        pod["metadata"]["uid"] = json!(format!("{}-uid", text(&pod["metadata"]["name"])));
        pod
    }

    fn apply(&mut self, object: &Value) {
        self.version += 1;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let (kind, name) = (text(&object["kind"]).to_owned(), text(&object["metadata"]["name"]).to_owned());
        if kind == "Pod" {
            object = self.admitted(&object);
        }
        self.objects.insert((kind.clone(), name), object.clone());
        let input = match kind.as_str() {
            "Node" => Input::NodeApplied(Arc::new(self.decoder.node(&object).expect("a node"))),
            "Pod" => Input::PodApplied(Arc::new(self.decoder.pod(&object).expect("a pod"))),
            other => {
                let Some(kind) = kind_of(other) else { return };
                let decoded = self.decoder.custom(CustomKindRef(kind), &object);
                Input::CustomApplied(Arc::new(decoded.expect("an object that can be read")))
            }
        };
        self.core.apply(input);
    }

    pub(super) fn delete(&mut self, name: &str) {
        self.objects.remove(&("Pod".to_owned(), name.to_owned()));
        self.core.apply(Input::PodDeleted(PodKey::new("default", name)));
    }

    /// Starts anew from what the API server holds: pods first, so that no order of the lists matters.
    fn restart(&mut self) {
        self.profile = profile(&self.args);
        self.core = Core::new(settings(self.profile.clone()));
        let objects: Vec<Value> = self.objects.values().cloned().collect();
        let (pods, others): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|object| object["kind"] == "Pod");
        pods.iter().chain(others.iter().rev()).for_each(|object| self.apply(object));
    }

    /// Lets a pod arrive, compares what becomes of it, and puts the recorded outcome in place.
    fn arrive(&mut self, step: &Value, out: &mut Compared) {
        let (pod, result) = (&step["pod"], &step["result"]);
        let name = text(&pod["metadata"]["name"]).to_owned();
        let at = format!("{} {}", self.id, name.rsplit('-').next().unwrap_or(""));
        self.apply(pod);
        let model = self.model(&name);
        self.compare_scores(&name, (result, &model), &at, out);
        self.compare_decision(&name, (result, &model), &at, out);
        self.core.run();
        self.core.scheduler.take_effects();
        // What ours gave the pod goes with it.
        self.delete(&name);
        if let Some(node) = result["node"].as_str() {
            let mut bound = pod.clone();
            bound["spec"]["nodeName"] = json!(node);
            for (key, field) in [(STATUS, "resource-status"), (DEVICES, "device-allocated")] {
                if !result[field].is_null() {
                    bound["metadata"]["annotations"][key] = json!(result[field].to_string());
                }
            }
            self.apply(&bound);
        }
        self.core.scheduler.take_effects();
    }

    /// Lets a pod arrive, compares what becomes of it with what the model gives by our rules, and binds it. Returns whether it
    /// has a node.
    pub(super) fn try_out(&mut self, pod: &Value, out: &mut Compared) -> bool {
        let name = text(&pod["metadata"]["name"]).to_owned();
        self.apply(pod);
        let model = self.model(&name);
        let marks = self.compare_with_model(&name, &model, out);
        self.delete(&name);
        let is_placed = marks.is_some();
        if let Some((node, marks)) = marks {
            let mut bound = pod.clone();
            bound["spec"]["nodeName"] = json!(node);
            for (key, mark) in marks {
                bound["metadata"]["annotations"][&*key] = json!(&*mark);
            }
            self.apply(&bound);
        }
        self.core.scheduler.take_effects();
        is_placed
    }

    pub(super) fn spec(&self, name: &str) -> Arc<Pod> {
        let cluster = self.core.scheduler.cluster();
        let id = cluster.find_pod(&PodKey::new("default", name)).expect("the pod waits");
        cluster.pod(id).expect("the pod waits").pod.clone()
    }

    /// Asks the model about all nodes.
    fn model(&self, name: &str) -> Model {
        let nodes = self.of_kind("Node").map(|node| (text(&node["metadata"]["name"]).to_owned(), node));
        nodes.map(|(node, object)| (node.clone(), self.expected(name, (&node, object)))).collect()
    }

    fn expected(&self, name: &str, (node, object): (&str, &Value)) -> Expected {
        let view = View::new(self.core.scheduler.cluster());
        let (pod, at) = (self.spec(name), view.cluster().find_node(&node.into()).expect("it is known"));
        let manifest = &self.objects[&("Pod".to_owned(), name.to_owned())];
        let report = self.objects.get(&("NodeResourceTopology".to_owned(), node.to_owned()));
        let here = self.of_kind("Pod").filter(|pod| pod["spec"]["nodeName"] == *node);
        let read = Node::new(object, report, here);
        let plugin = self.profile.topology_hints.iter().find(|e| e.plugin.name() == DEVICE_SHARE);
        let plugin = &plugin.expect("it gives hints").plugin;
        let provider = plugin.topology_hints().expect("it gives hints");
        let value = provider.prepare(view, &pod.spec);
        let list = |of: ResourceHints| {
            let hint = |hint: &TopologyHint| Hint {
                mask: hint.mask.map(|mask| mask.0),
                preferred: hint.preferred,
                score: hint.score,
            };
            of.hints.map(|hints| hints.iter().map(hint).collect())
        };
        let hints = value.as_ref().map(|value| {
            let made = provider.hints(view, &pod.spec, value, at);
            made.map(|made| made.into_iter().map(list).collect()).map_err(|cause| cause.message())
        });
        let fits = |mask: u64| match &value {
            Some(value) => {
                provider.fits(view, &pod.spec, value, at, agreed(mask)).map_err(|cause| cause.message())
            }
            None => Ok(()),
        };
        let devices = Devices { hints, fits: &fits };
        let by = |ours: &[Rule]| Question::new((&read, &devices), manifest, &self.args, ours);
        let of = |ours: &[Rule]| (by(ours).decide(), by(ours).score());
        let (theirs, ours) = (of(&[]), of(&Rule::ALL));
        let matters = |rule: &Rule| theirs != ours && of(&[*rule]) != theirs;
        let reserve = plugin.reserve().expect("it reserves");
        let given = |affinity: Option<u64>| {
            let made = match affinity {
                Some(mask) => reserve.reserve_aligned(view, &pod, at, agreed(mask)),
                None => reserve.reserve(view, &pod, at),
            };
            let made = made.ok().flatten()?;
            let marks = made.marks?.made(&made.what);
            marks.annotations.get(DEVICES).and_then(|text| serde_json::from_str(text).ok())
        };
        Expected {
            devices: given(affinity(&theirs.0)).unwrap_or(Value::Null),
            rules: Rule::ALL.iter().filter(|rule| matters(rule)).copied().collect(),
            at_filter: by(&[]).filter().ok().flatten(),
            scores: [theirs.1, ours.1],
            theirs: theirs.0,
            ours: ours.0,
        }
    }
}

/// Returns the NUMA nodes that were agreed on.
fn affinity(decision: &Decision) -> Option<u64> {
    match decision {
        Decision::Takes { affinity, .. } => *affinity,
        Decision::Refused { .. } => None,
    }
}

pub(super) fn agreed(mask: u64) -> NumaAffinity {
    NumaAffinity { policy: NumaPolicy::Restricted, mask: NumaMask(mask), preferred: true, score: 0 }
}
