//! Nodes and pods of a bench, and their creation and removal through the API. No pod of others fits on the nodes (a
//! taint), and no pod of the bench fits elsewhere (a node selector).

use anyhow::Context as _;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use crate::bench::gangs;
use crate::client;

/// Label and taint of the nodes.
const KEY: &str = "pellucid.dev/bench";
/// Requests in flight while objects are created and deleted.
pub(super) const AT_A_TIME: usize = 32;

/// Returns a node of the bench.
pub(super) fn node(number: usize) -> Value {
    let amounts = json!({"cpu": "64", "memory": "256Gi", "pods": "250"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": format!("pellucid-bench-{number}"), "labels": {KEY: "true"}},
        "spec": {"taints": [{"key": KEY, "value": "true", "effect": "NoSchedule"}]},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// Returns a pod of one of so many shapes, which differ in their requests.
pub(super) fn pod(namespace: &str, name: &str, shape: usize, scheduler: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "schedulerName": scheduler,
            "nodeSelector": {KEY: "true"},
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "pause", "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": format!("{}m", 10 + shape), "memory": "16Mi"}},
            }],
        },
    })
}

/// Creates the namespace and the nodes.
pub(super) async fn set_up(client: &kube::Client, namespace: &str, nodes: usize) -> anyhow::Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {KEY: "true"}}});
    client::create(client, &object).await.with_context(|| format!("cannot create namespace {namespace}"))?;
    let all = stream::iter(0..nodes).map(|number| async move { client::create(client, &node(number)).await });
    all.buffer_unordered(AT_A_TIME).try_collect::<()>().await.context("cannot create a node")
}

/// Returns what an earlier bench left behind. Fails when the namespace is not of a bench: it must never be cleaned.
pub(super) async fn leftovers(client: &kube::Client, namespace: &str) -> anyhow::Result<Vec<String>> {
    let mut found: Vec<String> = nodes(client).await?.iter().map(|name| format!("node {name}")).collect();
    let namespaces = client::list(client, "/api/v1/namespaces").await?;
    if let Some(object) = namespaces.iter().find(|object| object["metadata"]["name"] == namespace) {
        let is_ours = object["metadata"]["labels"][KEY] == "true";
        anyhow::ensure!(
            is_ours,
            "--namespace {namespace} exists and was not made by a bench: give the name of none"
        );
        found.push(format!("namespace {namespace}"));
    }
    Ok(found)
}

/// Deletes the pods, the PodGroups, the nodes and the namespace.
pub(super) async fn clean(client: &kube::Client, namespace: &str) -> anyhow::Result<()> {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    delete_all(client, &pods, names(&client::list(client, &pods).await?)).await?;
    gangs::delete_pod_groups(client, namespace).await?;
    delete_all(client, "/api/v1/nodes", nodes(client).await?).await?;
    let path = format!("/api/v1/namespaces/{namespace}");
    client::delete(client, &path).await.with_context(|| format!("cannot delete namespace {namespace}"))
}

/// Deletes the objects of these names below a path.
pub(super) async fn delete_all(client: &kube::Client, path: &str, names: Vec<String>) -> anyhow::Result<()> {
    let all = stream::iter(names)
        .map(|name| async move { client::delete(client, &format!("{path}/{name}")).await });
    let deleted = all.buffer_unordered(AT_A_TIME).try_collect::<()>().await;
    deleted.with_context(|| format!("cannot delete from {path}"))
}

async fn nodes(client: &kube::Client) -> anyhow::Result<Vec<String>> {
    Ok(names(&client::list(client, "/api/v1/nodes?labelSelector=pellucid.dev%2Fbench%3Dtrue").await?))
}

pub(super) fn names(objects: &[Value]) -> Vec<String> {
    objects.iter().filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned)).collect()
}
