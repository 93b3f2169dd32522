//! Who waits, who is permitted and who is bound, looked at while it is so.

use std::time::Duration;

use pellucid::sandbox::{Fault, Match};

use crate::made::{light, names, nodes, patient};
use crate::running::{Hand, node, start, start_with};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_middle_of_a_wait_the_sets_are_exact() {
    let mut running = start_with(nodes(1, 3), None, Some(Hand::default())).await;
    let members = names("g", 5);
    running.create(members.iter().map(|name| patient("g", name, 5, 1000, "60s")));
    let (mut waiting, mut pending) = (Vec::new(), Vec::new());
    for name in &members {
        let body =
            running.explained(name, "decided", |b| b["verdict"] == "refused" || !b["placement"].is_null());
        match body["placement"]["stage"].as_str() {
            Some("waiting") => waiting.push(name.clone()),
            None if body["queueStage"] == "unschedulable" => pending.push(name.clone()),
            _ => panic!("{name} is in neither set: {body:#}"),
        }
    }
    assert_eq!((waiting.len(), pending.len()), (3, 2));
    assert_eq!(running.placed("g-").await.0.len(), 0, "waiting members have no node on the API server");
    running.create([node("more", "z", 2)]);
    running.all_run(&members).await;
    members.iter().for_each(|name| running.in_stage(name, "bound"));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_middle_of_a_slow_bind_the_sets_are_exact() {
    let mut running = start(nodes(1, 4)).await;
    let slow = Match { path_contains: "/pods/g-2/".into(), ..Match::on("POST", "pods/binding") };
    running.sandbox.faults().next(slow, Fault::Delay(Duration::from_secs(30)));
    let members = names("g", 4);
    running.create(members.iter().map(|name| light("g", name, 4, 1000)));
    for name in ["g-0", "g-1", "g-3"] {
        running.in_stage(name, "bound");
    }
    running.in_stage("g-2", "binding");
    let (bound, left) = running.placed("g-").await;
    assert_eq!((bound.len(), left.into_iter().collect::<Vec<_>>()), (3, vec!["g-2".to_owned()]));
    running.pass(30);
    running.all_run(&members).await;
    running.in_stage("g-2", "bound");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_binding_fails_is_planned_again_beside_those_that_are_bound() {
    let mut running = start(nodes(1, 4)).await;
    let refused = Match { path_contains: "/pods/g-1/".into(), ..Match::on("POST", "pods/binding") };
    running.sandbox.faults().next(refused, Fault::Status(403));
    let members = names("g", 4);
    running.create(members.iter().map(|name| light("g", name, 4, 1000)));
    running.all_run(&members).await;
    members.iter().for_each(|name| running.in_stage(name, "bound"));
    assert_eq!(running.sandbox.faults().pending(), 0, "the Binding was refused once");
    running.stop().await;
}
