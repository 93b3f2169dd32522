//! Reservations that are placed over bound pods of their owners (`spec.preAllocation`).

use pellucid::cycle::what_if::question::Question;
use pellucid::model::PodKey;
use pellucid::recording::Outcome;
use serde_json::{Value, json};

use crate::reservation_cluster::{Case, array, text};
use crate::reservation_rules::{cluster, free, is_on, node, pod, reservation, status, try_pod};
use crate::reservation_shares::{cards, gpu_cluster, with_cards};

const ALLOCATED: &str = "scheduling.koordinator.sh/reservation-allocated";
const REQUIRED: &str = "scheduling.koordinator.sh/pre-allocation-required";

/// A reservation that may be placed over pods, for owners that come and go.
fn ahead(name: &str, cpu: &str, more: &Value) -> Value {
    let mut made = reservation(name, cpu, &json!({"preAllocation": true, "allocateOnce": false}));
    for (field, value) in more.as_object().into_iter().flatten() {
        made["spec"][field.as_str()] = value.clone();
    }
    made
}

/// Creates a reservation and decides.
pub(crate) fn create(case: &mut Case, mut reservation: Value) {
    let name = text(&reservation["metadata"]["name"]).to_owned();
    reservation["metadata"]["uid"] = json!(format!("{name}-uid"));
    reservation["metadata"]["creationTimestamp"] = json!(case.moment());
    case.put_reservation(reservation);
    case.settle();
}

fn delete(case: &mut Case, pod: &str) {
    case.delete_pod(&PodKey::new("default", pod));
    case.settle();
}

fn owners(case: &Case, name: &str) -> Vec<String> {
    let all = array(&status(case, name)["currentOwners"]);
    all.iter().map(|owner| text(&owner["name"]).to_owned()).collect()
}

#[test]
fn a_reservation_over_a_pod_has_its_room_when_the_pod_goes() {
    let mut case = cluster(json!([node("n", "4")]), json!([]));
    assert_eq!(try_pod(&mut case, &pod("a", "web", "3")), is_on("n"));
    create(&mut case, ahead("r", "4", &json!({})));
    assert_eq!(text(&status(&case, "r")["phase"]), "Available", "{}", status(&case, "r"));
    assert_eq!(owners(&case, "r"), ["a"]);
    assert_eq!(text(&status(&case, "r")["allocated"]["cpu"]), "3");
    assert_eq!(free(&case, "n"), 0, "4 of the reservation, of which the pod has 3");
    let held = &case.pods[&PodKey::new("default", "a")]["metadata"]["annotations"][ALLOCATED];
    assert_eq!(text(held), r#"{"name":"r","uid":"r-uid"}"#);
    // After a restart it is the same.
    for order in [[true, false], [false, true]] {
        assert_eq!(free(&case.restarted(&[node("n", "4")], order), "n"), 0);
    }
    delete(&mut case, "a");
    assert_eq!((free(&case, "n"), owners(&case, "r").len()), (0, 0), "the room is the reservation's");
    assert_eq!(try_pod(&mut case, &pod("b", "db", "1")).0, None);
    assert_eq!(try_pod(&mut case, &pod("c", "web", "4")), is_on("n"));
    assert_eq!(owners(&case, "r"), ["c"]);
}

#[test]
fn pods_beside_a_pre_allocation_count() {
    let mut case = cluster(json!([node("n", "8")]), json!([]));
    assert_eq!(try_pod(&mut case, &pod("a", "web", "3")), is_on("n"));
    create(&mut case, ahead("r", "4", &json!({})));
    assert_eq!(free(&case, "n"), 4000);
    assert_eq!(try_pod(&mut case, &pod("b", "db", "4")), is_on("n"));
    assert_eq!(try_pod(&mut case, &pod("c", "db", "1")).0, None, "the node is full");
    delete(&mut case, "a");
    assert_eq!(free(&case, "n"), 0);
    create(&mut case, ahead("too-large", "9", &json!({})));
    assert_eq!(text(&status(&case, "too-large")["phase"]), "Pending");
}

#[test]
fn nodes_with_pods_that_use_most_of_it_come_first() {
    let mut case = cluster(json!([node("m", "8"), node("n", "8"), node("o", "8")]), json!([]));
    for (name, app, cpu, on) in [("a", "web", "1", "m"), ("b", "web", "3", "n"), ("c", "db", "4", "o")] {
        let mut pod = pod(name, app, cpu);
        pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": on});
        pod["spec"]["nodeName"] = json!(on);
        case.create_pod(&pod);
    }
    create(&mut case, ahead("r", "4", &json!({})));
    assert_eq!(text(&status(&case, "r")["nodeName"]), "n");
    assert_eq!(owners(&case, "r"), ["b"]);
    // A pod stands in one reservation.
    create(&mut case, ahead("s", "4", &json!({})));
    assert_eq!((text(&status(&case, "s")["nodeName"]), owners(&case, "s")), ("m", vec!["a".to_owned()]));
    create(&mut case, ahead("t", "4", &json!({})));
    assert_eq!(text(&status(&case, "t")["phase"]), "Available", "it takes free room where there is no pod");
    assert_eq!(owners(&case, "t").len(), 0);
}

#[test]
fn one_that_must_be_over_a_pod_waits_for_one() {
    let mut case = cluster(json!([node("n", "8")]), json!([]));
    let mut required = ahead("r", "4", &json!({}));
    required["metadata"]["labels"] = json!({REQUIRED: "true"});
    create(&mut case, required);
    let said = &status(&case, "r")["conditions"][0]["message"];
    assert!(text(said).contains("no pod match reservation with pre allocation required"), "{said}");
    let scheduler = &case.core.scheduler;
    let stand_in = scheduler.cluster().find_pod(&PodKey::new("default", "reservation:r")).expect("it waits");
    let Outcome::Refused(refusal) = scheduler.verdict(stand_in).expect("it was tried").outcome else {
        panic!("it is refused")
    };
    assert_eq!(refusal.reasons().next().expect("a reason").0.code.as_str(), "NoPodToPreAllocate");
    assert_eq!(try_pod(&mut case, &pod("other", "db", "1")), is_on("n"));
    assert_eq!(try_pod(&mut case, &pod("a", "web", "2")), is_on("n"));
    case.core.wait(std::time::Duration::from_secs(600));
    case.settle();
    assert_eq!(text(&status(&case, "r")["phase"]), "Available", "{}", status(&case, "r"));
    assert_eq!((owners(&case, "r"), free(&case, "n")), (vec!["a".to_owned()], 3000));
}

#[test]
fn several_pods_are_taken_over_where_the_policy_says_so() {
    // Five of nine cores are free, and one of the pods that holds the others gives up two.
    for (cpu, is_multiple, taken, left) in
        [("5", false, vec!["c"], 2000), ("5", true, vec!["c"], 2000), ("8", true, vec!["b", "c"], 0)]
    {
        let mut case = cluster(json!([node("n", "9")]), json!([]));
        for (name, cpu) in [("a", "1"), ("b", "1"), ("c", "2")] {
            assert_eq!(
                try_pod(&mut case, &pod(name, if name == "a" { "db" } else { "web" }, cpu)),
                is_on("n")
            );
        }
        let policy = json!({"preAllocationPolicy": {"enableMultiple": is_multiple}});
        let mut made = ahead("r", cpu, &policy);
        made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!("4Gi");
        create(&mut case, made);
        assert_eq!(
            (owners(&case, "r"), free(&case, "n")),
            (taken.iter().map(|s| (*s).to_owned()).collect(), left)
        );
    }
}

#[test]
fn of_the_pods_those_come_first_over_which_the_reservation_fits() {
    let mut case = cluster(json!([node("n", "6")]), json!([]));
    let wide = |name: &str, cpu: &str, memory: &str| {
        let mut made = pod(name, "web", cpu);
        made["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!(memory);
        made
    };
    assert_eq!(try_pod(&mut case, &wide("a", "1", "40Gi")), is_on("n"));
    assert_eq!(try_pod(&mut case, &wide("b", "3", "1Gi")), is_on("n"));
    let mut made = ahead("r", "4", &json!({}));
    made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!("40Gi");
    create(&mut case, made);
    assert_eq!(
        text(&status(&case, "r")["phase"]),
        "Pending",
        "over b there is too little memory, over a too little CPU"
    );
    let mut made = ahead("s", "3", &json!({}));
    made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!("30Gi");
    create(&mut case, made);
    assert_eq!(owners(&case, "s"), ["a"]);
}

#[test]
fn a_pod_that_asks_for_another_reservation_is_not_taken_over() {
    for (affinity, taken) in [(json!({"name": "other"}), 0), (json!({"name": "r"}), 1)] {
        let mut case = cluster(json!([node("n", "8")]), json!([]));
        let mut bound = pod("a", "web", "3");
        bound["spec"]["nodeName"] = json!("n");
        bound["metadata"]["annotations"] =
            json!({"scheduling.koordinator.sh/reservation-affinity": affinity.to_string()});
        case.create_pod(&bound);
        create(&mut case, ahead("r", "4", &json!({})));
        assert_eq!(owners(&case, "r").len(), taken, "{affinity}");
    }
}

#[test]
fn shares_of_a_reservation_are_scores_as_they_are_and_one_for_several_pods_has_none() {
    for (is_multiple, scores) in [(false, vec![Some(50 * 5000), Some(0)]), (true, vec![None, None])] {
        let mut case = cluster(json!([node("m", "8"), node("n", "8")]), json!([]));
        let mut bound = pod("a", "web", "2");
        bound["spec"]["nodeName"] = json!("m");
        case.create_pod(&bound);
        let mut made = ahead("r", "4", &json!({"preAllocationPolicy": {"enableMultiple": is_multiple}}));
        made["metadata"]["uid"] = json!("r-uid");
        made["metadata"]["creationTimestamp"] = json!(case.moment());
        made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!("2Gi");
        case.put_reservation(made);
        let cluster = case.core.scheduler.cluster();
        let id = cluster.find_pod(&PodKey::new("default", "reservation:r")).expect("it waits");
        let at = case.profile.score.iter().position(|e| e.plugin.name() == "Reservation").expect("it scores");
        let mut question = Question::ask(cluster, &case.profile, id).expect("it is known");
        let mut all: Vec<(String, Option<i64>)> = Vec::new();
        for scored in question.scores() {
            let share = scored.shares[at].map(|(_, _, weighted)| weighted);
            all.push((cluster.node_name(scored.node).to_string(), share));
        }
        all.sort();
        assert_eq!(all.into_iter().map(|(_, share)| share).collect::<Vec<_>>(), scores);
    }
}

#[test]
fn a_pod_that_does_not_fit_in_a_restricted_reservation_is_not_taken_over() {
    let mut case = cluster(json!([node("n", "8")]), json!([]));
    assert_eq!(try_pod(&mut case, &pod("a", "web", "3")), is_on("n"));
    create(&mut case, ahead("r", "2", &json!({"allocatePolicy": "Restricted"})));
    assert_eq!((owners(&case, "r").len(), free(&case, "n")), (0, 3000));
    let mut case = cluster(json!([node("n", "8")]), json!([]));
    assert_eq!(try_pod(&mut case, &pod("a", "web", "3")), is_on("n"));
    create(&mut case, ahead("r", "2", &json!({"allocatePolicy": "Aligned"})));
    assert_eq!((owners(&case, "r").len(), free(&case, "n")), (1, 5000), "what overflows is the node's");
}

#[test]
fn an_owner_taken_over_uses_up_a_reservation_for_one() {
    let mut case = cluster(json!([node("n", "4")]), json!([]));
    assert_eq!(try_pod(&mut case, &pod("a", "web", "3")), is_on("n"));
    create(&mut case, ahead("r", "4", &json!({"allocateOnce": true})));
    assert_eq!((text(&status(&case, "r")["phase"]), free(&case, "n")), ("Succeeded", 1000));
}

#[test]
fn a_pod_that_goes_before_the_status_is_written_leaves_the_room_to_the_reservation() {
    let mut case = cluster(json!([node("n", "4")]), json!([]));
    assert_eq!(try_pod(&mut case, &pod("a", "web", "3")), is_on("n"));
    let mut made = ahead("r", "4", &json!({}));
    made["metadata"]["uid"] = json!("r-uid");
    made["metadata"]["creationTimestamp"] = json!(case.moment());
    case.put_reservation(made);
    case.core.run();
    assert_eq!(free(&case, "n"), 0, "it is decided and not written");
    case.delete_pod(&PodKey::new("default", "a"));
    assert_eq!(free(&case, "n"), 0);
    case.settle();
    case.core.wait(std::time::Duration::from_secs(600));
    case.settle();
    assert_eq!(text(&status(&case, "r")["phase"]), "Available", "{}", status(&case, "r"));
    assert_eq!((owners(&case, "r").len(), free(&case, "n")), (0, 0));
}

#[test]
fn the_cards_of_a_pod_that_is_taken_over_are_the_reservations_once_it_goes() {
    let mut case = gpu_cluster(2, json!([]));
    assert_eq!(try_pod(&mut case, &with_cards(pod("a", "web", "1"), 100)), is_on("n"));
    let first = cards(&case.pods[&PodKey::new("default", "a")]);
    create(&mut case, with_cards(ahead("r", "4", &json!({})), 100));
    assert_eq!(owners(&case, "r"), ["a"]);
    assert_eq!(cards(&case.reservations["r"]), first, "the pod's card");
    assert_eq!(
        try_pod(&mut case, &with_cards(pod("b", "db", "1"), 100)),
        is_on("n"),
        "the other card is free"
    );
    delete(&mut case, "a");
    assert_eq!(try_pod(&mut case, &with_cards(pod("c", "db", "1"), 100)).0, None);
    assert_eq!(try_pod(&mut case, &with_cards(pod("d", "web", "1"), 100)), is_on("n"));
    assert_eq!(cards(&case.pods[&PodKey::new("default", "d")]), first);
}

#[test]
fn free_room_comes_before_pods_where_the_argument_says_so() {
    let args = json!({"preAllocationConfig": {"preferNoPreAllocatedPods": true}});
    let mut case = Case::new(&json!({"id": "free", "objects": {"nodes": [node("n", "8")]}, "args": args}));
    assert_eq!(try_pod(&mut case, &pod("a", "web", "3")), is_on("n"));
    create(&mut case, ahead("beside", "4", &json!({})));
    assert_eq!(text(&status(&case, "beside")["phase"]), "Available");
    assert_eq!((owners(&case, "beside").len(), free(&case, "n")), (0, 1000));
    // There is no room for this one but that of the pod.
    create(&mut case, ahead("over", "4", &json!({})));
    assert_eq!((owners(&case, "over"), free(&case, "n")), (vec!["a".to_owned()], 0));
    let mut required = ahead("required", "1", &json!({}));
    required["metadata"]["labels"] = json!({REQUIRED: "true"});
    create(&mut case, required);
    assert_eq!(text(&status(&case, "required")["phase"]), "Pending");
}
