//! Pods and gangs while faults strike and the leader is killed five times: everything is bound once, no strict gang in
//! part, no node beyond what it has.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid::sandbox::{Fault, Handle, Match};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::PATIENCE;
use crate::common::running::{node, pod};
use crate::log_checks::check;
use crate::replicas::{Replica, sandbox};

/// Times that the leader is killed.
const KILLS: usize = 5;
/// Members of a gang, all of which its quorum needs.
const MEMBERS: usize = 4;
/// CPUs of a node. Seven eighths of all are used in the end.
const NODE_CPU: u32 = 8;
const NODES: usize = 12;

fn member(gang: &str, n: usize) -> Value {
    let mut member = pod(&format!("{gang}-{n}"), 500);
    member["metadata"]["annotations"] = json!({
        "gang.scheduling.koordinator.sh/name": gang,
        "gang.scheduling.koordinator.sh/min-available": MEMBERS.to_string(),
    });
    member
}

/// Creates pods and gangs for one round.
fn create(sandbox: &Handle, round: usize) {
    for n in 0..3 {
        for m in 0..8 {
            sandbox.create(pod(&format!("single-{round}-{n}-{m}"), 100)).expect("a pod");
        }
        for m in 0..MEMBERS {
            sandbox.create(member(&format!("gang-{round}-{n}"), m)).expect("a member");
        }
    }
}

/// Injects a fault of writes, of watches, and of everything, others in each round.
fn strike(sandbox: &Handle, round: usize) {
    let bindings = || Match::new("POST", "/binding");
    let watches = || Match { is_watch: Some(true), ..Match::new("GET", "") };
    let faults = sandbox.faults();
    match round % 5 {
        0 => faults.times(bindings(), Fault::DropAfterCommit, 6),
        1 => faults.times(bindings(), Fault::StatusAfterCommit(503), 6),
        2 => faults.times(bindings(), Fault::Delay(Duration::from_millis(600)), 6),
        3 => faults.times(bindings(), Fault::Status(409), 6),
        _ => faults.times(Match::all(), Fault::Reset, 10),
    }
    match round % 3 {
        0 => faults.times(watches(), Fault::GoneEvent, 4),
        1 => faults.times(watches(), Fault::DropMidLine, 4),
        _ => faults.times(watches(), Fault::DuplicateEvent, 4),
    }
}

/// Returns the names of the pods that are not bound.
fn unbound(sandbox: &Handle) -> Vec<String> {
    let pods = sandbox.names("pods").into_iter();
    pods.filter(|(namespace, name)| sandbox.node_of(namespace, name).is_none())
        .map(|(_, name)| name)
        .collect()
}

/// Asserts that no node has more pods than its CPU allows.
fn check_nodes(sandbox: &Handle) {
    let mut used: BTreeMap<String, u32> = BTreeMap::new();
    for (namespace, name) in sandbox.names("pods") {
        let Some(node) = sandbox.node_of(&namespace, &name) else { continue };
        *used.entry(node).or_default() += if name.starts_with("gang") { 500 } else { 100 };
    }
    assert!(used.values().all(|used| *used <= NODE_CPU * 1_000), "{used:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_and_faults_lose_nothing_and_bind_nothing_twice() {
    let sandbox =
        Arc::new(sandbox((0..NODES).map(|n| node(&format!("n{n}"), "z", NODE_CPU)).collect()).await);
    let mut leader = Replica::start(&sandbox).await;
    leader.until_it_leads().await;
    let mut standby = Replica::start(&sandbox).await;
    for round in 0..KILLS {
        standby.until_it_is_warm().await;
        strike(&sandbox, round);
        create(&sandbox, 2 * round);
        leader.until("it has begun", |snapshot| snapshot.counters.placed > 0).await;
        leader.kill();
        create(&sandbox, 2 * round + 1);
        standby.until_it_leads().await;
        leader = std::mem::replace(&mut standby, Replica::start(&sandbox).await);
        check_nodes(&sandbox);
    }
    sandbox.faults().clear();
    let end = Instant::now() + PATIENCE;
    while !unbound(&sandbox).is_empty() {
        assert!(Instant::now() < end, "not bound: {:?}", unbound(&sandbox));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // All members of all gangs are among the pods, so no gang is bound in part.
    let pods = sandbox.count("pods");
    assert_eq!(pods, KILLS * 2 * 3 * (8 + MEMBERS));
    check_nodes(&sandbox);
    leader.stop().await;
    standby.stop().await;
    let writes = check(&sandbox);
    println!("{pods} pods, {writes:?}");
    assert_eq!(writes.bound, pods);
    assert!(writes.hand_overs >= KILLS);
}
