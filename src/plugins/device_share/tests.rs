//! The allocator on small nodes, and the plugin on a small cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_cluster::{ClusterEvent, Stage};
use pellucid_framework::plugin::Plugin;
use pellucid_framework::topology::NumaMask;
use pellucid_framework::{Code, PluginFactory};
use pellucid_model::requests::{PodRequests, ResourceList};
use pellucid_model::selector::Labels;
use pellucid_model::{CustomKindRef, Name, Now, PodKey};
use serde_json::json;

use super::*;
use pellucid_plugin_helper::testing::{
    TestCluster, filter_all, filter_causes, measures, node, pod_with, raw_scores,
};

const GI: i64 = 1 << 30;

pub(super) fn plugin(args: Value) -> Arc<dyn Plugin> {
    registration().make(&args).expect("valid arguments")
}

pub(super) fn cluster(plugin: &Arc<dyn Plugin>) -> TestCluster {
    TestCluster::with(std::slice::from_ref(plugin), [node("a"), node("b")])
}

/// Makes a GPU of 16 GiB. Those of a switch share its number, two switches a NUMA node.
pub(super) fn gpu(minor: i64, switch: i64) -> Value {
    json!({
        "type": "gpu", "minor": minor, "id": format!("GPU-{minor}"), "health": true,
        "resources": {"koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory": "16Gi",
            "koordinator.sh/gpu-memory-ratio": 100},
        "topology": {"socketID": 0, "nodeID": switch / 2, "pcieID": format!("p{switch}"), "busID": ""},
    })
}

pub(super) fn rdma(minor: i64, switch: i64, functions: usize) -> Value {
    let functions: Vec<Value> =
        (0..functions).map(|n| json!({"minor": n, "busID": format!("{minor}.{n}")})).collect();
    json!({
        "type": "rdma", "minor": minor, "id": format!("mlx{minor}"), "health": true,
        "resources": {"koordinator.sh/rdma": 100},
        "topology": {"socketID": 0, "nodeID": switch / 2, "pcieID": format!("p{switch}"), "busID": ""},
        "vfGroups": [{"labels": {"vf": "fast"}, "vfs": functions}],
    })
}

/// Applies a Device, or deletes it. Returns the events.
pub(super) fn report(
    cluster: &mut TestCluster,
    name: &str,
    device: &Value,
    version: &str,
) -> Vec<ClusterEvent> {
    let object = CustomObject {
        kind: CustomKindRef(&DEVICE),
        namespace: Name::default(),
        name: name.into(),
        uid: "u".into(),
        resource_version: version.into(),
        value: (DEVICE.decode)(device).expect("a Device that can be read"),
        pod: None,
    };
    let mut events = Vec::new();
    cluster.cluster.apply_custom(Arc::new(object), &mut events);
    events
}

pub(super) fn devices(all: &[Value]) -> Value {
    json!({"metadata": {"name": "a"}, "spec": {"devices": all}})
}

pub(super) fn spec(wanted: &[(&str, i64)], annotations: &[(&str, &str)]) -> PodSpec {
    let mut scalars: Vec<(Name, i64)> = wanted.iter().map(|(name, n)| (Name::new(name), *n)).collect();
    scalars.sort();
    let list = ResourceList { scalars: scalars.into(), ..ResourceList::default() };
    let pairs = annotations.iter().map(|(key, text)| (Name::new(key), Name::new(text)));
    PodSpec {
        requests: PodRequests { list, ..PodRequests::default() },
        annotations: Labels::new(pairs),
        ..PodSpec::default()
    }
}

/// Adds a bound pod that says what it has.
pub(super) fn bound(cluster: &mut TestCluster, name: &str, node: &str, allocated: &str) {
    let pod = Pod {
        key: PodKey::new("d", name),
        uid: name.into(),
        node_name: Some(node.into()),
        marks: Labels::new([(allocation::DEVICE_ALLOCATED.into(), Name::new(allocated))]),
        ..pod_with(spec(&[("koordinator.sh/gpu", 50)], &[]))
    };
    cluster.cluster.apply_pod(Arc::new(pod), &mut Vec::new());
}

/// Returns the annotation that a pod would get on node a: minors by type.
fn minors(plugin: &Arc<dyn Plugin>, cluster: &TestCluster, spec: PodSpec) -> BTreeMap<String, Vec<i64>> {
    let reserve = plugin.reserve().expect("it reserves");
    let made = reserve
        .reserve(cluster.view(), &pod_with(spec), cluster.idx("a"))
        .unwrap_or_else(|c| panic!("{c:?}"));
    let made = made.expect("it has devices");
    let what = made.what.downcast::<allocation::Allocation>().expect("an allocation");
    let mut all: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for given in &what.given {
        all.entry(given.kind.to_string()).or_default().push(given.minor);
    }
    all
}

fn gpus(minors: &[i64]) -> BTreeMap<String, Vec<i64>> {
    BTreeMap::from([("gpu".to_owned(), minors.to_vec())])
}

pub(super) const HINT: &str = hints::ALLOCATE_HINT;
pub(super) const JOINT: &str = hints::JOINT_ALLOCATE;

#[test]
fn a_node_without_a_device_takes_what_it_offers_and_a_cluster_without_any_asks_nothing() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    let odd = spec(&[("koordinator.sh/gpu-core", 50)], &[]);
    assert!(filter_all(&*plugin, &cluster, &odd).is_empty());
    assert_eq!(raw_scores(&*plugin, &cluster, &spec(&[("nvidia.com/gpu", 1)], &[])), None);

    let events = report(&mut cluster, "a", &devices(&[]), "1");
    assert!(!events.is_empty());
    let said = pellucid_plugin_helper::testing::pre_filter(&*plugin, &cluster, &odd).err();
    assert_eq!(said.as_deref(), Some("invalid resource device requests: [koordinator.sh/gpu-core]"));
    let whole = spec(&[("nvidia.com/gpu", 1)], &[]);
    let refused = filter_all(&*plugin, &cluster, &whole);
    assert_eq!(refused, BTreeMap::from([("a".to_owned(), "Insufficient gpu devices".to_owned())]));
    assert!(
        pellucid_plugin_helper::testing::pre_filter(&*plugin, &cluster, &spec(&[], &[]))
            .expect("no refusal")
            .is_none()
    );
}

#[test]
fn cards_in_use_are_filled_in_their_scope_and_others_stay_whole() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", &devices(&[gpu(0, 0), gpu(1, 0), gpu(2, 1), gpu(3, 1), gpu(4, 2)]), "1");
    bound(
        &mut cluster,
        "p",
        "a",
        r#"{"gpu":[{"minor":3,"resources":{"koordinator.sh/gpu-core":"50",
        "koordinator.sh/gpu-memory":"8Gi","koordinator.sh/gpu-memory-ratio":"50"}}]}"#,
    );
    // The switch of card 3 is in use, and LeastAllocated takes the other card of it.
    assert_eq!(minors(&plugin, &cluster, spec(&[("koordinator.sh/gpu", 50)], &[])), gpus(&[2]));
    assert_eq!(minors(&plugin, &cluster, spec(&[("nvidia.com/gpu", 1)], &[])), gpus(&[2]));
    assert_eq!(minors(&plugin, &cluster, spec(&[("nvidia.com/gpu", 2)], &[])), gpus(&[0, 1]));
    assert_eq!(minors(&plugin, &cluster, spec(&[("nvidia.com/gpu", 3)], &[])), gpus(&[0, 1, 2]));
    assert_eq!(minors(&plugin, &cluster, spec(&[("nvidia.com/gpu", 4)], &[])), gpus(&[0, 1, 2, 4]));

    let bound_of = |wanted: &[(&str, i64)], gone: ResourceList| {
        let filter = plugin.filter().expect("it filters");
        filter.at_most(cluster.view(), &spec(wanted, &[]), cluster.idx("a"), &gone)
    };
    assert_eq!(bound_of(&[("koordinator.sh/gpu", 50)], ResourceList::default()), 9);
    assert_eq!(bound_of(&[("nvidia.com/gpu", 2)], ResourceList::default()), 2);
    assert_eq!(
        bound_of(&[("koordinator.sh/gpu", 50)], ResourceList { milli_cpu: 1, ..ResourceList::default() }),
        10
    );

    let most = self::plugin(json!({"scoringStrategy": {"type": "MostAllocated"}}));
    assert_eq!(minors(&most, &cluster, spec(&[("koordinator.sh/gpu", 50)], &[])), gpus(&[3]));
    let scoped = |scope: &str, n| {
        let hint = json!({"gpu": {"requiredTopologyScope": scope}}).to_string();
        filter_all(&*plugin, &cluster, &spec(&[("nvidia.com/gpu", n)], &[(HINT, &hint)])).remove("a")
    };
    let narrow = Some("Insufficient Topology Scoped GPU Devices".to_owned());
    assert_eq!([scoped("PCIe", 2), scoped("PCIe", 3), scoped("NUMANode", 3)], [None, narrow.clone(), None]);
    assert_eq!(
        [scoped("NUMANode", 4), scoped("Node", 4), scoped("Device", 1)],
        [narrow.clone(), None, narrow]
    );
}

#[test]
fn memory_and_ratio_follow_from_the_card() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", &devices(&[gpu(0, 0)]), "1");
    let reserve = plugin.reserve().expect("it reserves");
    for (wanted, want) in [
        (
            vec![("koordinator.sh/gpu-memory", 6 * GI)],
            r#"{"koordinator.sh/gpu-memory":"6Gi","koordinator.sh/gpu-memory-ratio":"37"}"#,
        ),
        (
            vec![("koordinator.sh/gpu", 25)],
            r#"{"koordinator.sh/gpu-core":"25","koordinator.sh/gpu-memory":"4Gi","koordinator.sh/gpu-memory-ratio":"25"}"#,
        ),
    ] {
        let made = reserve.reserve(cluster.view(), &pod_with(spec(&wanted, &[])), cluster.idx("a"));
        let made = made.expect("it fits").expect("it has a card");
        let marks = made.marks.expect("marks").made(&made.what);
        let text = format!(r#"{{"gpu":[{{"minor":0,"resources":{want},"id":"GPU-0"}}]}}"#);
        let (got, want): (Value, Value) = (
            serde_json::from_str(&marks.annotations[allocation::DEVICE_ALLOCATED]).expect("JSON"),
            serde_json::from_str(&text).expect("JSON"),
        );
        assert_eq!(got, want);
    }
}

#[test]
fn adapters_are_taken_on_the_switch_of_the_cards() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", &devices(&[gpu(0, 0), gpu(1, 1), rdma(0, 1, 1), rdma(1, 0, 0)]), "1");
    let joint = r#"{"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"}"#;
    let both = [("nvidia.com/gpu", 1), ("koordinator.sh/rdma", 100)];
    let of = |gpu: i64, rdma: i64| {
        BTreeMap::from([("gpu".to_owned(), vec![gpu]), ("rdma".to_owned(), vec![rdma])])
    };
    assert_eq!(minors(&plugin, &cluster, spec(&both, &[(JOINT, joint)])), of(0, 1));
    assert_eq!(minors(&plugin, &cluster, spec(&both, &[])), of(0, 0));
    // A virtual function is on the other switch alone.
    let functions = r#"{"rdma":{"vfSelector":{"matchLabels":{"vf":"fast"}}}}"#;
    let with = spec(&both, &[(JOINT, joint), (HINT, functions)]);
    assert_eq!(minors(&plugin, &cluster, spec(&both, &[(HINT, functions)])), of(0, 0));
    let causes = filter_causes(&*plugin, &cluster, &with);
    assert_eq!(causes["a"].message(), "node(s) Device Joint-Allocate rules violation");
    assert_eq!(causes["a"].code, Code::UnschedulableAndUnresolvable, "nobody's end would help");
    bound(
        &mut cluster,
        "p",
        "a",
        r#"{"rdma":[{"minor":0,"resources":{"koordinator.sh/rdma":"1"},
        "extension":{"vfs":[{"minor":0,"busID":"0.0"}]}}]}"#,
    );
    let causes =
        filter_causes(&*plugin, &cluster, &spec(&[("koordinator.sh/rdma", 1)], &[(HINT, functions)]));
    assert_eq!(causes["a"].message(), "Insufficient rdma devices");
    assert_eq!(causes["a"].code, Code::Unschedulable);
    let of_gpus = r#"{"gpu":{"vfSelector":{}}}"#;
    let causes = filter_causes(&*plugin, &cluster, &spec(&[("nvidia.com/gpu", 1)], &[(HINT, of_gpus)]));
    assert_eq!(causes["a"].message(), "Insufficient gpu VirtualFunctions", "no GPU has any");
    let unknown = r#"{"rdma":{"vfSelector":{"matchLabels":{"vf":"slow"}}}}"#;
    let causes = filter_causes(&*plugin, &cluster, &spec(&[("koordinator.sh/rdma", 1)], &[(HINT, unknown)]));
    assert_eq!(causes["a"].message(), "Insufficient rdma devices");
}

#[test]
fn partitions_are_kept_where_they_must_and_tried_where_they_may() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    let table =
        json!({"2": [{"minors": [0, 3], "allocationScore": 1, "ringBusBandwidth": "100Gi"}]}).to_string();
    let mut device = devices(&[gpu(0, 0), gpu(1, 0), gpu(2, 1), gpu(3, 1)]);
    device["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/gpu-partitions": table});
    report(&mut cluster, "a", &device, "1");
    let pair = [("nvidia.com/gpu", 2)];
    assert_eq!(minors(&plugin, &cluster, spec(&pair, &[])), gpus(&[0, 3]));
    let refusal = |cluster: &TestCluster, n, partition: &str| {
        let spec = spec(&[("nvidia.com/gpu", n)], &[(hints::PARTITION_SPEC, partition)]);
        filter_all(&*plugin, cluster, &spec).remove("a")
    };
    assert_eq!(refusal(&cluster, 2, "{}"), None);
    let fast = r#"{"allocatePolicy":"Restricted","ringBusBandwidth":"200Gi"}"#;
    assert_eq!(refusal(&cluster, 2, fast).as_deref(), Some("Insufficient Partitioned GPU Devices"));
    assert_eq!(refusal(&cluster, 1, "{}").as_deref(), Some("node(s) Unsupported number of GPU requests"));
    // Computing power of two cards with the memory of one is more than the single card has.
    let odd = spec(&[("koordinator.sh/gpu-core", 200), ("koordinator.sh/gpu-memory-ratio", 100)], &[]);
    assert_eq!(filter_all(&*plugin, &cluster, &odd)["a"], "Insufficient GPU Devices");
    bound(&mut cluster, "p", "a", r#"{"gpu":[{"minor":3,"resources":{"koordinator.sh/gpu-core":"10"}}]}"#);
    assert_eq!(
        minors(&plugin, &cluster, spec(&pair, &[])),
        gpus(&[0, 1]),
        "no entry is free, and none is demanded"
    );
    assert_eq!(refusal(&cluster, 2, "{}").as_deref(), Some("Insufficient Partitioned GPU Devices"));
    device["metadata"]["labels"] = json!({"node.koordinator.sh/gpu-partition-policy": "Honor"});
    report(&mut cluster, "a", &device, "2");
    assert_eq!(
        filter_all(&*plugin, &cluster, &spec(&pair, &[]))["a"],
        "Insufficient Partitioned GPU Devices"
    );
    report(&mut cluster, "a", &devices(&[gpu(0, 0)]), "3");
    assert_eq!(refusal(&cluster, 1, "{}").as_deref(), Some("node(s) missing GPU Partition Table"));
}

#[test]
fn partitions_name_the_same_gpus_beside_one_that_is_not_there() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    let mut device = devices(&[gpu(0, 0), gpu(1, 0), gpu(3, 1), gpu(4, 1)]);
    let table = json!({"2": [{"minors": [0, 3], "allocationScore": 1}]}).to_string();
    device["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/gpu-partitions": table});
    report(&mut cluster, "a", &device, "1");
    let pair = spec(&[("nvidia.com/gpu", 2)], &[]);
    bound(&mut cluster, "p", "a", r#"{"gpu":[{"minor":2,"resources":{"koordinator.sh/gpu-core":"10"}}]}"#);
    assert_eq!(minors(&plugin, &cluster, pair.clone()), gpus(&[0, 3]));
    cluster.cluster.delete_pod(&PodKey::new("d", "p"), &mut Vec::new());
    assert_eq!(minors(&plugin, &cluster, pair), gpus(&[0, 3]));
}

#[test]
fn pods_that_share_nothing_keep_apart() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", &devices(&[gpu(0, 0), gpu(1, 0), gpu(2, 2)]), "1");
    let hint = |policy: &str| json!({"gpu": {"exclusivePolicy": policy}}).to_string();
    let pod = Pod {
        key: PodKey::new("d", "p"),
        uid: "p".into(),
        node_name: Some("a".into()),
        marks: Labels::new([(
            allocation::DEVICE_ALLOCATED.into(),
            Name::new(r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"10"}}]}"#),
        )]),
        ..pod_with(spec(&[("koordinator.sh/gpu", 10)], &[(HINT, &hint("PCIeLevel"))]))
    };
    cluster.cluster.apply_pod(Arc::new(pod), &mut Vec::new());
    let ten = |policy: &str| spec(&[("koordinator.sh/gpu", 10)], &[(HINT, &hint(policy))]);
    assert_eq!(minors(&plugin, &cluster, ten("PCIeLevel")), gpus(&[2]), "the other switch");
    assert_eq!(
        minors(&plugin, &cluster, ten("DeviceLevel")),
        gpus(&[0]),
        "the other pod keeps a switch, and no device"
    );
}

#[test]
fn odd_reports_and_odd_annotations_are_named_and_nothing_is_given_twice() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    let mut device =
        devices(&[gpu(0, 0), gpu(0, 0), json!({"type": "gpu", "minor": -1}), gpu(1, 0), json!({"minor": 3})]);
    device["spec"]["devices"][3]["resources"]["koordinator.sh/gpu-core"] = json!("-5");
    device["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/gpu-partitions": "{"});
    device["metadata"]["labels"] = json!({"node.koordinator.sh/gpu-partition-policy": "Maybe"});
    report(&mut cluster, "a", &device, "1");
    let whole = r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"100","koordinator.sh/gpu-memory":"16Gi",
        "koordinator.sh/gpu-memory-ratio":"100"}}]}"#;
    bound(&mut cluster, "first", "a", whole);
    bound(&mut cluster, "second", "a", whole);
    bound(&mut cluster, "lost", "a", r#"{"gpu":[{"minor":9,"resources":{"koordinator.sh/gpu-core":"10"}}]}"#);
    bound(&mut cluster, "odd", "a", "not JSON");
    let view = cluster.view();
    let row = view.state::<NodeDevices>().and_then(|devices| devices.row(cluster.idx("a"))).expect("a row");
    let problems = problems::of_node(view, cluster.idx("a"), row);
    let said: Vec<String> =
        problems.iter().map(|p| format!("{}: {}", p.pod.as_deref().unwrap_or("-"), p.problem)).collect();
    for want in [
        "must be Honor or Prefer",
        "not JSON",
        "gpu 0 is there already",
        "must not be negative",
        "must be given",
        "-: pods have 200 of its 100 koordinator.sh/gpu-core: d/first, d/second",
        "d/lost: the node's Device has no gpu 9",
        "d/odd: not JSON",
    ] {
        assert!(said.iter().any(|said| said.contains(want)), "{want} is not in {said:#?}");
    }
    assert_eq!(problems::unknown_pods(view, cluster.idx("a"), row), ["d/odd"]);
    // Card 1 has no computing power, and card 0 is given already.
    let refused = filter_all(&*plugin, &cluster, &spec(&[("koordinator.sh/gpu", 10)], &[]));
    assert_eq!(refused["a"], "Insufficient GPU Devices");
}

#[test]
fn a_device_that_goes_leaves_allocations_until_the_pods_go() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", &devices(&[gpu(0, 0)]), "1");
    bound(
        &mut cluster,
        "p",
        "a",
        r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"60",
        "koordinator.sh/gpu-memory-ratio":"60"}}]}"#,
    );
    let key = (Name::default(), Name::new("a"));
    cluster.cluster.delete_custom(CustomKindRef(&DEVICE), &key, &mut Vec::new());
    let half = || spec(&[("koordinator.sh/gpu", 50)], &[]);
    assert!(filter_all(&*plugin, &cluster, &half()).is_empty(), "an ordinary resource again");
    report(&mut cluster, "a", &devices(&[gpu(0, 0)]), "2");
    assert_eq!(filter_all(&*plugin, &cluster, &half())["a"], "Insufficient GPU Devices");
    let causes = filter_causes(&*plugin, &cluster, &half());
    assert_eq!(causes["a"].code, Code::Unschedulable);
    assert_eq!(
        measures(&*plugin, &cluster, &half()),
        [("gpu devices with gpu-core 50 and gpu-memory-ratio 50 free".to_owned(), 1, 0, "a".to_owned())]
    );
    let filter = plugin.filter().expect("it filters");
    let said = filter.detail(cluster.view(), &half(), &causes["a"], cluster.idx("a"), Now::default());
    let want =
        "1 gpu device with gpu-core 50 and gpu-memory-ratio 50 free wanted; 0 of 1 do: 1 short of gpu-core";
    assert_eq!(said.as_deref(), Some(want));
    let told = filter.requirements(cluster.view(), &half(), &[cluster.idx("a")]);
    let want = "1 gpu device with gpu-core 50 and gpu-memory-ratio 50 free: 0 of 2 nodes have them (the most is 0 on a), 1 \
                would without any pods";
    assert_eq!(told[0].text, want);
    let mut events = Vec::new();
    cluster.cluster.delete_pod(&PodKey::new("d", "p"), &mut events);
    assert!(filter_all(&*plugin, &cluster, &half()).is_empty());
    let hints = plugin.hints().expect("it has hints");
    let waiting = pod_with(half());
    assert!(events.iter().any(|event| hints.hint(cluster.view(), &waiting, event) == Hint::Queue));
}

#[test]
fn hints_name_the_numa_nodes_whose_cards_would_do() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", &devices(&[gpu(0, 0), gpu(1, 0), gpu(2, 2)]), "1");
    let provider = plugin.topology_hints().expect("it provides hints");
    let hints = |n: i64| {
        let spec = spec(&[("nvidia.com/gpu", n)], &[]);
        let value = provider.prepare(cluster.view(), &spec).expect("it concerns devices");
        let made = provider.hints(cluster.view(), &spec, &value, cluster.idx("a")).expect("it fits");
        let hints = made[0].hints.clone().expect("there is a topology");
        hints.iter().map(|hint| (hint.mask.map_or(0, |mask| mask.0), hint.preferred)).collect::<Vec<_>>()
    };
    assert_eq!(hints(1), [(0b01, true), (0b10, true), (0b11, false)]);
    assert_eq!(hints(2), [(0b01, true), (0b11, false)]);
    assert_eq!(hints(3), [(0b11, true)]);
    let affinity = |mask| NumaAffinity {
        policy: pellucid_framework::topology::NumaPolicy::Restricted,
        mask: NumaMask(mask),
        preferred: true,
        score: 0,
    };
    let reserve = plugin.reserve().expect("it reserves");
    let pod = pod_with(spec(&[("nvidia.com/gpu", 1)], &[]));
    let made = reserve.reserve_aligned(cluster.view(), &pod, cluster.idx("a"), affinity(0b10));
    let made = made.expect("it fits").expect("it has a card").what;
    assert_eq!(made.downcast::<allocation::Allocation>().expect("an allocation").given[0].minor, 2);
    let two = spec(&[("nvidia.com/gpu", 2)], &[]);
    let value = provider.prepare(cluster.view(), &two).expect("it concerns devices");
    assert!(provider.fits(cluster.view(), &two, &value, cluster.idx("a"), affinity(0b10)).is_err());
    assert!(provider.prepare(cluster.view(), &spec(&[], &[])).is_none());
    let idle = self::plugin(json!({"disableDeviceNUMATopologyAlignment": true}));
    assert!(idle.topology_hints().expect("it provides hints").prepare(cluster.view(), &two).is_none());
}

#[test]
fn what_is_undone_leaves_nothing_behind() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", &devices(&[gpu(0, 0)]), "1");
    let pod = Arc::new(Pod {
        key: PodKey::new("d", "w"),
        uid: "w".into(),
        ..pod_with(spec(&[("koordinator.sh/gpu", 50)], &[]))
    });
    cluster.cluster.apply_pod(pod.clone(), &mut Vec::new());
    let (id, at) = (cluster.cluster.find_pod(&pod.key).expect("it waits"), cluster.idx("a"));
    let used = |cluster: &TestCluster| {
        let row = cluster.view().state::<NodeDevices>().and_then(|devices| devices.row(cluster.idx("a")));
        row.expect("a row").card(0).taken.used.get(amounts::CORE)
    };
    let overlay = cluster.cluster.begin();
    cluster.cluster.place(id, at, Stage::Reserved);
    let made = plugin
        .reserve()
        .expect("it reserves")
        .reserve(cluster.view(), &pod, at)
        .expect("it fits")
        .expect("a card");
    cluster.cluster.reserve(
        id,
        pellucid_cluster::Hold { plugin: NAME, what: made.what, marks: made.marks, whole: None },
    );
    assert_eq!(used(&cluster), 50);
    cluster.cluster.rollback(overlay);
    assert_eq!(used(&cluster), 0);
}
