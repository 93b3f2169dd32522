//! Hostile pods slow nobody: a plain pod that is created beside each kind of them is bound in time, measured over HTTP from
//! its creation to the Binding that a watch shows.
//!
//! `benches/decision/hostile.rs` measures gangs that take long; `benches/soak.rs` injects random hostile objects for hours.

mod common;

use std::time::Duration;

use common::running::{Running, node, pod, start_on_real_time, with};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// Longest time from creation to Binding. A debug build, in which the API server of the test takes its share of the same
/// cores, has ten times as long.
const LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });
/// Plain pods beside each kind of hostile pods.
const PLAIN: usize = 5;
const NODES: usize = 100;
/// Affinity terms of a pod. A debug build evaluates 10,000 for seconds on a busy machine.
const TERMS: usize = if cfg!(debug_assertions) { 1_000 } else { 10_000 };

/// A kind of hostile pods: its name, how many are created, and one of them.
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

/// Letters of other scripts, direction marks and control characters wherever an API server admits them.
fn unicode(name: &str) -> Value {
    let odd = "\u{202e}ペルシド\u{200f}شفاف\u{1f409}\u{7}\u{1b}[2J\u{2028}\"\\</script>";
    let mut made = pod(name, 10);
    made["metadata"]["annotations"] = json!({"hostile.example/odd": odd.repeat(500)});
    made["spec"]["containers"][0]["image"] = odd.into();
    made["spec"]["containers"][0]["env"] = json!([{"name": "ODD", "value": odd.repeat(500)}]);
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

const KINDS: [Kind; 8] = [
    ("annotations", 48, annotations),
    ("labels", 10, labels),
    ("unicode", 10, unicode),
    ("tolerations", 5, tolerations),
    ("node-terms", 2, node_terms),
    ("pod-terms", 2, pod_terms),
    ("long-selector", 5, long_selector),
    ("containers", 5, containers),
];

async fn create(pods: &Api<Pod>, made: Value) {
    let made = serde_json::from_value(made).expect("a pod");
    pods.create(&PostParams::default(), &made).await.expect("it is admitted");
}

/// Creates hostile pods of a kind, with plain ones in between. Returns the longest wait of a plain one.
async fn longest_wait(running: &mut Running, (kind, count, make): Kind) -> Duration {
    let pods: Api<Pod> = Api::default_namespaced(running.client.clone());
    let hostile: Vec<Value> = (0..count).map(|n| make(&format!("{kind}-{n}"))).collect();
    let creating = {
        let pods = pods.clone();
        tokio::spawn(async move {
            for made in hostile {
                create(&pods, made).await;
            }
        })
    };
    let mut longest = Duration::ZERO;
    for n in 0..PLAIN {
        let name = format!("plain-{kind}-{n}");
        let begun = Instant::now();
        create(&pods, pod(&name, 10)).await;
        running.bound(&name).await;
        longest = longest.max(begun.elapsed());
    }
    creating.await.expect("created");
    // The last one comes when all of them are there.
    let name = format!("plain-{kind}-last");
    let begun = Instant::now();
    create(&pods, pod(&name, 10)).await;
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
        println!("{} pods with hostile {}: a plain one waited {longest:?} at most; {all:?}", kind.1, kind.0);
        if longest > LIMIT {
            slow.push((kind.0, longest));
        }
    }
    assert!(slow.is_empty(), "bound after more than {LIMIT:?}: {slow:?}");
    let begun = Instant::now();
    running.stop().await;
    println!("stopped in {:?}", begun.elapsed());
}
