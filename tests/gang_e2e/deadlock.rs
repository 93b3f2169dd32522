//! Two NonStrict gangs that each hold what the other needs, and the deadline that ends the deadlock.

use serde_json::{Value, json};

use crate::common::running::{Hand, Running, node, pod, priority_class, start_with, with};
use crate::gang_e2e::made::{MODE, X, annotated, group, names, of_group, patient};

/// Restricts a pod to one node.
fn only(pod: Value, on: &str) -> Value {
    with(pod, "nodeSelector", json!({"kubernetes.io/hostname": on}))
}

/// Starts two nodes for one pod each. Gang `a` holds the first and waits for the second, gang `b` the reverse.
async fn locked() -> Running {
    let nodes = vec![node("n0", "z", 1), node("n1", "z", 1), priority_class("first", 10, "Never")];
    let mut running = start_with(nodes, None, Some(Hand::default())).await;
    running.place(only(pod("single", 1000), "n1")).await;
    running.create([
        only(patient("a", "a-0", 2, 1000, "30s"), "n0"),
        only(patient("a", "a-1", 2, 1000, "30s"), "n1"),
    ]);
    running.in_stage("a-0", "waiting");
    running.told("a-1", "").await;
    // `b` is created later and goes before `a` when the single pod makes room.
    running.let_pass(10).await;
    let first = |pod| with(pod, "priorityClassName", json!("first"));
    running.create([
        first(only(patient("b", "b-0", 2, 1000, "30s"), "n1")),
        first(only(patient("b", "b-1", 2, 1000, "30s"), "n0")),
    ]);
    running.told("b-0", "").await;
    running.told("b-1", "").await;
    // Neither gang is in backoff when the room appears.
    running.let_pass(2).await;
    running.kill("single").await;
    running.in_stage("b-0", "waiting");
    running.in_stage("a-0", "waiting");
    running
}

const INTERFERENCE: &str = "/apis/v1/gangs/interference";

/// Checks that each gang holds the CPU that the other gang's second pod waits for.
fn show_the_cycle(running: &Running) {
    let body = running.wait(INTERFERENCE, "a cycle", |body| body["cycles"] != json!([]));
    // The wait of `a` began first.
    let cycle = json!({"gangs": ["default/a", "default/b"], "breaksAt": "2026-01-01T00:00:30.000Z"});
    assert_eq!(body["cycles"], json!([cycle]), "{body:#}");
    let edge = |holder: &str, waiter: &str, pod: &str, on: &str, since: &str| {
        json!({
            "holder": format!("default/{holder}"), "waiter": format!("default/{waiter}"), "resources": ["cpu"],
            "held": {"cpu": 1000}, "heldText": {"cpu": "1"}, "heldCpuMilli": 1000, "heldMemoryBytes": 0,
            "holderPods": 1, "waiterPod": format!("default/{pod}"), "nodeCount": 1, "nodes": [on],
            "since": format!("2026-01-01T00:00:{since}.000Z"),
        })
    };
    let edges = [edge("a", "b", "b-1", "n0", "00"), edge("b", "a", "a-1", "n1", "12")];
    assert_eq!(body["edges"], json!(edges), "{body:#}");
    // Each gang's own explanation says so too.
    for (gang, holder) in [("a", "default/b"), ("b", "default/a")] {
        let told = running.gang_explained(gang, "blocked", |body| body["blocker"]["kind"] == "holders");
        assert_eq!(told["blocker"]["gangs"], json!([holder]), "{told:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deadline_breaks_a_deadlock_of_two_gangs() {
    let mut running = locked().await;
    running.let_pass(17).await;
    running.in_stage("b-0", "waiting");
    running.in_stage("a-0", "waiting");
    show_the_cycle(&running);
    // The wait that began first expires.
    running.let_pass(1).await;
    running.all_run(&names("b", 2)).await;
    assert_eq!(running.placed("a-").await.0.len(), 0);
    let is_over = |body: &Value| body["edges"] == json!([]) && body["cycles"] == json!([]);
    running.wait(INTERFERENCE, "nobody holds what another one waits for", is_over);
    let gang = running.gang("a", "a wait ran out", |body| body["timeouts"] == 1);
    assert_eq!(gang["lastRelease"]["code"], "GangWaitTimeout", "{gang:#}");
    assert_eq!(gang["lastRelease"]["members"], 1, "{gang:#}");
    assert_eq!(gang["lastRelease"]["at"], "2026-01-01T00:00:30.000Z", "{gang:#}");
    assert_eq!((&gang["counts"]["pending"], &gang["held"]["pods"]), (&json!(2), &json!(0)), "{gang:#}");
    let gang = running.gang("b", "runs", |body| body["state"] == "Running");
    assert!(gang["timeouts"] == 0 && gang["lastRelease"].is_null(), "{gang:#}");
    for name in names("b", 2) {
        running.kill(&name).await;
    }
    running.gang("b", "gone", |body| body["counts"]["created"] == 0);
    // The gang's backoff is over.
    running.let_pass(10).await;
    running.all_run(&names("a", 2)).await;
    running.stop().await;
}

const SLOW: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: pellucid
    pluginConfig:
      - name: Coscheduling
        args:
          permitWaitingTimeSeconds: 15
          podGroupBackoffSeconds: 40
          podGroupRejectPercentage: 50
";

/// The plugin's arguments apply: the default wait of a gang, the gap, and the backoff, during which the gang takes no
/// room even when nobody else wants it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_that_gave_its_places_up_leaves_them_for_its_backoff() {
    let mut running = start_with(vec![node("n0", "z", 2)], Some(SLOW), Some(Hand::default())).await;
    running.create([annotated(group(X, "g", 4), MODE, "NonStrict")]);
    let members = names("g", 4);
    running.create(members.iter().map(|name| of_group(pod(name, 1000), "g")));
    running.in_stage("g-0", "waiting");
    running.in_stage("g-1", "waiting");
    running.let_pass(15).await;
    running.told("g-0", "the wait for the other members ran out").await;
    running.let_pass(39).await;
    // Another pod gets the room before the backoff ends, although it was created late.
    running.place(pod("late", 2000)).await;
    for name in &members {
        let body = running.explained(name, "decided", |b| b["verdict"] == "refused");
        assert!(body["placement"].is_null(), "{body:#}");
    }
    running.create([node("n1", "z", 4)]);
    // An attempt before the scheduler knows the node would start another backoff.
    running.wait("/apis/v1/nodes", "two nodes", |body| body["count"] == 2);
    running.let_pass(1).await;
    running.all_run(&members).await;
    running.stop().await;
}
