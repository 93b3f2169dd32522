//! Devices through an API server: cards on the pods' annotations, what the endpoints say, and what refuses a pod.

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use pellucid::plugins::device_share::NAME;
use serde_json::{Value, json};

use crate::common::running::{Running, node, pod, start_with};

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

/// Returns the definition of the kind.
pub(crate) fn definition() -> Value {
    example().swap_remove(0)
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
pub(crate) fn device(name: &str, healthy: &[bool]) -> Value {
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

/// Returns the definition of the kind, and the Device of a node of which one card is broken.
pub(crate) fn broken_device(node: &str) -> [Value; 2] {
    [example().swap_remove(0), device(node, &[true, false])]
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
    // What is short is no limit that is exceeded.
    assert!(explained.contains("requested 1, at most 0 free (on n1)"), "{explained}");

    let patch = Patch::Merge(device("n1", &[true, true, true]));
    let (group, kind) = KIND.rsplit_once('/').expect("version/Kind");
    let (group, version) = group.split_once('/').expect("group/version");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let devices: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    devices.patch("n1", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!(cluster.bound("full").await, "n1");
    cluster.stop().await;
}

/// Requires a pod to be on one node.
fn only_on(mut pod: Value, node: &str) -> Value {
    let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
    let required = json!({"nodeSelectorTerms": [term]});
    pod["spec"]["affinity"] =
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    pod
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_proposed_frees_the_card_when_it_is_made() {
    let definition = example().swap_remove(0);
    let nodes = ["n1", "n2"].map(|name| [gpu_node(name, 1), device(name, &[true])]);
    let objects = std::iter::once(definition).chain(nodes.into_iter().flatten()).collect();
    let mut cluster = start_with(objects, Some(CONFIGURATION), None).await;
    let state = format!("/apis/v1/plugins/{NAME}/state");
    cluster.wait(&state, "the Devices", |body| body["rows"].as_array().is_some_and(|rows| rows.len() == 2));
    for (name, node) in [("half-1", "n1"), ("half-2", "n2")] {
        assert_eq!(cluster.place(only_on(sharing(name, 50, "4Gi"), node)).await, node);
    }
    cluster.create([sharing("full", 100, "8Gi")]);
    cluster.told("full", "Insufficient koordinator.sh/gpu-core").await;
    let said = cluster.text("/apis/v1/explain/pods/default/full");
    assert!(said.contains("1 of 1 free cards are fragments"), "{said}");
    let read = cluster.read("/apis/v1/explain/pods/default/full/devices");
    assert_eq!((&read["totalNodes"], &read["acceptingNodes"]), (&json!(2), &json!(0)));
    assert_eq!(read["nodes"][0]["requests"][0]["lacking"], json!({"gpu-core": 1}));

    // The pods themselves say where they may be, so the moves do not hold; without that one does.
    let fixes = |cluster: &Running| {
        let body = cluster.read("/apis/v1/explain/pods/default/full/suggestions?max=10");
        body["fixes"].as_array().cloned().unwrap_or_default()
    };
    let moved = |fix: &Value| fix["parts"][0]["edit"]["movePod"].is_object();
    assert!(!fixes(&cluster).iter().any(moved), "{:#?}", fixes(&cluster));
    cluster.kill("half-1").await;
    assert_eq!(cluster.bound("full").await, "n1");
    cluster.kill("full").await;
    assert_eq!(cluster.place(sharing("half-3", 50, "4Gi")).await, "n1");
    cluster.create([sharing("full-2", 100, "8Gi")]);
    cluster.told("full-2", "Insufficient koordinator.sh/gpu-core").await;
    let body = cluster.read("/apis/v1/explain/pods/default/full-2/suggestions?max=10");
    let fix = body["fixes"].as_array().and_then(|all| all.iter().find(|fix| moved(fix)));
    let fix = fix.unwrap_or_else(|| panic!("{body:#}"));
    assert_eq!(fix["text"], "move pod default/half-3 from gpu 0 of n1 to n2");
    assert_eq!(
        (&fix["node"], &fix["verified"], &fix["inCompany"]),
        (&json!("n1"), &json!(true), &json!("holds"))
    );
    let tried = json!({"include": ["default/full-2"], "edits": fix["edits"]});
    let simulated = cluster.post("/apis/v1/simulate", &tried).json();
    let placed: Vec<&str> =
        simulated["placements"].as_array().into_iter().flatten().filter_map(|p| p["node"].as_str()).collect();
    assert_eq!(placed.len(), 2, "{simulated}");

    cluster.kill("half-3").await;
    cluster.create([only_on(sharing("half-4", 50, "4Gi"), "n2")]);
    assert_eq!(
        (cluster.bound("half-4").await, cluster.bound("full-2").await),
        ("n2".to_owned(), "n1".to_owned())
    );
    cluster.stop().await;
}

/// Starts a cluster of nodes with one card each, and waits for their Devices.
async fn cards_on(names: &[&str]) -> Running {
    let with_whole = |name: &&str| {
        let mut made = gpu_node(name, 1);
        made["status"]["allocatable"]["nvidia.com/gpu"] = json!("1");
        made["status"]["allocatable"]["koordinator.sh/gpu"] = json!("100");
        [made, device(name, &[true])]
    };
    let objects = std::iter::once(definition()).chain(names.iter().flat_map(with_whole)).collect();
    let cluster = start_with(objects, Some(CONFIGURATION), None).await;
    let state = format!("/apis/v1/plugins/{NAME}/state");
    let n = names.len();
    cluster.wait(&state, "the Devices", |body| body["rows"].as_array().is_some_and(|rows| rows.len() == n));
    cluster
}

/// Returns the fix with an edit of this kind.
fn fix_with(body: &Value, edit: &str) -> Value {
    let fixes = body["fixes"].as_array().expect("fixes");
    let found = fixes
        .iter()
        .find(|fix| fix["edits"].as_array().is_some_and(|all| all.iter().any(|of| of[edit].is_object())));
    found.unwrap_or_else(|| panic!("no {edit} in {body:#}")).clone()
}

/// Three cards, two of them in use by half: one of the halves moves to the other, and both members have a card.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_is_told_which_pod_to_move_and_what_it_does_to_the_whole_gang() {
    let mut cluster = cards_on(&["n1", "n2", "n3"]).await;
    let mut taken = Vec::new();
    for name in ["half-1", "half-2"] {
        taken.push(cluster.place(sharing(name, 50, "4Gi")).await);
    }
    assert_ne!(taken[0], taken[1], "cards that are free come first");
    let member = |name: &str| {
        let mut made = sharing(name, 100, "8Gi");
        made["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = json!("g");
        made
    };
    cluster.create([json!({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2}})]);
    cluster.create([member("m1"), member("m2")]);
    let gang = "/apis/v1/explain/gangs/default/g";
    cluster.wait(gang, "refused", |body| body["counts"]["placeable"] == 1);
    for path in [gang, "/apis/v1/explain/pods/default/m2"] {
        let fix = fix_with(&cluster.read(&format!("{path}/suggestions?max=10")), "movePod");
        let text = fix["text"].as_str().unwrap_or_default();
        let moves = [(0, 1), (1, 0)].map(|(from, to)| {
            format!("move pod default/half-{} from gpu 0 of {} to {}", from + 1, taken[from], taken[to])
        });
        assert!(moves.iter().any(|known| known == text), "{text}");
        assert_eq!((&fix["verified"], &fix["slots"]), (&json!(true), &json!(2)), "{fix:#}");
        assert_eq!(fix["gang"]["text"], "2 of 2 members have places then: the whole gang", "{fix:#}");
        let tried = json!({"includeGangs": ["default/g"], "edits": fix["edits"]});
        let simulated = cluster.post("/apis/v1/simulate", &tried).json();
        let placed = simulated["placements"].as_array().map_or(0, Vec::len);
        assert_eq!(placed, 3, "the members and the pod that moves: {simulated:#}");
    }
    cluster.kill("half-1").await;
    for name in ["m1", "m2"] {
        cluster.bound(name).await;
    }
    cluster.stop().await;
}

/// Half a card is free and no whole one: a pod that wants a whole one is offered the half.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_wants_a_whole_card_is_offered_what_is_free_of_one() {
    let mut cluster = cards_on(&["n1"]).await;
    cluster.place(sharing("half", 50, "4Gi")).await;
    let mut whole = pod("whole", 100);
    whole["spec"]["containers"][0]["resources"] =
        json!({"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}});
    cluster.create([whole]);
    cluster.told("whole", "Insufficient gpu devices").await;
    let fix = fix_with(&cluster.read("/apis/v1/explain/pods/default/whole/suggestions?max=10"), "setRequest");
    let text = "take 50 % of a card (koordinator.sh/gpu 50) instead of a whole one (nvidia.com/gpu 1)";
    assert_eq!((&fix["text"], &fix["node"], &fix["verified"]), (&json!(text), &json!("n1"), &json!(true)));
    let edit = &fix["edits"][0]["setRequest"];
    assert_eq!((&edit["amount"], &edit["insteadOf"]), (&json!("50"), &json!("nvidia.com/gpu")), "{fix:#}");
    let command = fix["parts"][0]["command"].as_str().unwrap_or_default();
    assert!(command.contains(r#"del(.spec.containers[0].resources.requests["nvidia.com/gpu"]"#), "{command}");
    let tried = json!({"include": ["default/whole"], "edits": fix["edits"]});
    let simulated = cluster.post("/apis/v1/simulate", &tried).json();
    assert_eq!(simulated["placements"][0]["node"], "n1", "{simulated:#}");
    let read = cluster.read(&format!("/apis/v1/plugins/{NAME}/fragmentation"));
    let typical = read["typical"].as_array().expect("typical pods");
    let of = |percent: u32| typical.iter().find(|of| of["percent"] == percent).expect("one of the pods");
    assert_eq!((&of(100)["pods"], &of(100)["fragmentPercent"]), (&json!(0), &json!(50)), "{read:#}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_joint_gang_is_told_which_switch_lacks_what() {
    let topology =
        |switch: u32| json!({"socketID": 0, "nodeID": 0, "pcieID": format!("p{switch}"), "busID": ""});
    let gpu = |minor: u32| {
        json!({"type": "gpu", "id": format!("GPU-{minor}"), "minor": minor, "health": true, "topology": topology(minor / 2),
            "resources": {"koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory": "8Gi", "koordinator.sh/gpu-memory-ratio": 100}})
    };
    let rdma = |minor: u32| {
        json!({"type": "rdma", "id": format!("mlx{minor}"), "minor": minor, "health": minor == 0, "topology": topology(minor),
            "resources": {"koordinator.sh/rdma": 100}})
    };
    let devices: Vec<Value> = (0..4).map(gpu).chain((0..2).map(rdma)).collect();
    let mut device = device("n1", &[]);
    device["spec"]["devices"] = json!(devices);
    let mut node = gpu_node("n1", 4);
    node["status"]["allocatable"]["nvidia.com/gpu"] = json!("4");
    node["status"]["allocatable"]["koordinator.sh/rdma"] = json!("200");
    let mut cluster =
        start_with(vec![example().swap_remove(0), node, device], Some(CONFIGURATION), None).await;
    let state = format!("/apis/v1/plugins/{NAME}/state");
    cluster.wait(&state, "the Device", |body| body["rows"].as_array().is_some_and(|rows| rows.len() == 6));
    let joint = json!({"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"}).to_string();
    let member = |n: u32| {
        let mut made = pod(&format!("m{n}"), 100);
        let amounts = json!({"nvidia.com/gpu": "2", "koordinator.sh/rdma": "100"});
        made["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
        made["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = json!("g");
        made["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/device-joint-allocate": joint});
        made
    };
    cluster.create([json!({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2}})]);
    cluster.create([member(1), member(2)]);
    let gang = "/apis/v1/explain/gangs/default/g";
    let refused =
        |body: &Value| body["rootCause"]["nodeGroups"].as_array().is_some_and(|all| !all.is_empty());
    let body = cluster.wait(gang, "refused", refused);
    assert_eq!((&body["counts"]["placeable"], &body["counts"]["wanted"]), (&json!(1), &json!(2)));
    let said = body["rootCause"]["nodeGroups"][0]["details"][0]["text"].as_str().unwrap_or_default();
    let words = "free by PCIe switch: p1 2 of 2 gpu and 0 of 1 rdma; p0 0 of 2 gpu and 0 of 1 rdma";
    assert!(said.contains(words), "{body:#}");
    // Once the adapter is mended the gang is placed, each member on a switch.
    let mut mended = devices;
    mended[5]["health"] = json!(true);
    let patch = Patch::Merge(json!({"spec": {"devices": mended}}));
    cluster.api(KIND).patch("n1", &PatchParams::default(), &patch).await.expect("patched");
    for name in ["m1", "m2"] {
        assert_eq!(cluster.bound(name).await, "n1");
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_cards_than_a_node_has_are_not_waited_for() {
    let mut two = gpu_node("n1", 2);
    // The node says that it has more than its Device.
    two["status"]["allocatable"]["nvidia.com/gpu"] = json!("8");
    let objects = vec![example().swap_remove(0), two, device("n1", &[true, true])];
    let mut cluster = start_with(objects, Some(CONFIGURATION), None).await;
    let state = format!("/apis/v1/plugins/{NAME}/state");
    cluster.wait(&state, "the Device", |body| body["rows"].as_array().is_some_and(|rows| rows.len() == 2));
    let mut five = pod("five", 100);
    let amounts = json!({"nvidia.com/gpu": 5});
    five["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
    cluster.create([five]);
    cluster.told("five", "Insufficient").await;
    let explained = cluster.read("/apis/v1/explain/pods/default/five");
    assert_eq!(explained["outlook"]["code"], "NeverFits", "{explained}");
    for path in ["/summary", "/remedy", "/keyReason/remedy", "/nearest/reasons/0/remedy"] {
        let said = explained.pointer(path).and_then(Value::as_str).expect("a text").to_lowercase();
        assert!(said.contains("request less or fewer") && !said.contains("wait"), "{path}: {said}");
    }
    cluster.stop().await;
}
