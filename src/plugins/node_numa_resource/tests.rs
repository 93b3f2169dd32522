//! The plugin through its points: every refusal with its numbers and words, holds and restarts, order of arrival, wake-ups.

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
use crate::testing::{TestCluster, filter_causes, measures, node, pod_with, pre_filter};

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
        value: (NODE_RESOURCE_TOPOLOGY.decode)(manifest).expect("a NodeResourceTopology"),
        pod: None,
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
    let value = hints.prepare(spec)?;
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
    let text = marks.annotations[keys::RESOURCE_STATUS].to_string();
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

#[test]
fn a_pod_that_cannot_be_served_anywhere_is_refused_as_a_whole() {
    let plugin = plugin(json!({}));
    let cluster = cluster(&plugin, &[]);
    let why = |spec: &PodSpec| pre_filter(&*plugin, &cluster, spec).err().unwrap_or_default();
    let half = PodSpec { labels: Labels::new([(QOS_CLASS.into(), "LSE".into())]), ..spec(1500, 1, &[]) };
    assert_eq!(why(&half), "the requested CPUs must be integer");
    let bad = spec(1000, 1, &[(keys::RESOURCE_SPEC, "x")]);
    assert!(why(&bad).starts_with("pod asks for CPUs or NUMA nodes in a way that cannot be read: "));
    assert!(matches!(pre_filter(&*plugin, &cluster, &PodSpec::default()), Ok(None)), "nothing is requested");
}

#[test]
fn nodes_say_why_they_refuse() {
    let plugin = plugin(json!({}));
    let plain = cluster(&plugin, &[]);
    let forced = cluster(&plugin, &[(keys::CPU_BIND_POLICY, "FullPCPUsOnly")]);
    let aligned = cluster(&plugin, &[(keys::NUMA_TOPOLOGY_POLICY, "Restricted")]);
    for (cluster, spec, code, words) in [
        (
            &forced,
            spec(1500, 1, &[]),
            "CpusNotInteger",
            "it forces FullPCPUs, and the pod requests 1500m CPUs",
        ),
        (
            &forced,
            spec(1000, 1, &[]),
            "CpusNotWholeCores",
            "its cores have 2 threads, and the pod asks for 1 CPUs",
        ),
        (
            &forced,
            pinned(2, SPREAD),
            "CpuBindPolicyConflict",
            "it forces FullPCPUs, and the pod requires SpreadByPCPUs",
        ),
        (
            &plain,
            pinned(3, FULL),
            "CpusNotWholeCores",
            "its cores have 2 threads, and the pod asks for 3 CPUs",
        ),
        (
            &plain,
            pinned(6, SPREAD),
            "NotEnoughCpus",
            "the pod asks for 6 CPUs under SpreadByPCPUs; NUMA 0: 2 of 2 cores have a free CPU; NUMA 1: 2 of 2 cores have a free CPU",
        ),
        (
            &aligned,
            single(spec(1000, 1, &[])),
            "NumaPolicyMismatch",
            "its NUMA topology policy is Restricted, and the pod asks for SingleNUMANode",
        ),
    ] {
        assert_eq!(refused(&plugin, cluster, &spec), Some((code, words.to_owned())));
    }
    assert_eq!(refused(&plugin, &plain, &pinned(4, FULL)), None);
    assert_eq!(refused(&plugin, &forced, &spec(2000, 1, &[])), None);
}

#[test]
fn half_used_cores_are_told_with_their_pods() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    bind(&plugin, &mut cluster, "web-3", pinned(1, SPREAD), None);
    let asked = pinned(8, FULL);
    let (code, words) = refused(&plugin, &cluster, &asked).expect("7 CPUs are left");
    assert_eq!(code, "NotEnoughCpus");
    assert_eq!(
        words,
        "the pod asks for 8 CPUs under FullPCPUs; NUMA 0: 1 of 2 cores free in whole, 1 core half used by web-3; NUMA 1: 2 of 2 cores free in whole"
    );
    assert_eq!(measures(&*plugin, &cluster, &asked), [("CPUs of its own".to_owned(), 8, 6, "a".to_owned())]);
}

#[test]
fn a_node_without_a_usable_topology_refuses_only_pods_with_cpus_of_their_own() {
    let plugin = plugin(json!({}));
    let mut cluster = TestCluster::with(std::slice::from_ref(&plugin), [labelled("a", &[])]);
    let asked = pinned(2, "");
    let words = |cluster: &TestCluster| refused(&plugin, cluster, &asked).expect("the CPUs are not known");
    assert_eq!(words(&cluster), ("InvalidCpuTopology", "it has no NodeResourceTopology".to_owned()));
    let twice = json!({"detail": [{"id": 0}, {"id": 0}]});
    report(&mut cluster, "a", &topology(&[(keys::CPU_TOPOLOGY, twice)]));
    let (code, said) = words(&cluster);
    assert_eq!(code, "InvalidCpuTopology");
    assert!(said.ends_with("cpu-topology of its NodeResourceTopology: CPU 0 is named twice"), "{said}");
    report(&mut cluster, "a", &json!({}));
    assert!(words(&cluster).1.ends_with("has no annotation node.koordinator.sh/cpu-topology"));
    assert_eq!(refused(&plugin, &cluster, &spec(2000, 1, &[])), None);
    let missing = refused(&plugin, &cluster, &single(spec(2000, 1, &[])));
    assert_eq!(missing.map(|(code, _)| code), Some("NumaResourcesMissing"));
}

#[test]
fn cpus_of_the_system_and_of_the_kubelet_are_given_to_nobody() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    report(
        &mut cluster,
        "a",
        &topology(&[
            (keys::CPU_MANAGER_POLICY, json!({"policy": "static", "reservedCPUs": "0"})),
            (
                keys::POD_CPU_ALLOCS,
                json!([{"uid": "k", "name": "k", "cpuset": "1,5", "managedByKubelet": true}]),
            ),
            (keys::RESERVATION, json!({"reservedCPUs": "2"})),
            (keys::SYSTEM_QOS_RESOURCE, json!({"cpuset": "3"})),
        ]),
    );
    let on = state(&cluster);
    assert_eq!((on.free().to_string(), on.reserved.to_string()), ("4,6-7".to_owned(), "0-3,5".to_owned()));
    assert_eq!(on.zones[0].amounts.get("cpu"), Some(1000), "4 CPUs without 0, 1 and 5");
    assert_eq!(refused(&plugin, &cluster, &pinned(4, "")).map(|(code, _)| code), Some("NotEnoughCpus"));
    assert_eq!(bind(&plugin, &mut cluster, "p", pinned(3, ""), None), r#"{"cpuset":"4,6-7"}"#);
}

#[test]
fn amplified_nodes_count_cpus_as_they_really_are() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    let amplified = |ratio: &str, milli_cpu| Node {
        annotations: Labels::new([(keys::AMPLIFICATION_RATIO.into(), ratio.into())]),
        allocatable: ResourceList { milli_cpu, ..labelled("a", &[]).allocatable },
        ..labelled("a", &[])
    };
    cluster.apply(amplified(r#"{"cpu": 1.5}"#, 12_000));
    bind(&plugin, &mut cluster, "p", pinned(4, ""), None);
    // 4 CPUs of its own count as 6 of 12; 5 more would count as 7.5, and 6 others as 6.
    let asked = pinned(5, SPREAD.replace("required", "preferred").as_str());
    let (code, words) = refused(&plugin, &cluster, &asked).expect("too much");
    assert_eq!(code, "InsufficientAmplifiedCpu");
    assert_eq!(
        words,
        "amplified by 1.5, 6 CPUs are left; the pod asks for 5 CPUs of its own, which count as 7500m CPUs; 4 CPUs with pods of their own count as 6 CPUs"
    );
    assert_eq!(
        measures(&*plugin, &cluster, &asked),
        [("amplified cpu".to_owned(), 7500, 6000, "a".to_owned())]
    );
    assert_eq!(refused(&plugin, &cluster, &spec(6000, 1, &[])), None);
    cluster.apply(amplified(r#"{"cpu": "1.5"}"#, 12_000));
    let bad = refused(&plugin, &cluster, &spec(1000, 1, &[]));
    assert_eq!(bad.map(|(code, _)| code), Some("InvalidAmplificationRatio"));
}

#[test]
fn numa_nodes_that_cannot_serve_are_told_apart() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    let asked = single(spec(3000, 3, &[]));
    assert_eq!(unaligned(&plugin, &cluster, &asked), None);
    assert_eq!(
        bind(&plugin, &mut cluster, "p", asked.clone(), Some(0b01)),
        r#"{"numaNodeResources":[{"node":0,"resources":{"cpu":"3","memory":"3Gi"}}]}"#
    );
    bind(&plugin, &mut cluster, "q", asked.clone(), Some(0b10));
    let wide = single(spec(2000, 4, &[]));
    let cause = unaligned(&plugin, &cluster, &wide).expect("2 GiB are left in all");
    assert_eq!(cause.message(), "Unsatisfied NUMA cpu, Unsatisfied NUMA memory");
    assert_eq!(
        said(&plugin, &cluster, &wide, &cause),
        "under SingleNUMANode the pod asks for 2 cpu and 4Gi memory; NUMA 0: 1 of 4 cpu, too little alone, 1Gi of 4Gi memory, too little alone; \
         NUMA 1: 1 of 4 cpu, too little alone, 1Gi of 4Gi memory, too little alone"
    );
    let filter = plugin.filter().expect("it filters");
    let measured = filter.measure(cluster.view(), &wide, &cause, &[cluster.idx("a")]);
    let measured: Vec<_> = measured.iter().map(|m| (m.resource.as_str(), m.requested, m.available)).collect();
    assert_eq!(measured, [("NUMA cpu", 2000, 1000), ("NUMA memory", 4 << 30, 1 << 30)]);
    let lax = spec(2000, 4, &[(keys::NUMA_TOPOLOGY_SPEC, r#"{"numaTopologyPolicy": "BestEffort"}"#)]);
    let cause =
        unaligned(&plugin, &cluster, &lax).expect("a node that cannot serve is left before it is chosen");
    assert_eq!(cause.message(), "Insufficient NUMA memory");
}

#[test]
fn amounts_are_split_and_cpus_picked_where_the_split_says() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    bind(&plugin, &mut cluster, "p", single(pinned(2, "")), Some(0b01));
    let wide = pinned(4, "");
    assert_eq!(
        bind(&plugin, &mut cluster, "q", wide, Some(0b11)),
        r#"{"cpuset":"1-2,5-6","numaNodeResources":[{"node":0,"resources":{"cpu":"2","memory":"512Mi"}},{"node":1,"resources":{"cpu":"2","memory":"512Mi"}}]}"#
    );
    let on = state(&cluster);
    assert_eq!((on.single, on.shared), (NumaMask(0), NumaMask(0b11)), "a NUMA node with both is shared");
}

#[test]
fn nothing_is_lost_whichever_of_pod_and_topology_comes_first() {
    let plugin = plugin(json!({}));
    let mut known = cluster(&plugin, &[]);
    let text = bind(&plugin, &mut known, "p", pinned(4, ""), Some(0b01));
    let pod = Pod { key: PodKey::new("d", "p"), uid: "p".into(), ..pod_with(pinned(4, "")) };
    // The pod, then the topology, then the node.
    let mut late = TestCluster::with(std::slice::from_ref(&plugin), []);
    bound(&mut late, &pod, &text);
    report(&mut late, "a", &topology(&[]));
    late.apply(labelled("a", &[]));
    let own = |cluster: &TestCluster| {
        let on = state(cluster);
        (on.taken, on.used.clone(), on.free(), on.single, on.zones.clone())
    };
    assert_eq!(own(&late), own(&known));
    // The topology goes and comes back.
    let old = object("a", &topology(&[]), "1");
    late.cluster.delete_custom(old.kind, &(Name::default(), "a".into()), &mut Vec::new());
    assert_eq!((state(&late).free().len(), state(&late).taken.len()), (0, 4));
    report(&mut late, "a", &topology(&[]));
    assert_eq!(own(&late), own(&known));
}

#[test]
fn an_annotation_that_changes_changes_what_is_held() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    bind(&plugin, &mut cluster, "p", pinned(2, ""), None);
    let pod = Pod { key: PodKey::new("d", "p"), uid: "p".into(), ..pod_with(pinned(2, "")) };
    bound(&mut cluster, &pod, r#"{"cpuset":"6-7"}"#);
    assert_eq!(state(&cluster).taken.to_string(), "6-7");
    cluster.cluster.apply_pod(Arc::new(Pod { node_name: Some("a".into()), ..pod.clone() }), &mut Vec::new());
    assert_eq!(
        state(&cluster).taken.to_string(),
        "6-7",
        "an object without marks may be older than the Binding"
    );
    cluster.cluster.delete_pod(&pod.key, &mut Vec::new());
    assert!(state(&cluster).taken.is_empty());
}

#[test]
fn a_refused_pod_is_woken_by_what_helps_it() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    bind(&plugin, &mut cluster, "p", pinned(6, ""), None);
    let asked = pod_with(pinned(4, ""));
    assert!(refused(&plugin, &cluster, &asked.spec).is_some());
    let hints = plugin.hints().expect("it hints");
    let event = report(&mut cluster, "a", &topology(&[(keys::RESERVATION, json!({"reservedCPUs": "7"}))]));
    assert!(hints.events().any(event.kinds()));
    assert_eq!(hints.hint(cluster.view(), &asked, &event), Hint::Skip);
    let mut events = Vec::new();
    cluster.cluster.delete_pod(&PodKey::new("d", "p"), &mut events);
    let released = events.iter().find(|event| matches!(event, ClusterEvent::PodReleased { .. }));
    let released = released.expect("the pod gives its node up");
    assert_eq!(hints.hint(cluster.view(), &asked, released), Hint::Queue);
}

#[test]
fn scores_count_numa_nodes_under_a_policy_and_the_node_without() {
    let plugin = plugin(json!({"scoringStrategy": {"type": "MostAllocated"}}));
    let mut cluster = cluster(&plugin, &[]);
    let score = |cluster: &TestCluster, spec: &PodSpec| crate::testing::raw_scores(&*plugin, cluster, spec);
    // 2 of 8 CPUs and 1 of 8 GiB.
    assert_eq!(score(&cluster, &spec(2000, 1, &[])), Some(vec![(25 + 12) / 2]));
    // 2 of 4 CPUs and 1 of 4 GiB.
    assert_eq!(score(&cluster, &single(spec(2000, 1, &[]))), Some(vec![(50 + 25) / 2]));
    let old = object("a", &topology(&[]), "1");
    cluster.cluster.delete_custom(old.kind, &(Name::default(), "a".into()), &mut Vec::new());
    assert_eq!(
        score(&cluster, &spec(2000, 1, &[])),
        None,
        "without NodeResourceTopologies nothing is scored"
    );
}

#[test]
fn what_is_wrong_with_a_node_is_shown() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[(keys::CPU_BIND_POLICY, "Full")]);
    report(&mut cluster, "a", &topology(&[(keys::RESERVATION, json!({"reservedCPUs": "1,99"}))]));
    for (name, status) in [("p", r#"{"cpuset":"0-1"}"#), ("q", r#"{"cpuset":"0"}"#), ("r", "x")] {
        let pod = Pod { key: PodKey::new("d", name), uid: name.into(), ..pod_with(pinned(1, "")) };
        bound(&mut cluster, &pod, status);
    }
    let all = endpoints::all();
    let read = |path: &str| {
        let endpoint = all.iter().find(|endpoint| endpoint.path == path).expect("it is registered");
        let params = [("nodeName".to_owned(), "a".to_owned())].into();
        let list = pellucid_framework::list::List::default();
        let cx = pellucid_framework::endpoint::ReadContext {
            view: cluster.view(),
            params: &params,
            now: Now::default(),
            list: &list,
        };
        (endpoint.read)(&cx).expect("an answer")
    };
    let body = read("nodes/:nodeName");
    let problems: Vec<String> = body["problems"]
        .as_array()
        .expect("problems")
        .iter()
        .map(|problem| {
            format!(
                "{} {}",
                problem["value"].as_str().unwrap_or(""),
                problem["problem"].as_str().unwrap_or("")
            )
        })
        .collect();
    assert_eq!(
        problems,
        [
            "Full must be None, FullPCPUsOnly or SpreadByPCPUs",
            "99 the node does not have these CPUs, so they count for nothing",
            "0-1 the system has its CPUs 1 too",
            "0 another pod has its CPUs 0 too",
            "x no JSON: expected value at line 1 column 1; the pod counts as holding nothing",
        ]
    );
    assert_eq!((&body["availableCPUs"], &body["allocatedCPUs"]["0"]["refCount"]), (&json!("2-7"), &json!(2)));
    let state = read("state");
    assert_eq!((&state["withProblems"], &state["nodes"][0]["problems"]), (&json!(1), &json!(2)));
}

#[test]
fn reasons_have_their_plugin() {
    for reason in reasons::all() {
        assert_eq!(ReasonCode::Plugin(reason).entry().plugin, NAME);
    }
    assert_eq!(Holding::default().status(), "{}");
}
