//! Nearest nodes: with just what is listed made good, the pod binds there; with the named pods gone, too.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::case::Case;
use crate::claims::relax::Lacking;
use crate::edits::{
    drop_host_ports, drop_node_affinity, drop_pod_affinity, drop_pod_anti_affinity, drop_taints, relax_spread,
};
use crate::model::{Model, allocatable, claims, free, requests};
use crate::objects::{Objects, list, text};
use crate::report::Tally;
use crate::trial::{single, single_on};

pub(crate) fn look(case: &Case, pods: usize, tally: &mut Tally) {
    for key in case.sample(pods) {
        let body = case.of_pod(&key, "/nearest?k=3");
        feasible(case, &key, &body, tally);
        for node in list(&body["nodes"]) {
            just_this(case, &key, node, tally);
        }
        if let Some(group) = case.of_pod(&key, "")["nearest"].as_object() {
            let first = &list(&body["nodes"]).first().map_or(Value::Null, |node| node["node"].clone());
            let names = list(&group["exampleNodes"]).first();
            tally.agree(case, "nearest of explain", names == Some(first), || {
                format!("{key}: explain says {names:?}, nearest {first}")
            });
        }
    }
}

fn feasible(case: &Case, key: &str, body: &Value, tally: &mut Tally) {
    if list(&body["podReasons"]).is_empty() {
        let fits = single(&case.objects, key).is_some();
        tally.check(case, "feasible nodes", fits == (body["feasibleNodes"] != 0), || {
            format!("{key}: feasibleNodes {}, and alone it is placed: {fits}", body["feasibleNodes"])
        });
    }
}

fn just_this(case: &Case, key: &str, near: &Value, tally: &mut Tally) {
    let node = text(&near["node"]);
    let mut objects = case.objects.only(&[key.to_owned()]);
    let mut codes = BTreeSet::new();
    // Every requirement is made good as the cluster was before.
    let before = objects.clone();
    let lacking = Lacking { key, node, near, less: 0 };
    for failed in list(&near["failed"]) {
        codes.insert(text(&failed["code"]));
        if !make_good(&mut objects, &before, &lacking, failed) {
            return tally.skip(case, &format!("relaxing {}", failed["code"]), || format!("{key}: {near}"));
        }
    }
    let codes: Vec<&str> = codes.into_iter().collect();
    let binds = single_on(&objects, key, node);
    if !binds && is_entangled(&before, &objects, key, node) {
        return tally
            .skip(case, "spread counts other nodes then", || format!("{key} on {node}: {}", near["failed"]));
    }
    tally.check(case, &format!("just {}", codes.join("+")), binds, || {
        format!("{key} does not bind on {node} with just this made good: {near}")
    });
    if let [failed] = list(&near["failed"])
        && Lacking::is_exact(&failed["code"])
    {
        let mut objects = before.clone();
        let lacking = Lacking { less: 1, ..lacking };
        let is_less = make_good(&mut objects, &before, &lacking, failed);
        tally.check(
            case,
            &format!("{} by one less", codes[0]),
            is_less && !single_on(&objects, key, node),
            || format!("{key} binds on {node} although one less than stated is made good: {near}"),
        );
    }
}

/// Returns whether making the rest good changes which nodes a spread constraint counts (by the pod's node affinity and
/// tolerations, and by the keys of its constraints), so that the node fails it then and did not before.
fn is_entangled(before: &Objects, after: &Objects, key: &str, node: &str) -> bool {
    let fails_spread = |objects: &Objects| {
        let causes = Model::new(objects, key).causes(node);
        causes.iter().any(|(code, _)| code == "SpreadSkewTooLarge")
    };
    fails_spread(after) && !fails_spread(before)
}

/// Makes one requirement good, and no other. Returns false when the test does not know how.
fn make_good(objects: &mut Objects, before: &Objects, lacking: &Lacking<'_>, failed: &Value) -> bool {
    let Lacking { key, node, .. } = *lacking;
    let subject = text(&failed["subject"]);
    match text(&failed["code"]) {
        "NodeUnschedulable" => objects.change_node(node, |json| json["spec"]["unschedulable"] = false.into()),
        "UntoleratedTaint" => objects.change_node(node, |json| {
            drop_taints(json, |taint| {
                let value = text(&taint["value"]);
                let value = if value.is_empty() { String::new() } else { format!("={value}") };
                subject == format!("{}{value}:{}", text(&taint["key"]), text(&taint["effect"]))
            });
        }),
        "NodeAffinityMismatch" | "NodeNameMismatch" => objects.change_pod(key, drop_node_affinity),
        "HostPortConflict" => objects.change_pod(key, drop_host_ports),
        "TooManyPods" => {
            // A reservation without an owner has a place of its own.
            let here = |of: &&Value| of["status"]["nodeName"] == node && of["status"]["phase"] == "Available";
            let room = before.on(node).count() + before.of_kind("Reservation").filter(here).count() + 1;
            objects.change_node(node, |json| {
                json["status"]["allocatable"]["pods"] = room.to_string().into();
            });
        }
        "InsufficientResource" => {
            let requested = requests(before.pod(key)).get(subject).copied().unwrap_or(0);
            let offered = allocatable(before.node(node), subject) + requested - free(before, node, subject);
            // Not less than what another requirement has it offer.
            let offered = offered.max(allocatable(objects.node(node), subject));
            let unit = if subject == "cpu" { "m" } else { "" };
            objects.change_node(node, |json| {
                json["status"]["allocatable"][subject] = format!("{offered}{unit}").into();
            });
        }
        "SpreadLabelMissing" | "SpreadSkewTooLarge" => {
            let labels = before.node(node)["metadata"]["labels"].clone();
            let is_missing = failed["code"] == "SpreadLabelMissing";
            objects.change_pod(key, |json| {
                relax_spread(json, |c| labels[text(&c["topologyKey"])].is_null() == is_missing);
            });
        }
        "PodAffinityMismatch" => objects.change_pod(key, drop_pod_affinity),
        "PodAntiAffinityConflict" => objects.change_pod(key, drop_pod_anti_affinity),
        "ExistingAntiAffinityConflict" => {
            let placed: Vec<String> = objects.placed().map(|(key, _)| key.clone()).collect();
            placed.iter().for_each(|other| objects.change_pod(other, drop_pod_anti_affinity));
        }
        code => return make_volumes_good(objects, key, node, code) || lacking.make_good(objects, failed),
    }
    true
}

fn make_volumes_good(objects: &mut Objects, key: &str, node: &str, code: &str) -> bool {
    let pod = objects.pod(key).clone();
    let namespace = text(&pod["metadata"]["namespace"]);
    let own: Vec<String> = claims(&pod).map(|name| format!("{namespace}/{name}")).collect();
    let volumes: Vec<String> = own
        .iter()
        .filter_map(|claim| objects.other("PersistentVolumeClaim", claim)?["spec"]["volumeName"].as_str())
        .map(str::to_owned)
        .collect();
    match code {
        "ClaimInUse" => {
            for claim in own {
                objects.change("PersistentVolumeClaim", &claim, |json| {
                    json["spec"]["accessModes"] = json!(["ReadWriteOnce"]);
                });
            }
        }
        "VolumeNodeAffinityConflict" => {
            for volume in volumes {
                objects.change("PersistentVolume", &volume, |json| {
                    json["spec"].as_object_mut().expect("a spec").remove("nodeAffinity");
                });
            }
        }
        "VolumeZoneConflict" => {
            for volume in volumes {
                objects.change("PersistentVolume", &volume, |json| json["metadata"]["labels"] = json!({}));
            }
        }
        "TooManyVolumes" => objects.change("CSINode", node, |json| {
            json["spec"]["drivers"][0]["allocatable"]["count"] = 99.into();
        }),
        "NoVolumeToBind" => objects.put(json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": "one-more", "uid": "uid-one-more"},
            "spec": {
                "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Available"},
        })),
        _ => return false,
    }
    true
}

/// Deletes the pods that are said to be in the way of each of the nearest nodes.
pub(crate) fn look_at_would_free(case: &Case, pods: usize, tally: &mut Tally) {
    for key in case.sample(pods) {
        let body = case.of_pod(&key, "/nearest?k=3");
        for near in list(&body["nodes"]) {
            let Some(goes) = near["wouldFree"].as_array() else { continue };
            let node = text(&near["node"]);
            let mut objects = case.objects.only(std::slice::from_ref(&key));
            let comes_back = |pod: &&Value| !case.objects.is_free_to_go(text(pod));
            let stays = goes.iter().find(comes_back);
            goes.iter().for_each(|pod| _ = objects.delete_called(text(pod)));
            let class = if stays.is_some() { "names a pod that comes back" } else { "would free" };
            tally.check(case, class, single_on(&objects, &key, node), || {
                format!("{key} does not bind on {node} without {goes:?} ({stays:?} comes back)")
            });
            if let Some(needless) = goes.iter().find(|pod| {
                let mut fewer = case.objects.only(std::slice::from_ref(&key));
                goes.iter()
                    .filter(|other| other != pod)
                    .for_each(|other| _ = fewer.delete_called(text(other)));
                stays.is_none() && single_on(&fewer, &key, node)
            }) {
                tally.check(case, "of which all would have to go", false, || {
                    format!("{key} binds on {node} without {goes:?} even when {needless} stays")
                });
            }
        }
    }
}
