//! What people are told of pods and gangs about reservations: as victims, as what keeps a gang off for good, and of the node that
//! a template names; and which of two reservations scores more.

use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::diagnosis::what_if::simulate::{Question, simulate};
use pellucid::model::storage::{PersistentVolumeClaim, StorageClass};
use pellucid::model::{Object, PodKey};
use pellucid::recording::Outcome;
use serde_json::{Value, json};

use crate::common::reads::{ask, list, text};
use crate::common::storage::claim_of;
use crate::reservation_cluster::Case;
use crate::reservation_rules::{cluster, is_on, node, of_priority, pod, reservation, status, try_pod};
use crate::reservation_taking_over::create;

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

/// Returns the parts of fixes that change a reservation, and looks that they are of it, not of the pod that stands for it.
fn parts_of<'b>(body: &'b Value, name: &str) -> Vec<&'b Value> {
    let parts = list(body, "/fixes").iter().flat_map(|fix| list(fix, "/parts"));
    let own: Vec<&Value> =
        parts.filter(|part| part["edit"].to_string().contains(&format!("/reservation:{name}"))).collect();
    for part in &own {
        assert!(text(part, "/text").ends_with(&format!("(in Reservation {name})")), "{part:#}");
        assert_eq!(part["owner"], json!({"kind": "Reservation", "name": name}));
        // The API server has no such pod.
        assert!(part["recreate"] != true && part["command"].is_null(), "{part:#}");
    }
    own
}

#[test]
fn a_fix_of_a_reservation_names_it_and_not_the_pod_that_stands_for_it() {
    let mut case = cluster(json!([node("n", "8")]), json!([]));
    assert_eq!(try_pod(&mut case, &pod("runs", "db", "6")), is_on("n"));
    let mut pinned = reservation("r", "4", &json!({}));
    pinned["spec"]["template"]["spec"]["nodeSelector"] = json!({"disktype": "ssd"});
    create(&mut case, pinned);
    create(&mut case, reservation("s", "4", &json!({})));
    for name in ["r", "s"] {
        let path = format!("/apis/v1/explain/pods/default/reservation:{name}/suggestions");
        let body = told(&mut case, &path);
        let edits: Vec<&Value> = list(&body, "/fixes").iter().flat_map(|fix| list(fix, "/edits")).collect();
        assert!(edits.contains(&&json!({"deletePod": "default/runs"})), "{body:#}");
        assert!(!parts_of(&body, name).is_empty(), "{body:#}");
    }
}

#[test]
fn a_reservation_that_asks_for_too_much_is_told_to_ask_for_less() {
    let mut case = cluster(json!([node("n", "3")]), json!([]));
    create(&mut case, reservation("r", "4", &json!({})));
    let body = told(&mut case, "/apis/v1/explain/pods/default/reservation:r/suggestions");
    assert_eq!(
        parts_of(&body, "r")[0]["text"],
        "request 3 of cpu instead of 4 (in Reservation r)",
        "{body:#}"
    );
    let mut changed = case.reservations["r"].clone();
    changed["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("3");
    case.put_reservation(changed);
    case.core.wait(std::time::Duration::from_secs(30));
    case.settle();
    assert_eq!(status(&case, "r")["nodeName"], "n");
}

#[test]
fn the_gates_of_a_pod_that_stands_for_a_reservation_are_told_as_those_of_the_reservation() {
    let mut case = cluster(json!([node("n", "8")]), json!([]));
    let mut gated = reservation("r", "4", &json!({}));
    gated["spec"]["template"]["spec"]["schedulingGates"] = json!([{"name": "example.com/quota"}]);
    create(&mut case, gated);
    let body = told(&mut case, "/apis/v1/explain/pods/default/reservation:r/suggestions");
    let gates = "remove the scheduling gates example.com/quota (in Reservation r)";
    assert_eq!(parts_of(&body, "r")[0]["text"], gates, "{body:#}");
    let mut open = case.reservations["r"].clone();
    open["spec"]["template"]["spec"]["schedulingGates"] = json!([]);
    case.put_reservation(open);
    case.settle();
    assert_eq!(status(&case, "r")["nodeName"], "n");
}

#[test]
fn copies_are_counted_with_the_reservation_that_the_first_of_them_uses_up() {
    let mut case = cluster(json!([node("n", "4")]), json!([reservation("r", "4", &json!({}))]));
    let mut gated = pod("owner", "web", "1");
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/approval"}]);
    case.create_pod(&gated);
    let body = told(&mut case, "/apis/v1/explain/pods/default/owner/feasibility?copies=5");
    assert_eq!(body["maxCopiesNow"], 4, "{body:#}");
    for name in ["a", "b", "c", "d"] {
        assert_eq!(try_pod(&mut case, &pod(name, "web", "1")), is_on("n"));
    }
}

#[test]
fn an_owner_gets_the_room_of_a_reservation_that_is_placed_first_in_company() {
    let mut case = cluster(json!([node("n", "4")]), json!([]));
    assert_eq!(try_pod(&mut case, &pod("runs", "db", "2")), is_on("n"));
    create(&mut case, reservation("r", "3", &json!({"allocateOnce": false})));
    let owner = case.create_pod(&pod("owner", "web", "3"));
    case.settle();
    let body = told(&mut case, "/apis/v1/explain/pods/default/owner/suggestions?max=3");
    let fix = list(&body, "/fixes").iter().find(|fix| fix["edits"] == json!([{"deletePod": "default/runs"}]));
    assert_eq!(fix.map(|fix| &fix["inCompany"]), Some(&json!("holds")), "{body:#}");
    case.delete_pod(&PodKey::new("default", "runs"));
    case.settle();
    case.core.wait(std::time::Duration::from_secs(30));
    case.settle();
    assert_eq!(
        (&status(&case, "r")["nodeName"], &case.pods[&owner]["spec"]["nodeName"]),
        (&json!("n"), &json!("n"))
    );
}

/// Both wait for the reservation. The new pod was refused once and backs off for a second, the other one for longer.
#[test]
fn a_pod_that_a_controller_makes_again_gets_the_room_before_an_owner_that_was_refused_often() {
    let mut case = cluster(json!([node("n", "4")]), json!([]));
    let controller = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w", "controller": true,
    }]);
    let of_controller = |name: &str| {
        let mut pod = pod(name, "web", "3");
        pod["metadata"]["ownerReferences"] = controller.clone();
        pod
    };
    assert_eq!(try_pod(&mut case, &of_controller("runs")), is_on("n"));
    create(&mut case, reservation("r", "3", &json!({"allocateOnce": false})));
    let owner = case.create_pod(&pod("owner", "web", "3"));
    case.settle();
    case.core.wait(std::time::Duration::from_secs(30));
    let body = told(&mut case, "/apis/v1/explain/pods/default/owner/suggestions?max=3");
    let fix = list(&body, "/fixes").iter().find(|fix| fix["edits"] == json!([{"deletePod": "default/runs"}]));
    assert_eq!(fix.map(|fix| &fix["inCompany"]), Some(&json!("taken")), "{body:#}");
    case.delete_pod(&PodKey::new("default", "runs"));
    let again = case.create_pod(&of_controller("again"));
    case.settle();
    case.core.wait(std::time::Duration::from_secs(30));
    case.settle();
    let nodes = [&again, &owner].map(|key| case.pods[key]["spec"]["nodeName"].clone());
    assert_eq!(nodes, [json!("n"), json!(null)]);
}

#[test]
fn a_reservation_ends_in_a_simulation_too_once_its_owner_is_bound() {
    let mut case = cluster(json!([node("n", "4")]), json!([reservation("r", "3", &json!({}))]));
    let owner = case.create_pod(&pod("owner", "web", "1"));
    // The rest of the reservation is for nobody then.
    let other = case.create_pod(&pod("other", "db", "3"));
    let question = Question { pods: vec![owner, other.clone()], ..Question::default() };
    let snapshot = case.core.scheduler.publish(case.core.now);
    let body = simulate(&snapshot, &question, case.core.now).expect("both are known");
    let mut placed: Vec<&str> = body.placements.iter().map(|placed| placed.pod.as_str()).collect();
    placed.sort_unstable();
    assert_eq!(placed, ["default/other", "default/owner"]);
    case.settle();
    assert_eq!(case.pods[&other]["spec"]["nodeName"], "n");
    assert_eq!(text(status(&case, "r"), "/phase"), "Succeeded");
}

/// The reservation ends once its owner is bound, which waits for a volume that is to be made. There is room for the other pod then.
#[test]
fn what_a_reservation_keeps_until_a_volume_is_made_is_not_said_to_be_taken() {
    let said = |volumes: Value| {
        let mut case = cluster(json!([node("n", "3")]), json!([reservation("r", "1", &json!({}))]));
        case.settle();
        let mut closed = case.versioned(node("n", "3"));
        closed["spec"]["unschedulable"] = json!(true);
        let closed = Arc::new(case.decoder.node(&closed).expect("a node"));
        case.core.apply(Input::NodeApplied(closed));
        let class = StorageClass {
            name: "local".into(),
            provisioner: "disk.example".into(),
            waits_for_consumer: true,
            ..StorageClass::default()
        };
        case.core.see_object(Object::StorageClass(class));
        case.core.see_object(Object::PersistentVolumeClaim(PersistentVolumeClaim {
            namespace: "default".into(),
            ..claim_of("data")
        }));
        let mut owner = pod("a", "web", "100m");
        owner["spec"]["volumes"] = volumes;
        case.create_pod(&owner);
        case.create_pod(&pod("b", "db", "900m"));
        case.create_pod(&pod("c", "db", "2"));
        case.settle();
        case.core.wait(std::time::Duration::from_secs(30));
        let body = told(&mut case, "/apis/v1/explain/pods/default/c/suggestions");
        let fix = list(&body, "/fixes").iter().find(|fix| fix["edits"] == json!([{"uncordon": "n"}]));
        fix.map(|fix| text(fix, "/inCompany").to_owned()).unwrap_or_else(|| format!("{body:#}"))
    };
    assert_eq!(said(json!([])), "holds");
    assert_eq!(said(json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])), "unknown");
}

#[test]
fn other_nodes_than_the_one_that_the_template_names_are_refused_by_a_reason_of_their_own() {
    let mut case = cluster(json!([node("m", "8"), node("n", "2"), node("o", "1")]), json!([]));
    let mut pinned = reservation("r", "4", &json!({}));
    pinned["spec"]["template"]["spec"]["nodeName"] = json!("n");
    create(&mut case, pinned);
    let said = text(status(&case, "r"), "/conditions/0/message").to_owned();
    let reasons = "0/3 nodes are available: 1 node(s) didn't match the nodeName specified by reservation, 2 Insufficient cpu.";
    assert!(said.starts_with(reasons), "{said}");
    let scheduler = &case.core.scheduler;
    let id = scheduler.cluster().find_pod(&PodKey::new("default", "reservation:r")).expect("it waits");
    let Outcome::Refused(refusal) = scheduler.verdict(id).expect("it was tried").outcome else {
        panic!("it is refused")
    };
    let codes: Vec<&str> = refusal.reasons().map(|(reason, _)| reason.code.as_str()).collect();
    assert!(codes.contains(&"ReservationNodeMismatch"), "{codes:?}");
    let mut small = reservation("s", "1", &json!({}));
    small["spec"]["template"]["spec"]["nodeName"] = json!("o");
    create(&mut case, small);
    assert_eq!(text(status(&case, "s"), "/nodeName"), "o");
}

#[test]
fn what_owners_use_of_other_resources_does_not_count_in_the_score_of_a_restricted_reservation() {
    let sized = |name: &str, cpu: &str, memory: &str| {
        let own = json!({"allocatePolicy": "Restricted", "allocateOnce": false});
        let mut made = reservation(name, cpu, &own);
        made["metadata"]["annotations"] =
            json!({"scheduling.koordinator.sh/reservation-restricted-options": r#"{"resources": ["cpu"]}"#});
        made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!(memory);
        made
    };
    let mut first = pod("first", "web", "1");
    first["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!("3Gi");
    let mut case = cluster(json!([node("n", "8")]), json!([sized("used", "4", "4Gi")]));
    assert_eq!(try_pod(&mut case, &first), is_on("n"));
    create(&mut case, sized("fresh", "2", "2Gi"));
    // Of the used one 50 % of the CPU and, by this pod alone, 25 % of the memory; of the fresh one half of both.
    assert_eq!(try_pod(&mut case, &pod("second", "web", "1")), is_on("n"));
    assert_eq!(text(status(&case, "fresh"), "/currentOwners/0/name"), "second");
}

#[test]
fn owners_get_nothing_of_what_a_reservation_keeps_back() {
    for (policy, code) in
        [("Restricted", "InsufficientReservation"), ("Aligned", "InsufficientBesideReservations")]
    {
        for kept in [r#"{"resources": {"cpu": "1500m"}}"#, r#"{"reservedCPUs": "0,2"}"#] {
            let own = json!({"allocatePolicy": policy, "allocateOnce": false});
            let mut held = reservation("r", "4", &own);
            held["metadata"]["annotations"] = json!({"node.koordinator.sh/reservation": kept});
            let mut case = cluster(json!([node("n", "4")]), json!([held]));
            let mut owner = pod("a", "web", "3");
            owner["metadata"]["annotations"] =
                json!({"scheduling.koordinator.sh/reservation-affinity": "{}"});
            assert!(
                try_pod(&mut case, &owner).1.is_some_and(|said| said.starts_with("Insufficient")),
                "{policy}"
            );
            let scheduler = &case.core.scheduler;
            let id = scheduler.cluster().find_pod(&PodKey::new("default", "a")).expect("it waits");
            let Outcome::Refused(refusal) = scheduler.verdict(id).expect("it was tried").outcome else {
                panic!("it is refused")
            };
            let codes: Vec<&str> = refusal.reasons().map(|(reason, _)| reason.code.as_str()).collect();
            assert!(codes.contains(&code), "{policy}: {codes:?}");
            assert_eq!(try_pod(&mut case, &pod("b", "web", "2")), is_on("n"));
            assert_eq!(try_pod(&mut case, &pod("c", "web", "1")).0, None, "what is left is kept back");
        }
    }
}

#[test]
fn the_earlier_of_two_ends_counts_and_no_time_to_live_is_none() {
    let at = |seconds: u64| pellucid::framework::manifest::format_moment(1_790_000_000 + seconds as i64);
    for (ttl, expires, lasts) in [
        ("1h", Some(7200), false),
        ("3h", Some(3600), false),
        ("3h", Some(7200), true),
        ("0s", Some(60), true),
    ] {
        let mut spec = json!({"ttl": ttl});
        spec["expires"] = expires.map_or(Value::Null, |seconds| json!(at(seconds)));
        let mut case = cluster(json!([node("n", "4")]), json!([reservation("r", "4", &spec)]));
        case.core.now.monotonic += std::time::Duration::from_secs(5400);
        case.core.now.wall += std::time::Duration::from_secs(5400);
        case.settle();
        assert_eq!(text(status(&case, "r"), "/phase") == "Available", lasts, "{ttl} {expires:?}");
    }
}

/// Who owns a reservation by name is told of in no spec: two pods that are alike are told different things.
#[test]
fn an_owner_and_a_pod_like_it_count_by_the_reason_of_each() {
    let owned = json!({"owners": [{"object": {"namespace": "default", "name": "owner"}}],
        "allocatePolicy": "Restricted", "allocateOnce": false});
    let mut case = cluster(json!([node("n", "4")]), json!([reservation("r", "2", &owned)]));
    for (name, cpu) in [("filler", "1"), ("other", "2500m"), ("owner", "2500m")] {
        case.create_pod(&pod(name, "db", cpu));
    }
    case.settle();
    let codes = ["other", "owner"].map(|name| {
        let body = told(&mut case, &format!("/apis/v1/explain/pods/default/{name}"));
        text(&body, "/keyReason/code").to_owned()
    });
    assert_eq!(codes, ["InsufficientResource", "InsufficientBesideReservations"]);
    let body = told(&mut case, "/apis/v1/summary/pending");
    let counted = list(&body, "/rows").iter().map(|of| (text(of, "/code"), of["pods"].as_u64()));
    let mut counted: Vec<_> = counted.collect();
    counted.sort_unstable();
    assert_eq!(
        counted,
        [("InsufficientBesideReservations", Some(1)), ("InsufficientResource", Some(1))],
        "{body:#}"
    );
}
