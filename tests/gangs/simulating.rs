//! Gangs in a simulation: planned whole, while the clock stands still.

use std::sync::Arc;

use pellucid::cycle::what_if::edit::{Edit, Target};
use pellucid::cycle::what_if::simulation::Simulation;
use pellucid::diagnosis::what_if::simulate::{Question, simulate};
use pellucid::model::{GangKey, PodKey};
use pellucid_api::reason::ReasonCode;
use serde_json::json;

use crate::common::driver::Core;
use crate::common::made::on;
use crate::common::reads::{ask, list, text};
use crate::gangs::made::{SECOND, core_with, member, members, non_strict, single, terms};

#[test]
fn no_wait_runs_out_in_a_plan() {
    let mut core = core_with(&[3000]);
    let snapshot = core.scheduler.publish(core.now);
    let mut simulation = Simulation::of(&snapshot, core.now);
    let pods = members("g", 4, 1000, &non_strict(4, SECOND));
    for pod in &pods {
        simulation.edit(&Edit::ApplyPod(Arc::new(pod.clone()))).expect("it can be added");
    }
    simulation.plan(true);
    assert!(!simulation.truncated, "{} steps", simulation.steps().len());
    assert_eq!(
        pods.iter().filter(|pod| simulation.is_placed(&pod.key)).count(),
        3,
        "three wait for the fourth"
    );
    assert!(core.run().is_empty(), "nothing of it came to the live state");
}

#[test]
fn whoever_asks_for_a_member_asks_for_its_gang() {
    let mut core = core_with(&[1000, 1000]);
    core.attempt_all(&members("g", 3, 1000, &terms(3)));
    let snapshot = core.scheduler.publish(core.now);
    let key = PodKey::new("ns", "g-0");
    let first = snapshot.cluster.pods().map(|(_, r)| r.pod.key.clone()).min().unwrap_or(key);
    let mut simulation = Simulation::of(&snapshot, core.now);
    assert!(simulation.ask(&first));
    simulation.plan(false);
    let gang = Target::Gang(core.gang("g").key.clone());
    assert_eq!(simulation.outcomes().count(), 3, "all members are reported");
    assert!(simulation.block(&core.gang("g").key).is_none(), "nobody is missing");
    let verdict = simulation.gang_verdict(&core.gang("g").key).expect("it was planned");
    assert!(format!("{verdict:?}").contains("GangInsufficientCapacity"), "{verdict:?}");
    // With room for the third member, the gang is complete.
    let mut simulation = Simulation::of(&snapshot, core.now);
    let resource = "cpu".into();
    simulation
        .edit(&Edit::SetRequest { of: gang, resource, amount: 500, instead_of: None })
        .expect("its pods wait");
    simulation.plan(false);
    assert!(simulation.outcomes().all(|(key, _)| simulation.is_placed(key)));
}

#[test]
fn a_gang_that_is_short_says_what_is_missing() {
    let mut core = core_with(&[3000]);
    core.see_all(&[member("g", "a", 1000, terms(3)), member("g", "b", 1000, terms(3))]);
    let snapshot = core.scheduler.publish(core.now);
    let mut simulation = Simulation::of(&snapshot, core.now);
    assert!(simulation.ask(&PodKey::new("ns", "a")));
    simulation.plan(true);
    let block = simulation.block(&core.gang("g").key).expect("the third is missing");
    assert_eq!(block.code, ReasonCode::GangQuorumMissing);
    assert!(block.message().ends_with("2 of 3 are there"), "{}", block.message());
}

/// Returns the remedy for gang `g` in a simulation and in its explanation.
fn remedies(core: &mut Core) -> [String; 2] {
    let snapshot = core.scheduler.publish(core.now);
    let question = Question { gangs: vec![GangKey::new("ns", "g")], ..Question::default() };
    let body = simulate(&snapshot, &question, core.now).expect("it can be asked");
    let simulated = body.gangs[0].verdict.clone().expect("it has no quorum");
    let explained = ask(core, "/apis/v1/explain/gangs/ns/g");
    assert_eq!(simulated.resolver, text(&explained, "/verdict/resolver"));
    [simulated.remedy, text(&explained, "/verdict/remedy").to_owned()]
}

#[test]
fn nobody_is_told_to_wait_for_what_never_comes() {
    let mut core = core_with(&[2000]);
    core.see(&on(&single("filler", 1000), "n0"));
    core.attempt_all(&members("g", 3, 1000, &terms(3)));
    let [simulated, explained] = remedies(&mut core);
    assert!(simulated.contains("add nodes") && !simulated.contains("Wait for pods"), "{simulated}");
    assert_eq!(simulated, explained);
    // With room for all once the filler has ended, waiting helps.
    let mut core = core_with(&[3000]);
    core.see(&on(&single("filler", 1000), "n0"));
    core.attempt_all(&members("g", 3, 1000, &terms(3)));
    let [simulated, explained] = remedies(&mut core);
    assert!(simulated.starts_with("Wait for pods to end"), "{simulated}");
    assert_eq!(simulated, explained);
}

#[test]
fn who_takes_the_room_of_a_gang_is_named() {
    let mut core = core_with(&[2000]);
    core.see(&on(&single("filler", 2000), "n0"));
    core.attempt(&single("ahead", 2000));
    core.wait(SECOND);
    core.attempt_all(&members("g", 2, 1000, &terms(2)));
    for of in ["gangs/ns/g", "pods/ns/g-0"] {
        let body = ask(&mut core, &format!("/apis/v1/explain/{of}/suggestions"));
        let fix = list(&body, "/fixes").iter().find(|fix| fix["text"] == "let pod ns/filler go");
        let fix = fix.unwrap_or_else(|| panic!("{body:#}"));
        assert_eq!((&fix["inCompany"], &fix["takenBy"]), (&json!("taken"), &json!(["ns/ahead"])), "{of}");
    }
    // It is what happens.
    core.delete(&single("filler", 2000));
    core.run_after(60 * SECOND);
    assert_eq!(core.node_of(&single("ahead", 2000)).as_deref(), Some("n0"));
    assert_eq!(core.gang("g").counted(), 0);
}
