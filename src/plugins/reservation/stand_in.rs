//! The pod that stands for a reservation in the queue and on its node, made of the reservation's template.

use pellucid_api::keys::reservation as keys;
use pellucid_model::custom::stand_in_name;
use serde_json::{Map, Value, json};

use super::RESERVATION;
use super::object::is_placeable;

/// Returns the manifest of the pod that stands for a reservation.
///
/// It never preempts, it has labels and annotations of template and reservation, and what the template says of
/// `spec.nodeName` is a required node affinity.
pub(super) fn pod(manifest: &Value) -> Value {
    let (meta, spec) = (&manifest["metadata"], &manifest["spec"]);
    let (template, status) = (&spec["template"], &manifest["status"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let joined = |field: &str| -> Map<String, Value> {
        let both = [&template["metadata"][field], &meta[field]];
        both.into_iter().filter_map(Value::as_object).flatten().map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let namespace = template["metadata"]["namespace"].as_str().filter(|name| !name.is_empty());
    let phase = match status["phase"].as_str() {
        _ if !is_placeable(manifest) => "Failed",
        Some(ended @ ("Succeeded" | "Failed")) => ended,
        Some("Available" | "Waiting") => "Running",
        _ => "Pending",
    };
    let mut own = template["spec"].as_object().cloned().unwrap_or_default();
    let wanted = own.remove("nodeName").and_then(|name| name.as_str().map(str::to_owned));
    if let Some(wanted) = wanted.filter(|name| !name.is_empty()) {
        require_node(&mut own, &wanted);
    }
    let node = text(&status["nodeName"]);
    if phase == "Running" && !node.is_empty() {
        own.insert("nodeName".into(), json!(node));
    }
    own.insert("preemptionPolicy".into(), json!("Never"));
    let by_label = meta["labels"][keys::PRIORITY].as_str().and_then(|text| text.parse::<i32>().ok());
    let priority = by_label.map(Value::from).or_else(|| own.get("priority").filter(|v| v.is_i64()).cloned());
    own.insert("priority".into(), priority.unwrap_or_else(|| json!(i32::MAX)));
    json!({
        "metadata": {
            "namespace": namespace.unwrap_or("default"),
            "name": stand_in_name(RESERVATION.kind, &text(&meta["name"])),
            "uid": meta["uid"],
            "creationTimestamp": meta["creationTimestamp"],
            "labels": joined("labels"),
            "annotations": joined("annotations"),
        },
        "spec": own,
        "status": {"phase": phase},
    })
}

/// Adds the requirement that the node has this name to each term of the required node affinity.
fn require_node(spec: &mut Map<String, Value>, name: &str) {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [name]});
    let mut affinity = spec.remove("affinity").unwrap_or_else(|| json!({}));
    let required = &mut affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    match required["nodeSelectorTerms"].as_array_mut().filter(|terms| !terms.is_empty()) {
        Some(terms) => {
            for term in terms {
                let mut fields = term["matchFields"].as_array().cloned().unwrap_or_default();
                fields.push(field.clone());
                term["matchFields"] = Value::Array(fields);
            }
        }
        None => *required = json!({"nodeSelectorTerms": [{"matchFields": [field]}]}),
    }
    spec.insert("affinity".into(), affinity);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(phase: &str) -> Value {
        json!({
            "metadata": {"name": "r", "uid": "u", "labels": {"koordinator.sh/priority": "7"}},
            "spec": {
                "owners": [{"labelSelector": {}}],
                "template": {
                    "metadata": {"namespace": "team", "labels": {"app": "web"}},
                    "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
                },
            },
            "status": {"phase": phase, "nodeName": "n"},
        })
    }

    #[test]
    fn a_pending_reservation_is_a_pending_pod_that_wants_its_node() {
        let made = pod(&reservation(""));
        assert_eq!(made["metadata"]["namespace"], "team");
        assert_eq!(made["metadata"]["name"], "reservation:r");
        assert_eq!(made["metadata"]["labels"], json!({"app": "web", "koordinator.sh/priority": "7"}));
        assert_eq!((&made["spec"]["priority"], &made["status"]["phase"]), (&json!(7), &json!("Pending")));
        assert_eq!(made["spec"].get("nodeName"), None);
        let terms =
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        let field = json!({"key": "metadata.name", "operator": "In", "values": ["n"]});
        assert_eq!(made.pointer(terms), Some(&json!([{"matchFields": [field]}])));
    }

    #[test]
    fn phases_are_those_of_a_pod() {
        for (phase, node, of_pod) in [
            ("Available", Some("n"), "Running"),
            ("Succeeded", None, "Succeeded"),
            ("Failed", None, "Failed"),
        ] {
            let made = pod(&reservation(phase));
            assert_eq!(made["status"]["phase"], of_pod);
            assert_eq!(made["spec"].get("nodeName").and_then(Value::as_str), node, "{phase}");
        }
    }

    #[test]
    fn one_that_says_nothing_of_its_owners_needs_no_room() {
        let mut unowned = reservation("");
        unowned["spec"]["owners"] = json!([]);
        assert_eq!(pod(&unowned)["status"]["phase"], "Failed");
    }
}
