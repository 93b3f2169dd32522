//! The plugin through its points, on a small cluster. Here: the cluster, and what the plugin says of its node.

mod advice;
mod refusals;
mod states;

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_framework::PluginFactory;
use pellucid_framework::topology::NumaTopology;
use pellucid_model::requests::{PodRequests, ResourceList};
use pellucid_model::selector::Labels;
use pellucid_model::{CustomKindRef, Name, Node, PodKey};
use serde_json::json;

use super::cpus::topology::CpuInfo;
use super::holding::Holding;
use super::*;
use pellucid_plugin_helper::testing::{
    Random, TestCluster, filter_causes, measures, node, pod_with, pre_filter,
};

fn plugin(args: Value) -> Arc<dyn Plugin> {
    registration().make(&args).expect("valid arguments")
}

/// Returns a NodeResourceTopology of 2 NUMA nodes with 2 cores of 2 threads each, 4 CPUs and 4 GiB.
fn topology(annotations: &[(&str, Value)]) -> Value {
    let info = |id: u16| CpuInfo { id, core: id % 4, socket: 0, node: id % 4 / 2 };
    let infos = (0..8).map(info);
    let cpu = |i: CpuInfo| json!({"id": i.id, "core": i.core, "socket": i.socket, "node": i.node});
    let detail = json!({"detail": infos.map(cpu).collect::<Value>()});
    let mut texts = json!({keys::CPU_TOPOLOGY: detail.to_string()});
    for (key, value) in annotations {
        texts[*key] = json!(value.to_string());
    }
    let resources = json!([{"name": "cpu", "allocatable": "4"}, {"name": "memory", "allocatable": "4Gi"}]);
    let zone = |n: u32| json!({"name": format!("node-{n}"), "type": "Node", "resources": resources});
    json!({"metadata": {"annotations": texts}, "zones": [zone(0), zone(1)]})
}

fn object(name: &str, manifest: &Value, version: &str) -> Arc<CustomObject> {
    Arc::new(CustomObject {
        kind: CustomKindRef(&NODE_RESOURCE_TOPOLOGY),
        namespace: Name::default(),
        name: name.into(),
        uid: "u".into(),
        resource_version: version.into(),
        pod: None,
        value: (NODE_RESOURCE_TOPOLOGY.decode)(manifest).expect("a NodeResourceTopology"),
    })
}

fn report(cluster: &mut TestCluster, name: &str, manifest: &Value) -> ClusterEvent {
    let mut events = Vec::new();
    let version = format!("{}", cluster.cluster.changes().count());
    cluster.cluster.apply_custom(object(name, manifest, &format!("{version}-{manifest}")), &mut events);
    events.pop().expect("an event")
}

fn labelled(name: &str, labels: &[(&str, &str)]) -> Node {
    let labels = Labels::new(labels.iter().map(|(key, value)| ((*key).into(), (*value).into())));
    let allocatable = ResourceList { milli_cpu: 8000, memory: 8 << 30, pods: 110, ..ResourceList::default() };
    Node { labels, allocatable, ..node(name) }
}

/// A cluster with node `a`, of these labels, and its topology.
fn cluster(plugin: &Arc<dyn Plugin>, labels: &[(&str, &str)]) -> TestCluster {
    let mut made = TestCluster::with(std::slice::from_ref(plugin), [labelled("a", labels)]);
    report(&mut made, "a", &topology(&[]));
    made
}

fn spec(milli_cpu: i64, gib: i64, annotations: &[(&str, &str)]) -> PodSpec {
    let list = ResourceList { milli_cpu, memory: gib << 30, ..ResourceList::default() };
    PodSpec {
        priority: 9500,
        requests: PodRequests { list, ..PodRequests::default() },
        annotations: Labels::new(annotations.iter().map(|(key, text)| ((*key).into(), (*text).into()))),
        ..PodSpec::default()
    }
}

/// A pod that gets CPUs of its own.
fn pinned(cpus: i64, resource: &str) -> PodSpec {
    let annotations = [(keys::RESOURCE_SPEC, resource)];
    let given = if resource.is_empty() { &[][..] } else { &annotations[..] };
    PodSpec { labels: Labels::new([(QOS_CLASS.into(), "LSR".into())]), ..spec(cpus * 1000, 1, given) }
}

const FULL: &str = r#"{"requiredCPUBindPolicy": "FullPCPUs"}"#;
const SPREAD: &str = r#"{"requiredCPUBindPolicy": "SpreadByPCPUs"}"#;

fn single(spec: PodSpec) -> PodSpec {
    let policy = (keys::NUMA_TOPOLOGY_SPEC.into(), r#"{"numaTopologyPolicy": "SingleNUMANode"}"#.into());
    let annotations = spec.annotations.iter().cloned().chain([policy]);
    PodSpec { annotations: Labels::new(annotations), ..spec }
}

/// Returns code and words of node a's refusal by the filter, `None` when it passes.
fn refused(
    plugin: &Arc<dyn Plugin>,
    cluster: &TestCluster,
    spec: &PodSpec,
) -> Option<(&'static str, String)> {
    let cause = filter_causes(&**plugin, cluster, spec).remove("a")?;
    Some((cause.reasons[0].code.as_str(), said(plugin, cluster, spec, &cause)))
}

fn said(plugin: &Arc<dyn Plugin>, cluster: &TestCluster, spec: &PodSpec, cause: &Cause) -> String {
    let filter = plugin.filter().expect("it filters");
    let words = filter.detail(cluster.view(), spec, cause, cluster.idx("a"), Now::default());
    words.unwrap_or_default()
}

/// Returns the causes of node a's hints.
fn unaligned(plugin: &Arc<dyn Plugin>, cluster: &TestCluster, spec: &PodSpec) -> Option<Cause> {
    let hints = plugin.topology_hints().expect("it hints");
    let value = hints.prepare(cluster.view(), spec)?;
    let (view, a) = (cluster.view(), cluster.idx("a"));
    let topology: Option<NumaTopology> = match hints.topology(view, spec, &value, a) {
        Ok(topology) => topology,
        Err(cause) => return Some(cause),
    };
    topology?;
    hints.hints(view, spec, &value, a).err()
}

/// Binds a pod to node a with what Reserve gives it, on some NUMA nodes or anywhere.
fn bind(
    plugin: &Arc<dyn Plugin>,
    cluster: &mut TestCluster,
    name: &str,
    spec: PodSpec,
    mask: Option<u64>,
) -> String {
    let pod = Pod { key: PodKey::new("d", name), uid: name.into(), ..pod_with(spec) };
    let (reserve, a) = (plugin.reserve().expect("it reserves"), cluster.idx("a"));
    let affinity = mask.map(|mask| NumaAffinity {
        policy: NumaPolicy::SingleNumaNode,
        mask: NumaMask(mask),
        preferred: true,
        score: 0,
    });
    let reserved = match affinity {
        Some(affinity) => reserve.reserve_aligned(cluster.view(), &pod, a, affinity),
        None => reserve.reserve(cluster.view(), &pod, a),
    };
    let reserved = reserved.expect("it fits").expect("it holds something");
    let marks = reserved.marks.expect("it is written on the pod");
    let text = marks.made(&reserved.what).annotations[keys::RESOURCE_STATUS].to_string();
    bound(cluster, &pod, &text);
    text
}

fn bound(cluster: &mut TestCluster, pod: &Pod, status: &str) {
    let marks = Labels::new([(keys::RESOURCE_STATUS.into(), status.into())]);
    let pod = Pod { marks, node_name: Some("a".into()), ..pod.clone() };
    cluster.cluster.apply_pod(Arc::new(pod), &mut Vec::new());
}

fn state(cluster: &TestCluster) -> on_node::OnNode {
    let state = cluster.view().state::<NumaNodes>().expect("the state");
    state.on(cluster.idx("a")).cloned().unwrap_or_default()
}
