//! Reservations through an API server: placed by a write of their status, used by their owner, and read over HTTP.

use pellucid::plugins::reservation::NAME;
use serde_json::{Value, json};

use crate::common::running::{node, pod, start_with};

const CONFIGURATION: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: pellucid
    plugins:
      multiPoint:
        enabled: [{name: Reservation, weight: 5000}]
";
const KIND: &str = "scheduling.koordinator.sh/v1alpha1/Reservation";
const TAKEN: &str = "scheduling.koordinator.sh/reservation-allocated";

/// Makes the definition of the kind, as examples/reservations.yaml has it.
fn definition() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "reservations.scheduling.koordinator.sh"},
        "spec": {
            "group": "scheduling.koordinator.sh", "scope": "Cluster",
            "names": {"plural": "reservations", "kind": "Reservation"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": schema,
            }],
        },
    })
}

/// Makes a reservation for pods with label app=web, as large as a pod.
fn reservation(name: &str, milli_cpu: u32) -> Value {
    let spec = pod("template", milli_cpu)["spec"].clone();
    json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": name},
        "spec": {"ttl": "0s", "owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}], "template": {"spec": spec}},
    })
}

fn phase(object: &Value) -> &str {
    object["status"]["phase"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_keeps_its_room_until_its_owner_comes() {
    let objects = vec![definition(), node("n1", "a", 4)];
    let mut cluster = start_with(objects, Some(CONFIGURATION), None).await;
    cluster.create([reservation("large", 9000), reservation("web", 3000)]);
    let placed = cluster.object(KIND, "web", "available", |object| phase(object) == "Available").await;
    assert_eq!(placed["status"]["nodeName"], "n1", "{placed}");
    assert_eq!(placed["status"]["allocatable"]["cpu"], "3", "{placed}");

    // Others cannot have the room, and one that is too large says why as a pod does.
    cluster.create([pod("other", 2000)]);
    cluster.told("other", "Insufficient cpu").await;
    let waits = cluster.object(KIND, "large", "refused", |of| of["status"]["conditions"].is_array()).await;
    let told = waits["status"]["conditions"][0]["message"].as_str().unwrap_or_default();
    assert!(told.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{waits}");
    let detail = cluster.read(&format!("/apis/v1/plugins/{NAME}/reservations/large"));
    let explained = cluster.read(detail["explanation"].as_str().expect("where it is explained"));
    assert_eq!(explained["verdict"], "refused", "{explained}");

    assert_eq!(cluster.place(pod("web", 3000)).await, "n1");
    let bound = cluster.pod("web", "in its reservation", |pod| {
        pod.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(TAKEN))
    });
    assert!(bound.await.metadata.annotations.expect("annotations")[TAKEN].contains("\"web\""));
    let used = cluster.object(KIND, "web", "used up", |object| phase(object) == "Succeeded").await;
    assert_eq!(used["status"]["currentOwners"][0]["name"], "web", "{used}");
    let path = format!("/apis/v1/plugins/{NAME}/reservations?stage=Succeeded");
    cluster.wait(&path, "it is listed as used up", |body| body["items"][0]["name"] == "web");
    assert_eq!(cluster.status_of(&format!("/apis/v1/plugins/{NAME}/reservations/none")), 404);
    cluster.stop().await;
}
