//! What a standby does and answers, and what a leader does that is cut off from the API server.

use std::sync::Arc;
use std::time::Duration;

use pellucid::kubernetes::lease::leadership::Role;
use pellucid::model::PodKey;
use pellucid::sandbox::{Fault, Match};
use serde_json::{Value, json};

use crate::common::client;
use crate::common::running::{node, pod, with};
use crate::leader::load::Load;
use crate::leader::log_checks::check;
use crate::leader::replicas::{Replica, sandbox};

fn read(replica: &Replica, path: &str) -> Value {
    let reply = client::get(replica.instance.address, path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

fn metrics(replica: &Replica) -> String {
    client::get(replica.instance.address, "/metrics").text().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_knows_the_cluster_answers_reads_and_writes_nothing() {
    let sandbox = sandbox(vec![node("n", "z", 2)]).await;
    let mut leader = Replica::start(&sandbox).await;
    leader.until_it_leads().await;
    let mut standby = Replica::start(&sandbox).await;
    standby.until_it_is_warm().await;
    let gated = with(pod("gated", 100), "schedulingGates", json!([{"name": "example.com/wait"}]));
    for object in [pod("fits", 100), pod("big", 4_000), gated] {
        sandbox.create(object).expect("a pod");
    }
    let key = PodKey::new("default", "fits");
    let is_bound = |snapshot: &pellucid::cycle::Snapshot| {
        let pod = snapshot.find_pod(&key).filter(|(_, record)| record.node.is_some());
        pod.is_some() && snapshot.cluster.pods().count() == 3
    };
    let snapshot = standby.until("it sees the Binding of the leader", is_bound).await;
    // What the standby has read may reach the leader later.
    leader.until("it knows as much", is_bound).await;
    assert_eq!((snapshot.is_leading, snapshot.counters.attempts), (false, 0));
    assert_eq!(client::get(standby.instance.address, "/readyz").status, 200);
    for path in ["/apis/v1/explain/pods/default/big", "/apis/v1/explain/pods/default/fits", "/apis/v1/queue"]
    {
        assert_eq!(read(&standby, path)["meta"]["leader"], false, "{path}");
        assert_eq!(read(&leader, path)["meta"]["leader"], true, "{path}");
    }
    let status = "leader_election_master_status{name=\"pellucid\"}";
    assert!(metrics(&leader).contains(&format!("{status} 1\n")));
    assert!(metrics(&standby).contains(&format!("{status} 0\n")));
    // It would simulate as well as the leader, and becomes it without forgetting whom to tell.
    leader.stop().await;
    standby.until_it_leads().await;
    standby.until("it decides", |snapshot| snapshot.counters.attempts > 0).await;
    assert_eq!(read(&standby, "/apis/v1/explain/pods/default/big")["meta"]["leader"], true);
    let page = metrics(&standby);
    for name in [
        "hand_over_seconds",
        "catch_up_seconds",
        "refused_writes_total",
        "cut_off_writes_total",
        "failed_requests_total",
    ] {
        assert!(page.contains(&format!("\npellucid_leader_election_{name} ")), "{name}");
    }
    let agent = standby.agent.clone();
    standby.stop().await;
    check(&sandbox);
    let by = |agent: &str| sandbox.writes().iter().filter(|write| write.user_agent == agent).count();
    assert!(by(&agent) > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_stops_writing_and_ends() {
    let sandbox = Arc::new(sandbox((0..8).map(|n| node(&format!("n{n}"), "z", 64)).collect()).await);
    let mut leader = Replica::start(&sandbox).await;
    leader.until_it_leads().await;
    let mut standby = Replica::start(&sandbox).await;
    standby.until_it_is_warm().await;
    let load = Load::start(&sandbox);
    leader.until("it binds", |snapshot| snapshot.counters.bound > 10).await;
    let bindings = Match { user_agent: Some(leader.agent.clone()), ..Match::new("POST", "/binding") };
    sandbox.faults().during(bindings, Fault::BlackHole, Duration::MAX);
    let before = leader.instance.snapshot().counters.attempts;
    leader.until("Bindings are under way", |snapshot| snapshot.counters.attempts > before + 20).await;
    sandbox.faults().during(Match::of_client(&leader.agent), Fault::BlackHole, Duration::MAX);
    let why = tokio::time::timeout(crate::common::PATIENCE, leader.instance.ended()).await.expect("it ends");
    assert!(
        why.contains("the lease kube-system/pellucid was lost: it could not be renewed within 1.5s"),
        "{why}"
    );
    assert_eq!(leader.election().role, Role::Over);
    let right = leader.instance.io.leadership.as_ref().expect("it took part").right.clone();
    assert_eq!(right.limit(Duration::from_secs(1)), None);
    assert!(right.cut_off() + right.refused() > 0, "there were writes under way");
    leader.until("it knows", |snapshot| !snapshot.is_leading).await;
    standby.until_it_leads().await;
    load.settle(&sandbox).await;
    leader.kill();
    sandbox.faults().clear();
    standby.stop().await;
    assert_eq!(check(&sandbox).hand_overs, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_lease_another_took_ends_at_once() {
    let sandbox = sandbox(vec![node("n", "z", 2)]).await;
    let mut leader = Replica::start(&sandbox).await;
    leader.until_it_leads().await;
    let theirs = json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 60}});
    sandbox.merge("leases.coordination.k8s.io", "kube-system", "pellucid", &theirs).expect("taken by hand");
    let why = tokio::time::timeout(crate::common::PATIENCE, leader.instance.ended()).await.expect("it ends");
    assert!(why.contains("its holder is \"somebody\""), "{why}");
    leader.stop().await;
    let lease = sandbox.read("leases.coordination.k8s.io", "kube-system", "pellucid").expect("the lease");
    assert_eq!(lease["spec"]["holderIdentity"], "somebody", "a lost lease is not released");
}
