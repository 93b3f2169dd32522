//! Two NonStrict gangs that each hold what the other needs, and the deadline that ends it.

use serde_json::{Value, json};

use crate::made::{MODE, X, annotated, group, names, of_group, patient};
use crate::running::{Hand, Running, node, pod, priority_class, start_with, with};

/// A pod for one node.
fn only(pod: Value, on: &str) -> Value {
    with(pod, "nodeSelector", json!({"kubernetes.io/hostname": on}))
}

/// Two nodes for one pod each. Gang `a` holds the first and wants the second, gang `b` the other way round.
async fn locked() -> Running {
    let nodes = vec![node("n0", "z", 1), node("n1", "z", 1), priority_class("first", 10, "Never")];
    let mut running = start_with(nodes, None, Some(Hand::default())).await;
    running.create([only(pod("single", 1000), "n1")]);
    running.bound("single").await;
    running.create([
        only(patient("a", "a-0", 2, 1000, "30s"), "n0"),
        only(patient("a", "a-1", 2, 1000, "30s"), "n1"),
    ]);
    running.in_stage("a-0", "waiting");
    running.told("a-1", "").await;
    // `b` comes later and goes before `a` when the single pod makes room.
    running.let_pass(10).await;
    let first = |pod| with(pod, "priorityClassName", json!("first"));
    running.create([
        first(only(patient("b", "b-0", 2, 1000, "30s"), "n1")),
        first(only(patient("b", "b-1", 2, 1000, "30s"), "n0")),
    ]);
    running.told("b-0", "").await;
    running.told("b-1", "").await;
    // Neither is in its backoff when the room comes.
    running.let_pass(2).await;
    running.kill("single").await;
    running.in_stage("b-0", "waiting");
    running.in_stage("a-0", "waiting");
    running
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deadline_breaks_a_deadlock_of_two_gangs() {
    let mut running = locked().await;
    running.let_pass(17).await;
    running.in_stage("b-0", "waiting");
    running.in_stage("a-0", "waiting");
    // The first wait that began runs out.
    running.let_pass(1).await;
    running.all_run(&names("b", 2)).await;
    assert_eq!(running.placed("a-").await.0.len(), 0);
    for name in names("b", 2) {
        running.kill(&name).await;
    }
    // Its backoff is over.
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

/// The arguments of the plugin hold: the wait of a gang that names none, the gap, and the backoff, during which
/// nothing is taken again, also when nobody else wants it.
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
    // Somebody else has the room before the backoff ends, though they come late.
    running.create([pod("late", 2000)]);
    running.bound("late").await;
    for name in &members {
        let body = running.explained(name, "decided", |b| b["verdict"] == "refused");
        assert!(body["placement"].is_null(), "{body:#}");
    }
    running.create([node("n1", "z", 4)]);
    running.let_pass(1).await;
    running.all_run(&members).await;
    running.stop().await;
}
