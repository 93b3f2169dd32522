//! Hostile pods and nodes slow nobody: a plain pod that is created beside each kind of them is bound in time, measured over
//! HTTP from its creation to the Binding that a watch shows.
//!
//! `benches/decision/hostile.rs` measures gangs that take long; `benches/soak.rs` injects random hostile objects for hours.

mod common;

use std::time::Duration;

use common::running::{Running, node, pod, start_on_real_time, with};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// Longest time from creation to Binding. A debug build, in which the API server of the test takes its share of the same
/// cores, has ten times as long.
const LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });
/// Plain pods beside each kind of hostile objects.
const PLAIN: usize = 5;
const NODES: usize = 100;
/// Affinity terms of a pod. A debug build evaluates 10,000 for seconds on a busy machine.
const TERMS: usize = if cfg!(debug_assertions) { 1_000 } else { 10_000 };

/// A kind of hostile objects: its name, how many are created, and one of them.
type Kind = (&'static str, usize, fn(&str) -> Value);

/// Makes a map of this many keys with these values.
fn keys(count: usize, value: &str) -> Value {
    Value::Object((0..count).map(|n| (format!("hostile.example/k{n}"), value.into())).collect::<Map<_, _>>())
}

/// Annotations of a quarter of a megabyte, the most that an API server admits; 12 MB in all such pods.
fn annotations(name: &str) -> Value {
    let mut made = pod(name, 10);
    made["metadata"]["annotations"] = json!({"hostile.example/large": "x".repeat(250 * 1024)});
    made
}

fn labels(name: &str) -> Value {
    let mut made = pod(name, 10);
    made["metadata"]["labels"] = keys(5_000, "v");
    made
}

/// Letters of other scripts, direction marks and control characters.
const ODD: &str = "\u{202e}ペルシド\u{200f}شفاف\u{1f409}\u{7}\u{1b}[2J\u{2028}\"\\</script>";

/// [`ODD`] wherever an API server admits it in a pod.
fn unicode(name: &str) -> Value {
    let mut made = pod(name, 10);
    made["metadata"]["annotations"] = json!({"hostile.example/odd": ODD.repeat(500)});
    made["spec"]["containers"][0]["image"] = ODD.into();
    made["spec"]["containers"][0]["env"] = json!([{"name": "ODD", "value": ODD.repeat(500)}]);
    made
}

fn tolerations(name: &str) -> Value {
    let all: Vec<Value> =
        (0..10_000).map(|n| json!({"key": format!("k{n}"), "operator": "Exists"})).collect();
    with(pod(name, 10), "tolerations", all.into())
}

fn node_terms(name: &str) -> Value {
    let term = |n| json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [format!("x{n}")]}]});
    let terms: Vec<Value> = (0..TERMS).map(term).collect();
    let required = json!({"nodeSelectorTerms": terms});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    with(pod(name, 10), "affinity", affinity)
}

fn pod_terms(name: &str) -> Value {
    let term = |n: usize| {
        let selector = json!({"matchLabels": {"app": format!("other-{n}")}});
        json!({"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}})
    };
    let terms: Vec<Value> = (0..TERMS).map(term).collect();
    let affinity = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}});
    with(pod(name, 10), "affinity", affinity)
}

fn long_selector(name: &str) -> Value {
    let values: Vec<String> = (0..100).map(|n| format!("value-{n}")).collect();
    let expression = |n| json!({"key": format!("key-{n}"), "operator": "NotIn", "values": values});
    let all: Vec<Value> = (0..500).map(expression).collect();
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": all}]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    with(pod(name, 10), "affinity", affinity)
}

fn containers(name: &str) -> Value {
    let requests = json!({"requests": {"cpu": "1m", "memory": "1Mi"}});
    let all: Vec<Value> =
        (0..1_000).map(|n| json!({"name": format!("c{n}"), "image": "i", "resources": requests})).collect();
    with(pod(name, 10), "containers", all.into())
}

fn hostile_node(name: &str) -> Value {
    node(name, "z", 64)
}

/// A quarter of a megabyte, as in pods; 10 MB in all such nodes.
fn node_annotations(name: &str) -> Value {
    let mut made = hostile_node(name);
    made["metadata"]["annotations"] = json!({"hostile.example/large": "x".repeat(250 * 1024)});
    made
}

fn node_labels(name: &str) -> Value {
    let mut made = hostile_node(name);
    let labels = made["metadata"]["labels"].as_object_mut().expect("labels");
    labels.extend(keys(5_000, "v").as_object().expect("labels").clone());
    made
}

fn node_taints(name: &str) -> Value {
    let mut made = hostile_node(name);
    let taint = |n| json!({"key": format!("hostile.example/k{n}"), "value": "v", "effect": "NoSchedule"});
    made["spec"]["taints"] = (0..10_000).map(taint).collect();
    made
}

/// [`ODD`] wherever an API server admits it in a node. Names and labels are not among that.
fn node_unicode(name: &str) -> Value {
    let mut made = hostile_node(name);
    made["metadata"]["annotations"] = json!({"hostile.example/odd": ODD.repeat(500)});
    made["spec"]["providerID"] = ODD.into();
    made["status"]["nodeInfo"] = json!({
        "architecture": ODD, "bootID": ODD, "containerRuntimeVersion": ODD, "kernelVersion": ODD, "kubeProxyVersion": ODD,
        "kubeletVersion": ODD, "machineID": ODD, "operatingSystem": ODD, "osImage": ODD.repeat(500), "systemUUID": ODD,
    });
    made["status"]["images"] = json!([{"names": [ODD, ODD.repeat(500)], "sizeBytes": 1_000_000_000}]);
    made["status"]["conditions"][0]["message"] = ODD.repeat(500).into();
    made
}

const KINDS: [Kind; 12] = [
    ("annotations", 48, annotations),
    ("labels", 10, labels),
    ("unicode", 10, unicode),
    ("tolerations", 5, tolerations),
    ("node-terms", 2, node_terms),
    ("pod-terms", 2, pod_terms),
    ("long-selector", 5, long_selector),
    ("containers", 5, containers),
    ("node-annotations", 41, node_annotations),
    ("node-labels", 10, node_labels),
    ("node-taints", 5, node_taints),
    ("node-unicode", 10, node_unicode),
];

/// Creates a pod or a node.
async fn create(client: &Client, made: Value) {
    let params = PostParams::default();
    match made["kind"].as_str() {
        Some("Node") => {
            let made = serde_json::from_value(made).expect("a node");
            Api::<Node>::all(client.clone()).create(&params, &made).await.map(drop)
        }
        _ => {
            let made = serde_json::from_value(made).expect("a pod");
            Api::<Pod>::default_namespaced(client.clone()).create(&params, &made).await.map(drop)
        }
    }
    .expect("it is admitted");
}

/// Creates hostile objects of a kind, with plain ones in between. Returns the longest wait of a plain one.
async fn longest_wait(running: &mut Running, (kind, count, make): Kind) -> Duration {
    let client = running.client.clone();
    let hostile: Vec<Value> = (0..count).map(|n| make(&format!("{kind}-{n}"))).collect();
    let creating = {
        let client = client.clone();
        tokio::spawn(async move {
            for made in hostile {
                create(&client, made).await;
            }
        })
    };
    let mut longest = Duration::ZERO;
    for n in 0..PLAIN {
        let name = format!("plain-{kind}-{n}");
        let begun = Instant::now();
        create(&client, pod(&name, 10)).await;
        running.bound(&name).await;
        longest = longest.max(begun.elapsed());
    }
    creating.await.expect("created");
    // The last one comes when all of them are there.
    let name = format!("plain-{kind}-last");
    let begun = Instant::now();
    create(&client, pod(&name, 10)).await;
    running.bound(&name).await;
    longest.max(begun.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_pod_beside_hostile_ones_is_bound_in_time() {
    let nodes = (0..NODES).map(|n| node(&format!("n{n}"), "z", 64)).collect();
    let mut running = start_on_real_time(nodes).await;
    let mut slow = Vec::new();
    for kind in KINDS {
        let begun = Instant::now();
        let longest = longest_wait(&mut running, kind).await;
        let all = begun.elapsed();
        println!(
            "{} objects with hostile {}: a plain pod waited {longest:?} at most; {all:?}",
            kind.1, kind.0
        );
        if longest > LIMIT {
            slow.push((kind.0, longest));
        }
    }
    assert!(slow.is_empty(), "bound after more than {LIMIT:?}: {slow:?}");
    let begun = Instant::now();
    running.stop().await;
    println!("stopped in {:?}", begun.elapsed());
}
