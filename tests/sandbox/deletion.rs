//! Deletion of pods: grace periods, preconditions, finalizers, and pods that do not terminate.

use kube::api::Preconditions;

use super::*;

/// Starts a sandbox whose clock stands still, with pods on a node.
async fn with_pods(names: &[&str]) -> (Handle, Client, Api<Pod>) {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for name in names {
        let created = pods.create(&PostParams::default(), &pod(name)).await.expect("created");
        bind(&client, &created, "n1").await.expect("bound");
    }
    (sandbox, client, pods)
}

async fn gone(pods: &Api<Pod>, name: &str) {
    until(pods.clone(), name, "gone", |pod| pod.is_none()).await;
}

fn grace(pod: &Pod) -> Option<i64> {
    pod.metadata.deletion_grace_period_seconds
}

#[tokio::test]
async fn grace_comes_from_the_delete_then_the_pod_and_only_gets_shorter() {
    let (_sandbox, client, pods) = with_pods(&["a"]).await;
    let mut patient = pod("b");
    patient.spec.as_mut().expect("a spec").termination_grace_period_seconds = Some(60);
    let patient = pods.create(&PostParams::default(), &patient).await.expect("created");
    bind(&client, &patient, "n1").await.expect("bound");
    let delete = async |name: &str, grace: Option<u32>| {
        let params = DeleteParams { grace_period_seconds: grace, ..DeleteParams::default() };
        pods.delete(name, &params).await.expect("deleted");
        pods.get_opt(name).await.expect("an answer")
    };
    assert_eq!(delete("a", Some(7)).await.as_ref().and_then(grace), Some(7));
    assert_eq!(delete("a", None).await.as_ref().and_then(grace), Some(7), "none was named");
    assert_eq!(delete("a", Some(20)).await.as_ref().and_then(grace), Some(7), "longer than before");
    let shorter = delete("a", Some(3)).await.expect("still there");
    assert_eq!(grace(&shorter), Some(3));
    let ends = shorter.metadata.deletion_timestamp.map(|time| time.0.to_string());
    assert_eq!(ends.as_deref(), Some("2026-01-01T00:00:03Z"));
    assert!(delete("a", Some(0)).await.is_none());
    assert_eq!(delete("b", None).await.as_ref().and_then(grace), Some(60));
}

#[tokio::test]
async fn preconditions_and_finalizers_hold() {
    let (sandbox, _client, pods) = with_pods(&["a"]).await;
    let found = pods.get("a").await.expect("the pod");
    let only_if = |uid: Option<String>, resource_version: Option<String>| DeleteParams {
        preconditions: Some(Preconditions { uid, resource_version }),
        ..DeleteParams::default()
    };
    let other = Some("00000000-0000-0000-0000-000000000000".to_owned());
    assert_eq!(code(&pods.delete("a", &only_if(other, None)).await.expect_err("another pod")), 409);
    let stale = only_if(found.uid(), Some("1".to_owned()));
    assert_eq!(code(&pods.delete("a", &stale).await.expect_err("an older state")), 409);
    let held = Patch::Merge(json!({"metadata": {"finalizers": ["example.org/hold"]}}));
    let held = pods.patch("a", &PatchParams::default(), &held).await.expect("patched");
    pods.delete("a", &only_if(held.uid(), held.resource_version())).await.expect("deleted");
    sandbox.clock().advance(Duration::from_secs(2));
    until(pods.clone(), "a", "ended but held", |pod| pod.and_then(grace) == Some(0)).await;
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pods.patch("a", &PatchParams::default(), &free).await.expect("patched");
    gone(&pods, "a").await;
}

#[tokio::test]
async fn a_victim_can_refuse_to_end() {
    let (sandbox, _client, pods) = with_pods(&["a", "b", "c"]).await;
    let (a, labelled) = (Objects::named("default", "a"), Objects::labelled("app", "b"));
    sandbox.faults().trouble(a.clone(), Trouble::PodNeverEnds);
    sandbox.faults().trouble(labelled.clone(), Trouble::PodNeverEnds);
    let label = Patch::Merge(json!({"metadata": {"labels": {"app": "b"}}}));
    pods.patch("b", &PatchParams::default(), &label).await.expect("patched");
    for name in ["a", "b", "c"] {
        pods.delete(name, &DeleteParams::default()).await.expect("deleted");
    }
    sandbox.clock().advance(Duration::from_secs(60));
    gone(&pods, "c").await;
    assert_eq!(sandbox.count("pods"), 2, "two refuse");
    sandbox.faults().lift(&labelled);
    gone(&pods, "b").await;
    assert!(pods.get("a").await.expect("still there").metadata.deletion_timestamp.is_some());
    sandbox.faults().lift(&a);
    gone(&pods, "a").await;
}

#[tokio::test]
async fn the_status_of_a_victim_and_of_its_preemptor_is_patched() {
    let (_sandbox, client, pods) = with_pods(&["victim"]).await;
    let waiting = pods.create(&PostParams::default(), &pod("waiting")).await.expect("created");
    let params = PatchParams::default();
    let target = json!({"status": {"conditions": [{
        "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "for another pod"
    }]}});
    let victim = pods.patch_status("victim", &params, &Patch::Strategic(target)).await.expect("patched");
    let conditions = victim.status.and_then(|s| s.conditions).unwrap_or_default();
    let kinds: Vec<&str> = conditions.iter().map(|c| c.type_.as_str()).collect();
    assert_eq!(kinds, ["DisruptionTarget", "PodScheduled"]);
    let nominate = async |node: Value| {
        let patch = json!({"status": {"nominatedNodeName": node}});
        let pod = pods.patch_status("waiting", &params, &Patch::Strategic(patch)).await.expect("patched");
        pod.status.and_then(|status| status.nominated_node_name)
    };
    assert_eq!(nominate(json!("n1")).await.as_deref(), Some("n1"));
    assert_eq!(nominate(json!("")).await, None);
    assert_eq!(nominate(json!("n1")).await.as_deref(), Some("n1"));
    assert_eq!(nominate(json!(null)).await, None);
    assert_eq!(nominate(json!("n2")).await.as_deref(), Some("n2"));
    bind(&client, &waiting, "n1").await.expect("bound");
    let bound = pods.get("waiting").await.expect("the pod");
    assert_eq!(bound.status.and_then(|status| status.nominated_node_name), None);
}

#[tokio::test]
async fn faults_know_resources_and_subresources() {
    let (sandbox, _client, pods) = with_pods(&["a"]).await;
    let params = PatchParams::default();
    let status = Patch::Strategic(json!({"status": {"nominatedNodeName": "n2"}}));
    let label = Patch::Merge(json!({"metadata": {"labels": {"x": "1"}}}));
    sandbox.faults().next(Match::on("PATCH", "pods/status"), Fault::Status(409));
    sandbox.faults().next(Match::on("DELETE", "pods"), Fault::StatusAfterCommit(503));
    sandbox.faults().next(Match::on("PATCH", "persistentvolumeclaims"), Fault::Drop);
    pods.patch("a", &params, &label).await.expect("not the status");
    assert_eq!(code(&pods.patch_status("a", &params, &status).await.expect_err("injected")), 409);
    pods.patch_status("a", &params, &status).await.expect("once");
    assert_eq!(code(&pods.delete("a", &DeleteParams::default()).await.expect_err("injected")), 503);
    assert!(pods.get("a").await.expect("on its way").metadata.deletion_timestamp.is_some());
    assert_eq!(sandbox.faults().pending(), 1, "no claim was patched");
}

#[tokio::test]
async fn a_thousand_pods_come_and_go() {
    let (sandbox, client) = fast().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let names: Vec<String> = (0..1_000).map(|index| format!("p{index}")).collect();
    let each = |name: String| {
        let (pods, client) = (pods.clone(), client.clone());
        async move {
            let created = pods.create(&PostParams::default(), &pod(&name)).await.expect("created");
            bind(&client, &created, "n1").await.expect("bound");
            pods.delete(&name, &DeleteParams::default()).await.expect("deleted");
        }
    };
    futures_util::stream::iter(names).map(each).buffer_unordered(32).collect::<Vec<()>>().await;
    let mut stream = pin!(watcher(pods, watcher::Config::default()));
    while sandbox.count("pods") > 0 {
        in_time(stream.next()).await.expect("the watch goes on").expect("an event");
    }
}
