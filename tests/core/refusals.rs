//! Refusals of a shape that is tried again and again, which are kept in step with the nodes that change between.

use pellucid::model::{Node, Pod};
use pellucid::recording::Outcome;

use crate::common::driver::Core;
use crate::common::made::{core_with, node, on, pod};

const NODES: usize = 130;
/// Pods that come and go.
const PODS: usize = 500;

fn name(i: usize) -> String {
    format!("node-{i}")
}

/// Returns a node of one of four sizes. Two are too small for the pod that is tried, one has room for two pods alone.
fn sized(i: usize) -> Node {
    let mut made = node(&name(i), [1000, 2000, 6000, 9000][i % 4]);
    made.allocatable.pods = if i % 4 == 3 { 2 } else { 10 };
    made
}

/// Tries a pod for which there is no node. Returns what is said of it.
fn tried(core: &mut Core, round: usize) -> String {
    let tried = |round: usize| pod(&format!("tried-{round}"), 4000);
    core.see(&tried(round));
    // The one before was there until now, since a shape that no pod has is forgotten.
    core.delete(&tried(round.wrapping_sub(1)));
    let steps = core.run();
    let [step] = &steps[..] else { panic!("{} attempts", steps.len()) };
    let Outcome::Refused(refusal) = &step.verdict.outcome else { panic!("round {round}: it found a node") };
    let counts = (refusal.total_nodes, refusal.not_evaluated, refusal.refused_by);
    format!("{} {counts:?} {:?}", refusal.message(), refusal.groups)
}

#[test]
fn what_is_kept_of_a_refusal_is_what_would_be_made_anew() {
    let nodes: Vec<Node> = (0..NODES).map(sized).collect();
    let mut cores = [core_with(&nodes), core_with(&nodes)];
    cores[1].switches.set_reuse(false);
    let full = |i: usize| on(&pod(&format!("full-{i}"), [0, 0, 2500, 5500][i % 4]), &name(i));
    for i in 0..NODES {
        cores.iter_mut().for_each(|core| core.see(&full(i)));
    }
    let mut state = 11_u64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let mut there: Vec<Option<Pod>> = vec![None; PODS];
    let mut told = std::collections::BTreeSet::new();
    for round in 0..400 {
        // Now and then so many nodes change that it is not worth while to keep anything, or a Node object does.
        for _ in 0..if round % 40 == 39 { 200 } else { 1 + below(4) } {
            let i = below(PODS);
            match there[i].take() {
                Some(gone) => cores.iter_mut().for_each(|core| core.delete(&gone)),
                None => {
                    let came = on(&pod(&format!("pod-{i}"), 20 * below(12) as i64), &name(below(NODES)));
                    cores.iter_mut().for_each(|core| core.see(&came));
                    there[i] = Some(came);
                }
            }
        }
        if round % 25 == 24 {
            let mut changed = sized(below(NODES));
            changed.allocatable.milli_cpu += below(3) as i64 * 100;
            cores.iter_mut().for_each(|core| core.see_node(&changed));
        }
        let [kept, anew] = cores.each_mut().map(|core| tried(core, round));
        assert_eq!(kept, anew, "round {round}");
        told.insert(kept);
    }
    assert!(told.len() > 50, "{} different refusals", told.len());
}
