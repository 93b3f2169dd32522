//! What a reservation holds beside amounts: cards, CPUs, quotas and its place among pods, and how owners come by it.

use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::model::{ObjectKind, PodKey};
use serde_json::{Value, json};

use crate::reservation_cluster::{Case, text};
use crate::reservation_rules::{containers, free, is_on, node, pod, reservation, status, try_pod};
use crate::reservation_taking_over::create;

const CARDS: &str = "scheduling.koordinator.sh/device-allocated";
const CPUS: &str = "scheduling.koordinator.sh/resource-status";

/// Containers that request a number of hundredths of a card.
fn on_cards(hundredths: i64) -> Value {
    let requests = json!({
        "cpu": "100m", "memory": "100Mi",
        "koordinator.sh/gpu-core": hundredths.to_string(), "koordinator.sh/gpu-memory-ratio": hundredths.to_string(),
    });
    json!([{"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}])
}

/// Makes a node with cards.
pub(crate) fn gpu_node(cards: i64) -> Value {
    let mut machine = node("n", "32");
    for (resource, amount) in [
        ("gpu-core", (100 * cards).to_string()),
        ("gpu-memory-ratio", (100 * cards).to_string()),
        ("gpu-memory", format!("{}Gi", 8 * cards)),
    ] {
        machine["status"]["allocatable"][format!("koordinator.sh/{resource}")] = json!(amount);
    }
    machine
}

pub(crate) fn gpu_cluster(cards: i64, reservations: Value) -> Case {
    let card = |minor: i64| {
        json!({
            "type": "gpu", "id": format!("GPU-{minor}"), "minor": minor, "health": true,
            "resources": {
                "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "8Gi", "koordinator.sh/gpu-memory-ratio": "100",
            },
        })
    };
    let device = json!({
        "kind": "Device", "metadata": {"name": "n", "uid": "d"},
        "spec": {"devices": (0..cards).map(card).collect::<Vec<_>>()},
    });
    let objects = json!({"nodes": [gpu_node(cards)], "others": [device], "reservations": reservations});
    Case::with(&json!({"id": "cards", "objects": objects}), &["DeviceShare"])
}

pub(crate) fn with_cards(mut object: Value, hundredths: i64) -> Value {
    let at = if object["kind"] == "Pod" { "/spec/containers" } else { "/spec/template/spec/containers" };
    let mut containers = on_cards(hundredths);
    if object["kind"] == "Reservation" {
        // Enough for some owners.
        let amounts = &mut containers[0]["resources"]["requests"];
        (amounts["cpu"], amounts["memory"]) = (json!("4"), json!("4Gi"));
        containers[0]["resources"]["limits"] = amounts.clone();
    }
    *object.pointer_mut(at).expect("containers") = containers;
    object
}

/// Returns the cards that an object holds: minor and hundredths.
pub(crate) fn cards(object: &Value) -> Vec<(i64, String)> {
    let held = &object["metadata"]["annotations"][CARDS];
    let held: Value = serde_json::from_str(text(held)).unwrap_or_default();
    let card = |card: &Value| {
        let core = &card["resources"]["koordinator.sh/gpu-core"];
        (card["minor"].as_i64().expect("a minor"), core.as_str().map_or(core.to_string(), str::to_owned))
    };
    held["gpu"].as_array().into_iter().flatten().map(card).collect()
}

/// Tries a pod that is refused, and takes it away.
fn fails(case: &mut Case, pod: &Value) -> Option<String> {
    let (node, code) = try_pod(case, pod);
    assert_eq!(node, None, "{pod}");
    case.delete_pod(&PodKey::new("default", text(&pod["metadata"]["name"])));
    case.settle();
    code
}

pub(crate) fn of<'c>(case: &'c Case, name: &str) -> &'c Value {
    &case.pods[&PodKey::new("default", name)]
}

/// Adds the annotation with which a pod needs the reservation `r`.
fn needing(mut pod: Value) -> Value {
    pod["metadata"]["annotations"]["scheduling.koordinator.sh/reservation-affinity"] =
        json!(r#"{"name":"r"}"#);
    pod
}

fn shared(policy: &str) -> Value {
    json!({"allocatePolicy": policy, "allocateOnce": false})
}

#[test]
fn the_card_of_a_reservation_is_handed_on_half_by_half() {
    for policy in ["Aligned", "Restricted"] {
        let held = with_cards(reservation("r", "1", &shared(policy)), 100);
        let mut case = gpu_cluster(1, json!([held]));
        assert_eq!(cards(&case.reservations["r"]), [(0, "100".to_owned())], "it stands on the object");
        let other = with_cards(pod("other", "db", "1"), 50);
        fails(&mut case, &other); // the card is reserved
        for name in ["a", "b"] {
            assert_eq!(try_pod(&mut case, &with_cards(pod(name, "web", "1"), 50)), is_on("n"), "{policy}");
            assert_eq!(cards(of(&case, name)), [(0, "50".to_owned())]);
            assert_eq!(
                text(&status(&case, "r")["allocated"]["koordinator.sh/gpu-core"]),
                if name == "a" { "50" } else { "100" }
            );
        }
        fails(&mut case, &with_cards(pod("c", "web", "1"), 50)); // nothing is left
        // An owner goes: the reservation has its half again, and nobody else gets it.
        case.delete_pod(&PodKey::new("default", "a"));
        case.settle();
        fails(&mut case, &with_cards(pod("d", "db", "1"), 10));
        assert_eq!(try_pod(&mut case, &with_cards(pod("e", "web", "1"), 50)), is_on("n"));
    }
}

#[test]
fn owners_get_the_cards_of_their_reservation_before_others() {
    let held = with_cards(reservation("r", "1", &shared("Aligned")), 100);
    let mut case = gpu_cluster(3, json!([held]));
    let (mine, _) = cards(&case.reservations["r"])[0].clone();
    assert_eq!(try_pod(&mut case, &with_cards(pod("a", "web", "1"), 30)), is_on("n"));
    assert_eq!(cards(of(&case, "a"))[0].0, mine);
    assert_eq!(try_pod(&mut case, &with_cards(pod("b", "db", "1"), 100)), is_on("n"));
    assert_ne!(cards(of(&case, "b"))[0].0, mine);
    // Two whole cards: that of the reservation is in use, and one beside it is free.
    fails(&mut case, &with_cards(pod("c", "web", "1"), 200));
    case.delete_pod(&PodKey::new("default", "a"));
    case.settle();
    assert_eq!(try_pod(&mut case, &with_cards(pod("d", "web", "1"), 200)), is_on("n"));
    let all: Vec<i64> = cards(of(&case, "d")).into_iter().map(|(minor, _)| minor).collect();
    assert!(all.contains(&mine) && all.len() == 2, "{all:?}");
    fails(&mut case, &with_cards(pod("e", "db", "1"), 10)); // all three are in use
}

#[test]
fn a_restricted_reservation_gives_its_cards_alone() {
    let held = with_cards(reservation("r", "1", &shared("Restricted")), 100);
    let mut case = gpu_cluster(2, json!([held]));
    assert_eq!(try_pod(&mut case, &needing(with_cards(pod("a", "web", "1"), 60))), is_on("n"));
    let refused = fails(&mut case, &needing(with_cards(pod("b", "web", "1"), 60)));
    assert_eq!(refused.as_deref(), Some("InsufficientReservation"));
    assert_eq!(try_pod(&mut case, &needing(with_cards(pod("c", "web", "1"), 40))), is_on("n"));
    assert_eq!(cards(of(&case, "c"))[0].0, cards(of(&case, "a"))[0].0);
}

#[test]
fn cards_are_read_back_after_a_restart() {
    let held = with_cards(reservation("r", "1", &shared("Aligned")), 100);
    let mut case = gpu_cluster(1, json!([held]));
    assert_eq!(try_pod(&mut case, &with_cards(pod("a", "web", "1"), 60)), is_on("n"));
    let machine = gpu_node(1);
    for order in [[true, false], [false, true]] {
        let mut again = case.restarted(std::slice::from_ref(&machine), order);
        fails(&mut again, &with_cards(pod("b", "db", "1"), 10));
        fails(&mut again, &with_cards(pod("c", "web", "1"), 50));
        assert_eq!(try_pod(&mut again, &with_cards(pod("d", "web", "1"), 40)), is_on("n"));
    }
}

pub(crate) fn numa_cluster(reservations: Value) -> Case {
    let detail: Vec<Value> =
        (0..8).map(|cpu| json!({"id": cpu, "core": cpu / 2, "socket": 0, "node": 0})).collect();
    let topology = json!({
        "kind": "NodeResourceTopology",
        "metadata": {
            "name": "n", "uid": "t",
            "annotations": {
                "node.koordinator.sh/cpu-topology": json!({"detail": detail}).to_string(),
                "kubelet.koordinator.sh/cpu-manager-policy": r#"{"policy": "none"}"#,
            },
        },
        "topologyPolicies": ["None"],
        "zones": [{"name": "node-0", "type": "Node", "resources": [
            {"name": "cpu", "capacity": "8", "allocatable": "8", "available": "8"},
        ]}],
    });
    let objects = json!({"nodes": [node("n", "8")], "others": [topology], "reservations": reservations});
    Case::with(&json!({"id": "cpus", "objects": objects}), &["NodeNUMAResource"])
}

/// Makes a pod, or the template of a reservation, one that gets CPUs of its own.
pub(crate) fn pinned(mut object: Value, cpu: &str) -> Value {
    let mut containers = containers(cpu);
    containers[0]["resources"]["limits"] = containers[0]["resources"]["requests"].clone();
    let is_reservation = object["kind"] == "Reservation";
    let at = if is_reservation { &mut object["spec"]["template"] } else { &mut object };
    at["metadata"]["labels"]["koordinator.sh/qosClass"] = json!("LSR");
    at["spec"]["priority"] = json!(9500);
    if is_reservation {
        // Enough for some owners.
        for amounts in ["requests", "limits"] {
            containers[0]["resources"][amounts]["memory"] = json!("8Gi");
        }
    }
    at["spec"]["containers"] = containers;
    object
}

/// Returns the CPUs that an object holds.
pub(crate) fn cpus(object: &Value) -> String {
    let held: Value =
        serde_json::from_str(text(&object["metadata"]["annotations"][CPUS])).unwrap_or_default();
    text(&held["cpuset"]).to_owned()
}

#[test]
fn the_cpus_of_a_reservation_are_handed_on() {
    let held = pinned(reservation("r", "4", &shared("Restricted")), "4");
    let mut case = numa_cluster(json!([held]));
    assert_eq!(cpus(&case.reservations["r"]), "0-3");
    assert_eq!(try_pod(&mut case, &pinned(pod("other", "db", "2"), "2")), is_on("n"));
    assert_eq!(cpus(of(&case, "other")), "4-5");
    assert_eq!(try_pod(&mut case, &pinned(pod("a", "web", "2"), "2")), is_on("n"));
    assert_eq!(try_pod(&mut case, &pinned(pod("b", "web", "2"), "2")), is_on("n"));
    let mut owners = [cpus(of(&case, "a")), cpus(of(&case, "b"))];
    owners.sort();
    assert_eq!(owners, ["0-1", "2-3"]);
    // One owner goes, the scheduler starts again: its CPUs are the reservation's.
    case.delete_pod(&PodKey::new("default", "a"));
    case.settle();
    let mut again = case.restarted(&[node("n", "8")], [false, true]);
    fails(&mut again, &pinned(pod("c", "db", "4"), "4")); // two are free
    assert_eq!(try_pod(&mut again, &pinned(pod("d", "db", "2"), "2")), is_on("n"));
    assert_eq!(cpus(of(&again, "d")), "6-7");
    assert_eq!(try_pod(&mut again, &needing(pinned(pod("e", "web", "2"), "2"))), is_on("n"));
    assert!(owners.contains(&cpus(of(&again, "e"))));
}

fn quota(name: &str, max: i64) -> Value {
    json!({
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"min": {"cpu": max}, "max": {"cpu": max}},
    })
}

fn in_quota(mut object: Value, name: &str) -> Value {
    let at = if object["kind"] == "Pod" { &mut object } else { &mut object["spec"]["template"] };
    at["metadata"]["labels"]["quota.scheduling.koordinator.sh/name"] = json!(name);
    object
}

#[test]
fn a_quota_pays_for_a_reservation_and_its_owners_once() {
    let held = in_quota(reservation("r", "4", &shared("Aligned")), "team");
    let objects = json!({"nodes": [node("n", "32")], "others": [quota("team", 5), quota("guest", 2)], "reservations": [held]});
    let mut case = Case::with(&json!({"id": "quota", "objects": objects}), &["ElasticQuota"]);
    let used = |case: &Case, name: &str| case.used_of_quota(name);
    assert_eq!((used(&case, "team"), used(&case, "guest")), (4000, 0));
    assert_eq!(
        try_pod(&mut case, &in_quota(pod("a", "web", "3"), "team")),
        is_on("n"),
        "its quota has 1 left"
    );
    assert_eq!(used(&case, "team"), 4000, "3 of the owner, and the 1 that is left of the reservation");
    // Who stands in the room pays: a pod of another quota takes the charge along.
    assert_eq!(try_pod(&mut case, &in_quota(pod("b", "web", "1"), "guest")), is_on("n"));
    assert_eq!((used(&case, "team"), used(&case, "guest")), (3000, 1000));
    let refused = fails(&mut case, &in_quota(pod("c", "db", "3"), "team"));
    assert_eq!(refused.as_deref(), Some("InsufficientQuota"));
    assert_eq!(try_pod(&mut case, &in_quota(pod("d", "db", "2"), "team")), is_on("n"));
    case.delete_pod(&PodKey::new("default", "a"));
    case.settle();
    assert_eq!((used(&case, "team"), used(&case, "guest")), (5000, 1000), "3 of the reservation, 2 of d");
    case.delete_reservation("r");
    case.settle();
    assert_eq!((used(&case, "team"), used(&case, "guest")), (2000, 1000));
    assert_eq!(free(&case, "n"), 29_000);
}

/// Pods, and reservations of several owners, that are spread over nodes by their label are counted once: the reservation
/// while nobody stands in it, its owners afterwards.
#[test]
fn spread_counts_a_reservation_or_its_owners() {
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "nodeAffinityPolicy": "Ignore",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]);
    let named = |name: &str| {
        let mut made = node(name, "10");
        made["metadata"]["labels"] = json!({"kubernetes.io/hostname": name});
        made
    };
    let mut held = reservation("r", "4", &shared("Aligned"));
    held["spec"]["template"]["metadata"]["labels"] = json!({"app": "web"});
    held["spec"]["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "a"});
    let objects = json!({"nodes": [named("a"), named("b")], "reservations": [held]});
    let mut case = Case::new(&json!({"id": "spread", "objects": objects}));
    let on = |name: &str, node: Option<&str>| {
        let mut made = pod(name, "web", "1");
        made["spec"]["topologySpreadConstraints"] = spread.clone();
        if let Some(node) = node {
            made["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
        }
        made
    };
    assert_eq!(try_pod(&mut case, &on("first", Some("a"))), is_on("a"));
    // One pod on a, none on b. If the reservation counted beside its owner, b could take three.
    fails(&mut case, &on("second", Some("a")));
    assert_eq!(try_pod(&mut case, &on("third", Some("b"))), is_on("b"));
    assert_eq!(try_pod(&mut case, &on("fourth", Some("b"))).0.as_deref(), Some("b"));
    fails(&mut case, &on("fifth", Some("b"))); // two on b, one on a
}

#[test]
fn the_next_reservation_is_tried_where_the_cards_of_the_first_do_not_do() {
    let ordered = |name: &str, order: &str, hundredths: i64| {
        let own = json!({"allocatePolicy": "Restricted", "allocateOnce": false});
        let mut made = with_cards(reservation(name, "4", &own), hundredths);
        made["metadata"]["labels"] = json!({"scheduling.koordinator.sh/reservation-order": order});
        made
    };
    let mut case = gpu_cluster(3, json!([ordered("a", "1", 200), ordered("b", "2", 100)]));
    for name in ["first", "second"] {
        assert_eq!(try_pod(&mut case, &with_cards(pod(name, "web", "1"), 60)), is_on("n"));
    }
    let owners = |case: &Case, name: &str| status(case, name)["currentOwners"].as_array().map_or(0, Vec::len);
    assert_eq!((owners(&case, "a"), owners(&case, "b")), (2, 0), "both go by the order");
    // Of `a` 80 are left, 40 on each of two cards.
    assert_eq!(try_pod(&mut case, &with_cards(pod("third", "web", "1"), 70)), is_on("n"));
    assert_eq!((owners(&case, "a"), owners(&case, "b")), (2, 1));
    assert!(fails(&mut case, &with_cards(pod("fourth", "web", "1"), 70)).is_some());
    assert_eq!((owners(&case, "a"), owners(&case, "b")), (2, 1), "a refusal leaves nothing behind");
}

#[test]
fn a_template_stands_where_its_bound_claims_are_and_cannot_have_unbound_ones() {
    let mut there = node("n", "8");
    there["metadata"]["labels"] = json!({"disk": "there"});
    let objects = json!({"nodes": [node("m", "8"), there], "pods": [], "reservations": []});
    let mut case = Case::new(&json!({"id": "volumes", "objects": objects}));
    let is_there = json!({"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["there"]}]},
    ]}});
    let volume = |name: &str, claim: Value, phase: &str| {
        json!({
            "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "late",
                "nodeAffinity": is_there, "claimRef": claim,
            },
            "status": {"phase": phase},
        })
    };
    let claim = |name: &str, volume: &str| {
        let is_bound = !volume.is_empty();
        json!({
            "metadata": {
                "name": name, "namespace": "default", "uid": name, "resourceVersion": "1",
                "annotations": if is_bound { json!({"pv.kubernetes.io/bind-completed": "yes"}) } else { json!({}) },
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "late", "volumeName": volume,
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": if is_bound { "Bound" } else { "Pending" }},
        })
    };
    let class = json!({
        "metadata": {"name": "late", "uid": "late", "resourceVersion": "1"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    });
    let of_bound = json!({"namespace": "default", "name": "bound", "uid": "bound"});
    for (kind, object) in [
        (ObjectKind::StorageClass, class),
        (ObjectKind::PersistentVolume, volume("v", of_bound, "Bound")),
        (ObjectKind::PersistentVolume, volume("w", Value::Null, "Available")),
        (ObjectKind::PersistentVolumeClaim, claim("bound", "v")),
        (ObjectKind::PersistentVolumeClaim, claim("unbound", "")),
    ] {
        let read = case.decoder.object(kind, &object).expect("it can be read");
        case.core.apply(Input::ObjectApplied(Arc::new(read)));
    }
    for name in ["bound", "unbound"] {
        let mut made = reservation(name, "2", &json!({}));
        made["spec"]["template"]["spec"]["volumes"] =
            json!([{"name": "v", "persistentVolumeClaim": {"claimName": name}}]);
        create(&mut case, made);
    }
    assert_eq!(text(&status(&case, "bound")["nodeName"]), "n", "{}", status(&case, "bound"));
    let said = text(&status(&case, "unbound")["conditions"][0]["message"]).to_owned();
    assert!(said.contains("cannot hand on to its owners what VolumeBinding gives it"), "{said}");
}
