//! What people are told of pods and gangs about reservations: as victims, and as what keeps a gang off for good.

use pellucid::diagnosis::what_if::simulate::{Question, simulate};
use serde_json::{Value, json};

use crate::common::reads::{ask, list, text};
use crate::reservation_cluster::Case;
use crate::reservation_rules::{cluster, node, of_priority, pod, reservation};

fn told(case: &mut Case, path: &str) -> Value {
    ask(&mut case.core, path)
}

#[test]
fn a_reservation_that_is_evicted_is_named_as_what_it_is() {
    let mut held = reservation("r", "4", &json!({"allocateOnce": false, "allocatePolicy": "Aligned"}));
    held["metadata"]["labels"] = json!({"koordinator.sh/priority": "50"});
    let objects = json!({"nodes": [node("n", "8")], "reservations": [held]});
    let args = json!({"enablePreemption": true});
    let mut case = Case::new(&json!({"id": "named", "objects": objects, "args": args}));
    let key = case.create_pod(&of_priority(pod("urgent", "db", "6"), 100));
    let question = Question { pods: vec![key], evict: true, ..Question::default() };
    let snapshot = case.core.scheduler.publish(case.core.now);
    let body = simulate(&snapshot, &question, case.core.now).expect("it fits");
    let places: Vec<&str> = body.placements.iter().map(|placed| placed.node.as_str()).collect();
    let victims: Vec<(&str, &str)> = body.victims.iter().map(|v| (&*v.pod, &*v.node)).collect();
    assert_eq!((places, victims), (vec!["n"], vec![("Reservation r", "n")]));
    case.settle();
    let body = told(&mut case, "/apis/v1/evictions");
    let [eviction] = list(&body, "/evictions") else { panic!("{body:#}") };
    assert_eq!(text(eviction, "/victim"), "Reservation r");
    let begin = "Reservation r (priority 50) had to go from n for default/urgent (priority 100)";
    assert!(text(eviction, "/message").starts_with(begin), "{eviction:#}");
    let body = told(&mut case, "/apis/v1/explain/pods/default/urgent/preemption");
    assert_eq!(body["search"]["candidates"][0]["victims"], json!(["Reservation r"]), "{body:#}");
    assert_eq!(body["chosen"]["victims"][0]["object"], "Reservation r");
}

#[test]
fn a_gang_that_a_restricted_reservation_is_too_small_for_is_told_what_helps() {
    let own = json!({"allocatePolicy": "Restricted", "allocateOnce": false});
    let mut case = cluster(json!([node("n", "16")]), json!([reservation("r", "4", &own)]));
    for name in ["g-0", "g-1"] {
        let mut member = pod(name, "web", "3");
        member["metadata"]["annotations"] = json!({
            "scheduling.koordinator.sh/reservation-affinity": "{}",
            "gang.scheduling.koordinator.sh/name": "g",
            "gang.scheduling.koordinator.sh/min-available": "2",
        });
        case.create_pod(&member);
    }
    case.settle();
    let body = told(&mut case, "/apis/v1/explain/gangs/default/g");
    assert_eq!(text(&body, "/outlook/code"), "NeverFits", "{body:#}");
    assert_eq!(body["counts"]["placeable"], 1);
    assert_eq!(text(&body, "/verdict/remedy"), "Make a larger reservation, or request less.", "{body:#}");
    assert_eq!(text(&body, "/verdict/resolver"), "cluster admin");
}
