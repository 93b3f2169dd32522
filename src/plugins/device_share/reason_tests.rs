//! Each reason with a node that gives it, and what is said of that node.

use pellucid_framework::{Code, PluginFactory};
use pellucid_model::Now;
use serde_json::json;

use super::tests::{HINT, JOINT, bound, cluster, devices, gpu, plugin, rdma, report, spec};
use super::*;
use pellucid_model::Node;
use pellucid_model::selector::Labels;
use pellucid_plugin_helper::testing::{TestCluster, filter_causes, node};

/// What is requested, with which annotations, on which devices, and what one pod has of them.
struct Situation {
    wanted: &'static [(&'static str, i64)],
    annotations: &'static [(&'static str, &'static str)],
    devices: Vec<Value>,
    has: &'static str,
    /// Whether the node has a partition table, of one pair.
    has_table: bool,
}

/// Returns code, whether pods that end could help, and what is said of the node.
fn said(situation: &Situation) -> (&'static str, bool, Option<String>) {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    let mut device = devices(&situation.devices);
    if situation.has_table {
        let table = json!({"2": [{"minors": [0, 1]}]}).to_string();
        device["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/gpu-partitions": table});
    }
    report(&mut cluster, "a", &device, "1");
    if !situation.has.is_empty() {
        bound(&mut cluster, "p", "a", situation.has);
    }
    let spec = spec(situation.wanted, situation.annotations);
    let cause = match filter_causes(&*plugin, &cluster, &spec).remove("a") {
        Some(cause) => cause,
        None => match plugin.pre_filter().map(|point| point.pre_filter(cluster.view(), &spec)) {
            Some(pellucid_framework::PreFiltered::Refused(cause)) => cause,
            _ => panic!("{:?} is not refused", situation.wanted),
        },
    };
    let filter = plugin.filter().expect("it filters");
    let detail = filter.detail(cluster.view(), &spec, &cause, cluster.idx("a"), Now::default());
    (cause.reasons[0].code.as_str(), cause.code == Code::Unschedulable, detail)
}

const PARTITION: &str = hints::PARTITION_SPEC;
const FIRST: &str = r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"60","koordinator.sh/gpu-memory-ratio":"60"}}]}"#;

#[test]
fn each_reason_is_given_with_its_numbers() {
    let plain = |mut gpu: Value| {
        gpu["topology"] = Value::Null;
        gpu
    };
    let sick = |mut device: Value| {
        device["health"] = json!(false);
        device
    };
    let without_functions = |mut adapter: Value| {
        adapter["vfGroups"] = json!([]);
        adapter
    };
    let of =
        |wanted, annotations, devices, has| Situation { wanted, annotations, devices, has, has_table: true };
    let bare = |situation: Situation| Situation { has_table: false, ..situation };
    let two = || vec![gpu(0, 0), gpu(1, 1)];
    for (situation, code, is_open, detail) in [
        (
            of(&[("nvidia.com/gpu", 2)], &[], vec![plain(gpu(0, 0)), plain(gpu(2, 0))], FIRST),
            "InsufficientDevices",
            true,
            "2 gpu devices, each with gpu-core 100 and gpu-memory-ratio 100 free wanted; 1 of 2 do: 1 short of gpu-core",
        ),
        (
            of(&[("nvidia.com/gpu", 2)], &[], two(), FIRST),
            "InsufficientGpuDevices",
            true,
            "2 gpu devices, each with gpu-core 100 and gpu-memory-ratio 100 free wanted; 1 of 2 do: 1 short of gpu-core",
        ),
        (
            bare(of(
                &[("nvidia.com/gpu", 2)],
                &[(HINT, r#"{"gpu":{"requiredTopologyScope":"PCIe"}}"#)],
                two(),
                "",
            )),
            "InsufficientTopologyScopedGpuDevices",
            false,
            "2 gpu devices, each with gpu-core 100 and gpu-memory-ratio 100 free wanted; 2 of 2 do; by PCIe switch: 1 on p0, \
             1 on p1",
        ),
        (
            of(&[("nvidia.com/gpu", 2)], &[(PARTITION, "{}")], two(), FIRST),
            "InsufficientPartitionedGpuDevices",
            true,
            "of 1 partitions of 2 GPUs: 1 with a GPU in use",
        ),
        (
            of(&[("nvidia.com/gpu", 1)], &[(PARTITION, "{}")], two(), ""),
            "UnsupportedGpuCount",
            false,
            "1 GPUs are requested, and there are partitions of 2",
        ),
        (
            bare(of(&[("nvidia.com/gpu", 1)], &[(PARTITION, "{}")], two(), "")),
            "MissingGpuPartitionTable",
            false,
            "",
        ),
        (
            of(
                &[("nvidia.com/gpu", 1)],
                &[(HINT, r#"{"gpu":{"requiredTopologyScope":"Node"}}"#)],
                vec![plain(gpu(0, 0))],
                "",
            ),
            "MissingGpuTopology",
            false,
            "",
        ),
        (
            of(
                &[("koordinator.sh/gpu.shared", 2), ("koordinator.sh/gpu-memory-ratio", 20)],
                &[(HINT, r#"{"gpu":{"requiredTopologyScope":"Node"}}"#)],
                two(),
                "",
            ),
            "UnsupportedMultiSharedGpu",
            false,
            "",
        ),
        (
            of(
                &[("nvidia.com/gpu", 1), ("koordinator.sh/rdma", 50)],
                &[(JOINT, r#"{"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"}"#)],
                vec![gpu(0, 0), rdma(0, 1, 1)],
                "",
            ),
            "JointAllocateViolation",
            false,
            "free by PCIe switch: p0 1 of 1 gpu and no rdma; p1 no gpu and 1 of 1 rdma",
        ),
        (
            of(
                &[("koordinator.sh/rdma", 50)],
                &[(HINT, r#"{"rdma":{"vfSelector":{}}}"#)],
                vec![rdma(0, 1, 1)],
                r#"{"rdma":[{"minor":0,"resources":{},"extension":{"vfs":[{"busID":"0.0"}]}}]}"#,
            ),
            "InsufficientDevices",
            true,
            "1 rdma device with rdma 50 free wanted; 0 of 1 do: 1 without a free virtual function",
        ),
        (
            of(
                &[("koordinator.sh/rdma", 50)],
                &[(HINT, r#"{"rdma":{"allocateStrategy":"ApplyForAll"}}"#)],
                vec![rdma(0, 1, 1), sick(rdma(1, 1, 1))],
                "",
            ),
            "InsufficientDevices",
            false,
            "2 rdma devices, each with rdma 50 free wanted; 1 of 2 do: 1 not healthy",
        ),
        (
            of(
                &[("koordinator.sh/rdma", 50)],
                &[(HINT, r#"{"rdma":{"vfSelector":{}}}"#)],
                vec![without_functions(rdma(0, 1, 1))],
                "",
            ),
            "InsufficientVirtualFunctions",
            false,
            "1 rdma device with a virtual function wanted, and no rdma device of the node has any",
        ),
        (of(&[("koordinator.sh/gpu.shared", 2)], &[], two(), ""), "InvalidDeviceRequest", false, ""),
        (of(&[("koordinator.sh/rdma", 150)], &[], two(), ""), "InvalidDeviceUnit", false, ""),
        (of(&[("nvidia.com/gpu", 1)], &[(HINT, "{")], two(), ""), "DeviceAnnotationUnreadable", false, ""),
    ] {
        let (got, could_help, told) = said(&situation);
        assert_eq!(
            (got, could_help, told.as_deref().unwrap_or("")),
            (code, is_open, detail),
            "{:?}",
            situation.annotations
        );
    }
}

#[test]
fn a_pod_that_shares_a_gpu_by_a_provider_needs_a_node_with_it() {
    let plugin = plugin(Value::Null);
    let labels = |provider: &str| Labels::new([(hints::ISOLATION_PROVIDER.into(), provider.into())]);
    let labelled = Node { labels: labels("HAMi-core"), ..node("b") };
    let mut cluster = TestCluster::with(std::slice::from_ref(&plugin), [node("a"), labelled]);
    for name in ["a", "b"] {
        report(&mut cluster, name, &devices(&[gpu(0, 0), gpu(1, 0)]), "1");
    }
    let refused = |amount, provider| {
        let spec = PodSpec { labels: labels(provider), ..spec(&[("koordinator.sh/gpu", amount)], &[]) };
        let causes = filter_causes(&*plugin, &cluster, &spec).into_iter();
        causes.map(|(node, cause)| format!("{node}: {}", cause.message())).collect::<Vec<_>>()
    };
    let missing = |node| format!("{node}: GPUIsolationProviderHAMICore not found on the node");
    assert_eq!(refused(50, "HAMi-core"), [missing("a")]);
    assert_eq!(refused(50, "other"), [missing("a"), missing("b")]);
    assert_eq!((refused(50, "").len(), refused(200, "HAMi-core").len()), (0, 0), "whole GPUs are not shared");
    let spec = PodSpec { labels: labels("other"), ..spec(&[("koordinator.sh/gpu", 50)], &[]) };
    let cause = filter_causes(&*plugin, &cluster, &spec).remove("a").expect("it is refused");
    assert_eq!(cause.reasons[0].code.as_str(), "GpuIsolationMissing");
    assert_eq!(cause.code, Code::UnschedulableAndUnresolvable, "no pod's end helps");
}

#[test]
fn parts_of_cards_are_fragments() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", &devices(&[gpu(0, 0), gpu(1, 0), gpu(2, 1)]), "1");
    let mut sick = gpu(0, 0);
    sick["health"] = json!(false);
    report(&mut cluster, "b", &devices(&[sick, gpu(1, 0)]), "2");
    bound(&mut cluster, "p", "a", FIRST);
    let full = r#"{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"100","koordinator.sh/gpu-memory-ratio":"100"}}]}"#;
    bound(&mut cluster, "q", "a", full);
    let endpoint = registration().endpoints().into_iter().find(|endpoint| endpoint.path == "fragmentation");
    let (params, list) = (Default::default(), pellucid_framework::list::List::default());
    let cx = pellucid_framework::endpoint::ReadContext {
        view: cluster.view(),
        params: &params,
        now: Now::default(),
        list: &list,
    };
    let read = (endpoint.expect("it is registered").read)(&cx).expect("an answer");
    let total = &read["total"];
    let counts = ["cards", "unhealthy", "unused", "shared", "full", "freePercent", "fragmentPercent"]
        .map(|n| &total[n]);
    assert_eq!(json!(counts), json!([5, 1, 2, 1, 1, 240, 40]), "{read}");
    let room: Vec<Value> = read["room"]
        .as_array()
        .expect("sizes")
        .iter()
        .map(|r| json!([r["percent"], r["nodes"], r["pods"]]))
        .collect();
    assert_eq!(room[..4], [json!([25, 2, 9]), json!([50, 2, 4]), json!([100, 2, 2]), json!([200, 0, 0])]);
    assert_eq!(read["rows"][0]["nodeName"], "a");
}
