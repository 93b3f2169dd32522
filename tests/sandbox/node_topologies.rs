//! Machines: the CPUs and NUMA nodes of a node in short become its NodeResourceTopology.

use super::*;

const MACHINE: &str = "sandbox.pellucid.dev/machine";

fn topologies(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("topology.node.k8s.io", "v1alpha1", "NodeResourceTopology");
    let resource = ApiResource { plural: "noderesourcetopologies".into(), ..ApiResource::from_gvk(&kind) };
    Api::all_with(client.clone(), &resource)
}

fn node(name: &str, machine: &str) -> Node {
    of(json!({
        "metadata": {"name": name, "annotations": {MACHINE: machine}},
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "hugepages-2Mi": "4Mi"}},
    }))
}

#[tokio::test]
async fn a_machine_is_reported_changes_and_goes_with_its_node() {
    let (_sandbox, client) = start(Config { node_topologies: true, ..Config::default() }).await;
    let (nodes, topologies): (Api<Node>, _) = (Api::all(client.clone()), topologies(&client));
    nodes
        .create(&PostParams::default(), &node("n1", "1 socket x 2 NUMA x 2 cores x 2 threads"))
        .await
        .expect("created");
    let has_zones = |n: usize| {
        move |topology: Option<&DynamicObject>| {
            topology.is_some_and(|topology| {
                topology.data["zones"].as_array().is_some_and(|zones| zones.len() == n)
            })
        }
    };
    let found = until(topologies.clone(), "n1", "reported", has_zones(2)).await.expect("a topology");
    let text = &found.annotations()["node.koordinator.sh/cpu-topology"];
    let cpus: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(cpus["detail"][5], json!({"id": 5, "core": 1, "socket": 0, "node": 0}));
    let resources = &found.data["zones"][1]["resources"];
    let amounts: Vec<(&str, &str)> = resources
        .as_array()
        .expect("resources")
        .iter()
        .map(|of| (of["name"].as_str().unwrap_or(""), of["allocatable"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(amounts, [("cpu", "4"), ("hugepages-2Mi", "2097152"), ("memory", "4294967296")]);

    let other = Patch::Merge(json!({"metadata": {"annotations": {MACHINE: "1x4x1x2"}}}));
    nodes.patch("n1", &PatchParams::default(), &other).await.expect("patched");
    until(topologies.clone(), "n1", "reported anew", has_zones(4)).await;
    nodes.delete("n1", &DeleteParams::default()).await.expect("deleted");
    until(topologies, "n1", "gone", |topology| topology.is_none()).await;
}

#[tokio::test]
async fn a_machine_that_cannot_be_read_is_refused_with_field_and_value() {
    let (_sandbox, client) = still().await;
    let nodes: Api<Node> = Api::all(client.clone());
    let refused = nodes.create(&PostParams::default(), &node("n1", "2 sockets x 4 cores")).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("not refused: {refused:?}") };
    assert_eq!(status.code, 422);
    for words in ["metadata.annotations[sandbox.pellucid.dev/machine]", "2 sockets x 4 cores", "must be like"]
    {
        assert!(status.message.contains(words), "{words} is missing in {}", status.message);
    }
}
