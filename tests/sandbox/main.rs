//! The sandbox as kube-rs sees it: watches, bindings, evictions, patches, paging, faults, lifecycle, controllers.
//!
//! This file exceeds 500 lines: it lists independent cases, each of which can be read alone, below their helpers.
//! Cases of deletion, gangs, limits, outages, placement, usage of nodes, volumes, further workloads and odd shapes
//! have their own modules.

#[path = "../common/mod.rs"]
mod common;

mod deletion;
mod groups;
mod limits;
mod node_metrics;
mod outages;
mod placement;
mod shapes;
mod volumes;
mod workloads;

use std::pin::pin;
use std::time::Duration;

use common::running::sandbox as start;
use futures_util::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Binding, Event, Namespace, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
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

async fn evict(client: &Client, name: &str) -> Result<Status, kube::Error> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let eviction: k8s_openapi::api::policy::v1::Eviction = of(eviction);
    pods.create_subresource("eviction", name, &PostParams::default(), &eviction).await
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

async fn next_applied(
    stream: &mut (impl Stream<Item = watcher::Result<watcher::Event<Pod>>> + Unpin),
) -> Pod {
    loop {
        match in_time(stream.next()).await.expect("the watch goes on") {
            Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) => return pod,
            Ok(_) => {}
            Err(error) => panic!("watch: {error}"),
        }
    }
}

#[tokio::test]
async fn both_kinds_of_watcher_see_a_pod_bound() {
    let (_sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod("first")).await.expect("created");
    for (name, config) in
        [("a", watcher::Config::default()), ("b", watcher::Config::default().streaming_lists())]
    {
        let mut stream = pin!(watcher(pods.clone(), config));
        while !matches!(in_time(stream.next()).await, Some(Ok(watcher::Event::InitDone))) {}
        let created = pods.create(&PostParams::default(), &pod(name)).await.expect("created");
        assert_eq!(next_applied(&mut stream).await.name_any(), name);
        bind(&client, &created, "n1").await.expect("bound");
        let bound = next_applied(&mut stream).await;
        assert_eq!(bound.spec.expect("a spec").node_name.as_deref(), Some("n1"));
    }
}

#[tokio::test]
async fn a_pod_is_bound_once_and_to_the_right_uid() {
    let (_sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let created = pods.create(&PostParams::default(), &pod("a")).await.expect("created");
    let mut other = created.clone();
    other.metadata.uid = Some("00000000-0000-0000-0000-000000000000".into());
    assert_eq!(code(&bind(&client, &other, "n1").await.expect_err("wrong uid")), 409);
    bind(&client, &created, "n1").await.expect("bound");
    assert_eq!(code(&bind(&client, &created, "n2").await.expect_err("bound before")), 409);
}

#[tokio::test]
async fn a_pod_lives_by_the_manual_clock() {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut short = pod("a");
    short.annotations_mut().insert("sandbox.pellucid.dev/run-seconds".into(), "2.5".into());
    let created = pods.create(&PostParams::default(), &short).await.expect("created");
    bind(&client, &created, "n1").await.expect("bound");
    sandbox.clock().advance(Duration::from_millis(99));
    assert_eq!(phase(pods.get("a").await.ok().as_ref()), "Pending");
    sandbox.clock().advance(Duration::from_millis(1));
    until(pods.clone(), "a", "running", |pod| phase(pod) == "Running").await;
    sandbox.clock().advance(Duration::from_millis(2_499));
    assert_eq!(phase(pods.get("a").await.ok().as_ref()), "Running");
    sandbox.clock().advance(Duration::from_millis(1));
    until(pods.clone(), "a", "success", |pod| phase(pod) == "Succeeded").await;
}

#[tokio::test]
async fn a_deleted_pod_leaves_its_node_after_its_grace() {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let created = pods.create(&PostParams::default(), &pod("a")).await.expect("created");
    bind(&client, &created, "n1").await.expect("bound");
    pods.delete("a", &DeleteParams::default()).await.expect("deleted");
    let terminating = pods.get("a").await.expect("still there");
    assert_eq!(terminating.metadata.deletion_grace_period_seconds, Some(30));
    sandbox.clock().advance(Duration::from_secs(2));
    until(pods.clone(), "a", "gone", |pod| pod.is_none()).await;
    pods.create(&PostParams::default(), &pod("b")).await.expect("created");
    pods.delete("b", &DeleteParams::default()).await.expect("deleted");
    assert!(pods.get_opt("b").await.expect("an answer").is_none(), "a pod without a node goes at once");
}

#[tokio::test]
async fn a_budget_lets_one_pod_go_and_refuses_the_next() {
    let (_sandbox, client) = fast().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for name in ["a", "b"] {
        let created = pods.create(&PostParams::default(), &pod(name)).await.expect("created");
        bind(&client, &created, "n1").await.expect("bound");
        until(pods.clone(), name, "running", |pod| phase(pod) == "Running").await;
    }
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let budget = json!({
        "metadata": {"name": "keep-one"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    });
    budgets.create(&PostParams::default(), &of(budget)).await.expect("created");
    let allowed = |budget: Option<&PodDisruptionBudget>, n| {
        budget
            .and_then(|b| b.status.as_ref())
            .is_some_and(|s| s.disruptions_allowed == Some(n) && s.expected_pods > Some(0))
    };
    until(budgets.clone(), "keep-one", "one disruption allowed", |b| allowed(b, 1)).await;
    evict(&client, "a").await.expect("evicted");
    until(pods.clone(), "a", "gone", |pod| pod.is_none()).await;
    assert_eq!(code(&evict(&client, "b").await.expect_err("the budget is used up")), 429);
    assert_eq!(code(&evict(&client, "none").await.expect_err("no such pod")), 404);
}

#[tokio::test]
async fn patches_of_every_kind_do_what_they_say() {
    let (_sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod("a")).await.expect("created");
    let params = PatchParams::default();
    let labels = Patch::Merge(json!({"metadata": {"labels": {"x": "1", "app": null}}}));
    let merged = pods.patch("a", &params, &labels);
    assert_eq!(merged.await.expect("merged").labels().get("x").map(String::as_str), Some("1"));
    let condition = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
    pods.patch_status("a", &params, &Patch::Strategic(condition("A"))).await.expect("patched");
    let both = pods.patch_status("a", &params, &Patch::Strategic(condition("B"))).await.expect("patched");
    assert_eq!(both.status.and_then(|s| s.conditions).map_or(0, |c| c.len()), 2);
    let operations: json_patch::Patch = of(json!([{"op": "remove", "path": "/metadata/labels/x"}]));
    let removed = pods.patch("a", &params, &Patch::<Pod>::Json(operations)).await.expect("patched");
    assert!(removed.labels().is_empty());
    let stale = json!({"metadata": {"resourceVersion": "1", "labels": {"y": "1"}}});
    assert_eq!(code(&pods.patch("a", &params, &Patch::Merge(stale)).await.expect_err("stale")), 409);
    let applied =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"zone": "z"}}});
    let nodes: Api<Node> = Api::all(client);
    let node = nodes.patch("n1", &PatchParams::apply("test"), &Patch::Apply(applied)).await.expect("applied");
    assert_eq!(node.labels().get("zone").map(String::as_str), Some("z"));
}

#[tokio::test]
async fn lists_come_in_pages_of_one_revision() {
    let (_sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    for index in 0..7 {
        pods.create(&PostParams::default(), &pod(&format!("p{index}"))).await.expect("created");
    }
    let first = pods.list(&ListParams::default().limit(3)).await.expect("a page");
    assert_eq!((first.items.len(), first.metadata.remaining_item_count), (3, Some(4)));
    pods.delete("p5", &DeleteParams::default()).await.expect("deleted");
    pods.create(&PostParams::default(), &pod("p9")).await.expect("created");
    let token = first.metadata.continue_.expect("more pages");
    let rest = pods.list(&ListParams::default().limit(10).continue_token(&token)).await.expect("a page");
    let names: Vec<String> = rest.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["p3", "p4", "p5", "p6"], "the second page is as old as the first");
    let selected =
        pods.list(&ListParams::default().labels("app in (a),x notin (1)").fields("metadata.name!=p0")).await;
    assert_eq!(selected.expect("a list").items.len(), 6);
}

#[tokio::test]
async fn lost_history_is_a_410_and_watchers_recover() {
    let (sandbox, client) = start(Config { history: 4, ..Config::default() }).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod("old")).await.expect("created");
    let revision = sandbox.revision().to_string();
    let mut stream = pin!(watcher(pods.clone(), watcher::Config::default()));
    while !matches!(in_time(stream.next()).await, Some(Ok(watcher::Event::InitDone))) {}
    for index in 0..6 {
        pods.create(&PostParams::default(), &pod(&format!("p{index}"))).await.expect("created");
    }
    let mut late = pin!(pods.watch(&WatchParams::default(), &revision).await.expect("a watch"));
    match in_time(late.next()).await {
        Some(Ok(WatchEvent::Error(status))) => assert_eq!(status.code, 410),
        other => panic!("no 410 but {other:?}"),
    }
    sandbox.compact(0);
    pods.create(&PostParams::default(), &pod("new")).await.expect("created");
    let mut names = Vec::new();
    while !names.contains(&"new".to_owned()) {
        if let Some(Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod))) =
            in_time(stream.next()).await
        {
            names.push(pod.name_any());
        }
    }
}

#[tokio::test]
async fn faults_hit_the_requests_they_mean() {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let post = || Match::new("POST", "/pods");
    sandbox.faults().next(post(), Fault::Drop);
    assert!(pods.create(&PostParams::default(), &pod("a")).await.is_err(), "the connection closes");
    assert!(pods.get_opt("a").await.expect("an answer").is_none());
    sandbox.faults().next(post(), Fault::DropAfterCommit);
    assert!(pods.create(&PostParams::default(), &pod("a")).await.is_err(), "the connection closes");
    assert!(pods.get_opt("a").await.expect("an answer").is_some());
    for status in [409, 410, 503] {
        sandbox.faults().next(post(), Fault::Status(status));
        assert_eq!(
            code(&pods.create(&PostParams::default(), &pod("b")).await.expect_err("injected")),
            status
        );
    }
    sandbox.faults().next(post(), Fault::StatusAfterCommit(503));
    assert_eq!(code(&pods.create(&PostParams::default(), &pod("b")).await.expect_err("injected")), 503);
    assert!(pods.get_opt("b").await.expect("an answer").is_some());
    sandbox.faults().next(Match::new("GET", "/pods/a"), Fault::Delay(Duration::from_secs(5)));
    let slow = pods.get("a");
    let clock = sandbox.clock().clone();
    let advance = async {
        while sandbox.faults().pending() > 0 {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(5));
    };
    let (answer, ()) = in_time(async { tokio::join!(slow, advance) }).await;
    answer.expect("late but there");
    assert_eq!(sandbox.faults().pending(), 0);
}

#[tokio::test]
async fn faults_hit_the_next_event_of_a_watch() {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let watched = || Match::new("GET", "watch=true");
    let open = async || {
        let revision = sandbox.revision().to_string();
        Box::pin(pods.watch(&WatchParams::default(), &revision).await.expect("a watch"))
    };
    let mut twice = open().await;
    sandbox.faults().next(watched(), Fault::DuplicateEvent);
    pods.create(&PostParams::default(), &pod("a")).await.expect("created");
    for _ in 0..2 {
        assert!(matches!(in_time(twice.next()).await, Some(Ok(WatchEvent::Added(_)))));
    }
    drop(twice);
    let mut garbled = open().await;
    sandbox.faults().next(watched(), Fault::UndecodableEvent);
    pods.create(&PostParams::default(), &pod("b")).await.expect("created");
    assert!(matches!(in_time(garbled.next()).await, Some(Err(_))));
    drop(garbled);
    let mut gone = open().await;
    sandbox.faults().next(watched(), Fault::GoneEvent);
    pods.create(&PostParams::default(), &pod("c")).await.expect("created");
    assert!(matches!(in_time(gone.next()).await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    sandbox.faults().next(watched(), Fault::SilentWatch);
    let mut silent = open().await;
    let mut cut = open().await;
    sandbox.faults().next(watched(), Fault::DropMidLine);
    pods.create(&PostParams::default(), &pod("d")).await.expect("created");
    assert!(!matches!(in_time(cut.next()).await, Some(Ok(_))), "half a line is no event");
    assert!(silent.next().now_or_never().is_none(), "a silent watch says nothing, though others have heard");
}

#[tokio::test]
async fn a_deployment_keeps_replicas_rolls_over_and_takes_its_pods_along() {
    let (sandbox, client) = fast().await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let binder = tokio::spawn(bind_all(client.clone()));
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}
        }}
    });
    deployments.create(&PostParams::default(), &of(deployment)).await.expect("created");
    let settled = |deployment: Option<&Deployment>, replicas: i32| {
        let Some((deployment, status)) = deployment.and_then(|d| Some((d, d.status.as_ref()?))) else {
            return false;
        };
        let counts = [status.replicas, status.updated_replicas, status.available_replicas];
        let is_observed = status.observed_generation == deployment.metadata.generation;
        is_observed && counts.iter().all(|count| count.unwrap_or_default() == replicas)
    };
    until(deployments.clone(), "web", "four available", |d| settled(d, 4)).await;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}});
    deployments.patch("web", &PatchParams::default(), &Patch::Strategic(image)).await.expect("patched");
    until(deployments.clone(), "web", "rolled over", |d| settled(d, 4)).await;
    let images = |pods: Vec<Pod>| -> Vec<String> {
        let living = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        living.filter_map(|pod| pod.spec?.containers.first()?.image.clone()).collect()
    };
    let listed = pods.list(&ListParams::default().labels("app=web")).await.expect("a list");
    assert_eq!(images(listed.items), ["i:2"; 4]);
    let scale = json!({"spec": {"replicas": 1}});
    deployments.patch_scale("web", &PatchParams::default(), &Patch::Merge(scale)).await.expect("scaled");
    until(deployments.clone(), "web", "one left", |d| settled(d, 1)).await;
    let sets: Api<ReplicaSet> = Api::default_namespaced(client.clone());
    assert_eq!(sets.list(&ListParams::default()).await.expect("a list").items.len(), 2);
    let left = pods.list(&ListParams::default()).await.expect("a list").items;
    deployments.delete("web", &DeleteParams::default()).await.expect("deleted");
    for pod in left {
        until(pods.clone(), &pod.name_any(), "gone", |pod| pod.is_none()).await;
    }
    assert_eq!((sandbox.count("replicasets.apps"), sandbox.count("pods")), (0, 0));
    binder.abort();
}

/// Binds every pod that appears.
async fn bind_all(client: Client) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut stream = pin!(watcher(pods, watcher::Config::default().fields("spec.nodeName=")));
    while let Some(event) = stream.next().await {
        if let Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event {
            // The pod may be gone before it is bound.
            let _ = bind(&client, &pod, "n1").await;
        }
    }
}

#[tokio::test]
async fn a_job_runs_its_completions() {
    let (_sandbox, client) = fast().await;
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let binder = tokio::spawn(bind_all(client.clone()));
    let job = json!({
        "metadata": {"name": "sum"},
        "spec": {"completions": 5, "parallelism": 2, "template": {
            "metadata": {"annotations": {"sandbox.pellucid.dev/run-seconds": "0"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        }}
    });
    jobs.create(&PostParams::default(), &of(job)).await.expect("created");
    let is_complete = |job: Option<&Job>| {
        let conditions = job.and_then(|job| job.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Complete" && c.status == "True"))
    };
    let done = until(jobs, "sum", "complete", is_complete).await.expect("the job");
    assert_eq!(done.status.and_then(|s| s.succeeded), Some(5));
    binder.abort();
}

#[tokio::test]
async fn custom_resources_are_served_pruned_and_checked() {
    let (sandbox, client) = still().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "maximum": 9}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}}
    }});
    let definition = json!({"metadata": {"name": "gangs.x.example"}, "spec": {
        "group": "x.example", "scope": "Namespaced", "names": {"plural": "gangs", "kind": "Gang"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema}}]
    }});
    definitions.create(&PostParams::default(), &of(definition)).await.expect("created");
    until(definitions.clone(), "gangs.x.example", "established", |d| {
        let conditions = d.and_then(|d| d.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Established"))
    })
    .await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("x.example", "v1", "Gang"));
    let gangs: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let gang = |n: i64| {
        of::<DynamicObject>(json!({
            "apiVersion": "x.example/v1", "kind": "Gang", "metadata": {"name": "g"}, "spec": {"n": n, "extra": 1}
        }))
    };
    assert_eq!(code(&gangs.create(&PostParams::default(), &gang(10)).await.expect_err("too large")), 422);
    let made = gangs.create(&PostParams::default(), &gang(3)).await.expect("created");
    assert_eq!(made.data["spec"], json!({"n": 3}));
    let status = json!({"apiVersion": "x.example/v1", "kind": "Gang", "status": {"phase": "Waiting"}});
    let params = PatchParams::apply("test").force();
    let patched = gangs.patch_status("g", &params, &Patch::Apply(status)).await.expect("applied");
    assert_eq!(
        (&patched.data["status"]["phase"], &patched.data["spec"]["n"]),
        (&json!("Waiting"), &json!(3))
    );
    let found =
        kube::discovery::pinned_group(&client, &kube::core::GroupVersion::gv("x.example", "v1")).await;
    assert!(found.expect("discovered").recommended_kind("Gang").is_some());
    definitions.delete("gangs.x.example", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(sandbox.count("gangs.x.example"), 0);
}

#[tokio::test]
async fn events_of_both_apis_are_one() {
    let (_sandbox, client) = still().await;
    let new: Api<k8s_openapi::api::events::v1::Event> = Api::default_namespaced(client.clone());
    let event = json!({
        "metadata": {"name": "e.1"}, "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Warning",
        "reportingController": "pellucid", "reportingInstance": "p", "action": "Scheduling",
        "reason": "FailedScheduling", "note": "no node", "regarding": {"kind": "Pod", "name": "a", "namespace": "default"}
    });
    new.create(&PostParams::default(), &of(event)).await.expect("created");
    let core: Api<Event> = Api::default_namespaced(client);
    let params = ListParams::default().fields("involvedObject.name=a,involvedObject.kind=Pod");
    let found = core.list(&params).await.expect("a list").items;
    assert_eq!(found.first().and_then(|e| e.message.as_deref()), Some("no node"));
    assert!(
        core.list(&ListParams::default().fields("involvedObject.name=b"))
            .await
            .expect("a list")
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn a_lease_is_renewed_by_its_holder_alone() {
    let (_sandbox, client) = still().await;
    let leases: Api<Lease> = Api::default_namespaced(client);
    let lease: Lease = of(json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}));
    let first = leases.create(&PostParams::default(), &lease).await.expect("created");
    let mut second = first.clone();
    second.spec.as_mut().expect("a spec").holder_identity = Some("b".into());
    leases.replace("l", &PostParams::default(), &second).await.expect("replaced");
    assert_eq!(code(&leases.replace("l", &PostParams::default(), &first).await.expect_err("stale")), 409);
}

#[tokio::test]
async fn priority_comes_from_the_class() {
    let (_sandbox, client) = still().await;
    let classes: Api<PriorityClass> = Api::all(client.clone());
    let class = json!({"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"});
    classes.create(&PostParams::default(), &of(class)).await.expect("created");
    let pods: Api<Pod> = Api::default_namespaced(client);
    let mut high = pod("a");
    high.spec.as_mut().expect("a spec").priority_class_name = Some("high".into());
    let spec = pods.create(&PostParams::default(), &high).await.expect("created").spec.expect("a spec");
    assert_eq!((spec.priority, spec.preemption_policy.as_deref()), (Some(1000), Some("Never")));
    high.metadata.name = Some("b".into());
    high.spec.as_mut().expect("a spec").priority_class_name = Some("none".into());
    assert_eq!(code(&pods.create(&PostParams::default(), &high).await.expect_err("no such class")), 403);
}

#[tokio::test]
async fn a_namespace_goes_with_what_is_in_it() {
    let (sandbox, client) = still().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace: Namespace = of(json!({"metadata": {"name": "team"}}));
    namespaces.create(&PostParams::default(), &namespace).await.expect("created");
    let pods: Api<Pod> = Api::namespaced(client, "team");
    let mut held = pod("a");
    held.metadata.finalizers = Some(vec!["example.org/hold".into()]);
    pods.create(&PostParams::default(), &held).await.expect("created");
    namespaces.delete("team", &DeleteParams::default()).await.expect("deleted");
    until(pods.clone(), "a", "on its way", |pod| {
        pod.is_some_and(|p| p.metadata.deletion_timestamp.is_some())
    })
    .await;
    assert_eq!(code(&pods.create(&PostParams::default(), &pod("b")).await.expect_err("too late")), 403);
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pods.patch("a", &PatchParams::default(), &free).await.expect("patched");
    until(namespaces, "team", "gone", |namespace| namespace.is_none()).await;
    assert_eq!(sandbox.count("pods"), 0);
}

#[tokio::test]
async fn bad_input_is_refused_and_never_a_panic() {
    let (sandbox, client) = still().await;
    let send = async |method: &str, path: &str, content: &str, body: Vec<u8>| {
        let request = http::Request::builder().method(method).uri(path).header("content-type", content);
        let request = request.body(kube::client::Body::from(body)).expect("a request");
        client.send(request).await.expect("an answer").status().as_u16()
    };
    let pods = "/api/v1/namespaces/default/pods";
    let json = "application/json";
    for (body, expected) in
        [("[]", 400), ("null", 400), ("\"x\"", 400), ("{\"metadata\":[]}", 400), ("{}", 422)]
    {
        assert_eq!(send("POST", pods, json, body.into()).await, expected, "{body}");
    }
    assert_eq!(send("POST", pods, json, vec![b' '; 3 * 1024 * 1024 + 1]).await, 413);
    assert_eq!(send("POST", pods, "application/vnd.kubernetes.protobuf", b"k8s".to_vec()).await, 415);
    assert_eq!(send("GET", "/api/v1/namespaces/default/pods/a/b/c", json, Vec::new()).await, 404);
    assert_eq!(send("GET", "/api/v1/nothing", json, Vec::new()).await, 404);
    assert_eq!(send("GET", "/api/v1/pods?labelSelector=%ff%zz%", json, Vec::new()).await, 400);
    assert_eq!(send("GET", "/api/v1/pods?limit=x", json, Vec::new()).await, 400);
    let (_unused, taken) = (client.clone(), sandbox.address());
    let error =
        Sandbox::start(Config { listen: taken, ..Config::default() }).await.expect_err("the port is taken");
    assert!(error.to_string().contains(&taken.to_string()), "{error}");
}
