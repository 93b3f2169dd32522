//! kube-batch's Queues: shares by weight, capability, gangs, shadow groups, best-effort pods, and what wakes pods.

mod advice;
mod claims;
mod histories;

use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::framework::View;
use pellucid::framework::endpoint::{PathParams, ReadContext};
use pellucid::framework::list::List;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::gang::{Dialect, GangDeclaration, GangTerms, PodGroup, Queue};
use pellucid::model::selector::Labels;
use pellucid::model::{GangKey, Object, ObjectKind, Pod};
use pellucid::plugins::proportion::NAME;
use pellucid::plugins::registry;
use pellucid::queue::QueueStage;
use pellucid::recording::Outcome;
use serde_json::{Value, json};

use crate::common::driver::Core;
use crate::common::made::{self, mark, on};
use crate::common::reads::{ask, list};
use crate::gangs::made::{SECOND, host, single, terms};

const GROUP_NAME: &str = "scheduling.k8s.io/group-name";

/// Makes a core with one node of this many cores.
fn core_with(cores: i64) -> Core {
    let mut node = host("a", cores * 1000);
    node.allocatable.pods = 1000;
    made::core_with(&[node])
}

fn queue(name: &str, weight: i64) -> Queue {
    Queue { name: name.into(), weight: Some(weight), ..Queue::default() }
}

fn limited(name: &str, weight: i64, cores: i64) -> Queue {
    Queue { capability: [("cpu".into(), cores * 1000)].into(), ..queue(name, weight) }
}

fn group(name: &str, queue: &str, min: u32) -> Object {
    Object::PodGroup(PodGroup {
        kind: ObjectKind::PodGroupIncubator,
        key: GangKey::new("ns", name),
        terms: terms(min),
        queue: queue.into(),
        ..PodGroup::default()
    })
}

/// Makes a pod of a PodGroup.
fn member(group: &str, name: &str, milli_cpu: i64) -> Pod {
    let mark = mark(GangKey::new("ns", group), GangTerms::default());
    let mark = GangDeclaration { dialect: Dialect::KubeBatch, needs_group: true, ..mark };
    let mut pod = Pod { gang: Some(Arc::new(mark)), ..single(name, milli_cpu) };
    let spec = Arc::make_mut(&mut pod.spec);
    spec.namespace = "ns".into();
    spec.annotations = Labels::new([(GROUP_NAME.into(), group.into())]);
    pod
}

/// Makes pods of one core each.
fn members(group: &str, n: usize) -> Vec<Pod> {
    (0..n).map(|i| member(group, &format!("{group}-{i:02}"), 1000)).collect()
}

/// Makes a pod of the scheduler name `kube-batch` without a PodGroup, as the decoder does.
fn shadow(name: &str, milli_cpu: i64) -> Pod {
    let mark = mark(GangKey::new("ns", &format!("uid-{name}")), terms(1));
    let mark = GangDeclaration { dialect: Dialect::KubeBatch, is_shadow: true, ..mark };
    let mut pod = Pod { gang: Some(Arc::new(mark)), ..single(name, milli_cpu) };
    Arc::make_mut(&mut pod.spec).has_shadow_group = true;
    pod
}

fn see_queue(core: &mut Core, queue: Queue) {
    core.see_object(Object::QueueIncubator(queue));
}

fn see_all<'a>(core: &mut Core, pods: impl IntoIterator<Item = &'a Pod>) {
    pods.into_iter().for_each(|pod| core.see(pod));
}

fn placed<'a>(core: &Core, pods: impl IntoIterator<Item = &'a Pod>) -> usize {
    pods.into_iter().filter(|pod| core.node_of(pod).is_some()).count()
}

/// Returns the message of a pod's refusal.
fn refusal(core: &Core, pod: &Pod) -> String {
    let verdict = core.scheduler.verdict(core.id(pod).expect("known")).expect("decided");
    match verdict.outcome {
        Outcome::Refused(refusal) => refusal.message().to_string(),
        other => panic!("{other:?}"),
    }
}

/// Reads an endpoint of the plugin.
fn read(core: &Core, path: &str, name: &str) -> Value {
    let factory = registry().into_iter().find(|f| f.name() == NAME).expect("it is registered");
    let endpoint = factory.endpoints().into_iter().find(|e| e.path == path).expect("it is there");
    let params = PathParams::from([("name".to_owned(), name.to_owned())]);
    let view = View::new(core.scheduler.cluster());
    let cx = ReadContext { view, params: &params, now: core.now, list: &List::default() };
    (endpoint.read)(&cx).expect("an answer")
}

/// Makes a core of twelve cores with queues `a` and `b`, each with a PodGroup of its name whose quorum is 1.
fn two_queues(a: Queue, b: Queue) -> Core {
    let mut core = core_with(12);
    for queue in [a, b] {
        core.see_object(group(&queue.name, &queue.name, 1));
        see_queue(&mut core, queue);
    }
    core
}

#[test]
fn queues_share_by_weight() {
    let mut core = two_queues(queue("a", 1), queue("b", 2));
    let (a, b) = (members("a", 12), members("b", 12));
    see_all(&mut core, a.iter().chain(&b));
    core.run();
    assert_eq!((placed(&core, &a), placed(&core, &b)), (4, 8));
    let waits = a.iter().find(|pod| core.node_of(pod).is_none()).expect("one waits");
    let message = refusal(&core, waits);
    let words = "queue is overused, queue: a, cpu: allocated 4, deserved 4, pod's request 1";
    assert!(message.contains(words), "{message}");
    let of_a = read(&core, "queues/:name", "a");
    let amounts = ["deserved", "allocated", "request"].map(|key| of_a[key]["cpu"].as_str().unwrap_or("0"));
    assert_eq!(amounts, ["4", "4", "12"]);
    assert_eq!((&of_a["overused"], &of_a["placedPods"]), (&json!(["cpu"]), &json!(4)));
    assert_eq!(
        (&of_a["waiting"][0]["podGroup"], &of_a["waiting"][0]["pods"], &of_a["waiting"][0]["reason"]),
        (&json!("ns/a"), &json!(8), &json!("QueueOverused"))
    );
    let names = read(&core, "queues", "");
    let names: Vec<&Value> =
        names["queues"].as_array().expect("a list").iter().map(|queue| &queue["name"]).collect();
    assert_eq!(names, ["a", "b", "default"]);
}

#[test]
fn what_one_queue_does_not_need_goes_to_the_other_until_it_asks() {
    let mut core = two_queues(queue("a", 1), queue("b", 1));
    let (a, b) = (members("a", 12), members("b", 8));
    see_all(&mut core, a.iter().chain(&b[..2]));
    core.run();
    assert_eq!((placed(&core, &a), placed(&core, &b)), (10, 2));
    see_all(&mut core, &b[2..]);
    core.run_after(2 * SECOND);
    assert_eq!(placed(&core, &b), 2, "the node is full, and nobody is evicted");
    // What ends in queue a goes to b, which holds less than it deserves.
    let ended: Vec<&Pod> = a.iter().filter(|pod| core.node_of(pod).is_some()).take(4).collect();
    ended.into_iter().for_each(|pod| core.delete(pod));
    core.run_after(20 * SECOND);
    assert_eq!((placed(&core, &a), placed(&core, &b)), (6, 6));
}

#[test]
fn a_queue_that_wants_less_wakes_the_others_at_once() {
    let mut core = two_queues(queue("a", 1), queue("b", 1));
    let (a, b) = (members("a", 12), members("b", 12));
    see_all(&mut core, a.iter().chain(&b));
    core.run();
    assert_eq!((placed(&core, &a), placed(&core, &b)), (6, 6));
    core.wait(2 * SECOND);
    let waits = a.iter().find(|pod| core.node_of(pod).is_none()).expect("one waits");
    assert_eq!(core.queued(waits), Some(QueueStage::Unschedulable));
    b.iter().for_each(|pod| core.delete(pod));
    core.wait(Duration::ZERO);
    assert_eq!(core.queued(waits), Some(QueueStage::Active), "no flush is needed");
    core.run();
    assert_eq!(placed(&core, &a), 12);
}

#[test]
fn a_new_node_wakes_pods_whose_queue_then_deserves_more() {
    let mut core = two_queues(queue("a", 1), queue("b", 1));
    let (a, b) = (members("a", 24), members("b", 6));
    see_all(&mut core, a.iter().chain(&b));
    core.run();
    assert_eq!((placed(&core, &a), placed(&core, &b)), (6, 6));
    core.wait(2 * SECOND);
    core.see_node(&host("b", 4000));
    core.run_after(Duration::ZERO);
    assert_eq!(placed(&core, &a), 10, "b requests no more than six");
}

#[test]
fn a_raised_weight_and_a_moved_group_wake_too() {
    let mut core = two_queues(queue("a", 0), queue("b", 1));
    core.see_object(group("late", "a", 1));
    let (a, late) = (members("a", 2), members("late", 2));
    see_all(&mut core, a.iter().chain(&late));
    core.run();
    assert_eq!(placed(&core, a.iter().chain(&late)), 0);
    core.wait(2 * SECOND);
    core.see_object(group("late", "default", 1));
    core.run_after(Duration::ZERO);
    assert_eq!((placed(&core, &a), placed(&core, &late)), (0, 2));
    core.wait(20 * SECOND);
    see_queue(&mut core, queue("a", 1));
    core.run_after(Duration::ZERO);
    assert_eq!(placed(&core, &a), 2);
}

#[test]
fn a_capability_is_a_hard_limit() {
    let mut core = two_queues(limited("a", 1, 3), queue("b", 1));
    let a = members("a", 5);
    see_all(&mut core, &a);
    core.run();
    assert_eq!(placed(&core, &a), 3, "nobody else wants anything");
    let waits = a.iter().find(|pod| core.node_of(pod).is_none()).expect("one waits");
    let message = refusal(&core, waits);
    let words = "queue has reached its capability, queue: a, cpu: allocated 3, capability 3, pod's request 1";
    assert!(message.contains(words), "{message}");
    core.wait(2 * SECOND);
    see_queue(&mut core, limited("a", 1, 4));
    core.run_after(Duration::ZERO);
    assert_eq!(placed(&core, &a), 4);
    let pods = Queue { capability: [("pods".into(), 5)].into(), ..queue("a", 1) };
    core.wait(20 * SECOND);
    see_queue(&mut core, pods);
    let idle = ["x", "y"].map(|name| member("a", name, 0));
    core.run_after(Duration::ZERO);
    see_all(&mut core, &idle);
    core.run();
    assert_eq!((placed(&core, &a), placed(&core, &idle)), (5, 0));
}

#[test]
fn pending_pods_are_filtered_and_counted_by_queue() {
    let mut core = two_queues(queue("a", 1), queue("b", 1));
    let (a, b) = (members("a", 8), members("b", 9));
    see_all(&mut core, a.iter().chain(&b).chain([&single("alone", 50_000)]));
    core.run();
    assert_eq!(ask(&mut core, "/apis/v1/explain/pods?queue=a")["count"], 2);
    let counts = ask(&mut core, "/apis/v1/summary/pending?by=queue&sort=queue");
    let rows = list(&counts, "/rows").iter().map(|row| (row["groups"]["queue"].clone(), row["pods"].clone()));
    // Those whose Bindings are not confirmed are pending too.
    let expected = [("", 1), ("a", 8), ("b", 9)].map(|(queue, pods)| (json!(queue), json!(pods)));
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

#[test]
fn pods_without_requests_are_placed_in_an_overused_queue() {
    let mut core = two_queues(queue("a", 0), queue("b", 1));
    let (busy, idle) = (members("a", 1), member("a", "idle", 0));
    see_all(&mut core, busy.iter().chain([&idle]));
    core.run();
    assert_eq!(
        (placed(&core, &busy), placed(&core, [&idle])),
        (0, 1),
        "a queue of weight 0 deserves nothing"
    );
}

#[test]
fn a_gang_is_judged_as_a_whole() {
    for (capability, expected) in [(12, 8), (7, 0)] {
        let mut core = two_queues(limited("a", 1, capability), queue("b", 1));
        core.see_object(group("gang", "a", 8));
        core.see_object(group("next", "a", 1));
        let (gang, next, b) = (members("gang", 8), members("next", 1), members("b", 12));
        see_all(&mut core, &gang);
        core.wait(SECOND);
        see_all(&mut core, next.iter().chain(&b));
        core.run();
        // Of 12 cores each queue deserves six. The gang begins while its queue holds nothing, and ends beyond that.
        assert_eq!(placed(&core, &gang), expected, "capability {capability}");
        assert_eq!(placed(&core, &next), usize::from(expected == 0));
        assert_eq!(read(&core, "queues/:name", "a")["placedPods"], json!(expected.max(1)));
    }
}

#[test]
fn a_gang_of_an_overused_queue_is_not_tried() {
    let mut core = two_queues(queue("a", 1), queue("b", 1));
    core.see_object(group("gang", "a", 2));
    let (a, b, gang) = (members("a", 6), members("b", 6), members("gang", 2));
    let b_more: Vec<Pod> = (6..9).map(|i| member("b", &format!("b-{i:02}"), 1000)).collect();
    see_all(&mut core, a.iter().chain(&b));
    core.run();
    see_all(&mut core, gang.iter().chain(&b_more));
    core.run();
    assert_eq!(placed(&core, gang.iter().chain(&b_more)), 0);
    assert!(refusal(&core, &gang[0]).contains("queue is overused, queue: a"), "{}", refusal(&core, &gang[0]));
    core.wait(2 * SECOND);
    a[..2].iter().for_each(|pod| core.delete(pod));
    core.run_after(2 * SECOND);
    assert_eq!((placed(&core, &gang), placed(&core, &b_more)), (2, 0));
}

#[test]
fn shadow_groups_are_in_the_default_queue_which_needs_no_object() {
    let mut core = two_queues(queue("a", 1), queue("b", 1));
    let shadows: Vec<Pod> = (0..12).map(|i| shadow(&format!("s-{i:02}"), 1000)).collect();
    let a = members("a", 12);
    core.see_object(group("unnamed", "", 1));
    let unnamed = members("unnamed", 1);
    see_all(&mut core, shadows.iter().chain(&a));
    core.run();
    assert_eq!((placed(&core, &shadows), placed(&core, &a)), (6, 6));
    see_all(&mut core, &unnamed);
    core.run();
    assert!(refusal(&core, &unnamed[0]).contains("queue: default, "));
    let of_default = read(&core, "queues/:name", "default");
    assert_eq!((&of_default["apiGroups"], &of_default["weight"]), (&json!([]), &json!(1)));
    core.wait(2 * SECOND);
    see_queue(&mut core, queue("default", 3));
    a[..4].iter().for_each(|pod| core.delete(pod));
    core.run_after(2 * SECOND);
    let of_default = read(&core, "queues/:name", "default");
    assert_eq!((&of_default["weight"], &of_default["allocated"]["cpu"]), (&json!(3), &json!("9")));
}

#[test]
fn without_queues_everything_is_tried() {
    let mut core = core_with(12);
    core.see_object(group("g", "", 1));
    let (g, shadows) = (members("g", 8), ["x", "y"].map(|name| shadow(name, 2000)));
    see_all(&mut core, g.iter().chain(&shadows));
    core.run();
    assert_eq!((placed(&core, &g), placed(&core, &shadows)), (8, 2));
    assert_eq!(core.scheduler.cluster().next_plugin_deadline(core.now), None, "nothing is worked out");
    assert_eq!(read(&core, "state", "")["isActive"], json!(false));
    // The first Queue finds everything counted, and the last one leaves nothing behind.
    see_queue(&mut core, queue("a", 1));
    core.wait(Duration::ZERO);
    assert_eq!(read(&core, "queues/:name", "default")["allocated"]["cpu"], json!("12"));
    let key = (Default::default(), "a".into());
    core.apply(Input::ObjectDeleted(ObjectKind::QueueIncubator, key));
    core.wait(Duration::ZERO);
    assert_eq!(read(&core, "state", "")["isActive"], json!(false));
}

#[test]
fn gpus_are_shared_out_in_parts() {
    let mut node = host("a", 12_000);
    node.allocatable.scalars = [("nvidia.com/gpu".into(), 3)].into();
    let mut core = made::core_with(&[node]);
    let names = ["a", "b", "c", "d", "e"];
    let mut pods = Vec::new();
    for name in names {
        core.see_object(group(name, name, 1));
        see_queue(&mut core, queue(name, 1));
        for i in 0..2 {
            let mut pod = member(name, &format!("{name}-{i}"), 0);
            let spec = Arc::make_mut(&mut pod.spec);
            spec.requests.list.scalars = [("nvidia.com/gpu".into(), 1)].into();
            pods.push(pod);
        }
    }
    see_all(&mut core, &pods);
    core.run();
    assert_eq!(placed(&core, &pods), 3);
    // 600 thousandths each: a queue that holds one has more than that, so no queue has two.
    let state = read(&core, "state", "");
    let rows = state["rows"].as_array().expect("rows");
    let of = |row: &&Value| {
        row["deserved"] == "600m" && ["0", "1"].contains(&row["allocated"].as_str().unwrap_or(""))
    };
    assert_eq!(
        rows.iter().filter(|row| row["resource"] == "nvidia.com/gpu").filter(of).count(),
        5,
        "{state}"
    );
}

#[test]
fn a_resource_that_no_node_has_is_the_business_of_nodes_unless_the_queue_has_no_weight() {
    let mut core = core_with(4);
    let gpu = |name: &str| {
        let mut pod = member(name, name, 0);
        Arc::make_mut(&mut pod.spec).requests.list.scalars = [("nvidia.com/gpu".into(), 1)].into();
        pod
    };
    let (a, b) = (gpu("a"), gpu("b"));
    for (name, weight) in [("a", 0), ("b", 1)] {
        core.see_object(group(name, name, 1));
        see_queue(&mut core, queue(name, weight));
    }
    see_all(&mut core, [&a, &b]);
    core.run();
    let overused = "queue is overused, queue: a, nvidia.com/gpu: allocated 0, deserved 0, pod's request 1";
    assert!(refusal(&core, &a).contains(overused), "{}", refusal(&core, &a));
    assert!(refusal(&core, &b).contains("Insufficient nvidia.com/gpu"), "{}", refusal(&core, &b));
    let limits = ["a", "b"].map(|name| {
        let body = ask(&mut core, &format!("/apis/v1/explain/queues/{name}"));
        let shares = list(&body, "/resources").iter();
        shares.map(|share| share["limitedBy"].clone()).collect::<Vec<_>>()
    });
    assert_eq!(limits, [[json!("weight")], [json!("total")]], "by whom the pod is kept");
    let mut node = host("with-gpus", 4_000);
    node.allocatable.scalars = [("nvidia.com/gpu".into(), 2)].into();
    core.see_node(&node);
    core.run();
    core.wait(SECOND);
    assert!(refusal(&core, &a).contains(overused), "{}", refusal(&core, &a));
    assert_eq!(core.node_of(&b).as_deref(), Some("with-gpus"));
}

#[test]
fn bad_queues_are_named_and_everything_else_goes_on() {
    let mut core = core_with(12);
    let decoder = Decoder::of(&registry());
    let bad = |name: &str, spec: Value| {
        let manifest = json!({"metadata": {"name": name, "resourceVersion": "1"}, "spec": spec});
        decoder.object(ObjectKind::QueueIncubator, &manifest).expect("its name can be read")
    };
    core.see_object(bad("negative", json!({"weight": -2, "capability": {"cpu": "-1", "memory": "1Gi"}})));
    core.see_object(bad(
        "unreadable",
        json!({"weight": "two", "capability": {"cpu": "much", "memory": "1Gi"}}),
    ));
    core.see_object(bad("shapeless", json!("?")));
    core.see_object(bad("fine", json!({"weight": 2, "capability": {"cpu": 3}})));
    core.see_object(Object::QueueSigsDev(queue("fine", 5)));
    for queue in ["negative", "unreadable", "fine", "nobody"] {
        core.see_object(group(queue, queue, 1));
    }
    let pods = ["negative", "unreadable", "fine", "nobody"].map(|name| members(name, 5));
    pods.iter().for_each(|pods| see_all(&mut core, pods));
    core.run();
    let counts: Vec<usize> = pods.iter().map(|pods| placed(&core, pods)).collect();
    assert_eq!(counts, [0, 5, 3, 0]);
    let state = read(&core, "state", "");
    assert_eq!(state["unknownQueues"], json!({"nobody": 5}));
    let problems = state["problems"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let has = |queue: &str, field: &str, value: &str, words: &str| {
        let is = |p: &&Value| {
            p["queue"] == queue
                && p["field"] == field
                && p["value"] == value
                && text(&p["problem"]).contains(words)
        };
        assert_eq!(problems.iter().filter(is).count(), 1, "{queue} {field}: {problems:#?}");
    };
    has("negative", "spec.weight", "-2", "counts as 0");
    has("negative", "spec.capability.cpu", "-1", "counts as 0");
    has("unreadable", "spec.weight", "two", "counts as 1");
    has("unreadable", "spec.capability.cpu", "much", "the resource has no limit");
    has("shapeless", "spec", "?", "its weight is 1");
    has("fine", "metadata.name", "fine", "scheduling.incubator.k8s.io counts");
    assert_eq!(problems.len(), 6, "{problems:#?}");
}

#[test]
fn a_bound_pod_counts_whoever_bound_it() {
    let mut core = two_queues(queue("a", 1), queue("b", 1));
    core.see(&on(&member("a", "theirs", 7000), "a"));
    let (a, b) = (members("a", 1), members("b", 12));
    see_all(&mut core, a.iter().chain(&b));
    core.run();
    assert_eq!((placed(&core, &a), placed(&core, &b)), (0, 5));
}
