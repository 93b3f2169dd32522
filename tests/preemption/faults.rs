//! The same under faults: some evictions are wasted, and each of these is counted.

use std::time::Duration;

use pellucid::sandbox::{Fault, Match, Objects, Trouble};
use serde_json::Value;

use crate::common::running::{Running, is_leaving, node_of};
use crate::preemption::crowd::{all_bound, all_nominated, check_both_sides, check_rest, full_cluster, high};
use crate::preemption::views::{
    STATE, all_ordered, check_metrics, check_state, counted, is_over, list, number, path, text, wasted,
};

const NODES: usize = 16;
const HIGH: usize = 48;

fn let_things_fail(running: &Running) {
    let faults = running.sandbox.faults();
    let (delete, status) = (Match::on("DELETE", "pods"), Match::on("PATCH", "pods/status"));
    faults.times(delete.clone(), Fault::Status(500), 3);
    faults.times(delete.clone(), Fault::StatusAfterCommit(503), 3);
    faults.times(delete.clone(), Fault::DropAfterCommit, 3);
    faults.times(delete, Fault::Status(403), 1);
    faults.times(status.clone(), Fault::Drop, 5);
    faults.times(status.clone(), Fault::DropAfterCommit, 5);
    faults.times(status, Fault::Status(500), 5);
}

/// Returns the preemptions on a node.
fn on_node<'a>(state: &'a Value, node: &str) -> Vec<&'a Value> {
    list(state, "underWay").iter().filter(|p| text(p, "node") == node).collect()
}

/// Returns whether an eviction on a node was refused: the scheduler retries it, so the test must not interfere.
fn is_troubled(state: &Value, node: &str) -> bool {
    on_node(state, node).iter().any(|p| list(p, "victims").iter().any(|v| v["state"] == "refused"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wasted_eviction_is_counted_with_its_cause() {
    let mut running = full_cluster(NODES).await;
    let_things_fail(&running);
    running.create((0..HIGH).map(|n| high(&format!("high-{n:03}"))));
    all_nominated(&mut running, HIGH).await;
    let state = running.wait(STATE, "every eviction under way", |state| {
        list(state, "underWay").len() == HIGH && all_ordered(state)
    });
    assert_eq!(running.sandbox.faults().pending(), 0, "every fault was met");
    check_state(&state);
    let mut calm: Vec<&str> = list(&state, "underWay").iter().map(|p| text(p, "node")).collect();
    calm.sort_unstable();
    calm.dedup();
    calm.retain(|node| !is_troubled(&state, node));
    let [first, second, third, ..] = calm[..] else { panic!("{calm:?}") };

    // A preemptor is deleted: the one on its node with the most victims, for which no other preemptor waits.
    let last = on_node(&state, first).into_iter().max_by_key(|p| list(p, "victims").len());
    let gone = last.expect("a preemption");
    let lost = counted(gone);
    assert!(lost > 0);
    running.kill(text(gone, "name")).await;
    let after = running.wait(STATE, "the preemptor gone", |state| list(state, "underWay").len() == HIGH - 1);
    check_state(&after);
    assert_eq!(wasted(&after).get("preemptor-gone"), Some(&lost));

    // A node is deleted between nomination and Binding; its preemptors find another.
    let displaced = on_node(&after, second);
    let lost_with_node: u64 = displaced.iter().map(|p| counted(p)).sum();
    assert!(displaced.len() > 1 && lost_with_node > 1);
    running.delete("v1/Node", second).await;
    let after = running.wait(STATE, "the displaced nominated anew", |state| {
        let nominations = list(state, "nominations");
        nominations.len() == HIGH - 1 && nominations.iter().all(|n| n["node"] != second) && all_ordered(state)
    });
    check_state(&after);
    assert_eq!(wasted(&after).get("node-gone"), Some(&lost_with_node));
    for pod in &displaced {
        let ended = running.read(&path(text(pod, "name")))["ended"][0]["end"].clone();
        assert_eq!(ended, "node-gone", "{pod:#}");
    }
    check_both_sides(&running, &after, NODES as u64 - 1);

    // One victim does not terminate; only its preemptor waits for it.
    let waiting = on_node(&after, third).into_iter().find(|p| counted(p) > 0).expect("a preemption");
    let held = list(waiting, "victims").iter().find(|v| v["counted"] == true).expect("a victim");
    let (preemptor, victim) = (text(waiting, "name"), text(held, "name"));
    let objects = Objects::named("default", victim);
    running.sandbox.faults().trouble(objects.clone(), Trouble::PodNeverEnds);
    running.pass(30);
    let seen = running.wait(&path(preemptor), "one victim left", |body| {
        body["preemption"]["waitingFor"] == 1
            && list(&body["preemption"], "victims")
                .iter()
                .all(|v| (v["state"] == "gone") == (v["name"] != victim))
    });
    assert!(text(&seen, "summary").contains("; waits for 1 of "), "{seen:#}");
    let body = running.read(&path(victim));
    let (line, by) = (&body["asVictim"]["victim"], &body["asVictim"]["preemption"]);
    assert_eq!((text(line, "state"), text(by, "name")), ("terminating", preemptor));
    running.sandbox.faults().lift(&objects);
    settle(&mut running, HIGH - 1).await;

    all_bound(&mut running, "high-", HIGH - 1).await;
    let state = running.wait(STATE, "nothing under way", is_over);
    check_state(&state);
    let wasted = wasted(&state);
    assert_eq!((wasted["preemptor-gone"], wasted["node-gone"]), (lost, lost_with_node), "{wasted:?}");
    assert_eq!(number(&state, "refusedEvictions"), 1);
    check_rest(&mut running, 2 * NODES).await;
    check_metrics(&running);
    // Exactly the chosen victims whose eviction was not refused are gone.
    let left =
        running.pods("the pods", |pods| Some(pods.keys().filter(|p| !p.starts_with("high-")).count())).await;
    let evicted = number(&state, "victims") - number(&state, "refusedEvictions");
    assert_eq!(left as u64, 10 * NODES as u64 - evicted);
    running.stop().await;
}

/// Advances the clock until this many pods of high priority are bound and no pod is terminating.
async fn settle(running: &mut Running, n: usize) {
    loop {
        let is_settled = running.pods("high pods on nodes", |pods| {
            let bound = pods.iter().filter(|(name, pod)| name.starts_with("high-") && node_of(pod).is_some());
            let (is_bound, is_anybody_leaving) = (bound.count() == n, pods.values().any(is_leaving));
            (is_bound || is_anybody_leaving).then_some(!is_anybody_leaving)
        });
        if is_settled.await {
            return;
        }
        running.sandbox.clock().advance(Duration::from_secs(30));
        tokio::task::yield_now().await;
    }
}
