//! The scenarios of two articles: one label per gang with Deployments, and a PodGroup with a ReplicaSet.

use serde_json::{Value, json};

use crate::common::running::{Running, pod, start, start_with};
use crate::gang_e2e::made::{MODE, SIGS, X, annotated, document, group, nodes, of_group};

const UNICORE: &str = include_str!("../data/config/gangs/unicore.yaml");
const ARTICLE: &str = include_str!("../data/config/gangs/article.yaml");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_of_which_two_make_a_quorum_all_run() {
    let mut running = start_with(nodes(3, 8), Some(UNICORE), None).await;
    running.create(document("unicore_quorum"));
    running.run_and_wait("unicore-gang-test-", 3, 0).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_replicas_that_may_not_share_three_nodes_all_wait() {
    let mut running = start_with(nodes(3, 8), Some(UNICORE), None).await;
    running.create(document("unicore_apart"));
    let waiting = running.run_and_wait("unicore-gang-test-", 0, 4).await;
    let said: Vec<Value> =
        waiting.iter().map(|pod| running.explained(pod, "refused", |b| b["verdict"] == "refused")).collect();
    let of_gang = "gang default/test: 3 of 4 members that its quorum needs can be placed";
    let siblings = said.iter().filter(|body| body["podReasons"][0]["code"] == "GangSiblingUnschedulable");
    let siblings: Vec<&str> = siblings.filter_map(|body| body["message"].as_str()).collect();
    assert_eq!(siblings.len(), 3, "{said:#?}");
    for message in siblings {
        assert!(message.contains(of_gang) && message.contains("anti-affinity"), "{message}");
    }
    // The fourth member is refused for its own reason.
    let root = said.iter().find(|body| body["podReasons"] == json!([])).expect("a root cause");
    assert!(
        root["message"]
            .as_str()
            .is_some_and(|m| m.contains("3 node(s) didn't match pod anti-affinity rules")),
        "{root:#}"
    );
    let gang = running.gang_explained("test", "refused", |b| b["state"] == "Unschedulable");
    assert_eq!(gang["verdict"]["code"], "GangMemberUnschedulable", "{gang:#}");
    assert_eq!((&gang["counts"]["min"], &gang["counts"]["created"]), (&json!(4), &json!(4)), "{gang:#}");
    assert_eq!((&gang["counts"]["placeable"], &gang["counts"]["wanted"]), (&json!(3), &json!(4)), "{gang:#}");
    let cause = &gang["rootCause"];
    let named = cause["pod"].as_str().and_then(|pod| pod.strip_prefix("default/"));
    assert!(named.is_some_and(|name| waiting.iter().any(|pod| pod == name)), "{gang:#}");
    for message in [&gang["verdict"]["message"], &cause["message"]] {
        assert!(message.as_str().is_some_and(|m| m.contains("pod anti-affinity rules")), "{gang:#}");
    }
    assert_eq!(cause["nodeGroups"][0]["plugin"], "InterPodAffinity", "{gang:#}");
    running.create([crate::common::running::node("n3", "z", 8)]);
    running.run_and_wait("unicore-gang-test-", 4, 0).await;
    let gang = running.gang_explained("test", "runs", |b| b["state"] == "Running");
    assert!(gang["rootCause"].is_null() && gang["counts"]["bound"] == 4, "{gang:#}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_six_pods_four_run_and_two_pend() {
    let mut running = start_with(nodes(4, 4), Some(ARTICLE), None).await;
    running.create(document("nginx"));
    running.run_and_wait("nginx-", 4, 2).await;
    let wanted = json!({"phase": "Running", "scheduled": 4, "running": 4});
    let status = running.group_status(SIGS, "nginx", "four run", &wanted).await;
    assert_eq!(status["occupiedBy"], "default/nginx", "{status}");
    assert!(status["scheduleStartTime"].is_string(), "{status}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_smaller_cluster_all_six_pend() {
    let mut running = start_with(nodes(3, 4), Some(ARTICLE), None).await;
    running.create(document("nginx"));
    let waiting = running.run_and_wait("nginx-", 0, 6).await;
    let words = "gang default/nginx: 3 of 4 members that its quorum needs can be placed";
    let of_gang = waiting.iter().filter(|pod| {
        let body = running.explained(pod, "refused", |b| b["verdict"] == "refused");
        body["message"].as_str().is_some_and(|m| m.contains(words) && m.contains("Insufficient cpu"))
    });
    assert_eq!(of_gang.count(), 5, "one is the root cause, or equal to it");
    let status = running.group_status(SIGS, "nginx", "tried", &json!({"phase": "Scheduling"})).await;
    assert!(status["scheduled"] == 0 || status["scheduled"].is_null(), "{status}");
    running.create([crate::common::running::node("n3", "z", 4)]);
    running.run_and_wait("nginx-", 4, 2).await;
    running.stop().await;
}

/// Starts a PodGroup with a quorum of twenty, and more pods than there is room for.
async fn a_gap(room: u32) -> Running {
    let running = start(nodes(1, room)).await;
    running.create([annotated(group(X, "wide", 20), MODE, "NonStrict")]);
    running.create((0..21).map(|n| of_group(pod(&format!("wide-{n:02}"), 1000), "wide")));
    running
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_gap_to_the_quorum_keeps_what_waits() {
    let mut running = a_gap(18).await;
    for n in 0..18 {
        running.in_stage(&format!("wide-{n:02}"), "waiting");
    }
    for n in 18..21 {
        running.explained(&format!("wide-{n:02}"), "refused", |b| b["verdict"] == "refused");
    }
    assert_eq!(running.placed("wide-").await.0.len(), 0, "nothing is bound while it waits");
    running.group_status(X, "wide", "tried", &json!({"phase": "Scheduling"})).await;
    running.create([crate::common::running::node("more", "z", 2)]);
    running.run_and_wait("wide-", 20, 1).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_gap_to_the_quorum_gives_up_what_waits() {
    let mut running = a_gap(17).await;
    running.run_and_wait("wide-", 0, 21).await;
    for n in 0..21 {
        let body = running.explained(&format!("wide-{n:02}"), "refused", |b| b["verdict"] == "refused");
        assert!(body["placement"].is_null(), "{body:#}");
    }
    // Others can use the room.
    running.place(pod("other", 17_000)).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_gap_the_quorum_runs() {
    let mut running = a_gap(20).await;
    running.run_and_wait("wide-", 20, 1).await;
    let wanted = json!({"phase": "Running", "running": 20});
    running.group_status(X, "wide", "twenty run", &wanted).await;
    running.stop().await;
}
