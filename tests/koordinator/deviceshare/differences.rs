//! Whether what differs in a case is by one of the [`rules`].

use std::collections::BTreeMap;

use pellucid::cluster::Input;
use serde_json::{Value, json};

use super::rules::{self, NodeSeen};
use super::{Amounts, Case, Compared, Given, allocation, comparable, entries, text};

impl Case {
    /// Returns whether Koordinator decided about a pod by one of the rules that we do not follow.
    pub(super) fn is_by_their_rules(&mut self, pod: &Value, result: &Value) -> bool {
        let fitting = rules::fitting(pod);
        if fitting.is_some_and(|fitting| self.is_given_whatever_is_left(&fitting, result)) {
            return true;
        }
        match result["node"].as_str() {
            Some(node) => self.gets_by_their_rules(pod, node, &allocation(&result["device-allocated"])),
            None => self.is_refused_by_their_rules(pod, &comparable(text(&result["message"]))),
        }
    }

    /// Returns whether a pod gets what is recorded but for its amounts.
    fn is_given_whatever_is_left(&mut self, pod: &Value, result: &Value) -> bool {
        let cards = |all: BTreeMap<String, Vec<Given>>| -> BTreeMap<String, Vec<(i64, Vec<String>)>> {
            let of = |(minor, _, _, functions)| (minor, functions);
            all.into_iter().map(|(kind, given)| (kind, given.into_iter().map(of).collect())).collect()
        };
        let Some(node) = result["node"].as_str() else {
            return self.difference(pod, result, &mut Compared::default()).is_none();
        };
        let waiting = self.waiting(pod);
        let ours = allocation(&self.trial(&waiting, self.node(node)));
        self.core.apply(Input::PodDeleted(waiting.key));
        cards(ours) == cards(allocation(&result["device-allocated"]))
    }

    fn gets_by_their_rules(
        &mut self,
        pod: &Value,
        node: &str,
        theirs: &BTreeMap<String, Vec<Given>>,
    ) -> bool {
        let waiting = self.waiting(pod);
        let ours = allocation(&self.trial(&waiting, self.node(node)));
        self.core.apply(Input::PodDeleted(waiting.key));
        let summary = self.summary(node);
        let seen = self.seen(node, &summary);
        let of = |kind: &str| -> Vec<(i64, Amounts)> {
            theirs.get(kind).into_iter().flatten().map(|(minor, all, ..)| (*minor, all.clone())).collect()
        };
        let gpus = of("gpu");
        let others: Vec<i64> = of("rdma").into_iter().chain(of("fpga")).map(|(minor, _)| minor).collect();
        // What is beside other GPUs is another, too.
        let is_rest_equal = !rules::joined(pod).is_empty()
            || theirs
                .iter()
                .filter(|(kind, _)| *kind != "gpu")
                .eq(ours.iter().filter(|(kind, _)| *kind != "gpu"));
        let is_by_score = || {
            rules::shares_one_gpu(&gpus)
                && is_rest_equal
                && seen.card_by_swapped_score(pod, &gpus[0].1) == Some(gpus[0].0)
        };
        let n_ours = ours.get("gpu").map_or(0, Vec::len);
        is_by_score() || seen.gives_one_per_switch(pod, n_ours, gpus.len(), &others)
    }

    fn seen<'a>(&'a self, node: &str, summary: &'a Value) -> NodeSeen<'a> {
        let device = self.objects.get(&("Device", node.to_owned())).unwrap_or(&Value::Null);
        NodeSeen { device, summary, args: &self.args }
    }

    /// When a node lacks devices of several types, Koordinator names any of them, unless it allocates them in order.
    fn is_refused_by_their_rules(&mut self, pod: &Value, theirs: &str) -> bool {
        let waiting = self.waiting(pod);
        let lacks = self.lacks(&waiting);
        if rules::wants_several_of_one(pod) {
            let nodes: Vec<String> = self.scores(&waiting).into_keys().chain(lacks.into_keys()).collect();
            let of_node = |node: &String| self.seen(node, &self.summary(node)).lacks_gpus(pod);
            let expected: Vec<&str> = nodes.iter().map(of_node).collect();
            let all = self.objects.keys().filter(|(kind, _)| *kind == "Node").count();
            let is_said = rules::says_of(theirs, &expected, (all - nodes.len()) as i64);
            self.core.apply(Input::PodDeleted(waiting.key));
            return is_said;
        }
        let ours = self.refusal().unwrap_or_default();
        self.core.apply(Input::PodDeleted(waiting.key));
        let joined = rules::joined(pod);
        let mut others: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (kind, only) in rules::of_one_type(pod) {
            let waiting = self.waiting(&only);
            let all = self.lacks(&waiting);
            let refusal = self.refusal().map(|message| comparable(&message));
            self.core.apply(Input::PodDeleted(waiting.key));
            // Invalid requests are named in any order, too.
            if lacks.is_empty() && refusal.as_deref() == Ok(theirs) {
                return true;
            }
            for (node, lack) in all {
                let has_none = entries(&self.summary(&node)["deviceTotalDetail"][kind]) == 0;
                if has_none || !joined.iter().any(|joined| joined == kind) {
                    others.entry(node).or_default().push(lack);
                }
            }
        }
        let nodes: Vec<(String, Vec<String>)> =
            lacks.into_iter().map(|(node, own)| (own, others.remove(&node).unwrap_or_default())).collect();
        rules::exchanges(&comparable(&ours), theirs, &nodes)
    }
}

/// Makes a case of one node with these devices, on which pods have GPUs: minors and percents.
fn case(devices: &[Value], table: &Value, has: &[(i64, i64)]) -> Case {
    let amounts = json!({"cpu": "64", "memory": "64Gi", "pods": "110", "koordinator.sh/gpu-core": "1000",
        "koordinator.sh/gpu-memory": "1Ti", "koordinator.sh/gpu-memory-ratio": "1000", "koordinator.sh/gpu": "1000",
        "koordinator.sh/rdma": "1000"});
    let mut objects = vec![
        json!({"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9500}),
        json!({"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": amounts}}),
        json!({"kind": "Device", "metadata": {"name": "n",
            "annotations": {"scheduling.koordinator.sh/gpu-partitions": table.to_string()}},
            "spec": {"devices": devices}}),
    ];
    for (n, (minor, percent)) in has.iter().enumerate() {
        let mut pod = pod(&[("koordinator.sh/gpu", *percent)], &json!({}));
        pod["metadata"]["name"] = json!(format!("p{n}"));
        pod["metadata"]["annotations"] = json!({super::ALLOCATED: given(&[(*minor, *percent)]).to_string()});
        pod["spec"]["nodeName"] = json!("n");
        objects.push(pod);
    }
    Case::new(&json!({"id": "made", "objects": objects}))
}

fn pod(requests: &[(&str, i64)], annotations: &Value) -> Value {
    let requests: BTreeMap<&str, String> = requests.iter().map(|(name, n)| (*name, n.to_string())).collect();
    json!({"kind": "Pod", "metadata": {"name": "w", "namespace": "default", "annotations": annotations},
        "spec": {"schedulerName": "koord-scheduler", "priorityClassName": "high",
            "containers": [{"name": "c", "resources": {"requests": requests, "limits": requests}}]}})
}

/// Writes what a pod has of GPUs.
fn given(gpus: &[(i64, i64)]) -> Value {
    let of = |(minor, percent): &(i64, i64)| {
        let memory = (percent * (16 << 30) / 100).to_string();
        json!({"minor": minor, "id": format!("gpu-{minor}"), "resources": {"koordinator.sh/gpu-core": percent.to_string(),
            "koordinator.sh/gpu-memory": memory, "koordinator.sh/gpu-memory-ratio": percent.to_string()}})
    };
    json!({"gpu": gpus.iter().map(of).collect::<Vec<_>>()})
}

fn device(kind: &str, minor: i64, switch: Option<i64>) -> Value {
    let resources = match kind {
        "gpu" => json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi",
            "koordinator.sh/gpu-memory-ratio": "100"}),
        _ => json!({"koordinator.sh/rdma": "100"}),
    };
    let topology =
        switch.map(|at| json!({"socketID": 0, "nodeID": 0, "pcieID": format!("p{at}"), "busID": ""}));
    json!({"type": kind, "minor": minor, "id": format!("{kind}-{minor}"), "health": true, "resources": resources,
        "topology": topology})
}

/// Each rule accepts what Koordinator gives by it, and nothing else.
#[test]
fn what_koordinator_gives_by_its_own_rules_is_told_from_mistakes() {
    let placed = |allocated: Value| json!({"node": "n", "device-allocated": allocated});
    let refused = |reason: &str| json!({"message": format!("0/1 nodes are available: 1 {reason}.")});
    let three = || [0, 1, 2].map(|at| device("gpu", at, Some(at)));
    let adapters = [device("rdma", 0, Some(0)), device("rdma", 1, Some(1))];
    let bare = [&[device("gpu", 0, None), device("gpu", 1, None)][..], &adapters].concat();
    let tenth = [("koordinator.sh/gpu", 10)];
    let hint = "scheduling.koordinator.sh/device-allocate-hint";
    let alone = json!({hint: json!({"gpu": {"exclusivePolicy": "DeviceLevel"}}).to_string()});
    let joint = json!({"scheduling.koordinator.sh/device-joint-allocate":
        json!({"deviceTypes": ["rdma", "gpu"]}).to_string()});
    let both = [("koordinator.sh/gpu", 50), ("koordinator.sh/rdma", 200)];
    let with_adapters = |gpus: &[(i64, i64)]| {
        let mut all = given(gpus);
        all["rdma"] = json!([0, 1].map(|minor| json!({"minor": minor, "id": format!("rdma-{minor}"),
            "resources": {"koordinator.sh/rdma": "100"}})));
        placed(all)
    };
    let double = [("koordinator.sh/gpu-core", 200), ("koordinator.sh/gpu-memory-ratio", 100)];
    let mut doubled = given(&[(0, 100)]);
    doubled["gpu"][0]["resources"]["koordinator.sh/gpu-core"] = json!("200");
    let mut elsewhere = doubled.clone();
    (elsewhere["gpu"][0]["minor"], elsewhere["gpu"][0]["id"]) = (json!(1), json!("gpu-1"));
    let singles = json!({"1": [{"minors": [0]}, {"minors": [1]}]});
    let several = [("koordinator.sh/gpu-core", 200), ("koordinator.sh/gpu-memory", 8 << 30)];
    let none = || json!({});
    for (mut case, pod, result, other) in [
        // The first card in use, not the one of which most is left; never the one that is not in use.
        (
            case(&three(), &Value::Null, &[(0, 60), (1, 20)]),
            pod(&tenth, &none()),
            placed(given(&[(0, 10)])),
            placed(given(&[(2, 10)])),
        ),
        (
            case(&bare, &Value::Null, &[]),
            pod(&both, &joint),
            with_adapters(&[(0, 50), (1, 50)]),
            with_adapters(&[(1, 50)]),
        ),
        (case(&three(), &singles, &[]), pod(&double, &none()), placed(doubled), placed(elsewhere)),
        (
            case(&three(), &Value::Null, &[]),
            pod(&several, &none()),
            refused("Insufficient GPU Devices"),
            refused("Insufficient gpu devices"),
        ),
        (
            case(&bare, &Value::Null, &[(0, 100), (1, 100)]),
            pod(&[("koordinator.sh/gpu", 50), ("koordinator.sh/rdma", 300)], &none()),
            refused("Insufficient rdma devices"),
            refused("Insufficient fpga devices"),
        ),
    ] {
        let name = &pod["spec"]["containers"][0]["resources"]["requests"];
        assert!(case.difference(&pod, &result, &mut Compared::default()).is_some(), "{name}: no difference");
        assert!(case.is_by_their_rules(&pod, &result), "{name}: {result}");
        assert!(!case.is_by_their_rules(&pod, &other), "{name}: {other}");
    }
    // Who shares a card with a pod that shares none is judged as if neither had said so.
    let mut case = case(&three()[..1], &Value::Null, &[]);
    let mut first = pod(&tenth, &alone);
    (first["metadata"]["name"], first["spec"]["nodeName"]) = (json!("first"), json!("n"));
    first["metadata"]["annotations"][super::ALLOCATED] = json!(given(&[(0, 10)]).to_string());
    case.apply(&first);
    let (second, result) = (pod(&tenth, &alone), placed(given(&[(0, 10)])));
    assert!(case.difference(&second, &result, &mut Compared::default()).is_some());
    let sharing = rules::sharing(&second).expect("it says what it does not share");
    assert_eq!(case.difference(&sharing, &result, &mut Compared::default()), None);
}
