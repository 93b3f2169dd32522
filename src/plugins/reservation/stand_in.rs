//! The pod that stands for a reservation in the queue and on its node, made of the reservation's template.

use pellucid_api::keys::reservation as keys;
use pellucid_model::custom::stand_in_name;
use serde_json::{Map, Value, json};

use super::RESERVATION;
use super::object::is_placeable;

/// Returns the manifest of the pod that stands for a reservation.
///
/// It never preempts, it has labels and annotations of template and reservation, and what the template says of
/// `spec.nodeName` is left to the filter. The template's priority counts before the label.
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
    own.remove("nodeName");
    let node = text(&status["nodeName"]);
    if phase == "Running" && !node.is_empty() {
        own.insert("nodeName".into(), json!(node));
    }
    own.insert("preemptionPolicy".into(), json!("Never"));
    let by_label = meta["labels"][keys::PRIORITY].as_str().and_then(|text| text.parse::<i32>().ok());
    let of_template = own.get("priority").filter(|v| v.is_i64()).cloned();
    let priority = of_template.or_else(|| by_label.map(Value::from));
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
    fn a_pending_reservation_is_a_pending_pod_without_a_node() {
        let made = pod(&reservation(""));
        assert_eq!(made["metadata"]["namespace"], "team");
        assert_eq!(made["metadata"]["name"], "reservation:r");
        assert_eq!(made["metadata"]["labels"], json!({"app": "web", "koordinator.sh/priority": "7"}));
        assert_eq!((&made["spec"]["priority"], &made["status"]["phase"]), (&json!(7), &json!("Pending")));
        assert_eq!(made["spec"].get("nodeName"), None);
    }

    #[test]
    fn the_priority_of_the_template_counts_before_the_label() {
        let mut both = reservation("");
        both["spec"]["template"]["spec"]["priority"] = json!(3);
        assert_eq!(pod(&both)["spec"]["priority"], 3);
        both["metadata"]["labels"] = Value::Null;
        both["spec"]["template"]["spec"]["priority"] = Value::Null;
        assert_eq!(pod(&both)["spec"]["priority"], i32::MAX);
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
