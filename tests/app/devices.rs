//! Devices through an API server: cards on the pods' annotations, what the endpoints say, and what refuses a pod.

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use pellucid::plugins::device_share::NAME;
use serde_json::{Value, json};

use crate::common::running::{node, pod, start_with};

const CONFIGURATION: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: pellucid
    plugins:
      multiPoint:
        enabled: [{name: DeviceShare}]
";
const KIND: &str = "scheduling.koordinator.sh/v1alpha1/Device";
const ALLOCATED: &str = "scheduling.koordinator.sh/device-allocated";

/// Returns the objects of the example: the definition of the kind, a node, its Device, and three pods.
fn example() -> Vec<Value> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/devices.yaml");
    serde_saphyr::from_multiple(&std::fs::read_to_string(file).expect("the example")).expect("YAML")
}

/// Makes a node with cards of 8 GiB, whose amounts are published as koord-manager does.
fn gpu_node(name: &str, cards: i64) -> Value {
    let mut made = node(name, "a", 10);
    for (resource, amount) in [
        ("koordinator.sh/gpu-core", json!(100 * cards)),
        ("koordinator.sh/gpu-memory", json!(format!("{}Gi", 8 * cards))),
        ("koordinator.sh/gpu-memory-ratio", json!(100 * cards)),
    ] {
        made["status"]["allocatable"][resource] = amount;
    }
    made
}

/// Makes the Device of a node; only some cards are healthy.
fn device(name: &str, healthy: &[bool]) -> Value {
    let cards = healthy.iter().enumerate().map(|(minor, healthy)| {
        json!({
            "type": "gpu", "id": format!("GPU-{minor}"), "minor": minor, "health": healthy,
            "resources": {"koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory": "8Gi",
                "koordinator.sh/gpu-memory-ratio": 100},
        })
    });
    json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
        "metadata": {"name": name}, "spec": {"devices": cards.collect::<Vec<_>>()},
    })
}

/// Makes a pod of article 001: amounts under the names of Koordinator 0.7.
fn sharing(name: &str, core: u32, memory: &str) -> Value {
    let mut made = pod(name, 100);
    let amounts = json!({"kubernetes.io/gpu-core": core, "kubernetes.io/gpu-memory": memory});
    made["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
    made
}

/// Returns minors and amounts on a pod's annotation.
fn cards(text: &str) -> Vec<(i64, Value)> {
    let read: Value = serde_json::from_str(text).expect("it is JSON");
    let card = |card: &Value| (card["minor"].as_i64().expect("a minor"), card["resources"].clone());
    read["gpu"].as_array().expect("GPUs").iter().map(card).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_card_and_two_halves_get_cards_of_their_own() {
    let mut objects = example();
    let pods = objects.split_off(3);
    let mut cluster = start_with(objects, Some(CONFIGURATION), None).await;
    let state = format!("/apis/v1/plugins/{NAME}/state");
    cluster.wait(&state, "the Device", |body| body["rows"].as_array().is_some_and(|rows| rows.len() == 2));

    let of = |core: &str, memory: &str, ratio: &str| {
        json!({"koordinator.sh/gpu-core": core, "koordinator.sh/gpu-memory": memory,
            "koordinator.sh/gpu-memory-ratio": ratio})
    };
    for (pod, minor, has) in [
        (&pods[0], 0, of("100", "8Gi", "100")),
        (&pods[1], 1, of("50", "4Gi", "50")),
        (&pods[2], 1, of("50", "4Gi", "50")),
    ] {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        assert_eq!(cluster.place(pod.clone()).await, "gpu-1");
        let bound = cluster.pod(name, "with cards", |pod| {
            pod.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(ALLOCATED))
        });
        let bound = bound.await;
        let text = &bound.metadata.annotations.expect("annotations")[ALLOCATED];
        assert_eq!(cards(text), [(minor, has)], "{name}");
    }
    let summary = cluster.read(&format!("/apis/v1/plugins/{NAME}/nodeDeviceSummaries/gpu-1"));
    assert_eq!(summary["deviceFree"]["koordinator.sh/gpu-core"], "0", "{summary}");
    assert_eq!(summary["allocateSet"]["gpu"]["default/half-2"]["1"], of("50", "4Gi", "50"), "{summary}");
    assert_eq!(cluster.status_of(&format!("/apis/v1/plugins/{NAME}/nodeDeviceSummaries/other")), 404);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_free_halves_are_no_card_until_one_is_mended() {
    let objects = vec![example().swap_remove(0), gpu_node("n1", 3), device("n1", &[true, true, false])];
    let mut cluster = start_with(objects, Some(CONFIGURATION), None).await;
    let state = format!("/apis/v1/plugins/{NAME}/state");
    cluster.wait(&state, "the Device", |body| body["rows"].as_array().is_some_and(|rows| rows.len() == 3));
    for name in ["half-1", "half-2"] {
        cluster.place(sharing(name, 50, "4Gi")).await;
    }

    // The node has 200 of gpu-core, and no card has 100.
    cluster.create([sharing("full", 100, "8Gi")]);
    cluster.told("full", "Insufficient gpu devices").await;
    let explained = cluster.read("/apis/v1/explain/pods/default/full").to_string();
    let said = "1 gpu device with gpu-core 100 and gpu-memory 8Gi free wanted; 0 of 3 do: 1 not healthy, 2 short of \
                gpu-core";
    assert!(explained.contains(said), "{explained}");
    assert!(explained.contains("InsufficientDevices"), "{explained}");

    let patch = Patch::Merge(device("n1", &[true, true, true]));
    let (group, kind) = KIND.rsplit_once('/').expect("version/Kind");
    let (group, version) = group.split_once('/').expect("group/version");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let devices: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    devices.patch("n1", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!(cluster.bound("full").await, "n1");
    cluster.stop().await;
}
