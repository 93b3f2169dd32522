//! Tests the responses of the plugins' endpoints for a small cluster.

use std::sync::Arc;

use pellucid_framework::endpoint::{PathParams, ReadContext, ReadError};
use pellucid_framework::list::List;
use pellucid_model::gang::{Dialect, GangDeclaration, GangTerms};
use pellucid_model::node::NodeImage;
use pellucid_model::pod::{HostPort, Protocol};
use pellucid_model::requests::{PodRequests, ResourceList};
use pellucid_model::taint::{Taint, TaintEffect};
use pellucid_model::{GangKey, Node, Now, Pod, PodKey, PodSpec};
use serde_json::{Value, json};

use super::registry;
use pellucid_plugin_helper::testing::{TestCluster, node};

fn cluster() -> TestCluster {
    let taint = Taint { key: "k".into(), value: "v".into(), effect: TaintEffect::NoExecute };
    let image = NodeImage { names: Box::new(["img:1".into()]), size: 1000 };
    let b = Node { taints: Arc::new([taint]), images: Arc::new([image]), ..node("b") };
    let mut made = TestCluster::of(&registry(), [node("a"), b]);
    let list = ResourceList { milli_cpu: 1000, memory: 1 << 30, ..ResourceList::default() };
    let requests =
        PodRequests { list, non_zero_milli_cpu: 1000, non_zero_memory: 1 << 30, by_containers: None };
    let port = HostPort { protocol: Protocol::Udp, ip: "0.0.0.0".into(), port: 53 };
    made.place(PodSpec { requests, host_ports: Box::new([port]), ..PodSpec::default() }, "b");
    for (name, gates) in [("x", vec!["g".into()]), ("y", vec![])] {
        let pod = Pod {
            key: PodKey::new("d", name),
            priority: 5,
            scheduler_name: "s".into(),
            gates: gates.into(),
            ..Pod::default()
        };
        made.cluster.apply_pod(Arc::new(pod), &mut Vec::new());
    }
    let mark = GangDeclaration {
        gang: GangKey::new("d", "g"),
        dialect: Dialect::Koordinator,
        needs_group: false,
        is_shadow: false,
        names_two: false,
        terms: GangTerms { min: Some(2), ..GangTerms::default() },
        problems: Box::default(),
    };
    let pod = Pod {
        key: PodKey::new("d", "z"),
        priority: 4,
        scheduler_name: "s".into(),
        gang: Some(Arc::new(mark)),
        ..Pod::default()
    };
    made.cluster.apply_pod(Arc::new(pod), &mut Vec::new());
    made
}

fn read(cluster: &TestCluster, plugin: &str, path: &str, node: &str) -> Result<Value, ReadError> {
    let factory = registry().into_iter().find(|f| f.name() == plugin).expect("the plugin is registered");
    let endpoint = factory.endpoints().into_iter().find(|e| e.path == path).expect("it is registered");
    let params = PathParams::from([("nodeName".to_owned(), node.to_owned())]);
    (endpoint.read)(&ReadContext {
        view: cluster.view(),
        params: &params,
        now: Now::default(),
        list: &List::default(),
    })
}

#[test]
fn states() {
    let cluster = cluster();
    for (plugin, path, pointer, want) in [
        ("SchedulingGates", "state", "/gates", json!([{"gate": "g", "pods": 1, "examples": ["d/x"]}])),
        (
            "PrioritySort",
            "state",
            "/priorities",
            json!([{"priority": 5, "pendingPods": 2, "gatedPods": 1}, {"priority": 4, "pendingPods": 1, "gatedPods": 0}]),
        ),
        ("NodeUnschedulable", "state", "/totalNodes", json!(2)),
        ("NodeName", "state", "/totalPods", json!(0)),
        (
            "TaintToleration",
            "state",
            "/taints",
            json!([{"key": "k", "value": "v", "effect": "NoExecute", "nodes": 1, "examples": ["b"]}]),
        ),
        ("NodeAffinity", "state", "/labels", json!([])),
        ("NodePorts", "state", "/nodes/0/nodeName", json!("b")),
        (
            "NodeResourcesFit",
            "state",
            "/resources/0",
            json!({"resource": "cpu", "unit": "milliCPU", "allocatable": 8000, "requested": 1000, "free": 7000,
                "overcommittedNodes": 0, "mostFree": {"nodeName": "a", "free": 4000}}),
        ),
        (
            "NodeResourcesBalancedAllocation",
            "state",
            "/mostUnbalanced/0",
            json!({"nodeName": "b", "balance": 93, "cpuFraction": 0.25, "memoryFraction": 0.125}),
        ),
        (
            "ImageLocality",
            "images",
            "/images",
            json!([{"image": "img:1", "sizeBytes": 1000, "nodes": 1, "scaledBytes": 500}]),
        ),
        ("ImageLocality", "state", "/totalImages", json!(1)),
        ("DefaultBinder", "state", "/bound", json!(1)),
        ("Coscheduling", "state", "/dialects", json!({"koordinator": 1})),
        ("Coscheduling", "state", "/pendingMembers", json!(1)),
        ("Coscheduling", "state", "/undefinedGangs", json!(0)),
    ] {
        let body = read(&cluster, plugin, path, "").expect("it answers");
        assert_eq!(body.pointer(pointer), Some(&want), "{plugin} {path}: {body}");
    }
}

#[test]
fn one_node() {
    let cluster = cluster();
    let ports = read(&cluster, "NodePorts", "nodes/:nodeName", "b").expect("the node exists");
    assert_eq!(ports["usedPorts"], json!([{"port": 53, "protocol": "UDP", "hostIp": "0.0.0.0"}]));
    let fit = read(&cluster, "NodeResourcesFit", "nodes/:nodeName", "b").expect("the node exists");
    assert_eq!(fit["resources"][0]["free"], json!(3000));
    assert_eq!(fit["resources"][0]["requestedForScoring"], json!(1000));
    for plugin in ["NodePorts", "NodeResourcesFit"] {
        let Err(ReadError::NotFound { code, message }) = read(&cluster, plugin, "nodes/:nodeName", "gone")
        else {
            panic!("there is no such node")
        };
        assert_eq!((code, message.as_str()), ("NodeNotFound", "cannot find node gone"));
    }
}
