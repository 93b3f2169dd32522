//! What people are told of gangs where measured amounts count: never is not said where other amounts would make room.

use serde_json::{Value, json};

use crate::common::reads::{ask, text};
use crate::loadaware::Case;

/// Returns a node with eight CPUs.
fn node(name: &str, memory: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "8", "memory": memory, "pods": "110"}},
    })
}

fn member(name: &str, cpu: &str, memory: &str, of: i64) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "default", "labels": {"app": name},
            "annotations": {
                "gang.scheduling.koordinator.sh/name": "g",
                "gang.scheduling.koordinator.sh/min-available": of.to_string(),
            },
        },
        "spec": {
            "schedulerName": "koord-scheduler",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": memory}}}],
        },
    })
}

/// Has a node report what is used there.
fn report(case: &mut Case, name: &str, cpu: &str) {
    let used = json!({"resources": {"cpu": cpu, "memory": "1Gi"}});
    let status = json!({"updateTime": "@-10", "nodeMetric": {"nodeUsage": used, "systemUsage": used}, "podsMetric": []});
    case.report(&json!(name), json!({"metadata": {"name": name}, "status": status}));
}

fn told(case: &mut Case) -> Value {
    ask(&mut case.core, "/apis/v1/explain/gangs/default/g")
}

fn outlook(case: &mut Case) -> String {
    text(&told(case), "/outlook/code").to_owned()
}

#[test]
fn a_gang_that_measured_amounts_keep_off_beside_its_own_members_may_have_room_later() {
    let mut case = Case::of(&json!({}), &[node("n", "16Gi")]);
    report(&mut case, "n", "2");
    for name in ["a", "b"] {
        // One is estimated at 2.55 CPUs: of 5.2 CPUs below the threshold both have 5.1, and beside what is used one alone.
        case.place(&member(name, "3", "64Mi", 2));
    }
    let body = told(&mut case);
    assert_eq!(text(&body, "/outlook/code"), "NotKnown", "{body:#}");
    assert!(text(&body, "/outlook/message").starts_with("what is measured on nodes"), "{body:#}");
    assert_eq!(body["counts"]["placeable"], 1, "{body:#}");
    report(&mut case, "n", "0");
    assert_eq!(outlook(&mut case), "FitsNow");
}

#[test]
fn a_gang_whose_members_get_nodes_by_what_is_measured_may_have_room_later() {
    let mut case = Case::of(&json!({}), &[node("large", "32Gi"), node("small", "8Gi")]);
    let mut second = member("b", "1", "9Gi", 2);
    let near =
        json!({"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"});
    second["spec"]["affinity"] =
        json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}});
    let mut first = member("a", "1", "64Mi", 2);
    first["spec"]["priority"] = json!(100);
    report(&mut case, "large", "3");
    report(&mut case, "small", "0");
    case.place(&first);
    case.place(&second);
    assert_eq!(outlook(&mut case), "NotKnown");
    report(&mut case, "large", "0");
    assert_eq!(outlook(&mut case), "FitsNow");
}

#[test]
fn a_gang_that_has_no_room_whatever_is_measured_never_fits() {
    let mut case = Case::of(&json!({}), &[node("n", "16Gi"), node("m", "8Gi")]);
    report(&mut case, "n", "2");
    case.place(&member("a", "1", "64Mi", 2));
    // No node has as much.
    case.place(&member("b", "9", "64Mi", 2));
    assert_eq!(outlook(&mut case), "NeverFits");
    case.remove("b");
    for name in ["b", "c", "d"] {
        // Equal members have places for two, whichever node the first one gets.
        case.place(&member(name, "1", "7Gi", 4));
    }
    case.remove("a");
    case.place(&member("e", "1", "7Gi", 4));
    assert_eq!(outlook(&mut case), "NeverFits");
}
