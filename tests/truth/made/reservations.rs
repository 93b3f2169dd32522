//! Reservations that are Available: of every policy, used up by one owner or not, some with an owner already; and pods
//! that must use one, or none.

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
