//! Deployments, StatefulSets, ReplicationControllers and Jobs, and the claims of pods.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
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
