//! The sandbox as kube-rs sees it: watches, bindings, evictions, patches, paging, faults, lifecycle, controllers.

mod deletion;
mod devices;
mod faults;
mod groups;
mod kinds;
mod limits;
mod node_metrics;
mod node_topologies;
mod outages;
mod placement;
mod pods;
mod requests;
mod shapes;
mod volumes;
mod workloads;

use std::pin::pin;
use std::time::Duration;

use futures_util::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::{Binding, Namespace, Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{
    DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use pellucid::sandbox::{Clock, Config, Fault, Handle, Kubelet, Match, Objects, Sandbox, Trouble};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::common::running::sandbox as start;

const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a sandbox whose clock stands still.
async fn still() -> (Handle, Client) {
    let clock = Clock::manual("2026-01-01T00:00:00Z".parse().expect("a time"));
    start(Config { clock, ..Config::default() }).await
}

/// Starts a sandbox in which pods run and end at once.
async fn fast() -> (Handle, Client) {
    let kubelet = Kubelet { start_delay: Duration::ZERO, stop_delay: Duration::ZERO };
    start(Config { kubelet: Some(kubelet), ..Config::default() }).await
}

fn of<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object of the kind")
}

fn pod(name: &str) -> Pod {
    of(
        json!({"metadata": {"name": name, "labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
    )
}

async fn bind(client: &Client, pod: &Pod, node: &str) -> Result<Status, kube::Error> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let name = pod.name_any();
    let binding: Binding = of(json!({
        "metadata": {"name": name, "uid": pod.uid()}, "target": {"kind": "Node", "name": node}
    }));
    pods.create_subresource("binding", &name, &PostParams::default(), &binding).await
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("not an answer of the API: {other}"),
    }
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

/// Waits until an object of a watched set satisfies a condition.
async fn until<K>(api: Api<K>, name: &str, what: &str, condition: impl Fn(Option<&K>) -> bool) -> Option<K>
where
    K: kube::Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let mut seen = pin!(watcher::watch_object(api, name));
    let mut last = None;
    loop {
        match tokio::time::timeout(PATIENCE, seen.next()).await {
            Ok(Some(Ok(object))) if condition(object.as_ref()) => return object,
            Ok(Some(object)) => last = Some(object),
            _ => panic!("{name}: {what} did not happen; last seen {last:?}"),
        }
    }
}

fn phase(pod: Option<&Pod>) -> &str {
    pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()).unwrap_or_default()
}
