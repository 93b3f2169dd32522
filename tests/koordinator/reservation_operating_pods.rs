//! Pods in operating mode Reservation: a pod that is ready, whose room owners take.

use pellucid::model::PodKey;
use serde_json::{Value, json};

use crate::reservation_cluster::{Case, text};
use crate::reservation_rules::{cluster, free, is_on, node, pod, reservation, status, try_pod};
use crate::reservation_taking_over::create;

const ALLOCATED: &str = "scheduling.koordinator.sh/reservation-allocated";
const OWNERS: &str = "scheduling.koordinator.sh/reservation-owners";
const CURRENT: &str = "scheduling.koordinator.sh/reservation-current-owner";

fn keeper(cpu: &str) -> Value {
    let mut made = pod("keeper", "keeper", cpu);
    made["metadata"]["labels"]["scheduling.koordinator.sh/operating-mode"] = json!("Reservation");
    let owners = json!([{"labelSelector": {"matchLabels": {"app": "web"}}}]);
    made["metadata"]["annotations"][OWNERS] = json!(owners.to_string());
    made
}

/// Has the kubelet say that the keeper runs, and whether it is ready.
fn run(case: &mut Case, ready: &str) {
    let mut keeper = case.pods[&PodKey::new("default", "keeper")].clone();
    keeper["status"]["phase"] = json!("Running");
    keeper["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
    case.put_pod(keeper);
    case.settle();
}

/// Waits until whoever was refused is tried again.
fn wait(case: &mut Case) {
    case.core.wait(std::time::Duration::from_secs(600));
    case.settle();
}

fn keeping() -> Case {
    let mut case = cluster(json!([node("n", "4")]), json!([]));
    assert_eq!(try_pod(&mut case, &keeper("3")), is_on("n"));
    case
}

#[test]
fn owners_get_the_room_of_a_pod_once_it_is_ready() {
    let mut case = keeping();
    assert_eq!(try_pod(&mut case, &pod("a", "web", "2")).0, None, "it does not run yet");
    run(&mut case, "False");
    wait(&mut case);
    let place = |case: &Case| case.pods[&PodKey::new("default", "a")]["spec"]["nodeName"].clone();
    assert_eq!(text(&place(&case)), "", "it runs and is not ready");
    run(&mut case, "True");
    wait(&mut case);
    let owner = case.pods[&PodKey::new("default", "a")].clone();
    assert_eq!(text(&place(&case)), "n", "that it is ready wakes the owner");
    let held = r#"{"name":"keeper","namespace":"default","uid":"keeper-uid"}"#;
    assert_eq!(text(&owner["metadata"]["annotations"][ALLOCATED]), held);
    assert_eq!(free(&case, "n"), 1000, "3 of the keeper, in which the owner stands");
    assert_eq!(try_pod(&mut case, &pod("b", "web", "2")).0, None, "one owner uses it up");
    assert_eq!(try_pod(&mut case, &pod("c", "db", "2")).0, None, "others get nothing of it");
    for order in [[true, false], [false, true]] {
        assert_eq!(free(&case.restarted(&[node("n", "4")], order), "n"), 1000);
    }
    run(&mut case, "False");
    assert_eq!(free(&case, "n"), 1000, "the owner stands in the room of a pod that is not ready any more");
    case.delete_pod(&PodKey::new("default", "a"));
    case.settle();
    assert_eq!(free(&case, "n"), 1000);
}

#[test]
fn one_with_an_owner_written_on_it_is_used_up() {
    let mut case = keeping();
    let mut used = case.pods[&PodKey::new("default", "keeper")].clone();
    used["metadata"]["annotations"][CURRENT] = json!(r#"{"namespace": "default", "name": "x", "uid": "x"}"#);
    case.put_pod(used);
    run(&mut case, "True");
    assert_eq!(try_pod(&mut case, &pod("a", "web", "2")).0, None);
}

#[test]
fn its_policy_keeps_others_off_while_it_can_be_used() {
    let others = json!({"owners": [{"object": {"name": "nobody"}}], "ttl": "0s"});
    for (ready, phase) in [("True", "Pending"), ("False", "Available")] {
        let mut case = keeping();
        run(&mut case, ready);
        create(&mut case, reservation("r", "1", &others));
        assert_eq!(text(&status(&case, "r")["phase"]), phase, "ready: {ready}");
    }
}

#[test]
fn owners_that_cannot_be_read_are_told_with_the_annotation() {
    let mut case = cluster(json!([node("n", "4")]), json!([]));
    let mut wrong = keeper("3");
    wrong["metadata"]["annotations"][OWNERS] = json!("{");
    assert_eq!(try_pod(&mut case, &wrong), is_on("n"));
    run(&mut case, "True");
    let problems = &case.read("state", "")["problems"];
    assert!(
        text(&problems["default/keeper"]).starts_with(&format!("annotation {OWNERS}: no JSON")),
        "{problems}"
    );
    assert_eq!(try_pod(&mut case, &pod("a", "web", "2")).0, None);
}

#[test]
fn the_label_may_come_and_go_while_the_pod_runs() {
    let mut case = keeping();
    run(&mut case, "True");
    let key = PodKey::new("default", "keeper");
    let labelled = case.pods[&key].clone();
    for n in 0..2 {
        let mut plain = labelled.clone();
        plain["metadata"]["labels"].as_object_mut().expect("it has labels").retain(|key, _| key == "app");
        case.put_pod(plain);
        case.settle();
        let owner = pod(&format!("a-{n}"), "web", "2");
        assert_eq!(try_pod(&mut case, &owner).0, None, "{n}: a pod like any other keeps its room");
        assert_eq!(free(&case, "n"), 1000);
        case.put_pod(labelled.clone());
        case.settle();
        wait(&mut case);
        let key = PodKey::new("default", &format!("a-{n}"));
        assert_eq!(text(&case.pods[&key]["spec"]["nodeName"]), "n", "{n}: it is a reservation");
        assert_eq!(free(&case, "n"), 1000, "{n}: the owner stands in its room");
        case.delete_pod(&key);
        case.settle();
    }
}
