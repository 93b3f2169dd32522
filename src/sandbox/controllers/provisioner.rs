//! The volume that a simulated driver provisions for a claim: of the requested size, and where the pod will run.

use serde_json::{Value, json};

use crate::api::Api;
use crate::fields::list;
use crate::kinds::meta;
use crate::kinds::storage::{CSI_NODES, PROVISIONED_BY, SELECTED_NODE};

/// Returns the volume for a claim of a class.
pub(super) fn volume(api: &Api, claim: &Value, class: &Value) -> Value {
    let (spec, driver) = (&claim["spec"], &class["provisioner"]);
    let name = format!("pvc-{}", meta::text(claim, "uid"));
    let mut volume = json!({
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: driver}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"], "volumeMode": spec["volumeMode"],
            "persistentVolumeReclaimPolicy": class["reclaimPolicy"],
            "storageClassName": class["metadata"]["name"],
            "claimRef": {
                "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": claim["metadata"]["namespace"],
                "name": claim["metadata"]["name"], "uid": claim["metadata"]["uid"],
                "resourceVersion": claim["metadata"]["resourceVersion"]
            },
            "csi": {"driver": driver, "volumeHandle": name}
        }
    });
    if class["mountOptions"].is_array() {
        volume["spec"]["mountOptions"] = class["mountOptions"].clone();
    }
    let terms = terms(api, claim, class);
    if !terms.is_empty() {
        volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
    }
    volume
}

/// Returns where the volume is accessible: in the topology domain of the selected node if the driver reports its keys,
/// else where the class allows it, else everywhere.
fn terms(api: &Api, claim: &Value, class: &Value) -> Vec<Value> {
    let node = claim["metadata"]["annotations"][SELECTED_NODE].as_str().unwrap_or_default();
    let get = |table: &str| api.store.get(table, &("".into(), node.into())).map(|object| object.value());
    let node_labels = get("nodes").map(|node| node["metadata"]["labels"].clone()).unwrap_or_default();
    let requirement = |key: &str, values: Value| json!({"key": key, "operator": "In", "values": values});
    let csi_node = get(CSI_NODES).unwrap_or_default();
    let driver =
        list(&csi_node["spec"]["drivers"]).iter().find(|driver| driver["name"] == class["provisioner"]);
    let keys =
        driver.map_or(&[][..], |driver| list(&driver["topologyKeys"])).iter().filter_map(Value::as_str);
    let own: Vec<Value> =
        keys.filter_map(|key| Some(requirement(key, json!([node_labels[key].as_str()?])))).collect();
    if !own.is_empty() {
        return vec![json!({"matchExpressions": own})];
    }
    let allowed = list(&class["allowedTopologies"]);
    let expressions = |term: &Value| list(&term["matchLabelExpressions"]).to_vec();
    let has_node = |term: &&Value| {
        let fits = |e: &Value| {
            let value = e["key"].as_str().map(|key| &node_labels[key]);
            value.is_some_and(|value| list(&e["values"]).contains(value))
        };
        expressions(term).iter().all(fits)
    };
    // The selected node decides which of the allowed domains it is.
    if let Some(term) = allowed.iter().find(has_node).filter(|_| !node.is_empty()) {
        let own = expressions(term).into_iter().filter_map(|e| {
            let key = e["key"].as_str()?;
            Some(requirement(key, json!([node_labels[key]])))
        });
        return vec![json!({"matchExpressions": own.collect::<Vec<_>>()})];
    }
    let all = allowed.iter().map(|term| {
        let all = expressions(term).into_iter();
        let all = all.filter_map(|e| Some(requirement(e["key"].as_str()?, e["values"].clone())));
        json!({"matchExpressions": all.collect::<Vec<_>>()})
    });
    all.collect()
}
