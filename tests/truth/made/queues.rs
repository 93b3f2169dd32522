//! Queues of kube-batch: those of gangs, and of single pods in groups of one.

use serde_json::{Value, json};

use crate::objects::{GROUP_NAME, LONE_GROUP, Objects, gang_of, text};
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
        // Pods of a queue that does not exist count in none.
        if queue != "gone" {
            add_lone_group(objects, &group);
        }
    }
}

/// Adds a group of the same queue for single pods, and has the members of the group name it.
fn add_lone_group(objects: &mut Objects, group: &str) {
    let mut lone = objects.other(GROUP, group).expect("a group").clone();
    let name = format!("{}-alone", text(&lone["metadata"]["name"]));
    lone["metadata"]["uid"] = format!("uid-group-{name}").into();
    lone["metadata"]["name"] = name.clone().into();
    lone["spec"]["minMember"] = 1.into();
    objects.put(lone);
    let is_member = |pod: &Value| {
        gang_of(pod).as_deref() == Some(group) && pod["metadata"]["annotations"][GROUP_NAME].is_string()
    };
    let members: Vec<String> =
        objects.pods.iter().filter(|(_, pod)| is_member(&pod.json)).map(|(key, _)| key.clone()).collect();
    for member in members {
        objects.change_pod(&member, |json| json["metadata"]["annotations"][LONE_GROUP] = name.clone().into());
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
        json["metadata"]["annotations"][GROUP_NAME] = name.into();
    });
}
