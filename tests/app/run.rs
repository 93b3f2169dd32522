//! A scheduler against the sandbox's HTTP API: binding, conditions, events, faults, shutdown.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use pellucid::app::instance::Instance;
use pellucid::cycle::Snapshot;
use pellucid::sandbox::{Config, Fault, Handle, Match, Sandbox};
use serde_json::{Value, json};

use crate::common::process::Process;
use crate::common::running::{message, node, node_of, parts, pod};
use crate::common::{LOOK_EVERY, PATIENCE, kubeconfig, running};

/// Starts a sandbox in real time.
async fn sandbox(objects: Vec<Value>) -> (Handle, Client) {
    running::sandbox(Config { objects, ..Config::default() }).await
}

async fn instance(sandbox: &Handle) -> Instance {
    Instance::start(parts(sandbox.kube_config()).await).await.expect("an instance")
}

/// Waits for a snapshot that satisfies a condition.
async fn wait(instance: &mut Instance, what: &str, is_wanted: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
    let mut snapshot = instance.snapshot();
    let waiting = async {
        while !is_wanted(&snapshot) {
            snapshot = instance.next_snapshot().await;
        }
        snapshot.clone()
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what} did not come about"))
}

fn bound(snapshot: &Snapshot) -> u64 {
    snapshot.counters.bound
}

/// Watches a pod on the API server until it satisfies a condition.
async fn wait_for_pod(client: &Client, name: &str, is_wanted: impl Fn(&Pod) -> bool) -> Pod {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let waiting =
        kube::runtime::wait::await_condition(pods, name, |pod: Option<&Pod>| pod.is_some_and(&is_wanted));
    let pod = tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("{name} never became as wanted"));
    pod.expect("a watch").expect("a pod")
}

fn is_placed(pod: &Pod) -> bool {
    node_of(pod).is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_pod_is_told_why_and_is_woken_by_a_node() {
    let (sandbox, client) = sandbox(vec![node("small", "z", 2)]).await;
    let mut instance = instance(&sandbox).await;
    sandbox.create(pod("big", 4000)).expect("a pod");
    let told = wait_for_pod(&client, "big", |p| message(p).is_some()).await;
    assert_eq!(
        message(&told),
        Some(
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: \
             1 Preemption is not helpful for scheduling."
        )
    );

    // A changed note creates a new event; an unchanged one continues the series of the old event.
    let nodes: Api<Node> = Api::all(client.clone());
    nodes
        .create(&PostParams::default(), &serde_json::from_value(node("tainted", "z", 8)).expect("a node"))
        .await
        .expect("created");
    let taint = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    nodes.patch("tainted", &PatchParams::default(), &Patch::Merge(taint)).await.expect("tainted");
    wait(&mut instance, "a place or a new refusal", |snapshot| snapshot.counters.attempts >= 2).await;
    let done = wait(&mut instance, "a verdict", |snapshot| {
        let counts = snapshot.queue.counts();
        counts.active + counts.backoff + counts.in_flight == 0
    });
    let snapshot = done.await;
    // Whether the taint or the scheduler was first, the pod is accounted for.
    assert_eq!(snapshot.queue.counts().unschedulable as u64 + bound(&snapshot), 1);
    nodes
        .create(&PostParams::default(), &serde_json::from_value(node("large", "z", 8)).expect("a node"))
        .await
        .expect("created");
    wait_for_pod(&client, "big", is_placed).await;
    wait(&mut instance, "the binding", |snapshot| bound(snapshot) == 1).await;

    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let reasons = async {
        loop {
            let list = events.list(&ListParams::default()).await.expect("events");
            let reasons: Vec<String> = list.items.iter().filter_map(|e| e.reason.clone()).collect();
            if reasons.iter().any(|r| r == "Scheduled") {
                return (list.items, reasons);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let (items, reasons) = tokio::time::timeout(PATIENCE, reasons).await.expect("a Scheduled event");
    assert!(reasons.iter().any(|r| r == "FailedScheduling"), "{reasons:?}");
    let scheduled = items.iter().find(|e| e.reason.as_deref() == Some("Scheduled")).expect("the event");
    assert!(
        scheduled.note.as_deref().unwrap_or_default().starts_with("Successfully assigned default/big to ")
    );
    instance.stop().await;
    sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_decided_before_both_lists_are_there() {
    let (sandbox, client) = sandbox(vec![node("n", "z", 4)]).await;
    sandbox.create(pod("early", 1000)).expect("a pod");
    // The list of nodes succeeds only at the second try, long after that of the pods.
    sandbox.faults().times(Match::new("GET", "/api/v1/nodes"), Fault::Status(500), 1);
    let mut instance = instance(&sandbox).await;
    wait_for_pod(&client, "early", is_placed).await;
    let snapshot = wait(&mut instance, "the binding", |snapshot| bound(snapshot) == 1).await;
    assert_eq!((snapshot.counters.attempts, snapshot.counters.refused), (1, 0));
    instance.stop().await;
    sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_lose_nothing_and_place_nothing_twice() {
    const PODS: usize = 60;
    let objects = (0..6).map(|n| node(&format!("n{n}"), "z", 4)).collect();
    let (sandbox, client) = sandbox(objects).await;
    let faults = sandbox.faults();
    faults.times(Match::new("POST", "/binding"), Fault::StatusAfterCommit(503), 5);
    faults.times(Match::new("POST", "/binding"), Fault::DropAfterCommit, 5);
    faults.times(Match::new("POST", "/binding"), Fault::Status(409), 3);
    faults.times(Match::new("POST", "/binding"), Fault::Drop, 3);
    // Matches only the watch of the scheduler: the test has its own watches.
    faults.times(Match::new("GET", "status.phase"), Fault::DropMidLine, 2);
    faults.times(Match::new("GET", "status.phase"), Fault::GoneEvent, 1);
    faults.times(Match::new("GET", "status.phase"), Fault::DuplicateEvent, 2);
    let mut instance = instance(&sandbox).await;
    for n in 0..PODS {
        sandbox.create(pod(&format!("p{n}"), 300)).expect("a pod");
    }
    for n in 0..PODS {
        wait_for_pod(&client, &format!("p{n}"), is_placed).await;
    }
    let snapshot = wait(&mut instance, "quiet", |snapshot| {
        snapshot.cluster.pods().filter(|(_, r)| r.stage == pellucid::cluster::Stage::Bound).count() == PODS
    })
    .await;
    assert_eq!(snapshot.queue.units().count(), 0, "units left over");
    // The state agrees with the API server about every pod, and no node exceeds its CPU.
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    for pod in pods.list(&ListParams::default()).await.expect("pods") {
        let key = pellucid::model::PodKey::new("default", &pod.name_any());
        let record = snapshot.cluster.find_pod(&key).and_then(|id| snapshot.cluster.pod(id)).expect("known");
        let ours = record.node.map(|n| snapshot.cluster.node_name(n).to_string());
        assert_eq!(ours, pod.spec.and_then(|s| s.node_name));
    }
    for node in snapshot.cluster.present() {
        assert!(snapshot.cluster.columns().free(*node, pellucid::cluster::columns::CPU) >= 0);
    }
    instance.stop().await;
    sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_at_the_same_address_is_listed_anew() {
    let (first, _) = sandbox(vec![node("old-1", "z", 4), node("old-2", "z", 4)]).await;
    first.compact(1_000);
    let address = first.address();
    let mut instance = instance(&first).await;
    wait(&mut instance, "the old nodes", |snapshot| snapshot.cluster.present().len() == 2).await;
    first.stop().await;
    let objects = vec![node("new", "z", 4)];
    let second =
        Sandbox::start(Config { listen: address, objects, ..Config::default() }).await.expect("a sandbox");
    // As in `pellucid sandbox`, revisions begin above those of an earlier run.
    second.compact(2_000);
    wait(&mut instance, "the new node alone", |snapshot| {
        let names: Vec<&str> =
            snapshot.cluster.by_name().iter().map(|n| snapshot.cluster.node_name(*n).as_str()).collect();
        names == ["new"]
    })
    .await;
    second.create(pod("p", 1000)).expect("a pod");
    wait(&mut instance, "the binding", |snapshot| bound(snapshot) == 1).await;
    instance.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_binary_schedules_and_stops_on_sigterm() {
    let (sandbox, client) = sandbox(vec![node("n", "z", 4)]).await;
    let file = kubeconfig(&sandbox.url());
    let file = file.path().to_str().expect("text");
    let mut process = Process::start(&["run", "--kubeconfig", file, "--listen", "127.0.0.1:0"]);
    process.wait_for_stderr("scheduling rest=http://127.0.0.1:");
    sandbox.create(pod("p", 1000)).expect("a pod");
    wait_for_pod(&client, "p", is_placed).await;
    let status = process.terminate();
    assert!(status.success(), "{status}");
    process.wait_for_stderr("stopped");
    sandbox.stop().await;
}
