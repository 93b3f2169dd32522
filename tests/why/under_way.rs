//! Evictions that are under way and pods that are being deleted: outlook and simulation say the same of the pod that
//! waits for them, and it is what happens.

use std::sync::Arc;

use pellucid::diagnosis::what_if::simulate::{Question, simulate};
use pellucid::model::taint::{Taint, TaintEffect, Toleration, TolerationOperator};
use pellucid::model::{Node, Pod, PodKey, PodSpec};
use pellucid_api::rest::simulate::Simulation;
use serde_json::{Value, json};

use crate::common::driver::Core;
use crate::common::made::{SECOND, core_with, node, on, pod, ranked};
use crate::common::reads::{ask, list, text};

fn simulated(core: &mut Core, name: &str, evict: bool) -> Simulation {
    let snapshot = core.scheduler.publish(core.now);
    let question = Question { pods: vec![PodKey::new("ns", name)], evict, ..Question::default() };
    simulate(&snapshot, &question, core.now).expect("it is pending")
}

/// Returns where the pod would go if pods leave, and the names of the victims.
fn goes_to(core: &mut Core, name: &str) -> (Option<String>, Vec<String>) {
    let body = simulated(core, name, true);
    let node = body.placements.into_iter().find(|placed| placed.pod == format!("ns/{name}"));
    (node.map(|placed| placed.node), body.victims.into_iter().map(|victim| victim.pod).collect())
}

/// Returns the outlook in the explanation, and checks that a simulation in which nobody leaves says the same.
fn outlook(core: &mut Core, name: &str) -> Value {
    let explained = ask(core, &format!("/apis/v1/explain/pods/ns/{name}"))["outlook"].clone();
    let refused = simulated(core, name, false).refused;
    assert_eq!(refused.len(), 1, "it waits for somebody to leave");
    assert_eq!(json!(refused[0].outlook), explained);
    explained
}

#[test]
fn an_eviction_that_is_under_way_is_carried_out() {
    let mut core = core_with(&[node("a", 1000), node("b", 1000)]);
    core.see(&on(&ranked("low-a", 800, 1), "a"));
    core.see(&on(&ranked("low-b", 800, 5), "b"));
    core.attempt(&ranked("high", 800, 10));
    assert_eq!(list(&ask(&mut core, "/apis/v1/evictions"), "/evictions")[0]["state"], "ordered");
    for state in ["ordered", "terminating"] {
        let told = json!({
            "code": "FitsAfterPreemption", "node": "a", "wouldLeave": ["ns/low-a"],
            "message": "a takes it once pod ns/low-a has left, which is being evicted for it",
        });
        assert_eq!(outlook(&mut core, "high"), told, "{state}");
        let expected = (Some("a".to_owned()), vec!["ns/low-a".to_owned()]);
        assert_eq!(goes_to(&mut core, "high"), expected, "{state}");
        // The API server has taken the eviction, and the pod ends.
        core.see(&Pod { deleting: true, ..on(&ranked("low-a", 800, 1), "a") });
    }
    core.delete(&ranked("low-a", 800, 1));
    core.run();
    assert_eq!(core.node_of(&pod("high", 800)).as_deref(), Some("a"));
    assert_eq!(core.node_of(&pod("low-b", 800)).as_deref(), Some("b"), "nobody else had to go");
}

#[test]
fn a_pod_that_is_being_deleted_leaves() {
    let mut core = core_with(&[node("a", 1000), node("b", 500)]);
    let old = pod("old", 800);
    core.see(&Pod { deleting: true, ..on(&old, "a") });
    core.attempt(&pod("p", 800));
    assert_eq!(text(&outlook(&mut core, "p"), "/code"), "NotNow");
    assert_eq!(goes_to(&mut core, "p"), (Some("a".to_owned()), vec![]), "nobody is evicted for it");
    core.delete(&old);
    core.run_after(SECOND);
    assert_eq!(core.node_of(&pod("p", 800)).as_deref(), Some("a"));
}

#[test]
fn on_a_node_that_is_not_reached_nobody_ends() {
    let key = "node.kubernetes.io/unreachable";
    let taint = Taint { key: key.into(), value: "".into(), effect: TaintEffect::NoExecute };
    let mut core = core_with(&[Node { taints: [taint].into(), ..node("a", 1000) }]);
    core.see(&Pod { deleting: true, ..on(&pod("old", 800), "a") });
    // It tolerates everything, so that only room keeps it away.
    let p = pod("p", 800);
    let everything =
        Toleration { key: "".into(), operator: TolerationOperator::Exists, value: "".into(), effect: None };
    core.attempt(&Pod {
        spec: Arc::new(PodSpec { tolerations: [everything].into(), ..PodSpec::clone(&p.spec) }),
        ..p
    });
    assert_eq!(goes_to(&mut core, "p"), (None, vec![]));
    assert_eq!(text(&outlook(&mut core, "p"), "/code"), "NotNow", "somebody may remove the pod or the node");
}
