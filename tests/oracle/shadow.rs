//! The recorded decisions as those of a scheduler that is shadowed: shadow mode finds each node of kube-scheduler's
//! feasible and among the best by score, and no refusal of its own making.

use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::cycle::scheduler::shadow::judged::Judged;
use pellucid::model::Pod;
use pellucid::model::pod::ScheduledCondition;
use serde_json::Value;

use crate::{ALL, Case, SCORED, lines, own_copy};

const THEIRS: &str = "default-scheduler";

/// Lets the shadow see what kube-scheduler did with the target; returns its judgement.
fn judged(case: &mut Case) -> Arc<Judged> {
    case.core.run();
    let (node, message) = (case.result.get("node"), case.result.get("message"));
    let said = |message: &Value| ScheduledCondition {
        is_true: false,
        reason: "Unschedulable".into(),
        message: message.as_str().expect("a message").into(),
    };
    let seen = Pod {
        node_name: node.map(|node| node.as_str().expect("a name").into()),
        scheduled: message.map(said),
        ..case.pod.clone()
    };
    case.core.apply(Input::PodApplied(Arc::new(seen)));
    case.core.scheduler.publish(case.core.now).shadow.expect("shadow mode").judged
}

#[test]
fn recorded_bindings_are_among_the_best_for_the_shadow() {
    let (mut same, mut equal, mut scored, mut refused) = (0, 0, 0, 0);
    let cases = lines("schedule.jsonl");
    for case in &cases {
        let mut case = Case::read_with(case, Some(THEIRS));
        let judged = judged(&mut case);
        assert!(judged.disagreements.is_empty(), "{}: {:?}", case.id, judged.disagreements);
        assert_eq!(judged.not_judged, 0, "{}", case.id);
        let is_bound = case.result.get("node").is_some();
        assert_eq!(judged.bindings(), u64::from(is_bound), "{}", case.id);
        (same, equal) = (same + judged.same_node, equal + judged.equal_score);
        scored += usize::from(case.result.get("scores").is_some());
        refused += usize::from(!is_bound);
    }
    println!(
        "{} cases: {same} on our node, {equal} on one of equal score, {refused} refused by both",
        cases.len()
    );
    if own_copy() {
        assert!(cases.len() >= ALL && scored >= SCORED, "{} cases, {scored} scored", cases.len());
        assert!(same > 0 && equal > 0 && refused > 0, "{same} {equal} {refused}");
    }
}
