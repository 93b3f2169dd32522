//! Koordinator's gangs: several PodGroups as one group, mode NonStrict, and gangs without a PodGroup.

use serde_json::json;

use crate::common::running::{Hand, node, pod, start, start_with};
use crate::gang_e2e::made::{
    GROUPS, MODE, X, annotated, group, light, names, nodes, of_group, patient, within,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_pod_groups_in_two_namespaces_are_one_group() {
    let mut running = start(nodes(1, 4)).await;
    let groups = r#"["default/ps", "work/worker"]"#;
    running.create([
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "work"}}),
        annotated(group(X, "ps", 2), GROUPS, groups),
        annotated(within(group(X, "worker", 3), "work"), GROUPS, groups),
    ]);
    let servers = names("ps", 2);
    running.create(servers.iter().map(|name| of_group(pod(name, 1000), "ps")));
    // The gang is complete, and waits for the other one.
    running.all_told(&servers, "another gang of the group is not ready").await;
    let workers: Vec<String> = names("work/worker", 3);
    running.create(names("worker", 3).iter().map(|n| within(of_group(pod(n, 1000), "worker"), "work")));
    // The group needs five CPUs and there are four: no gang of it runs.
    running.all_told(&servers, "").await;
    running.all_told(&workers, "").await;
    let told = running.explained(&servers[0], "refused", |body| body["verdict"] == "refused");
    let message = told["message"].as_str().unwrap_or_default();
    assert!(message.contains("default/ps: 2 of 2") && message.contains("work/worker: 2 of 3"), "{message}");
    running.create([node("more", "z", 1)]);
    running.all_run(&servers).await;
    running.all_run(&workers).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_light_gang_pod_b_goes_on_when_pod_a_fails() {
    let hand = Hand::default();
    let mut running = start_with(nodes(1, 2), None, Some(hand)).await;
    running.create([
        patient("pod-group-a", "pod-a", 2, 8000, "30s"),
        patient("pod-group-a", "pod-b", 2, 1000, "30s"),
    ]);
    running.in_stage("pod-b", "waiting");
    running.told("pod-a", "0/1 nodes are available: 1 Insufficient cpu.").await;
    running.let_pass(29).await;
    running.in_stage("pod-b", "waiting");
    running.let_pass(1).await;
    running.told("pod-b", "the wait for the other members ran out").await;
    running.create([node("large", "z", 8)]);
    running.let_pass(10).await;
    running.all_run(&["pod-a".into(), "pod-b".into()]).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_strict_light_gang_pod_b_is_refused_with_pod_a() {
    let mut running = start(nodes(1, 2)).await;
    running.create([light("pod-group-a", "pod-a", 2, 8000), light("pod-group-a", "pod-b", 2, 1000)]);
    running.told("pod-a", "0/1 nodes are available: 1 Insufficient cpu.").await;
    running.told("pod-b", "default/pod-a cannot: 0/1 nodes are available: 1 Insufficient cpu.").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_that_is_set_on_a_pod_group_holds() {
    let mut running = start(nodes(1, 3)).await;
    running.create([annotated(group(X, "loose", 4), MODE, "NonStrict"), group(X, "tight", 4)]);
    let tight = names("tight", 4);
    running.create(tight.iter().map(|name| of_group(pod(name, 1000), "tight")));
    running.all_told(&tight, "").await;
    let loose = names("loose", 4);
    // The profile's arguments would reject a gap of a quarter; Koordinator's dialect has no such rule.
    let of_koordinator =
        |name: &String| annotated(pod(name, 1000), "gang.scheduling.koordinator.sh/name", "loose");
    running.create(loose.iter().map(of_koordinator));
    let mut waiting = 0;
    for name in &loose {
        let body =
            running.explained(name, "decided", |b| b["verdict"] == "refused" || !b["placement"].is_null());
        waiting += usize::from(body["placement"]["stage"] == "waiting");
    }
    assert_eq!(waiting, 3);
    running.create([node("more", "z", 1)]);
    running.all_run(&loose).await;
    running.stop().await;
}
