//! Topology spread and pod affinity end to end: a Deployment ends up as its constraints require, and a pod is woken
//! by the pod that it has affinity to.

use std::collections::{BTreeMap, BTreeSet};

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::common::running::{message, node, node_of, pod, start, with};

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

fn of_app(app: &str) -> Value {
    json!({"matchLabels": {"app": app}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_is_spread_over_zones_and_apart_on_nodes() {
    let zones = ["za", "zb", "zc"];
    let nodes: Vec<Value> = (0..6).map(|n| node(&format!("n{n}"), zones[n / 2], 8)).collect();
    let mut running = start(nodes).await;
    let mut spec = pod("web", 100)["spec"].clone();
    spec["topologySpreadConstraints"] = json!([{
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": of_app("web")
    }]);
    spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!([{"topologyKey": HOSTNAME, "labelSelector": of_app("web")}]);
    running.create([json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 3, "selector": of_app("web"),
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec}
        }
    })]);
    let deployments = running.api("apps/v1/Deployment");
    let scale = async |replicas: usize| {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        deployments.patch("web", &PatchParams::default(), &patch).await.expect("scaled");
    };
    for replicas in [3, 6] {
        scale(replicas).await;
        let on: Vec<String> = running
            .pods(&format!("{replicas} replicas"), |pods| {
                let on: Option<Vec<String>> = pods.values().map(|p| node_of(p).map(str::to_owned)).collect();
                on.filter(|on| on.len() == replicas)
            })
            .await;
        let mut per_zone: BTreeMap<&str, usize> = BTreeMap::new();
        for name in &on {
            let n: usize = name[1..].parse().expect("a number");
            *per_zone.entry(zones[n / 2]).or_default() += 1;
        }
        assert_eq!(per_zone, zones.map(|zone| (zone, replicas / 3)).into());
        assert_eq!(on.iter().collect::<BTreeSet<_>>().len(), replicas, "no two on one node");
    }
    scale(7).await;
    let late = running
        .pods("a replica that waits", |pods| {
            let words = "6 node(s) didn't match pod anti-affinity rules";
            let told = pods.values().find(|p| message(p).is_some_and(|m| m.contains(words)));
            told.and_then(|p| p.metadata.name.clone())
        })
        .await;
    running.create([node("n6", "za", 8)]);
    assert_eq!(running.bound(&late).await, "n6");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_is_woken_when_the_pod_that_it_wants_arrives() {
    let nodes = (0..4).map(|n| node(&format!("n{n}"), ["za", "zb"][n % 2], 8)).collect();
    let mut running = start(nodes).await;
    let terms = json!([{"topologyKey": ZONE, "labelSelector": of_app("leader")}]);
    let affinity = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    running.create([with(pod("follower", 100), "affinity", affinity)]);
    running.told("follower", "4 node(s) didn't match pod affinity rules").await;
    running.place(pod("stranger", 100)).await;
    assert_eq!(running.place(with(pod("leader", 100), "nodeSelector", json!({HOSTNAME: "n3"}))).await, "n3");
    let beside = running.bound("follower").await;
    assert!(["n1", "n3"].contains(&beside.as_str()), "{beside}");
    running.stop().await;
}
