//! Devices: those of a node in short become its Device, and amounts of the node.

use super::*;

const DEVICES: &str = "sandbox.pellucid.dev/devices";
const UNHEALTHY: &str = "sandbox.pellucid.dev/unhealthy-devices";

fn devices(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("scheduling.koordinator.sh", "v1alpha1", "Device");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

fn node(name: &str, annotations: Value) -> Node {
    of(json!({
        "metadata": {"name": name, "annotations": annotations},
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi"}},
    }))
}

/// Returns an amount of a node.
fn amount(node: Option<&Node>, list: &str, name: &str) -> Option<String> {
    let status = node?.status.as_ref()?;
    let amounts = if list == "capacity" { &status.capacity } else { &status.allocatable };
    Some(amounts.as_ref()?.get(name)?.0.clone())
}

#[tokio::test]
async fn devices_are_reported_published_break_and_go_with_their_node() {
    let (_sandbox, client) = start(Config { devices: true, ..Config::default() }).await;
    let (nodes, devices): (Api<Node>, _) = (Api::all(client.clone()), devices(&client));
    let form = json!({DEVICES: "4 GPUs x 16Gi, 2 per switch, 2 per NUMA, 2 RDMA"});
    nodes.create(&PostParams::default(), &node("n1", form)).await.expect("created");
    let has = |n: usize| {
        move |device: Option<&DynamicObject>| {
            device.is_some_and(|device| {
                device.data["spec"]["devices"].as_array().is_some_and(|all| all.len() == n)
            })
        }
    };
    let found = until(devices.clone(), "n1", "reported", has(6)).await.expect("a Device");
    assert_eq!(found.data["spec"]["devices"][2]["topology"]["pcieID"], "pci-1");
    let offers = |list: &'static str, name: &'static str, want: &'static str| {
        move |node: Option<&Node>| amount(node, list, name).as_deref() == Some(want)
    };
    until(nodes.clone(), "n1", "published", offers("allocatable", "koordinator.sh/gpu-memory", "64Gi")).await;
    until(nodes.clone(), "n1", "published", offers("allocatable", "nvidia.com/gpu", "4")).await;

    // By the node's annotation, and by the Device itself.
    let broken = Patch::Merge(json!({"metadata": {"annotations": {UNHEALTHY: "gpu-3"}}}));
    nodes.patch("n1", &PatchParams::default(), &broken).await.expect("patched");
    until(nodes.clone(), "n1", "one is broken", offers("allocatable", "nvidia.com/gpu", "3")).await;
    let node = nodes.get("n1").await.expect("it is there");
    assert_eq!(amount(Some(&node), "capacity", "nvidia.com/gpu").as_deref(), Some("4"));
    let mut device = devices.get("n1").await.expect("it is there");
    device.data["spec"]["devices"][0]["health"] = json!(false);
    devices.replace("n1", &PostParams::default(), &device).await.expect("replaced");
    until(nodes.clone(), "n1", "two are broken", offers("allocatable", "koordinator.sh/gpu-core", "200"))
        .await;

    nodes.delete("n1", &DeleteParams::default()).await.expect("deleted");
    until(devices, "n1", "gone", |device| device.is_none()).await;
}

#[tokio::test]
async fn devices_that_cannot_be_read_are_refused_with_field_and_value() {
    let (_sandbox, client) = still().await;
    let nodes: Api<Node> = Api::all(client.clone());
    for (key, value) in [(DEVICES, "8 cards"), (UNHEALTHY, "fan-1")] {
        let refused = nodes.create(&PostParams::default(), &node("n1", json!({key: value}))).await;
        let Err(kube::Error::Api(status)) = refused else { panic!("not refused: {refused:?}") };
        assert_eq!(status.code, 422);
        for words in [&format!("metadata.annotations[{key}]"), value, "must be like"] {
            assert!(status.message.contains(words), "{words} is missing in {}", status.message);
        }
    }
    let config = Config { gpus: Some("8 cards".to_owned()), ..Config::default() };
    let refused = Sandbox::start(config).await.expect_err("no devices").to_string();
    assert!(refused.starts_with("devices \"8 cards\": must be like"), "{refused}");
}
