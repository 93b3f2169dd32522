//! Koordinator's decisions about one node, against the plugin: devices, or what the node lacks.
//!
//! The cases are made at random, and the answers by a model of Koordinator's source that answers the recorded cases of
//! `tests/koordinator` as Koordinator did. Of that source three faults are mended in the model: the amounts of a partition
//! are compared, a shared GPU is chosen by its score, and no pod gets more GPUs than it must.

use std::collections::BTreeMap;

use pellucid_model::Node;
use pellucid_model::selector::Labels;
use pellucid_plugin_helper::testing::{TestCluster, filter_causes, node, pod_with, pre_filter};
use serde_json::{Value, json};

use super::super::allocation::Allocation;
use super::super::device::GPU_VENDOR;
use super::super::hints::PARTITION_SPEC;
use super::super::tests::{HINT, JOINT, bound, devices, gpu, plugin, rdma, report, spec};
use super::*;

/// The situations, with the model's answers.
const CASES: &str = include_str!("../../../../tests/data/koordinator/allocator.jsonl");
const GPU: &str = "koordinator.sh/gpu";
const RDMA: &str = "koordinator.sh/rdma";
const WHOLE: &str = "nvidia.com/gpu";
const POLICY: &str = "node.koordinator.sh/gpu-partition-policy";
const MODEL: &str = "node.koordinator.sh/gpu-model";

/// A node, what its pods have, and what one more pod requests.
#[derive(Default)]
struct Situation {
    device: Value,
    labels: Vec<(String, String)>,
    pods: Vec<Value>,
    requests: Vec<(String, i64)>,
    annotations: Vec<(String, String)>,
    most_allocated: bool,
}

fn texts(map: &Value) -> Vec<(String, String)> {
    let all = map.as_object().into_iter().flatten();
    all.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

impl Situation {
    fn of(devices: Value, requests: &[(&str, i64)], annotations: &[(&str, Value)]) -> Self {
        let annotations = annotations.iter().map(|(key, value)| ((*key).to_owned(), value.to_string()));
        Self {
            device: devices,
            requests: requests.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect(),
            annotations: annotations.collect(),
            ..Self::default()
        }
    }

    fn labelled(mut self, key: &str, value: &str) -> Self {
        self.labels.push((key.to_owned(), value.to_owned()));
        self
    }

    fn beside(mut self, allocated: Value) -> Self {
        self.pods.push(allocated);
        self
    }

    /// Reads a case of the file.
    fn read(case: &Value) -> Self {
        let all: Vec<Value> = case["devices"].as_array().expect("devices").iter().map(device).collect();
        let mut device = devices(&all);
        device["metadata"]["labels"] = case["deviceLabels"].clone();
        if !case["table"].is_null() {
            device = with_table(device, &case["table"]);
        }
        let requests = case["requests"].as_object().into_iter().flatten();
        Self {
            device,
            labels: texts(&case["nodeLabels"]),
            pods: case["pods"].as_array().cloned().unwrap_or_default(),
            requests: requests.map(|(name, n)| (name.clone(), n.as_i64().unwrap_or(0))).collect(),
            annotations: texts(&case["annotations"]),
            most_allocated: case["most"] == true,
        }
    }

    /// Returns what the pod gets, by type: minors and bus addresses of virtual functions, by minor; or the message.
    fn decide(&self) -> Value {
        let kind = if self.most_allocated { "MostAllocated" } else { "LeastAllocated" };
        let plugin = plugin(json!({"scoringStrategy": {"type": kind}}));
        let labels = self.labels.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into()));
        let on = Node { labels: Labels::new(labels), ..node("a") };
        let mut cluster = TestCluster::with(std::slice::from_ref(&plugin), [on]);
        report(&mut cluster, "a", &self.device, "1");
        for (n, allocated) in self.pods.iter().enumerate() {
            bound(&mut cluster, &format!("p{n}"), "a", &allocated.to_string());
        }
        let requests: Vec<(&str, i64)> = self.requests.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        let annotations: Vec<(&str, &str)> =
            self.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let spec = spec(&requests, &annotations);
        if let Err(message) = pre_filter(&*plugin, &cluster, &spec) {
            return json!(message);
        }
        let refused = filter_causes(&*plugin, &cluster, &spec).remove("a").map(|cause| cause.message());
        let reserve = plugin.reserve().expect("it reserves");
        match (reserve.reserve(cluster.view(), &pod_with(spec), cluster.idx("a")), refused) {
            (Err(cause), Some(message)) if cause.message() == message => json!(message),
            (Ok(Some(made)), None) => given(made.what.downcast_ref::<Allocation>().expect("an allocation")),
            (reserved, message) => {
                panic!("Reserve: {:?}, Filter: {message:?}", reserved.map(|r| r.is_some()))
            }
        }
    }
}

fn given(allocation: &Allocation) -> Value {
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut given: Vec<&super::super::allocation::Given> = allocation.given.iter().collect();
    given.sort_by_key(|given| given.minor);
    for given in given {
        let functions = given.functions.iter().map(|(_, bus)| json!(bus.as_str()));
        let entry = std::iter::once(json!(given.minor)).chain(functions).collect();
        all.entry(given.kind.to_string()).or_default().push(entry);
    }
    json!(all)
}

/// Makes a device of a case: type, minor, switch, health, label, groups of virtual functions, memory.
fn device(row: &Value) -> Value {
    let kind = row[0].as_str().expect("a type");
    let resources = match kind {
        "gpu" => json!({"koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory": row[6],
            "koordinator.sh/gpu-memory-ratio": 100}),
        kind => json!({format!("koordinator.sh/{kind}"): 100}),
    };
    let function = |f: &Value| json!({"minor": f[0], "busID": f[1]});
    let functions =
        |group: &Value| -> Vec<Value> { group[1].as_array().into_iter().flatten().map(function).collect() };
    let groups = row[5].as_array().into_iter().flatten();
    let groups: Vec<Value> =
        groups.map(|group| json!({"labels": {"q": group[0]}, "vfs": functions(group)})).collect();
    let topology = row[2].as_i64().map(
        |switch| json!({"socketID": 0, "nodeID": switch / 2, "pcieID": format!("p{switch}"), "busID": ""}),
    );
    json!({"type": kind, "minor": row[1], "id": format!("{kind}-{}", row[1]), "health": row[3] == 1,
        "labels": {"k": row[4]}, "resources": resources, "topology": topology, "vfGroups": groups})
}

fn with_table(mut device: Value, table: &Value) -> Value {
    device["metadata"]["annotations"] =
        json!({"scheduling.koordinator.sh/gpu-partitions": table.to_string()});
    device
}

#[test]
fn random_nodes_give_what_koordinator_gives() {
    let (mut placed, mut refused) = (0, 0);
    for (n, line) in CASES.lines().enumerate() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(Situation::read(&case).decide(), case["want"], "case {n}: {case}");
        let count = if case["want"].is_object() { &mut placed } else { &mut refused };
        *count += 1;
    }
    assert!(placed >= 200 && refused >= 150, "{placed} {refused}");
}

/// Checks what a pod gets in each situation.
fn check(all: impl IntoIterator<Item = (Situation, Value)>) {
    for (n, (situation, want)) in all.into_iter().enumerate() {
        assert_eq!(situation.decide(), want, "situation {n}: {:?}", situation.annotations);
    }
}

#[test]
fn joint_types_get_as_many_as_they_request_and_one_of_each_switch_first() {
    let joint = |types: [&str; 2]| (JOINT, json!({"deviceTypes": types}));
    let same = |types: [&str; 2]| (JOINT, json!({"deviceTypes": types, "requiredScope": "SamePCIe"}));
    let two = || devices(&[gpu(0, 0), gpu(1, 0), gpu(2, 1), gpu(3, 1), rdma(0, 0, 0), rdma(1, 1, 0)]);
    let bare = || {
        let gpus = [gpu(0, 0), gpu(1, 0)].map(|mut gpu| {
            gpu["topology"] = Value::Null;
            gpu
        });
        devices(&[&gpus[..], &[rdma(0, 0, 0), rdma(1, 1, 0)]].concat())
    };
    let half = [(GPU, 50), (RDMA, 200)];
    let all = (HINT, json!({"rdma": {"allocateStrategy": "ApplyForAll"}}));
    let four = devices(&[
        gpu(0, 0),
        gpu(1, 0),
        gpu(2, 1),
        gpu(3, 1),
        rdma(0, 0, 0),
        rdma(1, 0, 0),
        rdma(2, 1, 0),
        rdma(3, 1, 0),
    ]);
    check([
        (Situation::of(two(), &half, &[joint(["rdma", "gpu"])]), json!({"gpu": [[0]], "rdma": [[0], [1]]})),
        // Koordinator gives one GPU per switch where it searches no scopes.
        (Situation::of(bare(), &half, &[joint(["rdma", "gpu"])]), json!({"gpu": [[0]], "rdma": [[0], [1]]})),
        (
            Situation::of(two(), &[(WHOLE, 1), (RDMA, 10)], &[same(["rdma", "gpu"]), all]),
            json!({"gpu": [[0]], "rdma": [[0], [1]]}),
        ),
        (
            Situation::of(four, &[(WHOLE, 4), (RDMA, 200)], &[same(["gpu", "rdma"])]),
            json!({"gpu": [[0], [1], [2], [3]], "rdma": [[0], [2]]}),
        ),
    ]);
}

#[test]
fn hints_distribute_only_what_is_not_several_devices_already() {
    let of = |devices: &[Value], amount, strategy: &str, exclusive: Option<&str>| {
        let hint = json!({"rdma": {"allocateStrategy": strategy, "exclusivePolicy": exclusive}});
        Situation::of(super::super::tests::devices(devices), &[(RDMA, amount)], &[(HINT, hint)])
    };
    let four = [rdma(0, 0, 0), rdma(1, 0, 0), rdma(2, 1, 0), rdma(3, 1, 0)];
    let mut sick = four[..2].to_vec();
    sick[1]["health"] = json!(false);
    let lacks = json!("Insufficient rdma devices");
    check([
        (of(&four, 200, "ApplyForAll", None), json!({"rdma": [[0], [1]]})),
        (of(&four, 200, "RequestsAsCount", None), json!({"rdma": [[0], [1]]})),
        (of(&four, 50, "ApplyForAll", None), json!({"rdma": [[0], [1], [2], [3]]})),
        (of(&four, 5, "RequestsAsCount", None), lacks.clone()),
        (of(&sick, 10, "ApplyForAll", None), lacks.clone()),
        // Two whole adapters, and one of the four is in use.
        (
            of(&four, 2, "RequestsAsCount", Some("DeviceLevel"))
                .beside(json!({"rdma": [{"minor": 0, "resources": {RDMA: "1"}}]})),
            json!({"rdma": [[1], [2]]}),
        ),
    ]);
    let each = of(&four, 2, "RequestsAsCount", Some("DeviceLevel"));
    let spec = spec(&[(RDMA, 2)], &[(HINT, each.annotations[0].1.as_str())]);
    let request = Request::of(&spec).expect("valid").expect("it requests devices");
    assert_eq!(request.parts[0].each.get(super::super::amounts::RDMA), 100);
}

#[test]
fn partitions_leave_larger_ones_free_and_are_as_good_as_demanded() {
    let gpus = |n: i64| devices(&(0..n).map(|minor| gpu(minor, minor / 2)).collect::<Vec<_>>());
    let whole = [(WHOLE, 1)];
    let one = |minors: &[i64], score| json!({"minors": minors, "allocationScore": score});
    let singles: Vec<Value> = (0..4).map(|minor| one(&[minor], 1)).collect();
    let pairs = json!({"1": singles, "2": [one(&[0, 1], 1), one(&[2, 3], 2)], "4": [one(&[0, 1, 2, 3], 1)]});
    let mut sick = with_table(gpus(4), &pairs);
    sick["spec"]["devices"][0]["health"] = json!(false);
    let scores = json!({"1": [one(&[0], 1), one(&[1], 1), one(&[2], 2), one(&[3], 2)]});
    let has = |minor: i64| json!({"gpu": [{"minor": minor, "resources": {GPU: "100", "koordinator.sh/gpu-core": "50"}}]});
    let spec = |policy: &str| (PARTITION_SPEC, json!({"allocatePolicy": policy}));
    let busy = |policy| {
        let situation = Situation::of(with_table(gpus(4), &scores), &whole, &[spec(policy)]);
        situation.beside(has(0)).beside(has(1))
    };
    check([
        // The pair of the unhealthy GPU counts as free, so the other single of it is not taken.
        (Situation::of(sick, &whole, &[]), json!({"gpu": [[2]]})),
        (busy("Restricted"), json!("Insufficient Partitioned GPU Devices")),
        (busy("BestEffort"), json!({"gpu": [[2]]})),
    ]);
}

#[test]
fn who_writes_the_table_says_whether_it_must_be_kept() {
    let whole = [(WHOLE, 2)];
    let policy = |mut device: Value, policy: &str| {
        device["metadata"]["labels"] = json!({POLICY: policy});
        device
    };
    let three = || devices(&[gpu(0, 0), gpu(1, 0), gpu(2, 1)]);
    // An entry of two GPUs of which one is in use.
    let table = || with_table(three(), &json!({"2": [{"minors": [0, 1]}]}));
    let used = json!({"gpu": [{"minor": 0, "resources": {"koordinator.sh/gpu-core": "50"}}]});
    let eight = || devices(&(0..8).map(|minor| gpu(minor, minor / 4)).collect::<Vec<_>>());
    let of = |device, n| Situation::of(device, &[(WHOLE, n)], &[]);
    check([
        (Situation::of(policy(three(), "Honor"), &whole, &[]), json!({"gpu": [[0], [1]]})),
        (
            Situation::of(three(), &whole, &[]).labelled(POLICY, "Honor"),
            json!("node(s) missing GPU Partition Table"),
        ),
        (
            Situation::of(table(), &whole, &[]).labelled(POLICY, "Honor").beside(used.clone()),
            json!({"gpu": [[1], [2]]}),
        ),
        (
            Situation::of(policy(table(), "Honor"), &whole, &[]).beside(used),
            json!("Insufficient Partitioned GPU Devices"),
        ),
        // The built-in table has no entry of three.
        (
            of(eight(), 3).labelled(POLICY, "Honor").labelled(MODEL, "H800"),
            json!("node(s) Unsupported number of GPU requests"),
        ),
        (
            of(eight(), 3).labelled(POLICY, "Honor").labelled(MODEL, "H800").labelled(GPU_VENDOR, "metax"),
            json!("node(s) missing GPU Partition Table"),
        ),
    ]);
}

#[test]
fn the_type_that_is_allocated_first_is_missed_first() {
    let mut sick = rdma(0, 0, 0);
    sick["health"] = json!(false);
    let used = json!({"gpu": [{"minor": 0, "resources": {"koordinator.sh/gpu-core": "50"}}]});
    let joint = (JOINT, json!({"deviceTypes": ["gpu", "rdma"]}));
    let both = [(WHOLE, 1), (RDMA, 50)];
    let unselected = (HINT, json!({"rdma": {"selector": {"matchLabels": {"no": "such"}}}}));
    let lacks = json!("Insufficient GPU Devices");
    check([
        (
            Situation::of(devices(&[gpu(0, 0), sick]), &both, std::slice::from_ref(&joint))
                .beside(used.clone()),
            lacks.clone(),
        ),
        (
            Situation::of(devices(&[gpu(0, 0), rdma(0, 0, 0)]), &both, &[joint.clone(), unselected])
                .beside(used.clone()),
            lacks,
        ),
        (
            Situation::of(devices(&[gpu(0, 0)]), &both, &[joint]).beside(used),
            json!("Insufficient rdma devices"),
        ),
    ]);
}

#[test]
fn virtual_functions_are_taken_by_their_bus_addresses_across_groups() {
    let mut adapter = rdma(0, 0, 0);
    let function = |minor: i64, bus: &str| json!({"minor": minor, "busID": bus});
    adapter["vfGroups"] = json!([
        {"labels": {"vf": "fast"}, "vfs": [function(0, "20:00.0"), function(1, "20:01.0")]},
        {"labels": {"vf": "slow"}, "vfs": [function(0, "20:10.0")]},
    ]);
    let used = json!({"rdma": [{"minor": 0, "resources": {RDMA: "1"}, "extension": {"vfs": [function(0, "20:00.0")]}}]});
    let any = (HINT, json!({"rdma": {"vfSelector": {}}}));
    let situation = Situation::of(devices(&[adapter]), &[(RDMA, 1)], &[any]).beside(used);
    check([(situation, json!({"rdma": [[0, "20:01.0"]]}))]);
}

#[test]
fn only_what_is_requested_must_be_free() {
    let mut card = gpu(0, 0);
    card["resources"]["koordinator.sh/gpu-memory"] = json!(25_757_458_098_i64);
    let half = json!({"gpu": [{"minor": 0, "resources": {"koordinator.sh/gpu-memory": "12Gi",
        "koordinator.sh/gpu-memory-ratio": "50"}}]});
    // The other half of the memory is a few bytes less than half of the card.
    let situation = Situation::of(devices(&[card]), &[(GPU, 50)], &[]).beside(half);
    check([(situation, json!({"gpu": [[0]]}))]);
}

#[test]
fn a_gpu_without_a_place_is_taken_like_the_others() {
    let mut lost = gpu(0, 0);
    lost["topology"] = Value::Null;
    let situation = |n| Situation::of(devices(&[lost.clone(), gpu(1, 0)]), &[(WHOLE, n)], &[]);
    check([(situation(2), json!({"gpu": [[0], [1]]})), (situation(3), json!("Insufficient gpu devices"))]);
}
