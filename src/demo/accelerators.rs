//! The devices and NUMA nodes of the demo: three nodes with four GPUs and two RDMA adapters each, with a profile of their own. A
//! gang has GPUs and RDMA adapters beside each other, trainings and notebooks share the other cards, and a gang has most of the
//! CPUs of every NUMA node. When all trainings but one have ended, a part of every card is used by a notebook, and what comes
//! then finds no place: another such gang, a pod that wants a whole card, and one that wants more CPUs than a NUMA node has left.

use pellucid_cycle::Snapshot;
use pellucid_model::CustomKindRef;
use pellucid_plugins::device_share::DEVICE;
use pellucid_plugins::node_numa_resource::NODE_RESOURCE_TOPOLOGY;
use pellucid_plugins::{device_share, node_numa_resource};
use serde_json::{Value, json};

use super::cluster::{in_pool, pod, with};
use super::gangs::{of_group, pod_group};

/// Scheduler name of the profile with DeviceShare and NodeNUMAResource.
const PROFILE: &str = "accelerators";
/// Name of the nodes, without their numbers.
pub(super) const POOL: &str = "rig";
/// Number of nodes.
pub(super) const NODES: usize = 3;
/// Number of cards that are shared.
const SHARED: u32 = 8;
/// Taint of the nodes.
pub(super) const TAINT: (&str, &str) = ("accelerator", "present");
/// What is on a node, for the sandbox.
pub(super) const ANNOTATIONS: [(&str, &str); 2] = [
    ("sandbox.pellucid.dev/machine", "2 sockets x 1 NUMA x 8 cores x 2 threads"),
    ("sandbox.pellucid.dev/devices", "4 GPUs x 16Gi, 2 per switch, 2 per NUMA, 2 RDMA"),
];
/// Label of a node: what a pod gets lies in one NUMA node.
pub(super) const POLICY: (&str, &str) = ("node.koordinator.sh/numa-topology-policy", "SingleNUMANode");

/// Returns the profile.
pub(super) fn profile() -> Value {
    json!({
        "schedulerName": PROFILE,
        "plugins": {"multiPoint": {"enabled": [
            {"name": device_share::NAME}, {"name": node_numa_resource::NAME},
        ]}},
    })
}

/// Returns the pods that find their places.
pub(super) fn fitting() -> Vec<Value> {
    let mut all = joint("allreduce");
    all.push(pod_group("solver", 6));
    all.extend((1..=6).map(|n| of_group("solver", pinned(&format!("solver-{n}"), 10))));
    let sharing = |name: &'static str, percent: &'static str| {
        move |n: u32| requesting(of_profile(&format!("{name}-{n}"), "0"), &[("koordinator.sh/gpu", percent)])
    };
    // No two trainings fit on a card, so each card gets one, and a notebook beside it.
    all.extend((1..=SHARED).map(sharing("training-share", "70")));
    all.extend((1..=SHARED).map(sharing("notebook", "30")));
    all
}

/// Returns the names of the pods that end once all have their places.
pub(super) fn ending() -> impl Iterator<Item = String> {
    (2..=SHARED).map(|n| format!("training-share-{n}"))
}

/// Returns the pods that come then.
pub(super) fn stuck() -> Vec<Value> {
    let mut all = joint("allgather");
    all.push(requesting(of_profile("whole-card", "0"), &[("nvidia.com/gpu", "1")]));
    all.push(pinned("eight-cpus", 8));
    all
}

/// Returns a gang of two, each with two GPUs and an RDMA adapter of one PCIe switch.
fn joint(name: &str) -> Vec<Value> {
    let member = |n: u32| {
        let wanted = [("nvidia.com/gpu", "2"), ("koordinator.sh/rdma", "100")];
        let pod = requesting(of_profile(&format!("{name}-{n}"), "0"), &wanted);
        let joint = json!({"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"});
        let key = "scheduling.koordinator.sh/device-joint-allocate";
        of_group(name, with(pod, "/metadata/annotations", json!({key: joint.to_string()})))
    };
    vec![pod_group(name, 2), member(1), member(2)]
}

/// Returns a pod with CPUs of its own, in whole cores.
fn pinned(name: &str, cpus: u32) -> Value {
    let spec = json!({"requiredCPUBindPolicy": "FullPCPUs"}).to_string();
    let pod = of_profile(name, &cpus.to_string());
    let mut pod =
        with(pod, "/metadata/annotations", json!({"scheduling.koordinator.sh/resource-spec": spec}));
    pod["metadata"]["labels"]["koordinator.sh/qosClass"] = json!("LSR");
    pod
}

fn of_profile(name: &str, cpu: &str) -> Value {
    let pod = with(in_pool(pod(name, cpu, "256Mi"), POOL), "/spec/schedulerName", json!(PROFILE));
    with(pod, "/spec/tolerations", json!([{"key": TAINT.0, "operator": "Exists"}]))
}

fn requesting(mut pod: Value, amounts: &[(&str, &str)]) -> Value {
    for (name, amount) in amounts {
        for list in ["requests", "limits"] {
            pod["spec"]["containers"][0]["resources"][list][*name] = json!(amount);
        }
    }
    pod
}

/// Returns whether the scheduler knows the devices and CPUs of the nodes, and the amounts that they come to.
pub(super) fn is_known(snapshot: &Snapshot) -> bool {
    let objects = snapshot.cluster.custom_objects();
    let counts = [&DEVICE, &NODE_RESOURCE_TOPOLOGY].map(|kind| objects.iter(CustomKindRef(kind)).count());
    let columns = snapshot.cluster.columns();
    let has_amounts = |node: &pellucid_model::NodeIdx| {
        let rdma = columns.find(&"koordinator.sh/rdma".into());
        rdma.is_some_and(|rdma| columns.allocatable(*node, rdma) > 0)
    };
    counts == [NODES; 2]
        && snapshot.cluster.present().iter().filter(|node| has_amounts(node)).count() == NODES
}
