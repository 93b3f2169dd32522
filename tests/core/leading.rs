//! A standby: its state is current, it plans and orders nothing, and when it begins to lead it has forgotten nobody.

use pellucid::cluster::{Input, Stage};
use pellucid::model::effect::Effect;
use pellucid::queue::QueueStage;

use crate::common::cluster::SCHEDULER;
use crate::common::driver::{Core, default_profile, settings};
use crate::common::made::{SECOND, in_gang, node, on, pod};

/// Makes a standby that knows node `a`.
fn standby() -> Core {
    let mut core = Core::new(settings(default_profile(SCHEDULER)));
    core.apply(Input::Leading(false));
    core.see_node(&node("a", 1000));
    core
}

#[test]
fn a_standby_follows_the_leader_and_plans_nothing() {
    let mut core = standby();
    let (bound, waits) = (pod("bound", 600), pod("waits", 600));
    core.see(&bound);
    core.see(&waits);
    assert!(core.run_after(SECOND).is_empty() && !core.scheduler.has_work());
    core.see(&on(&bound, "a"));
    assert_eq!((core.node_of(&bound).as_deref(), core.stage(&bound)), (Some("a"), Some(Stage::Bound)));
    assert_eq!(core.scheduler.queue().units().count(), 1, "the other one waits");
    assert!(core.scheduler.take_effects().is_empty());
    assert!(!core.scheduler.is_leading());
    // What the former leader bound counts from the first attempt on.
    core.apply(Input::Leading(true));
    let steps = core.run();
    assert_eq!((steps.len(), core.node_of(&waits)), (1, None));
    assert_eq!(core.ordered().events.len(), 1);
    assert!(core.scheduler.is_leading());
}

#[test]
fn a_new_leader_tells_those_whom_no_attempt_will_tell() {
    let mut core = standby();
    let gated = pellucid::model::Pod { gates: Box::new(["example.com/wait".into()]), ..pod("gated", 100) };
    core.see(&gated);
    core.see(&in_gang(pod("member", 100), "g", 2));
    core.wait(60 * SECOND);
    assert!(core.scheduler.take_effects().is_empty());
    let stages: Vec<_> = core.scheduler.queue().units().map(|(_, unit)| unit.stage).collect();
    assert_eq!(stages, [QueueStage::Gated; 2]);
    core.apply(Input::Leading(true));
    let effects = core.scheduler.take_effects();
    let mut told: Vec<_> = effects
        .iter()
        .filter_map(|effect| if let Effect::Status(order) = effect { Some(order) } else { None })
        .filter_map(|order| Some((order.pod.key.name.to_string(), order.condition.as_ref()?.reason)))
        .collect();
    told.sort();
    assert_eq!(told, [("gated".into(), "SchedulingGated"), ("member".into(), "SchedulingGated")]);
    // It leads already, so nothing is said twice.
    core.apply(Input::Leading(true));
    assert!(core.scheduler.take_effects().is_empty());
}
