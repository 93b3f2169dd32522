//! What people are told of queues: sentences of pods that wait, fixes, explanations with their rounds, and gauges.

use super::*;
use crate::common::reads::{ask, code_of, list, text, try_ask};

fn note(core: &mut Core, pod: &Pod) -> String {
    let path = format!("/apis/v1/explain/pods/{}/{}", pod.key.namespace, pod.key.name);
    let body = ask(core, &path);
    let notes = list(&body, "/notes");
    let note =
        notes.iter().find(|note| note["plugin"] == NAME).unwrap_or_else(|| panic!("no note: {body:#}"));
    text(note, "/text").to_owned()
}

fn fixes(core: &mut Core, pod: &Pod) -> Vec<Value> {
    let (namespace, name) = (&pod.key.namespace, &pod.key.name);
    let body = ask(core, &format!("/apis/v1/explain/pods/{namespace}/{name}/suggestions?max=8"));
    let fixes = list(&body, "/fixes").to_vec();
    assert!(fixes.iter().all(|fix| fix["verified"] == true), "{fixes:#?}");
    fixes
}

fn fix<'f>(fixes: &'f [Value], words: &str) -> &'f Value {
    let found = fixes.iter().find(|fix| text(fix, "/text") == words);
    found.unwrap_or_else(|| panic!("{words} is not in {fixes:#?}"))
}

fn waiting<'p>(core: &Core, pods: &'p [Pod]) -> &'p Pod {
    pods.iter().find(|pod| core.node_of(pod).is_none()).expect("one waits")
}

/// A core of twelve cores: queue `a` has a pod that is no member of its gang, `b` asks for all.
fn shared() -> (Core, Vec<Pod>, Vec<Pod>) {
    let mut core = two_queues(queue("a", 1), queue("b", 2));
    core.see_object(group("other", "a", 1));
    let mut a = members("a", 12);
    a.push(member("other", "z-other", 1000));
    let b = members("b", 12);
    core.see(&a[12]);
    core.run();
    see_all(&mut core, a.iter().chain(&b));
    core.run();
    (core, a, b)
}

#[test]
fn the_sentence_has_the_numbers_of_the_share() {
    let (mut core, a, b) = shared();
    let waits = waiting(&core, &a[..12]);
    let said = note(&mut core, waits);
    assert_eq!(
        said,
        "queue a: cpu allocated 4 >= deserved 4 (weight 1 of 4), the pod requests 1; b borrows 2; \
         freed when pods of a with some cpu end, or other queues request less"
    );
    // The verdict tells it too.
    let body = ask(&mut core, &format!("/apis/v1/explain/pods/ns/{}", waits.key.name));
    assert!(text(&body, "/summary").contains("queue a: cpu allocated 4 >= deserved 4"), "{body:#}");
    let waits = waiting(&core, &b);
    let said = note(&mut core, waits);
    assert!(said.contains("weight 2 of 4") && said.contains("a borrows 1"), "{said}");
}

#[test]
fn the_sentence_has_the_numbers_of_the_capability() {
    let mut core = two_queues(limited("a", 1, 3), queue("b", 1));
    let a = vec![member("a", "a-1", 2000), member("a", "a-2", 2000)];
    see_all(&mut core, &a);
    core.run();
    let waits = waiting(&core, &a);
    let said = note(&mut core, waits);
    assert_eq!(said, "queue a: cpu allocated 2 + 2 > capability 3; freed when pods of a with 1 cpu end");
    let fixes = fixes(&mut core, waits);
    let raised = fix(&fixes, "raise capability of cpu from 3 to 4 of queue a");
    let command = "kubectl patch queues.scheduling.incubator.k8s.io a --type=merge -p \
                   '{\"spec\":{\"capability\":{\"cpu\":\"4\"}}}'";
    assert_eq!(raised["parts"][0]["command"], command);
    assert_eq!(raised["parts"][0]["edit"]["applyObject"]["spec"]["capability"]["cpu"], "4");
    fix(&fixes, "request 1 of cpu instead of 2, all its containers together");
    let moved = fix(&fixes, "move PodGroup ns/a to queue b");
    let command = "kubectl -n ns patch podgroups.scheduling.incubator.k8s.io a --type=merge -p \
                   '{\"spec\":{\"queue\":\"b\"}}'";
    assert_eq!(moved["parts"][0]["command"], command);
    assert_eq!(moved["parts"][0]["edit"]["applyObject"]["spec"], json!({"minMember": 1, "queue": "b"}));
    assert!(fixes.iter().all(|fix| !text(fix, "/text").contains("weight")), "{fixes:#?}");
}

#[test]
fn a_pod_larger_than_the_capability_is_freed_by_nobody() {
    let mut core = two_queues(limited("a", 1, 3), queue("b", 1));
    let large = member("a", "a-1", 4000);
    core.see(&large);
    core.run();
    assert_eq!(note(&mut core, &large), "queue a: cpu allocated 0 + 4 > capability 3");
    let mut limits = queue("a", 1);
    limits.capability = [("pods".into(), 1)].into();
    let mut core = two_queues(limits, queue("b", 1));
    let two = members("a", 2);
    see_all(&mut core, &two);
    core.run();
    let waits = waiting(&core, &two);
    let said = note(&mut core, waits);
    assert_eq!(said, "queue a: pods allocated 1 + 1 > capability 1; freed when a pod of a ends");
}

#[test]
fn a_queue_without_weight_is_not_freed_by_pods_that_end() {
    let mut core = two_queues(queue("a", 0), queue("b", 1));
    let a = members("a", 1);
    see_all(&mut core, &a);
    core.run();
    let said = note(&mut core, &a[0]);
    assert_eq!(
        said,
        "queue a: cpu allocated 0 >= deserved 0 (weight 0 of 2), the pod requests 1; \
         with weight 0 it deserves nothing"
    );
    let fixes = fixes(&mut core, &a[0]);
    fix(&fixes, "raise weight from 0 to 1 of queue a");
}

#[test]
fn who_holds_more_than_it_deserves_is_named_to_those_who_are_owed() {
    let mut core = two_queues(queue("a", 1), queue("b", 1));
    let (a, b) = (members("a", 12), members("b", 3));
    see_all(&mut core, &a);
    core.run();
    assert_eq!(placed(&core, &a), 12, "nobody else asks");
    see_all(&mut core, &b);
    core.run();
    let said = note(&mut core, &b[0]);
    assert_eq!(
        said,
        "queue b: cpu allocated 0 < deserved 3, the pod requests 1; a holds 3 beyond what it deserves, and nobody takes \
         that back"
    );
}

#[test]
fn fixes_of_a_share_are_the_least_that_works() {
    let (mut core, a, _) = shared();
    let waits = waiting(&core, &a[..12]).clone();
    let fixes = fixes(&mut core, &waits);
    // Its pods hold the whole node, so more weight alone makes no room there.
    let texts: Vec<&str> = fixes.iter().map(|fix| text(fix, "/text")).collect();
    assert!(texts.iter().any(|text| text.contains("let pod ns/z-other go")), "{texts:?}");
    // With a larger node it does, and the least weight is the one that gives it the fifth core.
    core.see_node(&{
        let mut node = host("spare", 1000);
        node.allocatable.pods = 1000;
        node
    });
    core.run();
    assert_eq!(placed(&core, &a) + placed(&core, &members("b", 12)), 13);
}

#[test]
fn the_default_queue_needs_no_object_for_a_weight() {
    let mut core = two_queues(queue("a", 3), queue("b", 1));
    let held = members("a", 4);
    see_all(&mut core, &held);
    core.see_object(group("of-default", "", 1));
    let pods: Vec<Pod> = (0..10).map(|i| member("of-default", &format!("d-{i}"), 1000)).collect();
    see_all(&mut core, &pods);
    core.run();
    assert_eq!(placed(&core, &pods), 8, "a requests no more than 4");
    let late = members("a", 9);
    see_all(&mut core, &late[4..]);
    core.run();
    let waits = waiting(&core, &pods).clone();
    let said = note(&mut core, &waits);
    assert!(said.starts_with("queue default: cpu allocated 8 >= deserved 3 (weight 1 of 5)"), "{said}");
}

#[test]
fn a_queue_is_explained_with_its_rounds() {
    let (mut core, ..) = shared();
    let body = ask(&mut core, "/apis/v1/explain/queues/b");
    let said = text(&body, "/sentences/0");
    assert_eq!(
        said,
        "cpu: b holds 8 and deserves 8, requests 12; by its weight 2 of 4 its part is 6 of 12; it borrows 2 of the part of \
         default; the requests of the others keep it from more"
    );
    let share = &body["resources"][0];
    let amounts = ["total", "part", "deserved", "allocated", "borrowed", "lent"];
    assert_eq!(amounts.map(|key| text(share, &format!("/{key}"))), ["12", "6", "8", "8", "2", "0"]);
    assert_eq!((&share["limitedBy"], &share["isOverused"]), (&json!("share"), &json!(true)));
    let round = json!({"amount": "12", "weights": "3", "shares": {"a": "4", "b": "8"}, "excess": "0"});
    assert_eq!(share["rounds"], json!([round]));
    let of_default = ask(&mut core, "/apis/v1/explain/queues/default");
    let lends = &of_default["resources"][0]["lendsTo"];
    assert_eq!(lends, &json!({"a": "1", "b": "2"}), "{of_default:#}");
    assert_eq!(read(&core, "queues/:name", "b")["borrowed"], json!({"cpu": "2"}));
    assert_eq!(code_of(try_ask(&mut core, "/apis/v1/explain/queues/nobody")), "QueueNotFound");

    let mut without = core_with(12);
    let body = ask(&mut without, "/apis/v1/explain/queues/default");
    assert!(text(&body, "/sentences/0").starts_with("there is no Queue"), "{body:#}");
}

/// Reads where a pod stands with its queue.
fn stands(core: &mut Core, pod: &Pod) -> Value {
    ask(core, &format!("/apis/v1/explain/pods/{}/{}/queue", pod.key.namespace, pod.key.name))
}

#[test]
fn where_a_pod_stands_has_the_share_and_who_has_the_rest() {
    let (mut core, a, b) = shared();
    let waits = waiting(&core, &a[..12]).clone();
    let body = stands(&mut core, &waits);
    assert_eq!(
        (&body["queue"], &body["podGroup"], &body["exists"]),
        (&json!("a"), &json!("ns/a"), &json!(true))
    );
    assert_eq!((&body["code"], &body["text"]), (&json!("QueueOverused"), &json!(note(&mut core, &waits))));
    let holds = |name: &str| json!({"pod": format!("ns/{name}"), "allocated": "1"});
    let consumers = ["a-00", "a-01", "a-02", "z-other"].map(holds);
    let numbers = json!({
        "resource": "cpu", "requested": "1", "blockedBy": "deserved", "allocated": "4", "ownGang": "0", "deserved": "4",
        "request": "13", "borrowers": {"b": "2"},
        "consumers": consumers,
    });
    assert_eq!(body["resources"], json!([numbers]), "{body:#}");
    // The explanation of the pod leads there.
    let explained = ask(&mut core, &format!("/apis/v1/explain/pods/ns/{}", waits.key.name));
    assert_eq!(explained["notes"][0]["more"], format!("/apis/v1/explain/pods/ns/{}/queue", waits.key.name));
    // A pod that is placed stands as if it had no place.
    let held = b.iter().find(|pod| core.node_of(pod).is_some()).expect("one is placed").clone();
    let body = stands(&mut core, &held);
    assert_eq!((&body["code"], &body["resources"][0]["allocated"]), (&Value::Null, &json!("7")), "{body:#}");
    let path = "/apis/v1/explain/pods/ns/nobody/queue";
    assert_eq!(code_of(try_ask(&mut core, path)), "PodNotFound");
}

#[test]
fn where_a_pod_stands_has_its_gang_its_capability_and_those_who_hold_too_much() {
    let mut limits = limited("a", 1, 3);
    limits.capability = [("cpu".into(), 3000), ("pods".into(), 2)].into();
    let mut core = two_queues(limits, queue("b", 1));
    let (a, b) = (members("a", 3), members("b", 12));
    see_all(&mut core, &b);
    core.run();
    see_all(&mut core, &a[..1]);
    core.run();
    let body = stands(&mut core, &a[0]);
    assert_eq!(body["code"], Value::Null, "the queue takes it, and no node has room: {body:#}");
    assert_eq!(body["resources"][0]["holders"], json!({"b": "1"}), "{body:#}");
    for pod in &b[..6] {
        core.delete(pod);
    }
    core.run_after(30 * SECOND);
    see_all(&mut core, &a[1..]);
    core.run_after(30 * SECOND);
    let waits = waiting(&core, &a).clone();
    let body = stands(&mut core, &waits);
    assert_eq!(body["code"], "QueueCapabilityExceeded", "{body:#}");
    let row = |resource: &str| {
        let rows = list(&body, "/resources");
        rows.iter().find(|row| row["resource"] == resource).unwrap_or_else(|| panic!("{body:#}")).clone()
    };
    let (cpu, pods) = (row("cpu"), row("pods"));
    assert_eq!(
        (&cpu["blockedBy"], &cpu["allocated"], &cpu["capability"]),
        (&Value::Null, &json!("2"), &json!("3"))
    );
    assert_eq!(
        (&pods["blockedBy"], &pods["allocated"], &pods["capability"]),
        (&json!("capability"), &json!("2"), &json!("2"))
    );
    assert_eq!((&pods["deserved"], &pods["consumers"]), (&Value::Null, &Value::Null), "{pods}");
}

#[test]
fn a_pod_without_a_queue_or_of_a_missing_one_says_so() {
    let mut core = two_queues(queue("a", 1), queue("b", 1));
    core.see_object(group("lost", "nobody", 1));
    let (lost, plain) = (member("lost", "lost-0", 1000), single("plain", 1000));
    see_all(&mut core, [&lost, &plain]);
    core.run();
    let body = stands(&mut core, &lost);
    assert_eq!(
        (&body["queue"], &body["exists"], &body["resources"]),
        (&json!("nobody"), &json!(false), &json!([]))
    );
    let body = stands(&mut core, &plain);
    assert_eq!(
        (&body["queue"], &body["exists"], &body["resources"]),
        (&Value::Null, &json!(false), &json!([]))
    );
    // Without any Queue there is nothing to stand with.
    let mut without = core_with(12);
    let pod = shadow("s", 1000);
    without.see(&pod);
    let body = stands(&mut without, &pod);
    assert_eq!(
        (&body["queue"], &body["exists"], &body["resources"]),
        (&json!("default"), &json!(true), &json!([]))
    );
}

#[test]
fn gauges_have_the_amounts_of_each_queue() {
    let (core, ..) = shared();
    let factory = registry().into_iter().find(|f| f.name() == NAME).expect("it is registered");
    let view = View::new(core.scheduler.cluster());
    let samples = |name: &str| {
        let family = factory.gauges().iter().find(|family| family.name == name).expect("a gauge");
        let samples = (family.read)(view);
        assert!(samples.iter().all(|(labels, _)| labels.len() == family.labels.len()), "{name}");
        samples
    };
    let amounts = samples("pellucid_proportion_queue");
    let of = |queue: &str, kind: &str| {
        let labels = [queue, "cpu", kind].map(str::to_owned);
        amounts.iter().find(|(of, _)| of[..] == labels).map(|(_, amount)| *amount)
    };
    assert_eq!(
        (of("b", "deserved"), of("b", "allocated"), of("b", "request")),
        (Some(8.0), Some(8.0), Some(12.0))
    );
    assert_eq!((of("a", "request"), of("a", "capability")), (Some(13.0), None));
    let weights = samples("pellucid_proportion_queue_weight");
    assert_eq!(weights.iter().map(|(_, weight)| *weight).collect::<Vec<_>>(), [1.0, 2.0, 1.0]);
    let pending = samples("pellucid_proportion_queue_pending_pods");
    assert_eq!(pending.iter().map(|(_, pods)| *pods).collect::<Vec<_>>(), [9.0, 4.0, 0.0]);
    assert_eq!(samples("pellucid_proportion_queues_left_out"), [(Vec::new(), 0.0)]);

    let many = {
        let mut core = core_with(12);
        (0..250).for_each(|n| see_queue(&mut core, queue(&format!("q{n:03}"), 1)));
        core
    };
    let view = View::new(many.scheduler.cluster());
    let counts = ["pellucid_proportion_queue_weight", "pellucid_proportion_queues_left_out"].map(|name| {
        let family = factory.gauges().iter().find(|family| family.name == name).expect("a gauge");
        (family.read)(view)
    });
    assert_eq!((counts[0].len(), counts[1][0].1), (200, 51.0));
}

#[test]
fn a_gang_that_its_queue_never_takes_is_not_told_to_wait() {
    for (queue_of_gang, remedy) in [
        (
            limited("a", 1, 3),
            "Raise the queue's capability, request less, or move the PodGroup to another queue.",
        ),
        (queue("a", 0), "Raise the queue's weight, or move the PodGroup to another queue."),
    ] {
        let mut core = two_queues(queue_of_gang, queue("b", 1));
        core.see_object(group("gang", "a", 2));
        let gang = ["x", "y"].map(|name| member("gang", name, 2000));
        see_all(&mut core, &gang);
        core.run();
        let body = ask(&mut core, "/apis/v1/explain/gangs/ns/gang");
        assert_eq!((&body["outlook"]["code"], text(&body, "/verdict/remedy")), (&json!("NeverFits"), remedy));
    }
}
