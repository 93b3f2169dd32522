//! Queues of kube-batch: those of gangs, and of single pods in groups of one.

use serde_json::{Value, json};

use crate::objects::{Objects, gang_of, text};
use crate::random::Rng;

const VERSION: &str = "scheduling.incubator.k8s.io/v1alpha1";
const GROUP: &str = "PodGroup.scheduling.incubator.k8s.io";

/// Adds Queues, and puts PodGroups into them.
pub(super) fn add(rng: &mut Rng, objects: &mut Objects) {
    if !rng.chance(35) {
        return;
    }
    for name in ["prod", "dev"] {
        let mut spec = json!({"weight": rng.between(0, 3)});
        if rng.chance(60) {
            spec["capability"] = json!({"cpu": rng.pick(&["1", "2", "4", "8"]), "memory": "32Gi"});
        }
        objects.put(json!({
            "apiVersion": VERSION, "kind": "Queue", "spec": spec,
            "metadata": {"name": name, "uid": format!("uid-queue-{name}")},
        }));
    }
    let single: Vec<String> =
        objects.pending().filter(|(_, pod)| gang_of(pod).is_none()).map(|(key, _)| key.clone()).collect();
    for pod in single {
        if rng.chance(25) {
            group_of_one(objects, &pod);
        }
    }
    let groups: Vec<String> =
        objects.others.keys().filter(|(kind, _)| *kind == GROUP).map(|(_, key)| key.clone()).collect();
    for group in groups {
        let queue = rng.pick(&["prod", "prod", "dev", "dev", "", "gone"]);
        if !queue.is_empty() {
            objects.change(GROUP, &group, |json| json["spec"]["queue"] = queue.into());
        }
    }
}

fn group_of_one(objects: &mut Objects, pod: &str) {
    let json = objects.pod(pod);
    let (namespace, name) =
        (json["metadata"]["namespace"].clone(), text(&json["metadata"]["name"]).to_owned());
    objects.put(json!({
        "apiVersion": VERSION, "kind": "PodGroup", "spec": {"minMember": 1},
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-group-{name}")},
    }));
    objects.change_pod(pod, |json: &mut Value| {
        json["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = name.into();
    });
}
