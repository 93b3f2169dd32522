//! Volumes that are provisioned once the pod's node is known.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{CLAIM, SELECTED_NODE, VOLUME, claim, class, groups, only_on, three_nodes, user};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_is_made_where_its_class_allows_it() {
    let mut zoned = class("zoned", "disk.example", "WaitForFirstConsumer");
    let zone = json!({"key": "topology.kubernetes.io/zone", "values": ["zb"]});
    zoned["allowedTopologies"] = json!([{"matchLabelExpressions": [zone]}]);
    let mut running = three_nodes(vec![zoned, claim("one", "zoned"), claim("two", "zoned")]).await;
    assert_eq!(running.place(user("first", "one")).await, "b");
    let bound = running.bound_claim("one").await;
    assert_eq!(bound["metadata"]["annotations"][SELECTED_NODE], "b");
    let name = bound["spec"]["volumeName"].as_str().expect("a volume");
    let volume = running.object(VOLUME, name, "there", |volume| !volume.is_null()).await;
    let term = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0];
    assert_eq!(term["matchExpressions"][0]["values"], json!(["zb"]));

    running.create([only_on(user("second", "two"), "c")]);
    running.told("second", "1 node(s) didn't find available persistent volumes to bind").await;
    let found = groups(&running.explain("second"));
    assert!(found.contains(&("VolumeBinding".into(), "NoVolumeToBind".into())), "{found:?}");
    // Nothing is written for a pod that has no node.
    let waiting = running.object(CLAIM, "two", "there", |claim| !claim.is_null()).await;
    assert_eq!(waiting["metadata"]["annotations"][SELECTED_NODE], Value::Null);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pod_of_a_stateful_set_gets_its_own_volume() {
    let mut running = three_nodes(Vec::new()).await;
    let template = user("db", "unused");
    let mut spec = template["spec"].clone();
    spec["volumes"] = json!([]);
    let term =
        json!({"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"});
    spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!([term]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    running.create([json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": spec},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim("data", "late")["spec"]}]
        }
    })]);
    let (mut nodes, mut volumes) = (BTreeSet::new(), BTreeSet::new());
    for n in 0..3 {
        let node = running.bound(&format!("db-{n}")).await;
        let bound = running.bound_claim(&format!("data-db-{n}")).await;
        assert_eq!(bound["metadata"]["annotations"][SELECTED_NODE], node.as_str());
        nodes.insert(node);
        volumes.insert(bound["spec"]["volumeName"].to_string());
    }
    assert_eq!((nodes.len(), volumes.len()), (3, 3));
    running.stop().await;
}
