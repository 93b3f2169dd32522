//! Reservations: of every policy, used up by one owner or not, Available, some with an owner already, or without a place,
//! some of these over pods that run; and pods that must use one, or none.

use serde_json::{Value, json};

use crate::common::cluster::SCHEDULER;
use crate::model::free;
use crate::objects::{Objects, node_of, text};
use crate::random::Rng;

const PREFIX: &str = "scheduling.koordinator.sh";
const APPS: [&str; 3] = ["web", "db", "batch"];

/// Adds reservations, owners in them, and what pods say of reservations.
pub(super) fn add(rng: &mut Rng, objects: &mut Objects) {
    if !rng.chance(60) {
        return;
    }
    let policies = if rng.chance(40) { &[""][..] } else { &["Aligned", "Restricted"] };
    let nodes: Vec<String> = objects.nodes.keys().cloned().collect();
    let mut names = Vec::new();
    for at in 0..rng.between(1, 4) {
        let name = format!("r{at}");
        let node = rng.pick(&nodes);
        let amounts =
            json!({"cpu": rng.pick(&["500m", "1", "2"]), "memory": rng.pick(&["256Mi", "1Gi", "2Gi"])});
        let fits =
            |resource| crate::model::amount(resource, &amounts[resource]) <= free(objects, &node, resource);
        if !fits("cpu") || !fits("memory") {
            continue;
        }
        let policy = rng.pick(policies);
        let made = reservation(rng, &name, &node, (&amounts, policy));
        let is_shared = made["spec"]["allocateOnce"] == false;
        let app = made["spec"]["owners"][0]["labelSelector"]["matchLabels"]["app"].clone();
        objects.put(made);
        if is_shared && rng.chance(50) {
            take_in(objects, &name, &node, &app);
        }
        names.push(name);
    }
    for at in 0..rng.between(0, 2) {
        let name = format!("w{at}");
        let made = unplaced(rng, &name, policies);
        objects.put(made);
        names.push(name);
    }
    let pods: Vec<String> = objects.pending().map(|(key, _)| key.clone()).collect();
    for pod in pods.iter().filter(|_| !names.is_empty()) {
        objects.change_pod(pod, |json| ask(rng, json, &names));
    }
}

fn reservation(rng: &mut Rng, name: &str, node: &str, (amounts, policy): (&Value, &str)) -> Value {
    let app = rng.pick(&APPS);
    let mut made = json!({
        "apiVersion": format!("{PREFIX}/v1alpha1"), "kind": "Reservation",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "creationTimestamp": "2026-01-31T23:00:00Z",
            "labels": {"kept-for": app},
        },
        "spec": {
            "template": {
                "metadata": {"namespace": "default"},
                "spec": {
                    "schedulerName": SCHEDULER,
                    "containers": [{"name": "c", "image": "i", "resources": {"requests": amounts}}],
                },
            },
            "owners": [{"labelSelector": {"matchLabels": {"app": app}}}], "ttl": "0s",
            "allocateOnce": rng.chance(50),
        },
        "status": {"phase": "Available", "nodeName": node, "allocatable": amounts},
    });
    if !policy.is_empty() {
        made["spec"]["allocatePolicy"] = policy.into();
    }
    // One that is not more important than all pods may be evicted, where the plugin's arguments say so.
    match rng.below(4) {
        0 => made["spec"]["template"]["spec"]["priority"] = rng.pick(&[-5, 0, 0, 10]).into(),
        1 => made["metadata"]["labels"]["koordinator.sh/priority"] = rng.pick(&["0", "100"]).into(),
        _ => {}
    }
    made
}

/// Makes a reservation without a place, on any node or on some; it may be over pods that run.
fn unplaced(rng: &mut Rng, name: &str, policies: &[&str]) -> Value {
    let amounts = json!({
        "cpu": rng.pick(&["500m", "1", "2", "3", "12"]), "memory": rng.pick(&["64Mi", "256Mi", "2Gi", "9Gi"]),
    });
    let policy = if rng.chance(15) { rng.pick(&["", "Restricted"]) } else { rng.pick(policies) };
    let mut made = reservation(rng, name, "", (&amounts, policy));
    made["status"] = json!({});
    let template = &mut made["spec"]["template"]["spec"];
    match rng.below(8) {
        0 | 1 => template["nodeSelector"] = json!({"disktype": rng.pick(&["ssd", "hdd", "sdd"])}),
        2 => template["nodeName"] = rng.pick(&["n1", "n2", "elsewhere"]).into(),
        3 => template["tolerations"] = json!([{"operator": "Exists"}]),
        _ => {}
    }
    if rng.chance(40) {
        made["spec"]["preAllocation"] = true.into();
        made["spec"]["preAllocationPolicy"] = json!({"enableMultiple": rng.chance(40)});
        if rng.chance(40) {
            made["metadata"]["labels"][format!("{PREFIX}/pre-allocation-required")] = "true".into();
        }
    }
    made
}

/// Has a pod that was on the node before stand in a reservation.
fn take_in(objects: &mut Objects, name: &str, node: &str, app: &Value) {
    let is_owner = |pod: &Value| {
        pod["metadata"]["labels"]["app"] == *app && text(&pod["metadata"]["name"]).starts_with("old-")
    };
    let found = objects.on(node).find(|(_, pod)| is_owner(pod)).map(|(key, _)| key.clone());
    if let Some(key) = found {
        objects.change_pod(&key, |json| {
            json["metadata"]["annotations"][format!("{PREFIX}/reservation-allocated")] =
                json!({"name": name, "uid": format!("uid-{name}")}).to_string().into();
        });
    }
}

fn ask(rng: &mut Rng, pod: &mut Value, names: &[String]) {
    if node_of(pod).is_some() {
        return;
    }
    let wish = match rng.below(20) {
        0 => json!({"name": rng.pick(names)}),
        1 => json!({"reservationSelector": {"kept-for": rng.pick(&APPS)}}),
        2 => return pod["metadata"]["labels"][format!("{PREFIX}/reservation-ignored")] = "true".into(),
        _ => return,
    };
    pod["metadata"]["annotations"][format!("{PREFIX}/reservation-affinity")] = wish.to_string().into();
}
