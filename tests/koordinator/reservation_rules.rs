//! Rules of Reservation that the recordings do not have, or in which theirs is wrong.

use pellucid::framework::View;
use pellucid::model::PodKey;
use pellucid::recording::Outcome;
use serde_json::{Value, json};

use crate::reservation_cluster::{Case, text};

pub(crate) fn node(name: &str, cpu: &str) -> Value {
    let offer = json!({"cpu": cpu, "memory": "64Gi", "pods": "110"});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": offer}})
}

pub(crate) fn containers(cpu: &str) -> Value {
    json!([{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}])
}

pub(crate) fn reservation(name: &str, cpu: &str, more: &Value) -> Value {
    let mut made = json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": name},
        "spec": {
            "owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}],
            "template": {"spec": {"schedulerName": "koord-scheduler", "containers": containers(cpu)}},
        },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        made["spec"][field.as_str()] = value.clone();
    }
    made
}

pub(crate) fn pod(name: &str, app: &str, cpu: &str) -> Value {
    let spec = json!({"schedulerName": "koord-scheduler", "containers": containers(cpu)});
    json!({
        "apiVersion": "v1", "kind": "Pod", "spec": spec,
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}, "annotations": {}},
    })
}

pub(crate) fn cluster(nodes: Value, reservations: Value) -> Case {
    Case::new(&json!({"id": "rules", "objects": {"nodes": nodes, "pods": [], "reservations": reservations}}))
}

/// Creates a pod. Returns its node and the code of the first reason for which it has none.
pub(crate) fn try_pod(case: &mut Case, pod: &Value) -> (Option<String>, Option<String>) {
    let key = case.create_pod(pod);
    case.settle();
    let scheduler = &case.core.scheduler;
    let id = scheduler.cluster().find_pod(&key).expect("it is known");
    let node = case.pods[&key]["spec"]["nodeName"].as_str().map(str::to_owned);
    let code = match scheduler.verdict(id).expect("it was tried").outcome {
        Outcome::Refused(refusal) => {
            refusal.reasons().next().map(|(reason, _)| reason.code.as_str().to_owned())
        }
        _ => None,
    };
    (node, code)
}

pub(crate) fn status<'c>(case: &'c Case, name: &str) -> &'c Value {
    &case.reservations[name]["status"]
}

/// Returns the CPU that is free on a node, in thousandths of a core.
pub(crate) fn free(case: &Case, node: &str) -> i64 {
    let view = View::new(case.core.scheduler.cluster());
    let at = view.cluster().find_node(&node.into()).expect("it is there");
    view.columns().free(at, pellucid::cluster::columns::CPU)
}

pub(crate) fn is_on(node: &str) -> (Option<String>, Option<String>) {
    (Some(node.to_owned()), None)
}

pub(crate) fn is_refused(code: &str) -> (Option<String>, Option<String>) {
    (None, Some(code.to_owned()))
}

#[test]
fn what_owners_overflow_is_not_taken_from_other_reservations() {
    let others = json!({
        "owners": [{"object": {"name": "nobody"}}], "allocatePolicy": "Aligned", "allocateOnce": false,
    });
    let own = json!({"allocatePolicy": "Aligned", "allocateOnce": false});
    let reservations = json!([reservation("mine", "2", &own), reservation("theirs", "6", &others)]);
    let mut case = cluster(json!([node("n", "10")]), reservations);
    assert_eq!(free(&case, "n"), 2000);
    assert_eq!(try_pod(&mut case, &pod("a", "web", "4")), is_on("n"));
    assert_eq!(free(&case, "n"), 0, "2 of the reservation and the 2 that were free");
    assert_eq!(text(&status(&case, "mine")["allocated"]["cpu"]), "4");
    let (on, code) = try_pod(&mut case, &pod("b", "web", "1"));
    assert_eq!((on, code.as_deref()), (None, Some("InsufficientResource")));
    case.delete_pod(&PodKey::new("default", "a"));
    case.settle();
    assert_eq!(free(&case, "n"), 2000, "the reservation has its room again");
}

#[test]
fn one_owner_uses_up_a_reservation_and_the_rest_is_free() {
    let mut case = cluster(json!([node("n", "4")]), json!([reservation("r", "4", &json!({}))]));
    assert_eq!(try_pod(&mut case, &pod("other", "db", "1")), is_refused("InsufficientResource"));
    assert_eq!(try_pod(&mut case, &pod("owner", "web", "1")), is_on("n"));
    assert_eq!(text(&status(&case, "r")["phase"]), "Succeeded");
    // What was refused has its turn after a backoff.
    case.core.wait(std::time::Duration::from_secs(30));
    case.settle();
    assert_eq!(free(&case, "n"), 2000);
}

#[test]
fn refusals_name_their_reasons() {
    let restricted = json!({"allocatePolicy": "Restricted", "allocateOnce": false});
    let mut case = cluster(json!([node("n", "10")]), json!([reservation("r", "2", &restricted)]));
    let wanting = |name: &str, app: &str, cpu: &str, annotation: &str, value: &str| {
        let mut pod = pod(name, app, cpu);
        let key = format!("scheduling.koordinator.sh/{annotation}");
        pod["metadata"]["annotations"][key] = json!(value);
        pod
    };
    for (pod, code) in [
        (wanting("a", "web", "3", "reservation-affinity", "{}"), "InsufficientReservation"),
        (wanting("b", "db", "1", "reservation-affinity", "{}"), "NoReservationMatches"),
        (wanting("c", "web", "1", "reservation-affinity", "{"), "ReservationWishUnreadable"),
        (wanting("d", "web", "1", "reservation-affinity", r#"{"name": "q"}"#), "NoReservationMatches"),
        (wanting("e", "web", "11", "reservation-affinity", r#"{"name": "r"}"#), "InsufficientResource"),
    ] {
        assert_eq!(try_pod(&mut case, &pod), is_refused(code), "{pod}");
    }
    // Memory differs; a resource that neither has does not end the comparison.
    let exact = r#"{"resourceNames": ["example.com/none", "cpu"]}"#;
    let unequal = wanting("f", "web", "1", "exact-match-reservation", exact);
    assert_eq!(try_pod(&mut case, &unequal), is_on("n"));
    assert!(status(&case, "r")["currentOwners"].is_null(), "the pod went beside the reservation");
    let equal = wanting("g", "web", "2", "exact-match-reservation", exact);
    assert_eq!(try_pod(&mut case, &equal), is_on("n"));
    assert_eq!(text(&status(&case, "r")["currentOwners"][0]["name"]), "g");
}

#[test]
fn reservations_that_cannot_be_placed_say_why_and_hold_nothing() {
    let aligned = json!({"allocatePolicy": "Aligned"});
    let mut unowned = reservation("unowned", "1", &json!({}));
    unowned["spec"]["owners"] = json!([]);
    let mut misspelt = reservation("misspelt", "1", &json!({}));
    misspelt["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("one");
    let ahead = json!({"preAllocation": true, "preAllocationPolicy": {"mode": "Cluster"}});
    let ahead = reservation("ahead", "1", &ahead);
    let conflicting = reservation("conflicting", "1", &json!({}));
    let all = json!([reservation("first", "2", &aligned), unowned, misspelt, ahead, conflicting]);
    let case = cluster(json!([node("n", "10")]), all);
    assert_eq!(free(&case, "n"), 8000);
    for (name, said) in [
        ("unowned", "spec.owners: must name who may use the reservation ([])"),
        ("misspelt", "spec.template.spec.containers[0].resources.requests.cpu: "),
        ("ahead", "spec.preAllocationPolicy.mode: must be Default"),
        ("conflicting", "0/1 nodes are available: 1 node(s) reservation allocate policy conflict."),
    ] {
        let status = status(&case, name);
        assert_eq!(text(&status["phase"]), "Pending", "{name}: {status}");
        let message = text(&status["conditions"][0]["message"]);
        assert!(message.starts_with(said), "{name}: {message}");
    }
    assert_eq!(case.read("state", "")["problems"].as_object().map(serde_json::Map::len), Some(3));
}

#[test]
fn reservations_of_which_none_is_large_enough_keep_what_they_have() {
    let own = json!({"allocatePolicy": "Aligned", "allocateOnce": false});
    let both = json!([reservation("a", "2", &own), reservation("b", "2", &own)]);
    let mut case = cluster(json!([node("n", "4")]), both);
    assert_eq!(try_pod(&mut case, &pod("large", "web", "3")), is_refused("InsufficientBesideReservations"));
    assert_eq!(try_pod(&mut case, &pod("small", "web", "2")), is_on("n"));
    assert_eq!(try_pod(&mut case, &pod("next", "web", "2")), is_on("n"));
    assert_eq!(free(&case, "n"), 0);
}

#[test]
fn who_stands_where_is_read_back_from_the_objects() {
    let own = json!({"allocatePolicy": "Aligned", "allocateOnce": false});
    let mut case = cluster(json!([node("n", "4")]), json!([reservation("r", "2", &own)]));
    assert_eq!(try_pod(&mut case, &pod("a", "web", "1")), is_on("n"));
    let before = (free(&case, "n"), case.read("nodeReservations/:nodeName", "n"));
    for order in [[true, false], [false, true]] {
        let again = case.restarted(&[node("n", "4")], order);
        assert_eq!((free(&again, "n"), again.read("nodeReservations/:nodeName", "n")), before);
    }
}

pub(crate) fn of_priority(mut pod: Value, priority: i32) -> Value {
    pod["spec"]["priority"] = json!(priority);
    pod
}

#[test]
fn nobody_is_evicted_for_room_that_a_pod_has_reserved() {
    let own = json!({"allocatePolicy": "Aligned", "allocateOnce": false});
    let mut case = cluster(json!([node("n", "8")]), json!([reservation("r", "4", &own)]));
    assert_eq!(try_pod(&mut case, &of_priority(pod("filler", "db", "4"), 0)), is_on("n"));
    assert_eq!(try_pod(&mut case, &of_priority(pod("owner", "web", "4"), 100)), is_on("n"));
    assert_eq!(case.evicted, []);
    case.delete_pod(&PodKey::new("default", "owner"));
    case.settle();
    // What others have reserved is no room either, so nobody is evicted in vain.
    assert_eq!(try_pod(&mut case, &of_priority(pod("stranger", "db", "6"), 100)).0, None);
    assert_eq!(case.evicted, []);
    // The reservation and the node together are too small while the filler is there.
    try_pod(&mut case, &of_priority(pod("large", "web", "6"), 100));
    assert_eq!(case.evicted, [PodKey::new("default", "filler")]);
    let large = &case.pods[&PodKey::new("default", "large")];
    assert_eq!(large["spec"]["nodeName"], "n", "it goes there at once");
    assert_eq!(free(&case, "n"), 2000);
}

#[test]
fn nobody_is_evicted_for_what_a_restricted_reservation_lacks() {
    let own = json!({"allocatePolicy": "Restricted", "allocateOnce": false});
    let mut case = cluster(json!([node("n", "8")]), json!([reservation("r", "4", &own)]));
    assert_eq!(try_pod(&mut case, &of_priority(pod("filler", "db", "4"), 0)), is_on("n"));
    let mut wanting = of_priority(pod("owner", "web", "6"), 100);
    wanting["metadata"]["annotations"]["scheduling.koordinator.sh/reservation-affinity"] = json!("{}");
    assert_eq!(try_pod(&mut case, &wanting).0, None);
    assert_eq!(case.evicted, []);
}

#[test]
fn a_reservation_is_evicted_for_a_pod_of_higher_priority_where_the_argument_says_so() {
    for is_allowed in [false, true] {
        let mut held = reservation("r", "4", &json!({"allocateOnce": false, "allocatePolicy": "Aligned"}));
        held["metadata"]["labels"] = json!({"koordinator.sh/priority": "50"});
        let mut kept = held.clone();
        kept["metadata"] = json!({"name": "kept", "labels": {"koordinator.sh/priority": "500"}});
        let objects = json!({"nodes": [node("n", "8")], "reservations": [held, kept]});
        let args = json!({"enablePreemption": is_allowed});
        let mut case = Case::new(&json!({"id": "preempted", "objects": objects, "args": args}));
        let (on, _) = try_pod(&mut case, &of_priority(pod("urgent", "db", "3"), 100));
        assert_eq!(case.evicted, [], "the API server has no such pod");
        assert_eq!(text(&status(&case, "kept")["phase"]), "Available");
        if !is_allowed {
            assert_eq!((on, text(&status(&case, "r")["phase"])), (None, "Available"));
            continue;
        }
        assert_eq!(text(&status(&case, "r")["phase"]), "Failed");
        let ready = &status(&case, "r")["conditions"][1];
        assert_eq!((text(&ready["status"]), text(&ready["reason"])), ("False", "Preempted"));
        assert!(text(&ready["message"]).starts_with("Preempted by pod urgent-uid on node n"), "{ready}");
        let urgent = &case.pods[&PodKey::new("default", "urgent")];
        assert_eq!(urgent["spec"]["nodeName"], "n", "its room is the pod's");
        assert_eq!(free(&case, "n"), 1000);
    }
}

/// Several reservations of one node, and pods that ask for none by name: each owner takes one, and nobody else any.
#[test]
fn each_owner_takes_one_of_several_reservations_of_a_node() {
    let aligned = json!({"allocatePolicy": "Aligned"});
    let all: Vec<Value> = (0..3).map(|i| reservation(&format!("r{i}"), "2", &aligned)).collect();
    let mut case = cluster(json!([node("n", "7")]), json!(all));
    let refused = try_pod(&mut case, &pod("stranger", "db", "2"));
    assert_eq!(refused, is_refused("InsufficientResource"), "one core is free");
    case.delete_pod(&PodKey::new("default", "stranger"));
    for i in 0..3 {
        assert_eq!(try_pod(&mut case, &pod(&format!("owner-{i}"), "web", "2")), is_on("n"));
    }
    let used: Vec<&str> =
        (0..3).map(|i| text(&status(&case, &format!("r{i}"))["currentOwners"][0]["name"])).collect();
    assert_eq!(used, ["owner-0", "owner-1", "owner-2"]);
    assert_eq!(free(&case, "n"), 1000);
    assert_eq!(try_pod(&mut case, &pod("late", "web", "2")), is_refused("InsufficientResource"));
}

#[test]
fn each_of_a_thousand_owners_finds_its_own_among_a_thousand_reservations() {
    let nodes: Vec<Value> = (0..50).map(|i| node(&format!("n{i}"), "44")).collect();
    let of = |i: usize| {
        let mut made = reservation(&format!("r{i:03}"), "2", &json!({"allocatePolicy": "Restricted"}));
        made["spec"]["owners"] = json!([{"object": {"namespace": "default", "name": format!("p{i:03}")}}]);
        made
    };
    let reservations: Vec<Value> = (0..1000).map(of).collect();
    let mut case = cluster(json!(nodes), json!(reservations));
    for i in (0..1000).rev() {
        case.create_pod(&pod(&format!("p{i:03}"), "web", "2"));
    }
    case.settle();
    for i in 0..1000 {
        let name = format!("r{i:03}");
        assert_eq!(text(&status(&case, &name)["phase"]), "Succeeded", "{name}");
        assert_eq!(text(&status(&case, &name)["currentOwners"][0]["name"]), format!("p{i:03}"));
        let pod = &case.pods[&PodKey::new("default", &format!("p{i:03}"))];
        assert_eq!(pod["spec"]["nodeName"], status(&case, &name)["nodeName"]);
    }
}

#[test]
fn a_hundred_owners_share_the_hundred_reservations_that_each_may_use() {
    let nodes: Vec<Value> = (0..50).map(|i| node(&format!("n{i}"), "5")).collect();
    let own = json!({"allocatePolicy": "Restricted", "allocateOnce": false});
    let of = |i: usize| reservation(&format!("r{i:03}"), "2", &own);
    let reservations: Vec<Value> = (0..100).map(of).collect();
    let mut case = cluster(json!(nodes), json!(reservations));
    for i in 0..100 {
        case.create_pod(&pod(&format!("p{i:03}"), "web", "2"));
    }
    case.settle();
    for i in 0..100 {
        let status = status(&case, &format!("r{i:03}"));
        assert_eq!(status["currentOwners"].as_array().map(Vec::len), Some(1), "r{i:03}: {status}");
    }
    assert!((0..50).all(|i| free(&case, &format!("n{i}")) == 1000), "nothing is counted twice");
    // The next one has no reservation left, and no room beside them.
    assert_eq!(try_pod(&mut case, &pod("more", "web", "2")), is_refused("InsufficientResource"));
}

/// Returns a Restricted reservation of CPU and 1 GiB with these restricted options.
fn with_options(name: &str, cpu: &str, resources: &Value) -> Value {
    let mut made =
        reservation(name, cpu, &json!({"allocatePolicy": "Restricted", "allocateOnce": false, "ttl": "0s"}));
    let options = json!({"resources": resources}).to_string();
    made["metadata"]["annotations"] =
        json!({"scheduling.koordinator.sh/reservation-restricted-options": options});
    made
}

fn of_cpu(name: &str, cpu: &str) -> Value {
    let mut made = pod(name, "web", cpu);
    made["spec"]["containers"][0]["resources"]["requests"] = json!({"cpu": cpu});
    made
}

#[test]
fn a_pod_that_asks_for_nothing_restricted_goes_beside_the_reservation() {
    let held = with_options("r", "4", &json!(["memory"]));
    let mut case = cluster(json!([node("n", "8")]), json!([held]));
    assert_eq!(try_pod(&mut case, &of_cpu("beside", "3")), is_on("n"));
    assert!(status(&case, "r")["currentOwners"].is_null(), "the room is not for pods that ask for CPU alone");
    assert_eq!(free(&case, "n"), 1000);
    assert_eq!(try_pod(&mut case, &of_cpu("large", "2")), is_refused("InsufficientBesideReservations"));
    let mut wanting = of_cpu("wanting", "2");
    wanting["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/reservation-affinity": "{}"});
    assert_eq!(try_pod(&mut case, &wanting), is_on("n"));
    assert_eq!(text(&status(&case, "r")["currentOwners"][0]["name"]), "wanting");
}

#[test]
fn options_that_are_not_reserved_do_not_count() {
    for (options, is_limited) in [
        (json!(["example.com/none"]), true),
        (json!([]), true),
        (json!(["example.com/none", "cpu"]), true),
        (json!(["example.com/none", "memory"]), false),
    ] {
        let mut case = cluster(json!([node("n", "8")]), json!([with_options("r", "4", &options)]));
        let mut wanting = pod("p", "web", "5");
        wanting["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/reservation-affinity": "{}"});
        let (on, _) = try_pod(&mut case, &wanting);
        assert_eq!(on.is_none(), is_limited, "{options}");
    }
}

/// Returns the messages of the reasons for which a pod is refused.
fn reasons(case: &mut Case, pod: &Value) -> Vec<String> {
    let key = case.create_pod(pod);
    case.settle();
    let scheduler = &case.core.scheduler;
    let id = scheduler.cluster().find_pod(&key).expect("it is known");
    let Outcome::Refused(refusal) = scheduler.verdict(id).expect("it was tried").outcome else {
        panic!("{key} is placed");
    };
    let mut said: Vec<String> = refusal.reasons().map(|(reason, _)| reason.message()).collect();
    said.sort();
    said
}

#[test]
fn only_a_pod_that_must_have_a_reservation_is_told_what_reservations_lack() {
    let own = |policy: &str| json!({"allocatePolicy": policy, "allocateOnce": false, "ttl": "0s"});
    let mut case = cluster(json!([node("n", "10")]), json!([reservation("r", "6", &own("Restricted"))]));
    assert_eq!(reasons(&mut case, &pod("free", "web", "7")), ["Insufficient cpu by node"]);
    let both = json!([reservation("a", "2", &own("Restricted")), reservation("b", "2", &own("Aligned"))]);
    let mut case = cluster(json!([node("n", "4")]), both);
    let mut wanting = pod("p", "web", "3");
    wanting["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/reservation-affinity": "{}"});
    let union = ["Insufficient cpu by node", "Reservation(s) Insufficient cpu"];
    assert_eq!(reasons(&mut case, &wanting), union);
    // Memory alone would not do: the pod cannot use r, and beside it there is too little CPU. The other one is not for it.
    let mut kept = with_options("kept", "0", &json!(["ephemeral-storage"]));
    kept["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] =
        json!({"memory": "60Gi", "ephemeral-storage": "1Gi"});
    let mut offering = node("n", "4");
    offering["status"]["allocatable"]["ephemeral-storage"] = json!("1Gi");
    let mut case = cluster(json!([offering]), json!([reservation("r", "2", &own("Restricted")), kept]));
    let mut large = pod("large", "web", "3");
    large["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!("10Gi");
    let beside = ["Insufficient cpu by node", "Insufficient memory by node"];
    assert_eq!(reasons(&mut case, &large), beside);
}

/// Returns a pod of CPU 1 with this reservation-affinity.
fn wanting(name: &str, affinity: &Value) -> Value {
    let mut made = pod(name, "web", "1");
    let annotations = json!({"scheduling.koordinator.sh/reservation-affinity": affinity.to_string()});
    made["metadata"]["annotations"] = annotations;
    made
}

#[test]
fn whoever_names_a_reservation_says_nothing_else_of_it() {
    let closed = json!({
        "allocateOnce": false, "unschedulable": true, "ttl": "0s",
        "taints": [{"key": "kept", "value": "yes", "effect": "NoSchedule"}],
    });
    let mut case = cluster(json!([node("n", "8")]), json!([reservation("r", "4", &closed)]));
    let elsewhere = json!({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["other"]}]});
    let all = json!({
        "name": "r",
        "reservationSelector": {"pool": "other"},
        "requiredDuringSchedulingIgnoredDuringExecution": {"reservationSelectorTerms": [elsewhere]},
    });
    assert_eq!(try_pod(&mut case, &wanting("named", &all)), is_on("n"));
    assert_eq!(text(&status(&case, "r")["currentOwners"][0]["name"]), "named");
}

#[test]
fn of_several_mismatches_the_first_in_koordinators_order_is_counted() {
    let named = |name: &str, more: &Value| reservation(name, "1", more);
    let taints = json!([{"key": "kept", "value": "yes", "effect": "NoExecute"}]);
    let all = json!([
        named("closed", &json!({"ttl": "0s", "unschedulable": true, "taints": taints})),
        named("tainted", &json!({"ttl": "0s", "taints": taints})),
        named("plain", &json!({"ttl": "0s"})),
    ]);
    let mut case = cluster(json!([node("n", "8")]), all);
    let mut seeking = wanting("p", &json!({"reservationSelector": {"pool": "other"}}));
    let exact = json!({"resourceNames": ["memory"]}).to_string();
    seeking["metadata"]["annotations"]["scheduling.koordinator.sh/exact-match-reservation"] = json!(exact);
    let key = case.create_pod(&seeking);
    case.settle();
    let said = case.sentence(&key).expect("a sentence");
    let said: std::collections::BTreeSet<&str> = said.split(", ").collect();
    let expected = [
        "1 Reservation(s) didn't match affinity rules",
        "1 Reservation(s) had untolerated taint {kept: yes}",
        "1 Reservation(s) is unschedulable",
        "3 Reservation(s) matched owner total",
    ];
    assert_eq!(said, expected.into());
}

#[test]
fn empty_annotations_are_an_affinity_and_otherwise_absent() {
    let mut held = with_options("r", "4", &json!([]));
    held["metadata"]["annotations"]["scheduling.koordinator.sh/reservation-restricted-options"] = json!("");
    let mut case = cluster(json!([node("n", "8")]), json!([held]));
    assert_eq!(text(&status(&case, "r")["phase"]), "Available");
    let saying = |name: &str, app: &str, annotation: &str| {
        let mut made = pod(name, app, "1");
        made["metadata"]["annotations"][format!("scheduling.koordinator.sh/{annotation}")] = json!("");
        made
    };
    let other = saying("other", "db", "reservation-affinity");
    assert_eq!(try_pod(&mut case, &other), is_refused("NoReservationMatches"));
    assert_eq!(try_pod(&mut case, &saying("exact", "web", "exact-match-reservation")), is_on("n"));
    assert_eq!(text(&status(&case, "r")["currentOwners"][0]["name"]), "exact");
    let nothing = wanting("nothing", &json!({"requiredDuringSchedulingIgnoredDuringExecution": {}}));
    assert_eq!(try_pod(&mut case, &nothing), is_refused("NoReservationMatches"));
}

#[test]
fn what_the_arguments_ignore_is_not_compared() {
    const GPU: &str = "example.com/gpu";
    let with = |mut containers: Value, amount: &str| {
        containers[0]["resources"]["requests"][GPU] = json!(amount);
        containers
    };
    for (args, is_placed) in [
        (json!({}), false),
        (json!({"ignoredResources": [GPU]}), true),
        (json!({"ignoredResourceGroups": ["example.com"]}), true),
        (json!({"ignoredResourceGroups": ["example.org"]}), false),
    ] {
        let mut large = node("n", "8");
        large["status"]["allocatable"][GPU] = json!("4");
        let mut held = reservation("r", "2", &json!({"allocatePolicy": "Restricted", "ttl": "0s"}));
        held["spec"]["template"]["spec"]["containers"] = with(containers("2"), "1");
        let objects = json!({"nodes": [large], "reservations": [held]});
        let mut case = Case::new(&json!({"id": "ignored", "objects": objects, "args": args}));
        let mut owner = wanting("p", &json!({}));
        owner["spec"]["containers"] = with(containers("1"), "2");
        assert_eq!(try_pod(&mut case, &owner).0.is_some(), is_placed, "{args}");
    }
}
