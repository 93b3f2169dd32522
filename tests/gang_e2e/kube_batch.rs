//! kube-batch: a group contains the pods of several Jobs, and belongs to a queue, which has a part of the cluster.

use serde_json::{Value, json};

use crate::common::running::{pod, start, start_with};
use crate::gang_e2e::made::{KUBE_BATCH, document, group, names, nodes};

fn in_queue(mut group: Value, queue: &str) -> Value {
    group["spec"]["queue"] = queue.into();
    group
}

fn member(name: &str, group: &str) -> Value {
    crate::gang_e2e::made::annotated(pod(name, 1000), "scheduling.k8s.io/group-name", group)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_of_two_jobs_that_needs_both_is_refused_for_a_huge_pod() {
    let mut running = start(nodes(1, 6)).await;
    running.create([group(KUBE_BATCH, "mixed", 12)]);
    running.create(document("two_jobs"));
    let small = running.run_and_wait("small-", 0, 6).await;
    let huge = running.run_and_wait("huge-", 0, 6).await;
    let words = "gang default/mixed: 6 of 12 members that its quorum needs can be placed; default/huge-";
    running.all_told(&small, words).await;
    let message = running.refused_for(&small[0], "GangSiblingUnschedulable");
    assert!(message.contains("Insufficient cpu"), "{message}");
    assert_eq!(huge.len(), 6);
    // While its pods were being created, the condition said that there were too few.
    let is_tried = |group: &Value| {
        let (phase, condition) = (&group["status"]["phase"], &group["status"]["conditions"][0]);
        *phase == "Pending"
            && condition["type"] == "Unschedulable"
            && condition["reason"] == "NotEnoughResources"
    };
    running.object(&format!("{KUBE_BATCH}/PodGroup"), "mixed", "tried", is_tried).await;
    // Nothing is held for the gang.
    running.place(pod("single", 6000)).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_quorum_of_six_the_small_pods_run() {
    let mut running = start(nodes(1, 6)).await;
    running.create([group(KUBE_BATCH, "mixed", 6)]);
    running.create(document("two_jobs"));
    running.run_and_wait("small-", 6, 0).await;
    running.run_and_wait("huge-", 0, 6).await;
    running.group_status(KUBE_BATCH, "mixed", "six run", &json!({"phase": "Running", "running": 6})).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_jobs_whose_quorum_is_both_run_together() {
    let mut jobs = document("two_jobs");
    jobs[1]["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("1");
    let [small, huge] = <[Value; 2]>::try_from(jobs).expect("two Jobs");
    let mut running = start(nodes(2, 6)).await;
    running.create([group(KUBE_BATCH, "mixed", 12), small]);
    // One half waits for the other.
    running.run_and_wait("small-", 0, 6).await;
    running.create([huge]);
    running.run_and_wait("small-", 6, 0).await;
    running.run_and_wait("huge-", 6, 0).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_waits_for_its_queue_and_needs_none_for_the_default() {
    let mut running = start(nodes(1, 6)).await;
    running.create([
        in_queue(group(KUBE_BATCH, "named", 2), "research"),
        in_queue(group(KUBE_BATCH, "plain", 2), "default"),
    ]);
    let of = |group: &str| names(group, 2).iter().map(|name| member(name, group)).collect::<Vec<_>>();
    running.create(of("plain").into_iter().chain(of("named")));
    running.all_run(&names("plain", 2)).await;
    running.all_told(&names("named", 2), "research").await;
    running.refused_for("named-0", "GangQueueMissing");
    running.create([json!({"apiVersion": KUBE_BATCH, "kind": "Queue", "metadata": {"name": "research"}, "spec": {"weight": 1}})]);
    running.all_run(&names("named", 2)).await;
    running.stop().await;
}

/// A profile with kube-batch's scheduler name, for manifests that were made for it.
const CONFIGURATION: &str = r#"{
    "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "kube-batch"}]
}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_of_kube_batch_share_the_cluster_by_the_weights_of_their_queues() {
    let mut running = start_with(Vec::new(), Some(CONFIGURATION), None).await;
    running.create(document("queues"));
    // The node comes when everybody has asked.
    let all = "/apis/v1/plugins/Proportion/queues";
    for (queue, cores) in [("research", "12"), ("production", "12"), ("tests", "3"), ("default", "2")] {
        let asks = |queue: &Value| queue["request"]["cpu"] == cores;
        running.wait(&format!("{all}/{queue}"), "its pods are known", asks);
    }
    running.create(nodes(1, 15));
    // Fifteen cores: research has twice the weight of production, tests may hold one, and shadow groups want two.
    for (job, runs, waits) in [("research-", 8, 4), ("production-", 4, 8), ("tests-", 1, 2), ("loose-", 2, 0)]
    {
        running.run_and_wait(job, runs, waits).await;
    }
    // Pods without requests run in a queue that deserves nothing.
    running.run_and_wait("idle-", 2, 0).await;
    let of = |queue: &str| running.read(&format!("{all}/{queue}"));
    let research = of("research");
    assert_eq!((&research["deserved"]["cpu"], &research["allocated"]["cpu"]), (&json!("8"), &json!("8")));
    assert_eq!(research["apiGroups"], json!(["scheduling.sigs.dev"]));
    assert_eq!(research["waiting"][0]["reason"], "QueueOverused");
    let tests = of("tests");
    assert_eq!((&tests["capability"]["cpu"], &tests["overused"]), (&json!("1"), &json!(["cpu"])));
    assert_eq!(tests["waiting"][0]["reason"], "QueueCapabilityExceeded");
    assert_eq!(of("idle")["deserved"], json!({}));
    assert_eq!(running.status_of(&format!("{all}/nobody")), 404);
    running.stop().await;
}
