//! Shadow mode judges the other scheduler's decisions on the state right before each.

use std::sync::Arc;

use pellucid::cycle::scheduler::shadow::judged::{Judged, Judgement};
use pellucid::model::pod::ScheduledCondition;
use pellucid::model::{Node, Pod};

use crate::common::driver::{Core, default_profile, settings};
use crate::common::made::{SECOND, node, on, pod};

const THEIRS: &str = "theirs";

fn theirs(name: &str, cpu: i64) -> Pod {
    Pod { scheduler_name: THEIRS.into(), ..pod(name, cpu) }
}

fn shadow(nodes: &[Node]) -> Core {
    let mut made = settings(default_profile("pellucid"));
    made.shadow_of = Some(THEIRS.into());
    let mut core = Core::new(made);
    nodes.iter().for_each(|node| core.see_node(node));
    core
}

/// Shows a pod, lets the scheduler plan it, and shows where the other one bound it.
fn bound(core: &mut Core, pod: &Pod, node: &str) {
    core.see(pod);
    core.run();
    core.see(&on(pod, node));
}

fn judged(core: &mut Core) -> Arc<Judged> {
    core.scheduler.publish(core.now).shadow.expect("shadow mode").judged
}

#[test]
fn each_kind_of_decision_is_told_apart() {
    let mut core = shadow(&[node("a", 4_000), node("b", 4_000), node("small", 400)]);
    // Of two equal empty nodes one is ours; the other has the same score.
    let first = theirs("p1", 500);
    core.see(&first);
    core.run();
    let ours = core.node_of(&first).expect("a place");
    let other = if ours == "a" { "b" } else { "a" };
    core.see(&on(&first, other));
    assert_eq!((judged(&mut core).same_node, judged(&mut core).equal_score), (0, 1));
    // The emptier node is better now.
    bound(&mut core, &theirs("p2", 500), other);
    let all = judged(&mut core);
    assert_eq!((all.lower_score, all.within_sampling), (1, 0));
    let example = all.disagreements.back().expect("an example");
    let Judgement::LowerScore { totals: (theirs_total, best), better: 1, feasible: 2, .. } =
        example.judgement
    else {
        panic!("{example:?}")
    };
    assert!(theirs_total < best, "{example:?}");
    let sum: i64 = example.shares.iter().map(|(_, a, b)| a.unwrap_or(0) - b.unwrap_or(0)).sum();
    assert_eq!(sum, best - theirs_total, "the shares add up to the distance: {example:?}");
    assert_eq!(all.distances.iter().sum::<u64>(), 1);
    // A node that cannot take it, and a pod that nothing can take.
    bound(&mut core, &theirs("p3", 500), "small");
    bound(&mut core, &theirs("p4", 9_000), "small");
    let all = judged(&mut core);
    assert_eq!((all.infeasible, all.infeasible_everywhere, all.causes["InsufficientResource"]), (2, 1, 2));
    assert_eq!((all.bindings(), all.not_judged), (4, 0));
}

#[test]
fn our_own_plan_is_not_in_the_way() {
    // Ten pods fill the nodes in our plan, and the other scheduler sends them elsewhere, one by one.
    let mut core = shadow(&[node("a", 1_000), node("b", 1_000)]);
    let pods: Vec<Pod> = (0..20).map(|n| theirs(&format!("p{n}"), 100)).collect();
    pods.iter().for_each(|pod| core.see(pod));
    core.run();
    for (pod, node) in pods.iter().zip(["b", "a"].into_iter().cycle()) {
        core.see(&on(pod, node));
    }
    let all = judged(&mut core);
    assert_eq!((all.bindings(), all.infeasible, all.lower_score), (20, 0, 0), "{:?}", all.disagreements);
}

#[test]
fn a_pod_they_refuse_is_judged_once_and_only_if_we_find_a_node() {
    let mut core = shadow(&[node("a", 1_000)]);
    let refused = |pod: &Pod| Pod {
        scheduled: Some(ScheduledCondition {
            is_true: false,
            reason: "Unschedulable".into(),
            message: "0/1 nodes are available".into(),
        }),
        ..pod.clone()
    };
    let (fits, too_big) = (theirs("fits", 100), theirs("too-big", 9_000));
    for pod in [&fits, &too_big] {
        core.see(pod);
        core.run();
        core.see(&refused(pod));
        core.see(&refused(pod));
    }
    let all = judged(&mut core);
    assert_eq!((all.refused_by_them, all.disagreements.len()), (1, 1));
}

#[test]
fn the_same_scheduler_with_other_ties_is_always_best_by_score() {
    let nodes: Vec<Node> = (0..12).map(|n| node(&format!("n{n:02}"), 4_000)).collect();
    let mut other = settings(default_profile(THEIRS));
    other.seed = 99;
    let mut peer = Core::new(other);
    nodes.iter().for_each(|node| peer.see_node(node));
    let mut core = shadow(&nodes);
    for n in 0..120_i64 {
        let pod = theirs(&format!("p{n}"), 100 + n * 37 % 250);
        peer.see(&pod);
        core.see(&pod);
        core.run();
        peer.run();
        let Some(order) = peer.orders().pop() else { continue };
        core.wait(SECOND / 100);
        let bound = on(&pod, order.node.as_str());
        peer.see(&bound);
        core.see(&bound);
    }
    let all = judged(&mut core);
    assert!(all.bindings() > 100, "{all:?}");
    assert_eq!((all.infeasible, all.lower_score, all.refused_by_them), (0, 0, 0), "{:?}", all.disagreements);
    assert!(all.equal_score > 0 && all.same_node > 0, "ties are broken otherwise: {all:?}");
    let (n, p50, _) = all.theirs_took.quantiles().expect("times");
    assert!(n > 100 && p50 == SECOND / 100, "{n} {p50:?}");
}

#[test]
fn a_flood_of_bindings_is_counted_and_not_judged() {
    let mut core = shadow(&[node("a", 1_000_000)]);
    let pods: Vec<Pod> = (0..300).map(|n| theirs(&format!("p{n}"), 1)).collect();
    pods.iter().for_each(|pod| core.see(pod));
    pods.iter().for_each(|pod| core.see(&on(pod, "a")));
    let all = judged(&mut core);
    assert_eq!(all.bindings() + all.not_judged, 300);
    assert!(all.not_judged >= 100, "{}", all.not_judged);
}
