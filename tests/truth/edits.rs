//! Carries out the edits of fixes and simulations on objects, with code of the test's own.

use std::collections::BTreeSet;

use pellucid::model::quantity;
use serde_json::{Value, json};

use crate::objects::{Objects, gang_of, list, node_of, text};

/// The taint that goes with a closed node.
pub(crate) const CLOSED: &str = "node.kubernetes.io/unschedulable";

/// Opens a node as `kubectl uncordon` and the node controller do.
pub(crate) fn uncordon(node: &mut Value) {
    node["spec"]["unschedulable"] = false.into();
    drop_taints(node, |taint| taint["key"] == CLOSED);
}

/// Removes taints.
pub(crate) fn drop_taints(node: &mut Value, goes: impl Fn(&Value) -> bool) {
    if let Some(taints) = node["spec"]["taints"].as_array_mut() {
        taints.retain(|taint| !goes(taint));
    }
}

/// Takes a field of a pod's spec away.
fn drop_field(pod: &mut Value, path: &[&str]) {
    let Some((last, above)) = path.split_last() else { return };
    let mut at = &mut pod["spec"];
    for step in above {
        match at.get_mut(*step) {
            Some(inner) => at = inner,
            None => return,
        }
    }
    if let Some(map) = at.as_object_mut() {
        map.remove(*last);
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Takes away what a pod requires of its node's labels.
pub(crate) fn drop_node_affinity(pod: &mut Value) {
    drop_field(pod, &["nodeSelector"]);
    drop_field(pod, &["affinity", "nodeAffinity", REQUIRED]);
}

/// Takes away the pods that a pod requires beside it.
pub(crate) fn drop_pod_affinity(pod: &mut Value) {
    drop_field(pod, &["affinity", "podAffinity", REQUIRED]);
}

/// Takes away the pods that a pod does not bear beside it.
pub(crate) fn drop_pod_anti_affinity(pod: &mut Value) {
    drop_field(pod, &["affinity", "podAntiAffinity", REQUIRED]);
}

/// Makes required terms about other pods preferences.
fn prefer(terms: &mut Value) {
    let required = std::mem::take(&mut terms[REQUIRED]);
    let softer = list(&required).iter().map(|term| json!({"weight": 100, "podAffinityTerm": term}));
    let softer: Vec<Value> = list(&terms[PREFERRED]).iter().cloned().chain(softer).collect();
    *terms = json!({PREFERRED: softer});
}

/// Takes away the host ports of a pod.
pub(crate) fn drop_host_ports(pod: &mut Value) {
    for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
        container["ports"] = json!([]);
    }
}

/// Makes the spread constraints of a pod wishes, those that `goes` names.
pub(crate) fn relax_spread(pod: &mut Value, goes: impl Fn(&Value) -> bool) {
    for constraint in pod["spec"]["topologySpreadConstraints"].as_array_mut().into_iter().flatten() {
        if goes(constraint) {
            constraint["whenUnsatisfiable"] = "ScheduleAnyway".into();
        }
    }
}

/// Sets how much of a resource a pod requests.
pub(crate) fn set_request(pod: &mut Value, resource: &str, amount: &str) {
    let is_none = quantity::units(amount).is_ok_and(|units| units == 0)
        && (resource != "cpu" || quantity::milli(amount).is_ok_and(|milli| milli == 0));
    for (at, container) in pod["spec"]["containers"].as_array_mut().into_iter().flatten().enumerate() {
        let requests = &mut container["resources"]["requests"];
        match requests.as_object_mut() {
            Some(map) if at > 0 || is_none => _ = map.remove(resource),
            _ => requests[resource] = amount.into(),
        }
    }
}

/// What came of an edit.
pub(crate) enum Done {
    /// The objects are changed.
    Yes,
    /// The edit cannot be carried out on these objects.
    Impossible(String),
    /// The test does not know the edit.
    Unknown(String),
}

/// Carries out one edit.
pub(crate) fn apply(objects: &mut Objects, edit: &Value) -> Done {
    let Some((what, how)) = edit.as_object().and_then(|fields| fields.iter().next()) else {
        return Done::Unknown(edit.to_string());
    };
    let node = match how.as_str() {
        Some(name) => name.to_owned(),
        None => text(&how["node"]).to_owned(),
    };
    let is_of_node = matches!(
        what.as_str(),
        "uncordon" | "removeTaint" | "labelNode" | "removeLabel" | "copyNode" | "removeNode"
    );
    if is_of_node && !objects.nodes.contains_key(&node) {
        return Done::Impossible(format!("no node {node}"));
    }
    match what.as_str() {
        "uncordon" => objects.change_node(&node, uncordon),
        "removeTaint" => return remove_taint(objects, &node, how),
        "labelNode" => objects.change_node(&node, |json| {
            json["metadata"]["labels"][text(&how["key"])] = how["value"].clone();
        }),
        "removeLabel" => objects.change_node(&node, |json| {
            if let Some(labels) = json["metadata"]["labels"].as_object_mut() {
                labels.remove(text(&how["key"]));
            }
        }),
        "copyNode" => copy_node(objects, &node, text(&how["name"])),
        "removeNode" => _ = objects.nodes.remove(&node),
        "addNode" => objects.put_node(how.clone()),
        "applyObject" => objects.put(how.clone()),
        "deleteObject" => {
            let kind = text(&how["kind"]);
            let key = [text(&how["namespace"]), text(&how["name"])].join("/");
            if !objects.remove(kind.split('.').next().unwrap_or(kind), key.trim_start_matches('/')) {
                return Done::Impossible(format!("no object {how}"));
            }
        }
        "setQuorum" => return set_quorum(objects, text(&how["gang"]), &how["min"]),
        "setMinResource" => return set_min_resource(objects, how),
        "deletePod" => {
            let key = text(how);
            if !objects.pods.contains_key(key) {
                return Done::Impossible(format!("no pod {key}"));
            }
            objects.delete(key);
        }
        "movePod" => return move_pod(objects, text(&how["pod"]), &node),
        _ => return apply_to_pods(objects, what, how),
    }
    Done::Yes
}

/// Makes a pod anew that runs, for one node alone.
fn move_pod(objects: &mut Objects, key: &str, node: &str) -> Done {
    if objects.pods.get(key).is_none_or(|pod| node_of(&pod.json).is_none()) {
        return Done::Impossible(format!("no running pod {key}"));
    }
    let named = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
    objects.change_pod(key, |pod| {
        pod["metadata"]["uid"] = format!("moved-{key}").into();
        pod["spec"].as_object_mut().expect("a spec").remove("nodeName");
        pod["status"] = json!({});
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        pod["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"] = json!([named]);
    });
    Done::Yes
}

/// Returns the pods that edits move, and to which nodes.
pub(crate) fn moved<'e>(edits: impl Iterator<Item = &'e Value>) -> Vec<(String, String)> {
    let moves = edits.filter_map(|edit| edit.get("movePod"));
    moves.map(|how| (text(&how["pod"]).to_owned(), text(&how["node"]).to_owned())).collect()
}

fn remove_taint(objects: &mut Objects, node: &str, how: &Value) -> Done {
    let is_it = |taint: &Value| {
        taint["key"] == how["key"] && (how["effect"].is_null() || taint["effect"] == how["effect"])
    };
    if !list(&objects.node(node)["spec"]["taints"]).iter().any(is_it) {
        return Done::Impossible(format!("{node} has no taint {how}"));
    }
    objects.change_node(node, |json| drop_taints(json, is_it));
    Done::Yes
}

fn copy_node(objects: &mut Objects, like: &str, name: &str) {
    let mut copy = objects.node(like).clone();
    copy["metadata"]["name"] = name.into();
    copy["metadata"]["uid"] = format!("uid-{name}").into();
    copy["metadata"]["labels"]["kubernetes.io/hostname"] = name.into();
    uncordon(&mut copy);
    objects.put_node(copy);
    // A node of the same make has the same drivers.
    if let Some(mut drivers) = objects.other("CSINode", like).cloned() {
        drivers["metadata"] = json!({"name": name});
        objects.put(drivers);
    }
}

/// Sets the quorum of a gang where its users declare it: in its PodGroup, or on each of its pods.
fn set_quorum(objects: &mut Objects, gang: &str, min: &Value) -> Done {
    let is_group = |kind: &str, key: &str| kind.starts_with("PodGroup.") && key == gang;
    let group = objects.others.keys().find(|(kind, key)| is_group(kind, key)).map(|(kind, _)| *kind);
    match group {
        Some("PodGroup.scheduling.k8s.io") => objects.change("PodGroup.scheduling.k8s.io", gang, |json| {
            json["spec"]["schedulingPolicy"]["gang"]["minCount"] = min.clone();
        }),
        Some(kind) => objects.change(kind, gang, |json| json["spec"]["minMember"] = min.clone()),
        None => {
            let members = objects.pods.iter().filter(|(_, pod)| gang_of(&pod.json).as_deref() == Some(gang));
            let members: Vec<String> = members.map(|(key, _)| key.clone()).collect();
            if members.is_empty() {
                return Done::Impossible(format!("no gang {gang}"));
            }
            for key in members {
                objects.change_pod(&key, |pod| declare_quorum(pod, &min.to_string()));
            }
        }
    }
    Done::Yes
}

/// Sets what must be free of a resource before a gang is planned.
fn set_min_resource(objects: &mut Objects, how: &Value) -> Done {
    let is_group = |kind: &str, key: &str| kind.starts_with("PodGroup.") && key == text(&how["gang"]);
    let group = objects.others.keys().find(|(kind, key)| is_group(kind, key)).map(|(kind, _)| *kind);
    let Some(kind) = group else { return Done::Impossible(format!("no PodGroup {how}")) };
    objects.change(kind, text(&how["gang"]), |json| {
        json["spec"]["minResources"][text(&how["resource"])] = how["amount"].clone();
    });
    Done::Yes
}

/// Declares on a pod how many members its gang needs, in the dialect in which it names the gang.
fn declare_quorum(pod: &mut Value, min: &str) {
    let places = [
        ("labels", "gang.unicore.mcyou.cn/available-count"),
        ("labels", "pod-group.scheduling.sigs.k8s.io/min-available"),
        ("annotations", "gang.scheduling.koordinator.sh/min-available"),
    ];
    for (field, key) in places {
        let known = &mut pod["metadata"][field];
        if known.get(key).is_some() {
            known[key] = min.into();
        }
    }
}

fn apply_to_pods(objects: &mut Objects, what: &str, how: &Value) -> Done {
    let known = [
        "setRequest",
        "addToleration",
        "dropNodeAffinity",
        "dropHostPorts",
        "relaxSpread",
        "relaxPodAffinity",
        "relaxPodAntiAffinity",
        "removeGates",
        "labelPod",
        "annotatePod",
    ];
    if !known.contains(&what) {
        return Done::Unknown(what.to_owned());
    }
    let pods = match (how["pod"].as_str(), how["gang"].as_str()) {
        (Some(pod), _) => vec![pod.to_owned()],
        (_, Some(gang)) => objects.members(&BTreeSet::from([gang.to_owned()])),
        _ => return Done::Unknown(format!("{what}: {how}")),
    };
    for pod in pods {
        if change_template(objects, &pod, what, how) {
            continue;
        }
        if objects.pods.get(&pod).is_none_or(|known| node_of(&known.json).is_some()) {
            return Done::Impossible(format!("no pending pod {pod}"));
        }
        objects.change_pod(&pod, |json| change_pod(json, what, how));
    }
    Done::Yes
}

/// Changes the template of the reservation for which a pod stands. Returns whether it stands for one.
fn change_template(objects: &mut Objects, pod: &str, what: &str, how: &Value) -> bool {
    let Some(mut made) = objects.stood_for(pod).cloned() else { return false };
    change_pod(&mut made["spec"]["template"], what, how);
    objects.put(made);
    true
}

fn change_pod(pod: &mut Value, what: &str, how: &Value) {
    match what {
        "setRequest" => {
            set_request(pod, text(&how["resource"]), text(&how["amount"]));
            if let Some(other) = how["insteadOf"].as_str() {
                set_request(pod, other, "0");
            }
        }
        "addToleration" => {
            let mut toleration = json!({"key": how["taint"]["key"], "operator": "Equal"});
            for field in ["value", "effect"] {
                if !how["taint"][field].is_null() {
                    toleration[field] = how["taint"][field].clone();
                }
            }
            if pod["spec"]["tolerations"].is_null() {
                pod["spec"]["tolerations"] = json!([]);
            }
            pod["spec"]["tolerations"].as_array_mut().expect("a list").push(toleration);
        }
        "dropNodeAffinity" => drop_node_affinity(pod),
        "dropHostPorts" => drop_host_ports(pod),
        "relaxSpread" => relax_spread(pod, |_| true),
        "relaxPodAffinity" => prefer(&mut pod["spec"]["affinity"]["podAffinity"]),
        "relaxPodAntiAffinity" => prefer(&mut pod["spec"]["affinity"]["podAntiAffinity"]),
        "labelPod" => pod["metadata"]["labels"][text(&how["key"])] = how["value"].clone(),
        "annotatePod" => pod["metadata"]["annotations"][text(&how["key"])] = how["value"].clone(),
        _ => drop_field(pod, &["schedulingGates"]),
    }
}

/// Returns the label key that an edit would take from its owner: one that kubelets and clouds write.
pub(crate) fn takes_label_of_others(objects: &Objects, edit: &Value) -> Option<String> {
    let how = edit.get("labelNode").or_else(|| edit.get("removeLabel"))?;
    let key = text(&how["key"]);
    let (domain, _) = key.split_once('/')?;
    let is_theirs = domain == "kubernetes.io"
        || domain == "k8s.io"
        || domain.ends_with(".kubernetes.io")
        || domain.ends_with(".k8s.io");
    let is_there = !objects.node(text(&how["node"]))["metadata"]["labels"][key].is_null();
    (is_theirs && domain != "node-role.kubernetes.io" && is_there).then(|| key.to_owned())
}
