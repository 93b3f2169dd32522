//! Nominations and preemption, step by step.

use std::sync::Arc;

use pellucid::cluster::preemptions::{End, VictimState};
use pellucid::cluster::{Input, Stage};
use pellucid::framework::Reason;
use pellucid::model::effect::EvictOutcome;
use pellucid::model::object::Budget;
use pellucid::model::relations::{PodAffinityTerm, PodTerms};
use pellucid::model::selector::{LabelSelector, Labels};
use pellucid::model::{Object, Pod};
use pellucid::queue::QueueStage;
use pellucid::recording::{Outcome, Refusal};
use pellucid_api::reason::ReasonCode;

use crate::common::driver::Core;
use crate::common::made::{SECOND, core_with, labelled, node, on, pod, ranked};
use crate::common::ordered::Ordered;

impl Core {
    /// Applies a pod, plans, and returns the orders.
    fn try_pod(&mut self, pod: &Pod) -> Ordered {
        self.see(pod);
        self.plan()
    }

    fn refusal_of(&self, pod: &Pod) -> Arc<Refusal> {
        let id = self.id(pod).expect("the pod is there");
        match &self.scheduler.verdict(id).expect("it was tried").outcome {
            Outcome::Refused(refusal) => refusal.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn useful(&self) -> u64 {
        self.scheduler.cluster().preemptions().counts().useful
    }

    fn confirm(&mut self, pod: &Pod) {
        let node = self.node_of(pod).expect("it has a node");
        self.see(&on(pod, &node));
    }
}

#[test]
fn a_pod_evicts_waits_nominated_and_takes_the_room() {
    let mut core = core_with(&[node("a", 1000)]);
    let (low, high) = (ranked("low", 800, 0), ranked("high", 800, 10));
    core.see(&on(&low, "a"));
    let ordered = core.try_pod(&high);
    assert_eq!(ordered.victims(), ["low"]);
    assert_eq!(&*ordered.evictions[0].message, "pellucid: preempting to accommodate a higher priority pod");
    assert_eq!(ordered.nomination_of(&high), Some(Some("a".into())));
    let event = ordered.events.iter().find(|e| e.reason == "Preempted").expect("the victim is told");
    assert_eq!((&*event.pod.key.name, &*event.note), ("low", "Preempted by pod uid-high on node a"));
    assert_eq!(core.queued(&high), Some(QueueStage::Unschedulable));

    let dying = Pod { deleting: true, is_preempted: true, ..on(&low, "a") };
    core.see(&dying);
    let id = core.id(&high).expect("it waits");
    let book = core.scheduler.cluster().preemptions();
    assert_eq!(book.of(id).expect("under way").victims[0].state, VictimState::Terminating);

    core.delete(&low);
    assert_eq!(core.queued(&high), Some(QueueStage::Active), "it does not wait for its backoff");
    core.run();
    assert_eq!(core.node_of(&high).as_deref(), Some("a"));
    assert_eq!(core.nominated(&high), None);
    core.confirm(&high);
    assert_eq!((core.useful(), core.scheduler.cluster().preemptions().open().count()), (1, 0));
}

#[test]
fn a_pod_that_evicted_already_evicts_nobody_else() {
    let mut core = core_with(&[node("a", 1000), node("b", 1000)]);
    let high = ranked("high", 800, 10);
    for name in ["a", "b"] {
        core.see(&on(&ranked(&format!("low-{name}"), 800, 0), name));
    }
    assert_eq!(core.try_pod(&high).evictions.len(), 1);
    // Something wakes the pod while its victim still exists.
    core.see(&on(&ranked("tiny", 10, 0), "b"));
    core.delete(&ranked("tiny", 10, 0));
    core.wait(20 * SECOND);
    core.run_after(300 * SECOND);
    assert_eq!(core.ordered().evictions.len(), 0);
    let said = core.refusal_of(&high).post_filter.clone().expect("it was asked");
    assert_eq!(&*said, ReasonCode::PreemptionUnderWay.message(""));
    assert!(core.nominated(&high).is_some(), "its nomination stays");
}

#[test]
fn nobody_to_evict_is_said_with_numbers() {
    let mut core = core_with(&[node("a", 1000), node("b", 100)]);
    core.see(&on(&ranked("equal", 800, 10), "a"));
    let high = ranked("high", 800, 10);
    assert_eq!(core.try_pod(&high).evictions.len(), 0);
    let refusal = core.refusal_of(&high);
    assert_eq!(
        &*refusal.message(),
        "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: \
         1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    );
    let id = core.id(&high).expect("it waits");
    let plan = core.scheduler.verdict(id).expect("it was tried").plan.clone().expect("an account");
    let why: Vec<(Reason, usize)> =
        plan.rejected.iter().map(|r| (r.cause.reasons[0].clone(), r.count)).collect();
    assert_eq!(
        why,
        [(Reason::of(ReasonCode::PreemptionNotHelpful), 1), (Reason::of(ReasonCode::NoPreemptionVictims), 1)]
    );
}

#[test]
fn a_pod_that_never_preempts_waits() {
    let mut core = core_with(&[node("a", 1000)]);
    core.see(&on(&ranked("low", 800, 0), "a"));
    let high = Pod { never_preempts: true, ..ranked("high", 800, 10) };
    assert_eq!(core.try_pod(&high).evictions.len(), 0);
    assert_eq!(
        core.refusal_of(&high).post_filter.as_deref(),
        Some(&*ReasonCode::PreemptionPolicyNever.message(""))
    );
}

#[test]
fn room_is_kept_from_pods_of_no_higher_priority() {
    let mut core = core_with(&[node("a", 1000)]);
    let nominee = Pod { nominated_node: Some("a".into()), ..ranked("nominee", 2000, 5) };
    let nominee = Pod { spec: pod("x", 800).spec, ..nominee };
    // The nominated pod waits behind a gate, so that others come first; another scheduler nominated it.
    let gated = Pod { gates: ["example.com/wait".into()].into(), ..nominee.clone() };
    core.see(&gated);
    core.try_pod(&ranked("equal", 400, 5));
    assert_eq!(core.stage(&pod("equal", 0)), Some(Stage::Pending));
    core.try_pod(&ranked("small", 200, 5));
    assert_eq!(core.node_of(&pod("small", 0)).as_deref(), Some("a"), "what is left over is free");
    core.try_pod(&ranked("higher", 400, 6));
    assert_eq!(
        core.node_of(&pod("higher", 0)).as_deref(),
        Some("a"),
        "a nominee of lower priority keeps nothing"
    );
    // Once the nominated pod is gone its room is free, and the pods that it kept out are tried.
    core.delete(&ranked("higher", 400, 6));
    core.delete(&gated);
    core.run_after(2 * SECOND);
    assert_eq!(core.node_of(&pod("equal", 0)).as_deref(), Some("a"));
}

/// The second pass of article 003: what only a nominated pod would satisfy does not count.
#[test]
fn affinity_to_a_nominee_does_not_count() {
    let zone = |name: &str| {
        let labels = Labels::new([("zone".into(), "z".into())]);
        pellucid::model::Node { labels, ..node(name, 1000) }
    };
    let mut core = core_with(&[zone("a")]);
    let nominee = Pod {
        nominated_node: Some("a".into()),
        gates: ["example.com/wait".into()].into(),
        ..labelled(ranked("nominee", 100, 5), "app", "db")
    };
    core.see(&nominee);
    let term = PodAffinityTerm {
        topology_key: "zone".into(),
        selector: Some(LabelSelector::of_pairs(&[("app".into(), "db".into())])),
        ..PodAffinityTerm::default()
    };
    let mut near = ranked("near", 100, 5);
    Arc::make_mut(&mut near.spec).pod_affinity = PodTerms { required: [term].into(), preferred: [].into() };
    core.try_pod(&near);
    let refusal = core.refusal_of(&near);
    assert_eq!(refusal.groups[0].cause.reasons[0].code, ReasonCode::PodAffinityMismatch);
    core.see(&on(&labelled(ranked("nominee", 100, 5), "app", "db"), "a"));
    core.run_after(2 * SECOND);
    assert_eq!(core.node_of(&near).as_deref(), Some("a"));
}

#[test]
fn a_higher_pod_takes_the_node_from_a_nominee() {
    let mut core = core_with(&[node("a", 1000)]);
    let (low, middle, top) = (ranked("low", 800, 0), ranked("middle", 800, 5), ranked("top", 800, 9));
    core.see(&on(&low, "a"));
    assert_eq!(core.try_pod(&middle).victims(), ["low"]);
    let ordered = core.try_pod(&top);
    assert_eq!(ordered.victims(), Vec::<&str>::new(), "the victim is on its way already");
    assert_eq!(ordered.nomination_of(&middle), Some(None), "cleared in the API too");
    assert_eq!((core.nominated(&middle), core.nominated(&top)), (None, Some("a".into())));
    assert_eq!(core.wasted(End::Overtaken), 0, "the eviction is of use to the other pod");
    core.delete(&low);
    core.run();
    assert_eq!(core.node_of(&top).as_deref(), Some("a"));
    core.confirm(&top);
    assert_eq!(core.useful(), 1);
}

#[test]
fn a_nomination_ends_with_its_node() {
    let mut core = core_with(&[node("a", 1000)]);
    let (low, high) = (ranked("low", 800, 0), ranked("high", 800, 10));
    core.see(&on(&low, "a"));
    core.try_pod(&high);
    core.apply(Input::NodeDeleted("a".into()));
    assert_eq!(core.nominated(&high), None);
    assert_eq!(core.ordered().nomination_of(&high), Some(None));
    assert_eq!(core.wasted(End::NodeGone), 1);
}

#[test]
fn a_nomination_ends_with_its_pod_and_with_a_place_elsewhere() {
    let mut core = core_with(&[node("a", 1000)]);
    let high = ranked("high", 800, 10);
    core.see(&on(&ranked("low", 800, 0), "a"));
    core.try_pod(&high);
    core.delete(&high);
    assert_eq!(core.wasted(End::PreemptorGone), 1);
    assert!(core.scheduler.cluster().nominator().is_empty());

    let mut core = core_with(&[node("a", 1000)]);
    core.see(&on(&ranked("low", 800, 0), "a"));
    core.try_pod(&high);
    core.see_node(&node("b", 1000));
    core.run_after(20 * SECOND);
    assert_eq!(core.node_of(&high).as_deref(), Some("b"));
    core.confirm(&high);
    assert_eq!(core.wasted(End::PlacedElsewhere), 1);
}

#[test]
fn a_refused_eviction_is_noted_and_tried_again() {
    let mut core = core_with(&[node("a", 1000)]);
    let high = ranked("high", 800, 10);
    core.see(&on(&ranked("low", 800, 0), "a"));
    let ordered = core.try_pod(&high);
    let outcome = EvictOutcome::Refused { status: 500, message: "etcd is away".into() };
    core.evicted(&ordered.evictions[0], outcome);
    let preemptor = core.id(&high).expect("it waits");
    let book = core.scheduler.cluster().preemptions();
    assert!(
        matches!(&book.of(preemptor).expect("open").victims[0].state, VictimState::Refused(m) if m.contains("500"))
    );
    core.run_after(20 * SECOND);
    assert_eq!(core.ordered().victims(), ["low"], "tried again");
    assert_eq!(core.wasted(End::ChosenAgain), 0, "a refused eviction cost nothing");
}

#[test]
fn protected_pods_are_the_last_choice() {
    let mut core = core_with(&[node("a", 1000), node("b", 1000)]);
    core.see_object(Object::PodDisruptionBudget(Budget {
        namespace: "ns".into(),
        name: "web".into(),
        selector: Some(LabelSelector::of_pairs(&[("app".into(), "web".into())])),
        allowed: 0,
        ..Budget::default()
    }));
    core.see(&on(&labelled(ranked("web", 800, 0), "app", "web"), "a"));
    core.see(&on(&ranked("batch", 800, 3), "b"));
    let high = ranked("high", 800, 10);
    assert_eq!(core.try_pod(&high).victims(), ["batch"], "a budget weighs more than priority");
    let id = core.id(&high).expect("it waits");
    let plan = core.scheduler.verdict(id).expect("tried").plan.clone().expect("an account");
    assert_eq!(plan.decided_by, Some("fewest budget violations"));
    assert_eq!(plan.candidates[1].cost.budget_violations, 1);
}

#[test]
fn a_later_attempt_that_finds_nothing_clears_the_nomination() {
    let mut core = core_with(&[node("a", 1000)]);
    let high = ranked("high", 800, 10);
    core.see(&on(&ranked("low", 800, 0), "a"));
    core.try_pod(&high);
    // A pod that it may not evict takes its victim's room.
    core.delete(&ranked("low", 800, 0));
    core.attempt(&on(&ranked("equal", 800, 10), "a"));
    assert_eq!(core.nominated(&high), None);
    assert_eq!(core.ordered().nomination_of(&high), Some(None));
    assert_eq!(core.wasted(End::NothingFound), 1);
}

#[test]
fn without_any_node_nobody_is_nominated() {
    let mut core = core_with(&[]);
    let pod = Pod { nominated_node: Some("a".into()), ..ranked("p", 800, 10) };
    core.see(&pod);
    assert_eq!(core.nominated(&pod).as_deref(), Some("a"), "somebody else said so");
    assert_eq!(core.try_pod(&pod).nomination_of(&pod), Some(None), "cleared in the API too");
    assert_eq!(core.nominated(&pod), None);
}
