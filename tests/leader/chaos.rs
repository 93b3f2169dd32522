//! Pods and gangs of every dialect while faults strike and the leader is killed five times: everything is bound once, no
//! strict gang is decided in part, no node is beyond its allocatable, and nothing is assumed at the end.
//!
//! Of gangs three things are checked. The log of writes has every Binding, and none is of a gang that its leader decided on
//! in part, as far as Bindings in flight let one see (`gang_log`). After each change of leader the gangs that the dead one
//! left bound in part become whole. And snapshots of the leader, every 15 ms, show no gang that is placed in part; a decision
//! that lives shorter than that is seen in the log alone. That a Binding is no transaction, and so a gang may be bound in
//! part for the moment in which a leader dies, nobody can change.
//!
//! `PELLUCID_CHAOS_PODS` is the number of single pods, 1,000 when absent; there is a gang of five for every 25 of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Stage;
use pellucid::cycle::Snapshot;
use pellucid::sandbox::{Fault, Handle, Match};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::PATIENCE;
use crate::common::dialects::{DIALECTS, member, pod_group};
use crate::common::running::{node, pod};
use crate::leader::gang_log::check_gangs;
use crate::leader::log_checks::{Writes, check};
use crate::leader::replicas::{Replica, sandbox};

/// Times that the leader is killed.
const KILLS: usize = 5;
/// Members of a gang, all of which its quorum needs.
const MEMBERS: usize = 5;
/// Single pods for each gang.
const SINGLES_PER_GANG: usize = 25;
/// Single pods for each node. With the members they request five sixths of its CPUs and GPUs.
const SINGLES_PER_NODE: usize = 50;
/// Parts in which the pods of a round arrive.
const PARTS: usize = 6;
/// Pause between two faults.
const STRIKE_EVERY: Duration = Duration::from_millis(300);
/// Pause between two looks at the leader's decisions.
const LOOK_EVERY: Duration = Duration::from_millis(15);
const GPU: &str = "example.com/gpu";

fn singles() -> usize {
    std::env::var("PELLUCID_CHAOS_PODS").ok().map_or(1_000, |n| n.parse().expect("a number"))
}

fn machine(n: usize) -> Value {
    let mut machine = node(&format!("n{n}"), "z", 12);
    for field in ["capacity", "allocatable"] {
        machine["status"][field][GPU] = "12".into();
    }
    machine
}

/// Makes a pod that requests CPU, memory and GPUs.
fn requesting(name: &str, milli_cpu: u32, memory: &str, gpus: u32) -> Value {
    let mut made = pod(name, milli_cpu);
    let requests = &mut made["spec"]["containers"][0]["resources"]["requests"];
    requests["memory"] = memory.into();
    if gpus > 0 {
        requests[GPU] = gpus.to_string().into();
        made["spec"]["containers"][0]["resources"]["limits"] = json!({GPU: gpus.to_string()});
    }
    made
}

fn gang_name(n: usize) -> String {
    format!("gang-{n}")
}

fn member_name(gang: usize, n: usize) -> String {
    format!("gang-{gang}-{n}")
}

/// Returns the names of the members of a gang.
fn members(gang: usize) -> Vec<String> {
    (0..MEMBERS).map(|n| member_name(gang, n)).collect()
}

/// Returns the gangs of which some members are bound and others are not.
fn bound_in_part(sandbox: &Handle) -> Vec<usize> {
    let is_part = |gang: &usize| {
        let bound = members(*gang).iter().filter(|name| sandbox.node_of("default", name).is_some()).count();
        bound > 0 && bound < MEMBERS
    };
    (0..singles() / SINGLES_PER_GANG).filter(is_part).collect()
}

/// Creates the pods of one part of one round.
fn create(sandbox: &Handle, part: usize) {
    let of_part = |all: usize| (all * part / (KILLS * PARTS))..(all * (part + 1) / (KILLS * PARTS));
    for n in of_part(singles()) {
        sandbox.create(requesting(&format!("single-{n}"), 100, "512Mi", 0)).expect("a pod");
    }
    for gang in of_part(singles() / SINGLES_PER_GANG) {
        let (dialect, name) = (DIALECTS[gang % DIALECTS.len()], gang_name(gang));
        if let Some(group) = pod_group(dialect, &name, MEMBERS) {
            sandbox.create(group).expect("a group");
        }
        for n in 0..MEMBERS {
            let made = requesting(&member_name(gang, n), 500, "768Mi", 1);
            sandbox.create(member(dialect, made, &name, MEMBERS)).expect("a member");
        }
    }
}

/// Injects a fault of writes or of everything, and one of watches, others each time.
fn strike(sandbox: &Handle, number: usize) {
    let bindings = || Match::new("POST", "/binding");
    let watches = || Match { is_watch: Some(true), ..Match::new("GET", "") };
    let faults = sandbox.faults();
    match number % 5 {
        0 => faults.times(bindings(), Fault::DropAfterCommit, 6),
        1 => faults.times(bindings(), Fault::StatusAfterCommit(503), 6),
        2 => faults.times(bindings(), Fault::Delay(Duration::from_millis(600)), 6),
        3 => faults.times(bindings(), Fault::Status(409), 6),
        _ => faults.times(Match::all(), Fault::Reset, 4),
    }
    match number % 3 {
        0 => faults.times(watches(), Fault::GoneEvent, 2),
        1 => faults.times(watches(), Fault::DropMidLine, 2),
        _ => faults.times(watches(), Fault::DuplicateEvent, 2),
    }
}

/// Asserts that a leader which has decided on a member has decided on its whole gang. A member without a node has had
/// a Binding, which failed.
fn check_decisions(sandbox: &Handle, snapshot: &Snapshot) {
    let (mut placed, mut assumed) = (BTreeSet::new(), BTreeSet::new());
    for (_, record) in snapshot.cluster.pods().filter(|(_, record)| record.node.is_some()) {
        let name = record.pod.key.name.to_string();
        if !name.starts_with("gang-") {
            continue;
        }
        if record.stage != Stage::Bound {
            assumed.insert(name.rsplit_once('-').expect("a number").0.to_owned());
        }
        placed.insert(name);
    }
    let members = assumed.iter().flat_map(|gang| (0..MEMBERS).map(move |n| format!("{gang}-{n}")));
    let missing: Vec<String> = members.filter(|name| !placed.contains(name)).collect();
    if missing.is_empty() {
        return;
    }
    let writes = sandbox.writes();
    for name in missing {
        let binding = format!("/pods/{name}/binding");
        assert!(
            writes.iter().any(|write| write.path.contains(&binding)),
            "{name} was left out of the decision"
        );
    }
}

/// Strikes, and looks at the decisions of the leader until the next strike.
async fn strike_and_look(sandbox: &Handle, leader: &Replica, strikes: &mut usize) {
    strike(sandbox, *strikes);
    *strikes += 1;
    let end = Instant::now() + STRIKE_EVERY;
    while Instant::now() < end {
        check_decisions(sandbox, &leader.instance.snapshot());
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Returns the names of the pods that are not bound.
fn unbound(sandbox: &Handle) -> Vec<String> {
    let pods = sandbox.names("pods").into_iter();
    pods.filter(|(namespace, name)| sandbox.node_of(namespace, name).is_none())
        .map(|(_, name)| name)
        .collect()
}

/// Returns a quantity as thousandths, of memory as thousandths of a byte.
fn thousandths(text: &str) -> i128 {
    let unit = |digits: &str, factor: i128| digits.parse::<i128>().expect("a number") * factor;
    match (text.strip_suffix('m'), text.strip_suffix("Mi"), text.strip_suffix("Gi")) {
        (Some(digits), ..) => unit(digits, 1),
        (_, Some(digits), _) => unit(digits, 1_000 << 20),
        (.., Some(digits)) => unit(digits, 1_000 << 30),
        _ => unit(text, 1_000),
    }
}

/// Asserts from the API objects that on no node more is requested of any resource than is allocatable.
fn check_nodes(sandbox: &Handle) {
    let mut used: BTreeMap<(String, String), i128> = BTreeMap::new();
    for (namespace, name) in sandbox.names("pods") {
        let pod = sandbox.read("pods", &namespace, &name).expect("a pod");
        let Some(node) = pod["spec"]["nodeName"].as_str() else { continue };
        *used.entry((node.to_owned(), "pods".into())).or_default() += 1_000;
        for (resource, amount) in
            pod["spec"]["containers"][0]["resources"]["requests"].as_object().expect("requests")
        {
            let amount = thousandths(amount.as_str().expect("a quantity"));
            *used.entry((node.to_owned(), resource.clone())).or_default() += amount;
        }
    }
    for ((node, resource), used) in used {
        let object = sandbox.read("nodes", "", &node).expect("the node");
        let allocatable = thousandths(object["status"]["allocatable"][&resource].as_str().unwrap_or("0"));
        assert!(used <= allocatable, "{node}: {used} of {allocatable} thousandths of {resource}");
    }
}

/// Waits until the leader knows all pods as bound and has nothing pending, in flight, waiting or assumed.
async fn check_end(sandbox: &Handle, leader: &mut Replica) {
    let pods = sandbox.count("pods");
    let is_settled = |snapshot: &Snapshot| {
        let bound = snapshot.cluster.pods().filter(|(_, record)| record.stage == Stage::Bound).count();
        (bound, snapshot.cluster.pods().count(), snapshot.queue.units().count()) == (pods, pods, 0)
    };
    let snapshot = leader.until("all is bound and nothing assumed", is_settled).await;
    for (_, record) in snapshot.cluster.pods() {
        let key = &record.pod.key;
        let ours = record.node.map(|node| snapshot.cluster.node_name(node).to_string());
        assert_eq!(ours, sandbox.node_of(&key.namespace, &key.name), "{key}");
    }
    check_nodes(sandbox);
    check_consistency(leader).await;
}

/// Waits for a comparison with the API server that began after the end, and asserts that nothing differs or ever did for
/// longer than an event takes.
async fn check_consistency(leader: &Replica) {
    let sweeps = |body: &Value| body["sweeps"].as_u64().expect("a number");
    let (before, end) = (sweeps(&leader.consistency()), Instant::now() + PATIENCE);
    let body = loop {
        let body = leader.consistency();
        if sweeps(&body) >= before + 2 {
            break body;
        }
        assert!(Instant::now() < end, "no comparison ended: {body:#}");
        tokio::time::sleep(STRIKE_EVERY).await;
    };
    assert_eq!((&body["open"], &body["drifts"]), (&json!(0), &json!([])), "{body:#}");
}

/// What happened while everything was created.
struct Disturbed {
    /// The last leader.
    leader: Replica,
    standby: Replica,
    strikes: usize,
    /// Gangs that were bound in part when a leader was killed.
    cut: usize,
}

/// Creates everything while faults strike and leaders are killed.
async fn disturb(sandbox: &Arc<Handle>) -> Disturbed {
    let mut leader = Replica::start(sandbox).await;
    leader.until_it_leads().await;
    let mut standby = Replica::start(sandbox).await;
    let (mut strikes, mut cut) = (0, 0);
    for round in 0..KILLS {
        standby.until_it_is_warm().await;
        for part in 0..PARTS - 1 {
            create(sandbox, round * PARTS + part);
            strike_and_look(sandbox, &leader, &mut strikes).await;
        }
        leader.until("it has begun", |snapshot| snapshot.counters.placed > 0).await;
        leader.kill();
        let in_part = bound_in_part(sandbox);
        cut += in_part.len();
        create(sandbox, round * PARTS + PARTS - 1);
        let end = Instant::now() + PATIENCE;
        while !standby.leads() {
            assert!(Instant::now() < end, "nobody leads after kill {round}");
            strike_and_look(sandbox, &standby, &mut strikes).await;
        }
        leader = std::mem::replace(&mut standby, Replica::start(sandbox).await);
        let end = Instant::now() + PATIENCE;
        while bound_in_part(sandbox).iter().any(|gang| in_part.contains(gang)) {
            assert!(Instant::now() < end, "bound in part after kill {round}: {in_part:?}");
            strike_and_look(sandbox, &leader, &mut strikes).await;
        }
        check_nodes(sandbox);
    }
    Disturbed { leader, standby, strikes, cut }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_and_faults_lose_nothing_and_bind_nothing_twice() {
    let nodes = singles().div_ceil(SINGLES_PER_NODE);
    let sandbox = Arc::new(sandbox((0..nodes).map(machine).collect()).await);
    let begun = Instant::now();
    let Disturbed { mut leader, standby, strikes, cut } = disturb(&sandbox).await;
    sandbox.faults().clear();
    let end = Instant::now() + PATIENCE;
    while !unbound(&sandbox).is_empty() {
        assert!(Instant::now() < end, "not bound: {:?}", unbound(&sandbox));
        check_decisions(&sandbox, &leader.instance.snapshot());
        tokio::time::sleep(LOOK_EVERY).await;
    }
    // All members of all gangs are among the pods, so no gang is bound in part.
    let gangs = singles() / SINGLES_PER_GANG;
    let pods = sandbox.count("pods");
    assert_eq!(pods, singles() + gangs * MEMBERS);
    check_end(&sandbox, &mut leader).await;
    let took = begun.elapsed();
    let members: Vec<Vec<String>> = (0..gangs).map(members).collect();
    let begun_gangs = check_gangs(&sandbox.writes(), &leader.agent, &members);
    let begun_gangs = begun_gangs.unwrap_or_else(|wrong| panic!("{wrong}"));
    leader.stop().await;
    standby.stop().await;
    let writes: Writes = check(&sandbox);
    println!(
        "{pods} pods, {gangs} gangs, {strikes} strikes in {took:?}; {writes:?}; {cut} gangs bound in part at a kill; {begun_gangs:?}"
    );
    assert!(begun_gangs.whole >= gangs, "every gang was bound by somebody: {begun_gangs:?}");
    assert_eq!(writes.bound, pods);
    assert!(writes.hand_overs >= KILLS);
}
