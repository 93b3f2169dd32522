//! Checks the claims of explanations one by one, over a thousand refused pods.

use std::collections::BTreeSet;

use pellucid::cycle::Snapshot;
use pellucid::model::relations::PodAffinityTerm;
use pellucid::model::{Pod, PodKey};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

use crate::common::cluster::world;
use crate::why::settled::{Objects, Reader};

/// Number of refused pods per half; the two halves run in parallel.
const REFUSED: usize = 500;
const COPIES: usize = 12;

/// What was checked, so that a test that checks nothing fails.
#[derive(Debug, Default)]
struct Seen {
    pods: usize,
    fixes: usize,
    parts: usize,
    kinds: BTreeSet<String>,
    conflicts: usize,
    never: usize,
    not_now: usize,
    freed: usize,
    largest: usize,
}

fn look(seed: u8) -> Seen {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(crate::common::cluster::config(), rng);
    let reader = Reader::new();
    let mut seen = Seen::default();
    for _ in 0..REFUSED {
        if seen.pods >= REFUSED {
            break;
        }
        let made = world(6, 6).new_tree(&mut runner).expect("worlds can be made").current();
        let (objects, snapshot) = Objects::settled(made);
        for (key, pod) in &objects.pending {
            seen.pods += 1;
            adds_up(&reader, &snapshot, key);
            exhaustive(&reader, &snapshot, key, &mut seen);
            fixes(&reader, &snapshot, &objects, key, &mut seen);
            feasible(&reader, &snapshot, &objects, pod, &mut seen);
            nearest(&reader, &snapshot, &objects, key, &mut seen);
        }
    }
    assert!(seen.pods >= REFUSED, "{seen:?}");
    assert!(seen.fixes > REFUSED / 2 && seen.parts > seen.fixes, "{seen:?}");
    assert!(seen.conflicts > 100 && seen.never > 50 && seen.not_now > 8, "{seen:?}");
    assert!(seen.freed > 8 && seen.largest > 5 && seen.kinds.len() >= 8, "{seen:?}");
    seen
}

#[test]
fn what_is_told_of_refused_pods_is_true() {
    look(1);
}

#[test]
fn what_is_told_of_other_refused_pods_is_true() {
    look(2);
}

fn count(value: &Value) -> usize {
    value.as_u64().expect("a number") as usize
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn codes<'v>(failed: &'v Value, field: &str) -> BTreeSet<&'v str> {
    array(failed).iter().filter_map(|one| one[field].as_str()).collect()
}

/// Checks that node groups and unevaluated nodes add up to all nodes.
fn adds_up(reader: &Reader, snapshot: &Snapshot, key: &PodKey) {
    let body = reader.of_pod(snapshot, key, "", &[]);
    let groups: usize = array(&body["nodeGroups"]).iter().map(|g| count(&g["count"])).sum();
    assert_eq!(groups + count(&body["notEvaluated"]), count(&body["totalNodes"]), "{body:#}");
}

/// Checks that exhaustive groups cover all nodes and contain the verdict's reasons for a node; that every node fails
/// a requirement of each conflict; and that without one of its requirements some node fails none of the others.
fn exhaustive(reader: &Reader, snapshot: &Snapshot, key: &PodKey, seen: &mut Seen) {
    let body = reader.of_pod(snapshot, key, "", &[("mode", "exhaustive")]);
    let all = &body["exhaustive"];
    if !array(&all["podReasons"]).is_empty() {
        return;
    }
    let groups: usize = array(&all["groups"]).iter().map(|g| count(&g["count"])).sum();
    assert_eq!(groups + count(&all["feasibleNodes"]), count(&all["totalNodes"]), "{all:#}");
    for group in array(&body["nodeGroups"]) {
        let first = codes(&group["reasons"], "code");
        for node in array(&group["exampleNodes"]) {
            let failed = codes(&all["nodes"][text(node)]["failed"], "code");
            assert!(first.is_subset(&failed), "{key} on {node}: {first:?} in {failed:?}");
        }
    }
    let suggestions = reader.of_pod(snapshot, key, "/suggestions", &[("max", "0")]);
    let name = |f: &Value| format!("{}/{}/{}", f["plugin"], f["code"], f["subject"]);
    let nodes: Vec<BTreeSet<String>> = all["nodes"]
        .as_object()
        .expect("nodes by name")
        .values()
        .map(|node| array(&node["failed"]).iter().map(name).collect())
        .collect();
    for conflict in array(&suggestions["conflicts"]) {
        seen.conflicts += 1;
        let set: BTreeSet<String> = array(&conflict["requirements"]).iter().map(name).collect();
        assert!(nodes.iter().all(|node| !node.is_disjoint(&set)), "{set:?} in {nodes:?}");
        for one in &set {
            let rest: BTreeSet<String> = set.iter().filter(|r| *r != one).cloned().collect();
            assert!(nodes.iter().any(|node| node.is_disjoint(&rest)), "{one} is not needed in {set:?}");
        }
    }
}

/// Checks that a fix makes the pod fit, that none of its parts can be left out, and that fixes are sorted by cost.
fn fixes(reader: &Reader, snapshot: &Snapshot, objects: &Objects, key: &PodKey, seen: &mut Seen) {
    let body = reader.of_pod(snapshot, key, "/suggestions", &[("max", "3")]);
    assert_eq!(body["fitsNow"], false, "{key} was refused: {body:#}");
    let mut last = 0;
    for fix in array(&body["fixes"]) {
        seen.fixes += 1;
        assert_eq!(fix["verified"], true);
        assert!(count(&fix["cost"]) >= last, "{body:#}");
        last = count(&fix["cost"]);
        let edits = array(&fix["edits"]);
        seen.parts += edits.len();
        seen.kinds.extend(edits.iter().flat_map(|e| e.as_object().expect("an edit").keys().cloned()));
        let with = |edits: &mut dyn Iterator<Item = &Value>| {
            let mut changed = objects.clone();
            edits.for_each(|edit| changed.edit(edit));
            changed.places(key)
        };
        assert!(with(&mut edits.iter()), "{key} does not fit with {fix:#}");
        // Some parts of a widened fix are there for the other pending pods.
        let alone = if fix["widened"] == true { 0 } else { edits.len() };
        for left_out in 0..alone {
            let mut others = edits.iter().enumerate().filter(|(i, _)| *i != left_out).map(|(_, e)| e);
            assert!(!with(&mut others), "{key}: part {left_out} is not needed in {fix:#}");
        }
    }
}

/// Returns whether a pod requires to be near pods such as the other one.
fn wants(pod: &Pod, other: &Pod) -> bool {
    let terms = &pod.spec.pod_affinity.required;
    let is_about = |term: &PodAffinityTerm| {
        let own = term.namespaces.is_empty() && term.namespace_selector.is_none();
        let namespace = &other.key.namespace;
        let is_near = own && *namespace == pod.key.namespace
            || term.namespaces.iter().any(|name| **name == **namespace)
            || term.namespace_selector.is_some();
        is_near && term.selector.as_ref().is_some_and(|selector| selector.matches(&other.labels))
    };
    !terms.is_empty() && terms.iter().all(is_about)
}

/// Checks the feasibility verdict and the number of copies against separate schedulers.
fn feasible(reader: &Reader, snapshot: &Snapshot, objects: &Objects, pod: &Pod, seen: &mut Seen) {
    let copies = COPIES.to_string();
    let body = reader.of_pod(snapshot, &pod.key, "/feasibility", &[("copies", &copies)]);
    let plain = Pod { gates: Box::default(), ..pod.clone() };
    let without = |stays: &dyn Fn(&Pod) -> bool| {
        let placed = objects.placed.clone().into_iter().filter(|(_, other)| stays(other)).collect();
        Objects { placed, ..objects.clone() }.copies(&plain, COPIES)
    };
    let without_pods = match without(&|other| !other.can_leave()) {
        0 => without(&|other| !other.can_leave() || wants(pod, other)),
        copies => copies,
    };
    let now = objects.copies(&plain, COPIES);
    assert_eq!(
        (count(&body["maxCopiesNow"]), count(&body["maxCopiesEmpty"])),
        (now, without_pods),
        "{body:#}"
    );
    assert_eq!(
        (&body["now"], &body["emptyCluster"]),
        (&Value::from(now > 0), &Value::from(without_pods > 0))
    );
    let code = text(&body["verdict"]["code"]);
    match (now, without_pods) {
        _ if !pod.gates.is_empty() => assert_eq!(code, "HeldBack"),
        (1.., _) => assert_eq!(code, "FitsNow"),
        // A pod that is refused as a whole is so on any nodes.
        (0, 0) if code == "HeldBack" => {
            let whole = reader.of_pod(snapshot, &pod.key, "/nearest", &[]);
            assert!(!array(&whole["podReasons"]).is_empty(), "{body:#}");
        }
        // The pods that it must be near are pending too.
        (0, 0) if code == "NotKnown" => assert!(!pod.spec.pod_affinity.required.is_empty(), "{body:#}"),
        (0, 0) => assert_eq!(code, "NeverFits"),
        _ => assert_eq!(code, "NotNow"),
    }
    seen.never += usize::from(code == "NeverFits");
    seen.not_now += usize::from(code == "NotNow");
    if let Some(largest) = body["largestNow"].as_object() {
        seen.largest += 1;
        let mut changed = objects.clone();
        changed.pending.get_mut(&pod.key).expect("it waits").gates = Box::default();
        for (resource, amount) in largest["requests"].as_object().expect("amounts") {
            let set = serde_json::json!({"pod": pod.key.to_string(), "resource": resource, "amount": amount});
            changed.edit(&serde_json::json!({"setRequest": set}));
        }
        assert!(changed.places(&pod.key), "{body:#}");
    }
}

/// Checks that the nearest nodes come first, and that a pod fits on a node once the named pods are gone.
fn nearest(reader: &Reader, snapshot: &Snapshot, objects: &Objects, key: &PodKey, seen: &mut Seen) {
    let body = reader.of_pod(snapshot, key, "/nearest", &[("k", "2")]);
    let distances: Vec<f64> =
        array(&body["nodes"]).iter().map(|n| n["distance"].as_f64().expect("a number")).collect();
    assert!(distances.is_sorted(), "{body:#}");
    for node in array(&body["nodes"]) {
        let Some(pods) = node["wouldFree"].as_array() else { continue };
        seen.freed += 1;
        let mut changed = objects.clone();
        changed.pending.get_mut(key).expect("it waits").gates = Box::default();
        for pod in pods {
            changed.edit(&serde_json::json!({"deletePod": pod}));
        }
        assert!(changed.places(key), "{key} after {pods:?}: {body:#}");
    }
}
