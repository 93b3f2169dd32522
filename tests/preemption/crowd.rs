//! 500 pods of low priority fill a cluster, and 200 of high priority take the room of most of them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::common::running::{
    Running, is_leaving, node, node_of, nominated, pod, priority_class, start, with,
};
use crate::preemption::views::{
    STATE, all_ordered, check_metrics, check_preemptor, check_state, check_victim, counted, is_over, list,
    number, path, text, victims, wasted,
};

/// Number of cores per node.
const CORES: usize = 10;
/// Number of protected pods per node, with one core each.
const GUARDED: usize = 2;
/// Grace period in seconds of pods with an odd number; the others take 30.
const SHORT: u64 = 10;

fn of_class(pod: Value, class: &str) -> Value {
    with(pod, "priorityClassName", class.into())
}

/// Makes a pod of low priority with one core.
fn low(name: &str, role: &str, grace: u64) -> Value {
    let mut pod = with(of_class(pod(name, 1000), "low"), "terminationGracePeriodSeconds", grace.into());
    pod["metadata"]["labels"]["role"] = role.into();
    pod
}

/// Starts a cluster in which pods of low priority use every core. A budget protects the guarded pods, two per node.
pub(crate) async fn full_cluster(nodes: usize) -> Running {
    let mut objects: Vec<Value> =
        (0..nodes).map(|n| node(&format!("n{n:02}"), ["za", "zb", "zc"][n % 3], CORES as u32)).collect();
    let preempts = "PreemptLowerPriority";
    objects.extend([priority_class("low", 10, preempts), priority_class("high", 1000, preempts)]);
    let guarded = GUARDED * nodes;
    let selector = json!({"matchLabels": {"role": "guarded"}});
    objects.push(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard", "namespace": "default"},
        "spec": {"minAvailable": guarded, "selector": selector}
    }));
    let mut running = start(objects).await;
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector
    }]);
    let guards = (0..guarded).map(|n| low(&format!("guarded-{n:03}"), "guarded", 30));
    running.create(guards.map(|pod| with(pod, "topologySpreadConstraints", spread.clone())));
    all_bound(&mut running, "guarded-", guarded).await;
    let plain = (CORES - GUARDED) * nodes;
    running.create(
        (0..plain).map(|n| low(&format!("plain-{n:03}"), "plain", if n % 2 == 1 { SHORT } else { 30 })),
    );
    all_bound(&mut running, "plain-", plain).await;
    let is_counted = |budget: &Value| budget["status"]["currentHealthy"] == guarded;
    let budget = running.object("policy/v1/PodDisruptionBudget", "guard", "all healthy", is_counted).await;
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    running
}

/// Makes a pod of high priority with two cores.
pub(crate) fn high(name: &str) -> Value {
    of_class(pod(name, 2000), "high")
}

/// Waits until this many pods with a prefix are bound; returns their nodes.
pub(crate) async fn all_bound(running: &mut Running, prefix: &str, n: usize) -> BTreeMap<String, String> {
    let what = format!("{n} pods {prefix} bound");
    let look = |pods: &BTreeMap<String, Pod>| {
        let mine = pods.iter().filter(|(name, _)| name.starts_with(prefix));
        let on = mine.filter_map(|(name, pod)| Some((name.clone(), node_of(pod)?.to_owned())));
        Some(on.collect::<BTreeMap<_, _>>()).filter(|on| on.len() == n)
    };
    running.pods(&what, look).await
}

/// Waits until this many pods are nominated; returns their nodes.
pub(crate) async fn all_nominated(running: &mut Running, n: usize) -> BTreeMap<String, String> {
    let look = |pods: &BTreeMap<String, Pod>| {
        let on = pods.iter().filter_map(|(name, pod)| Some((name.clone(), nominated(pod)?.to_owned())));
        Some(on.collect::<BTreeMap<_, _>>()).filter(|on| on.len() == n)
    };
    running.pods(&format!("{n} nominations"), look).await
}

/// Checks that no protected pod was evicted and that the API server shows no nomination.
pub(crate) async fn check_rest(running: &mut Running, guarded: usize) {
    let look = |pods: &BTreeMap<String, Pod>| {
        let is_clean = pods.values().all(|pod| nominated(pod).is_none());
        is_clean.then(|| {
            pods.iter().filter(|(name, pod)| name.starts_with("guarded-") && !is_leaving(pod)).count()
        })
    };
    assert_eq!(running.pods("nominations are cleared", look).await, guarded);
}

fn is_preempted(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|s| s.conditions.iter().flatten());
    let is_target = conditions.any(|c| {
        c.type_ == "DisruptionTarget"
            && c.status == "True"
            && c.reason.as_deref() == Some("PreemptionByScheduler")
    });
    is_target && is_leaving(pod)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_pods_preempt_and_no_eviction_is_wasted() {
    const NODES: usize = 50;
    const HIGH: usize = 200;
    let mut running = full_cluster(NODES).await;
    running.create((0..HIGH).map(|n| high(&format!("high-{n:03}"))));
    let nominations = all_nominated(&mut running, HIGH).await;
    let state = running.wait(STATE, "every eviction under way", |state| {
        list(state, "underWay").len() == HIGH && all_ordered(state)
    });
    check_state(&state);
    // Four on each node, for which everything evictable must go, each pod once.
    assert_eq!((number(&state, "preemptions"), number(&state, "victims")), (200, 400));
    assert_eq!((number(&state, "usefulEvictions"), wasted(&state).len()), (0, 0));
    for nomination in list(&state, "nominations") {
        assert_eq!(nominations[text(nomination, "name")], text(nomination, "node"));
    }
    let victims_of = |state: &Value| {
        let of = list(state, "underWay").iter().flat_map(victims).map(str::to_owned);
        of.collect::<BTreeSet<_>>()
    };
    let chosen = victims_of(&state);
    assert_eq!((chosen.len(), chosen.iter().filter(|v| v.starts_with("plain-")).count()), (400, 400));
    let leaving = running
        .pods("400 pods have the condition and are deleted", |pods| {
            let leaving = pods.iter().filter(|(_, pod)| is_preempted(pod));
            let leaving: BTreeSet<String> = leaving.map(|(name, _)| name.clone()).collect();
            Some(leaving).filter(|all| *all == chosen)
        })
        .await;
    assert_eq!(leaving, chosen);

    check_both_sides(&running, &state, NODES as u64);
    assert!(list(&running.read(&path("high-000"))["search"], "candidates").len() > 1);
    let on_node = running.read("/apis/v1/nodes/n07");
    assert_eq!((&on_node["nominated"]["cpu"], &on_node["requested"]["cpu"]), (&json!(8000), &json!(10_000)));
    let victim = leaving.first().expect("a victim");
    running.event(victim, "Preempted", "Preempted by pod ").await;
    let told = running.told("high-000", "Insufficient cpu").await;
    assert!(told.starts_with("0/50 nodes are available: 50 Insufficient cpu."), "{told}");

    // Half of the victims end. Preemptors whose victims are all gone may be bound by now; the others still wait.
    running.pass(SHORT);
    let has_gone = |name: &str| name[6..].parse::<usize>().expect("a number") % 2 == 1;
    let state = running.wait(STATE, "the first half gone", |state| {
        let mut victims = list(state, "underWay").iter().flat_map(|p| list(p, "victims"));
        victims.all(|v| (v["state"] == "gone") == has_gone(text(v, "name")))
    });
    check_state(&state);
    assert_eq!((number(&state, "victims"), wasted(&state).len()), (400, 0));
    running.pass(30 - SHORT);

    let on = all_bound(&mut running, "high-", HIGH).await;
    assert_eq!(on, nominations, "every pod is where its victims went for it");
    let state = running.wait(STATE, "nothing under way", is_over);
    check_state(&state);
    assert_eq!((number(&state, "usefulEvictions"), wasted(&state).len()), (400, 0));
    assert!(list(&state, "ended").iter().all(|p| p["end"] == "bound"));
    let remembered = running.read(&path(victim));
    assert_eq!(remembered["asVictim"]["preemption"]["end"], "bound");
    check_rest(&mut running, GUARDED * NODES).await;
    check_metrics(&running);
    assert_eq!(running.metric("pellucid_evict_orders_total{outcome=\"deleted\"}"), 400.0);
    running.stop().await;
}

/// Reads some of the preemptors, and each of their victims from its side.
pub(crate) fn check_both_sides(running: &Running, state: &Value, nodes: u64) {
    let is_whole = |p: &&Value| number(p, "waitingFor") == list(p, "victims").len() as u64;
    for open in list(state, "underWay").iter().filter(is_whole).step_by(11) {
        let seen = check_preemptor(running, text(open, "name"), text(open, "node"), nodes);
        assert_eq!((victims(&seen), counted(&seen)), (victims(open), counted(open)));
        for victim in list(&seen, "victims").iter().filter(|v| v["counted"] == true) {
            check_victim(running, victim, &seen);
        }
    }
}
