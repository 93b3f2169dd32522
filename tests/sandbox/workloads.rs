//! StatefulSets and ReplicationControllers, and the claims of pods.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, ReplicationController};

use super::*;

fn stateful_set(policy: &str) -> StatefulSet {
    of(json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 3, "serviceName": "db", "podManagementPolicy": policy,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}
            },
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]
        }
    }))
}

async fn running(client: &Client, pods: &Api<Pod>, name: &str) -> Pod {
    let made = until(pods.clone(), name, "created", |pod| pod.is_some()).await.expect("a pod");
    bind(client, &made, "n1").await.expect("bound");
    until(pods.clone(), name, "running", |pod| phase(pod) == "Running").await.expect("a pod")
}

async fn gone(pods: &Api<Pod>, name: &str) {
    until(pods.clone(), name, "gone", |pod| pod.is_none()).await;
}

#[tokio::test]
async fn a_stateful_set_makes_its_pods_in_order_with_claims_of_their_own() {
    let (sandbox, client) = fast().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let sets: Api<StatefulSet> = Api::default_namespaced(client.clone());
    sets.create(&PostParams::default(), &stateful_set("OrderedReady")).await.expect("created");
    for (index, name) in ["db-0", "db-1", "db-2"].into_iter().enumerate() {
        let pod = running(&client, &pods, name).await;
        assert!(sandbox.count("pods") <= index + 2, "the next comes when this one is ready");
        let label = |key: &str| pod.labels().get(key).cloned().unwrap_or_default();
        assert_eq!(label("statefulset.kubernetes.io/pod-name"), name);
        assert_eq!(label("apps.kubernetes.io/pod-index"), index.to_string());
        let spec = pod.spec.expect("a spec");
        let claim = spec.volumes.unwrap_or_default().into_iter().find_map(|v| v.persistent_volume_claim);
        assert_eq!(claim.map(|claim| claim.claim_name), Some(format!("data-{name}")));
        assert_eq!((spec.hostname.as_deref(), spec.subdomain.as_deref()), (Some(name), Some("db")));
    }
    let is_ready = |set: Option<&StatefulSet>, n: i32| {
        set.and_then(|set| set.status.as_ref())
            .is_some_and(|s| s.ready_replicas == Some(n) && s.replicas == n)
    };
    until(sets.clone(), "db", "three ready", |set| is_ready(set, 3)).await;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}});
    let old = pods.get("db-2").await.expect("the pod").uid();
    sets.patch("db", &PatchParams::default(), &Patch::Strategic(image)).await.expect("patched");
    until(pods.clone(), "db-2", "replaced", |pod| pod.is_some_and(|pod| pod.uid() != old)).await;
    let scale = json!({"spec": {"replicas": 1}});
    sets.patch_scale("db", &PatchParams::default(), &Patch::Merge(scale)).await.expect("scaled");
    gone(&pods, "db-2").await;
    gone(&pods, "db-1").await;
    assert_eq!(sandbox.count("persistentvolumeclaims"), 3, "claims stay");
    sets.delete("db", &DeleteParams::default()).await.expect("deleted");
    gone(&pods, "db-0").await;
}

#[tokio::test]
async fn a_parallel_stateful_set_makes_all_its_pods_at_once() {
    let (_sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let sets: Api<StatefulSet> = Api::default_namespaced(client.clone());
    sets.create(&PostParams::default(), &stateful_set("Parallel")).await.expect("created");
    for name in ["db-0", "db-1", "db-2"] {
        until(pods.clone(), name, "created", |pod| pod.is_some()).await;
    }
    pods.delete("db-1", &DeleteParams::default().grace_period(0)).await.expect("deleted");
    until(pods.clone(), "db-1", "again", |pod| pod.is_some()).await;
    let scale = json!({"spec": {"replicas": 0}});
    sets.patch_scale("db", &PatchParams::default(), &Patch::Merge(scale)).await.expect("scaled");
    for name in ["db-0", "db-1", "db-2"] {
        gone(&pods, name).await;
    }
}

#[tokio::test]
async fn a_replication_controller_keeps_replicas() {
    let (_sandbox, client) = fast().await;
    let controllers: Api<ReplicationController> = Api::default_namespaced(client.clone());
    let controller = json!({"metadata": {"name": "old"}, "spec": {"replicas": 2, "template": {
        "metadata": {"labels": {"app": "old"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let made = controllers.create(&PostParams::default(), &of(controller)).await.expect("created");
    assert_eq!(made.labels().get("app").map(String::as_str), Some("old"));
    let binder = tokio::spawn(bind_all(client.clone()));
    until(controllers.clone(), "old", "two ready", |c| {
        c.and_then(|c| c.status.as_ref()?.ready_replicas) == Some(2)
    })
    .await;
    let scale = json!({"spec": {"replicas": 0}});
    let scaled = controllers.patch_scale("old", &PatchParams::default(), &Patch::Merge(scale)).await;
    assert_eq!(scaled.expect("scaled").status.and_then(|s| s.selector).as_deref(), Some("app=old"));
    until(controllers, "old", "none", |c| c.and_then(|c| c.status.as_ref()).is_some_and(|s| s.replicas == 0))
        .await;
    binder.abort();
}

#[tokio::test]
async fn an_ephemeral_volume_has_a_claim_that_goes_with_the_pod() {
    let (_sandbox, client) = still().await;
    let mut object = serde_json::to_value(pod("a")).expect("JSON");
    object["spec"]["volumes"] = json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}]);
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &of(object)).await.expect("created");
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client);
    until(claims.clone(), "a-scratch", "created", |claim| claim.is_some()).await;
    pods.delete("a", &DeleteParams::default()).await.expect("deleted");
    until(claims, "a-scratch", "gone", |claim| claim.is_none()).await;
}
