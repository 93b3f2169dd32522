//! A gang preempts as one: victims for the whole quorum, or none.
//!
//! `corners` covers what users see of it and what happens before Bindings, `clusters` random clusters.

mod clusters;
mod corners;

use std::collections::BTreeSet;

use pellucid::cluster::Input;
use pellucid::cluster::preemptions::End;
use pellucid::model::effect::EvictOutcome;
use pellucid::model::object::Budget;
use pellucid::model::selector::{LabelSelector, Labels};
use pellucid::model::{Name, Node, Object, Pod};
use pellucid::queue::QueueStage;
use pellucid_api::reason::ReasonCode;

use crate::common::driver::Core;
use crate::common::made::on;
use crate::common::ordered::Ordered;
use crate::common::reads::{ask, list, text};
use crate::gangs::made::{SECOND, core_with, host, member, members, non_strict, single, terms};

fn ranked(pod: Pod, priority: i32) -> Pod {
    Pod { priority, ..pod }
}

/// Makes a running pod of priority 0.
fn victim(name: &str, milli_cpu: i64, node: &str) -> Pod {
    on(&single(name, milli_cpu), node)
}

/// Makes equal members of priority 10.
fn high(n: usize, milli_cpu: i64, min: u32) -> Vec<Pod> {
    members("high", n, milli_cpu, &terms(min)).into_iter().map(|pod| ranked(pod, 10)).collect()
}

impl Core {
    fn try_gang(&mut self, pods: &[Pod]) -> Ordered {
        self.see_all(pods);
        self.plan()
    }

    fn nominations(&self, pods: &[Pod]) -> Vec<Option<String>> {
        pods.iter().map(|pod| self.nominated(pod)).collect()
    }

    fn n_nominated(&self, pods: &[Pod]) -> usize {
        self.nominations(pods).iter().flatten().count()
    }

    fn protect(&mut self, app: &str, allowed: i32) {
        self.see_object(Object::PodDisruptionBudget(Budget {
            namespace: "ns".into(),
            name: app.into(),
            selector: Some(LabelSelector::of_pairs(&[("app".into(), app.into())])),
            allowed,
            ..Budget::default()
        }));
    }

    /// Advances the clock while only the scheduler acts.
    fn idle(&mut self) -> Ordered {
        self.wait(20 * SECOND);
        self.wait(400 * SECOND);
        self.wait(20 * SECOND);
        self.plan()
    }
}

fn labelled(pod: Pod, app: &str) -> Pod {
    Pod { labels: Labels::new([("app".into(), app.into())]), ..pod }
}

/// Makes four nodes, each with a victim of priority 0.
fn four_full() -> (Core, Vec<Pod>) {
    let mut core = core_with(&[1000; 4]);
    let low: Vec<Pod> = (0..4).map(|i| victim(&format!("low-{i}"), 800, &format!("n{i}"))).collect();
    core.see_all(&low);
    (core, low)
}

/// Applies a node with its name as a label.
fn see_host(core: &mut Core, name: &str, milli_cpu: i64) {
    let labels = Labels::new([("host".into(), name.into())]);
    core.see_node(&Node { labels, ..host(name, milli_cpu) });
}

#[test]
fn four_members_evict_four_in_one_step_and_are_bound_when_all_are_gone() {
    let (mut core, low) = four_full();
    let gang = high(4, 800, 4);
    core.see_all(&gang);
    let steps = core.run();
    assert_eq!(steps.len(), 1, "one step");
    let ordered = core.plan();
    assert_eq!(ordered.victims(), ["low-0", "low-1", "low-2", "low-3"]);
    assert!(ordered.evictions[0].message.ends_with("to accommodate a higher priority podgroup"));
    assert_eq!(ordered.events.iter().filter(|e| e.reason == "Preempted").count(), 4);
    let mut nodes: Vec<_> = core.nominations(&gang).into_iter().flatten().collect();
    nodes.sort();
    assert_eq!(nodes, ["n0", "n1", "n2", "n3"]);
    for (pod, node) in gang.iter().zip(core.nominations(&gang)) {
        assert_eq!(ordered.nomination_of(pod), Some(node.as_deref().map(Name::from)));
    }
    let counts = core.scheduler.cluster().preemptions().counts().clone();
    assert_eq!((counts.attempts, counts.preemptions, counts.victims), (1, 1, 4), "the gang's is one");
    for (at, pod) in low.iter().enumerate() {
        assert_eq!(core.placed(&gang), 0, "{at} are gone");
        core.delete(pod);
        assert_eq!(core.queued(&gang[0]) == Some(QueueStage::Active), at == 3, "{at}");
    }
    core.run();
    assert_eq!((core.placed(&gang), core.n_nominated(&gang)), (4, 0));
    for pod in &gang {
        let node = core.node_of(pod).expect("it is placed");
        core.see(&on(pod, &node));
    }
    let book = core.scheduler.cluster().preemptions();
    assert_eq!((book.counts().useful, book.open().count()), (4, 0));
}

#[test]
fn nobody_is_evicted_when_the_quorum_cannot_be_reached_even_so() {
    let (mut core, _) = four_full();
    // Four members would fit, the fifth would not.
    let gang = high(5, 800, 5);
    let ordered = core.try_gang(&gang);
    assert_eq!((ordered.victims().len(), core.n_nominated(&gang)), (0, 0));
    let note = "preemption: with all pods of a priority below 10 gone, at most 4 of the 5 members that are needed would fit.";
    let refusal = core.refusal("high");
    assert!(refusal.message.ends_with(note), "{}", refusal.message);
    assert_eq!((refusal.shares[0].wanted, refusal.shares[0].placeable), (5, 0));
    assert!(core.message(&gang[0]).ends_with(note));
    let counts = core.scheduler.cluster().preemptions().counts();
    assert_eq!((counts.attempts, counts.preemptions), (1, 0));
    assert_eq!(core.placed(&gang), 0);
}

#[test]
fn one_room_for_several_members_is_made_once() {
    let mut core = core_with(&[4000]);
    core.see_all(&[victim("whole", 4000, "n0")]);
    let gang = high(4, 1000, 4);
    let ordered = core.try_gang(&gang);
    assert_eq!(ordered.victims(), ["whole"]);
    assert_eq!(core.n_nominated(&gang), 4);
    core.delete(&single("whole", 4000));
    core.run();
    assert_eq!(core.placed(&gang), 4);
}

#[test]
fn victims_that_later_ones_make_needless_stay() {
    // The first member would fit in the small victim's room; the second needs the large one's.
    let mut core = core_with(&[4000]);
    core.see_all(&[victim("small", 1000, "n0"), ranked(victim("large", 3000, "n0"), 1)]);
    let of = |name: &str, cpu| ranked(member("high", name, cpu, terms(2)), 10);
    let gang = [of("a", 1000), of("b", 2000)];
    assert_eq!(core.try_gang(&gang).victims(), ["large"]);
    assert_eq!(core.n_nominated(&gang), 2);
    core.delete(&single("large", 3000));
    core.run();
    assert_eq!(core.placed(&gang), 2);
}

#[test]
fn members_beyond_the_quorum_are_not_evicted_for() {
    let (mut core, _) = four_full();
    let gang = high(4, 800, 2);
    assert_eq!(core.try_gang(&gang).victims().len(), 2);
    assert_eq!(core.n_nominated(&gang), 2);
}

#[test]
fn budgets_are_honoured_over_all_members() {
    let mut core = core_with(&[1000; 4]);
    core.protect("web", 1);
    // Of three protected pods one may be evicted; the other victim must be the one of higher priority.
    for i in 0..3 {
        core.see(&labelled(victim(&format!("web-{i}"), 800, &format!("n{i}")), "web"));
    }
    core.see(&ranked(victim("batch", 800, "n3"), 5));
    let gang = high(2, 800, 2);
    let ordered = core.try_gang(&gang);
    assert_eq!(ordered.victims().len(), 2);
    assert!(ordered.victims().contains(&"batch"), "{:?}", ordered.victims());
    let book = core.scheduler.cluster().preemptions();
    assert!(book.open().all(|(_, p)| p.victims.iter().all(|v| !v.violates_budget)));
    // When both victims must be protected pods, the one beyond the budget counts as a violation.
    let mut core = core_with(&[1000; 2]);
    core.protect("web", 1);
    core.see(&labelled(victim("web-0", 800, "n0"), "web"));
    core.see(&labelled(victim("web-1", 800, "n1"), "web"));
    assert_eq!(core.try_gang(&high(2, 800, 2)).victims().len(), 2);
    let victims = core.scheduler.cluster().preemptions().open().flat_map(|(_, p)| &p.victims);
    assert_eq!(victims.filter(|v| v.violates_budget).count(), 1);
}

#[test]
fn rather_a_whole_gang_than_one_member_each_of_two() {
    for size in [2, 3] {
        let n = 2 * size;
        let mut core = core_with(&vec![1000; n]);
        for i in 0..n {
            let gang = ["red", "blue"][i % 2];
            let pod = member(gang, &format!("{gang}-{i}"), 800, terms(size as u32));
            core.see(&on(&pod, &format!("n{i}")));
        }
        let gang = high(size, 800, size as u32);
        let ordered = core.try_gang(&gang);
        let hit: BTreeSet<&str> =
            ordered.victims().iter().map(|name| name.split('-').next().unwrap_or_default()).collect();
        assert_eq!((ordered.victims().len(), hit.len()), (size, 1), "{:?}", ordered.victims());
    }
    // On one node.
    let mut core = core_with(&[4000]);
    for (i, gang) in ["red", "blue", "red", "blue"].into_iter().enumerate() {
        core.see(&on(&member(gang, &format!("{i}-{gang}"), 1000, terms(2)), "n0"));
    }
    let ordered = core.try_gang(&high(2, 1000, 2));
    let hit: BTreeSet<&str> = ordered.victims().iter().map(|name| &name[2..]).collect();
    assert_eq!((ordered.victims().len(), hit.len()), (2, 1), "{:?}", ordered.victims());
    // A pod without a gang goes before a gang that cannot spare a member.
    let mut core = core_with(&[1000; 3]);
    core.see(&on(&member("tight", "tight-0", 800, terms(2)), "n0"));
    core.see(&on(&member("tight", "tight-1", 800, terms(2)), "n1"));
    core.see(&victim("single", 800, "n2"));
    assert_eq!(core.try_gang(&high(1, 800, 1)).victims(), ["single"]);
}

#[test]
fn a_member_that_never_preempts_keeps_the_gang_from_it_when_it_is_needed() {
    let (mut core, _) = four_full();
    let mut gang = high(3, 800, 3);
    gang[1].never_preempts = true;
    assert_eq!(core.try_gang(&gang).victims().len(), 0);
    assert_eq!(core.n_nominated(&gang), 0);
    let note = ReasonCode::PreemptionPolicyNever.message("");
    assert!(core.message(&gang[0]).ends_with(&note), "{}", core.message(&gang[0]));
    // Another member completes a quorum without it.
    let more = ranked(member("high", "more", 800, terms(3)), 10);
    core.see(&more);
    core.wait(20 * SECOND);
    assert_eq!(core.plan().victims().len(), 3);
    assert_eq!(core.nominations(&[gang[1].clone()]), [None]);
}

#[test]
fn victims_are_below_the_lowest_member() {
    let mut core = core_with(&[1000; 2]);
    core.see(&ranked(victim("five", 800, "n0"), 5));
    core.see(&victim("zero", 800, "n1"));
    let of = |name: &str, priority| ranked(member("high", name, 800, terms(2)), priority);
    let gang = [of("a", 10), of("b", 5)];
    assert_eq!(core.try_gang(&gang).victims().len(), 0, "the one of 5 may not go, though a has 10");
    assert_eq!(core.n_nominated(&gang), 0);
    let mut core = core_with(&[1000; 2]);
    core.see(&ranked(victim("four", 800, "n0"), 4));
    core.see(&victim("zero", 800, "n1"));
    assert_eq!(core.try_gang(&gang).victims(), ["four", "zero"]);
}

#[test]
fn an_attempt_while_victims_are_going_evicts_nobody_else() {
    let mut core = core_with(&[1000; 4]);
    let low: Vec<Pod> = (0..4).map(|i| victim(&format!("low-{i}"), 800, &format!("n{i}"))).collect();
    core.see_all(&low);
    let gang = high(2, 800, 2);
    let first = core.try_gang(&gang);
    assert_eq!(first.victims().len(), 2);
    let nominated = core.nominations(&gang);
    core.delete(low.iter().find(|p| *p.key.name == *first.victims()[0]).expect("one of them"));
    let later = core.idle();
    assert_eq!(later.victims().len(), 0);
    assert_eq!(core.nominations(&gang), nominated, "what was promised stays");
    let note = ReasonCode::PreemptionUnderWay.message("");
    assert!(core.message(&gang[0]).ends_with(&note), "{}", core.message(&gang[0]));
    core.delete(low.iter().find(|p| *p.key.name == *first.victims()[1]).expect("the other"));
    core.run();
    assert_eq!(core.placed(&gang), 2);
}

#[test]
fn room_that_is_promised_to_a_gang_is_kept() {
    let (mut core, low) = four_full();
    let gang = high(4, 800, 4);
    core.try_gang(&gang);
    core.delete(&low[0]);
    let late = [ranked(single("late", 800), 10)];
    core.see_all(&late);
    core.plan();
    assert_eq!(core.placed(&late), 0, "equal priority does not take it");
    low[1..].iter().for_each(|pod| core.delete(pod));
    core.run();
    assert_eq!(core.placed(&gang), 4);
}

#[test]
fn a_node_that_goes_leaves_the_others_nominated_until_all_is_planned_anew() {
    let mut core = core_with(&[1000; 5]);
    let low: Vec<Pod> = (0..5).map(|i| victim(&format!("low-{i}"), 800, &format!("n{i}"))).collect();
    core.see_all(&low);
    let gang = high(4, 800, 4);
    assert_eq!(core.try_gang(&gang).victims().len(), 4);
    let gone = core.nominations(&gang)[0].clone().expect("nominated");
    core.apply(Input::NodeDeleted(gone.as_str().into()));
    assert_eq!((core.n_nominated(&gang), core.wasted(End::NodeGone)), (3, 1));
    let meanwhile = core.plan();
    assert_eq!(meanwhile.nomination_of(&gang[0]), Some(None), "cleared in the API too");
    assert_eq!(meanwhile.victims().len(), 0);
    for pod in low.iter().filter(|p| p.node_name.as_deref() != Some(gone.as_str())) {
        if core.scheduler.cluster().preemptions().victim(core.id(pod).expect("there")).is_some() {
            core.delete(pod);
        }
    }
    let again = core.plan();
    assert_eq!(again.victims().len(), 1, "the node that was left takes the fourth");
    assert_eq!(core.n_nominated(&gang), 4);
    let last = low.iter().find(|p| *p.key.name == *again.victims()[0]).expect("one of them");
    core.delete(last);
    core.run();
    assert_eq!((core.placed(&gang), core.n_nominated(&gang)), (4, 0));
}

#[test]
fn when_nothing_helps_any_more_all_nominations_end() {
    let (mut core, low) = four_full();
    let gang = high(4, 800, 4);
    core.try_gang(&gang);
    core.apply(Input::NodeDeleted("n0".into()));
    low.iter().for_each(|pod| core.delete(pod));
    let ordered = core.idle();
    assert_eq!((core.n_nominated(&gang), core.placed(&gang)), (0, 0));
    assert!(gang.iter().all(|pod| ordered.nomination_of(pod) != Some(Some("n1".into()))));
    assert_eq!(core.wasted(End::NothingFound), 3);
    assert!(core.scheduler.cluster().nominator().is_empty());
    assert_eq!(core.scheduler.cluster().preemptions().open().count(), 0);
}

#[test]
fn a_refused_eviction_is_tried_again_when_the_others_are_gone() {
    let (mut core, low) = four_full();
    let gang = high(4, 800, 4);
    let ordered = core.try_gang(&gang);
    let refused = &ordered.evictions[0];
    let outcome = EvictOutcome::Refused { status: 500, message: "etcd is away".into() };
    core.evicted(refused, outcome);
    assert_eq!(core.plan().victims().len(), 0, "the others are still going");
    for pod in low.iter().filter(|pod| pod.key != refused.victim.key) {
        core.delete(pod);
    }
    assert_eq!(core.plan().victims(), [&*refused.victim.key.name]);
    core.delete(low.iter().find(|pod| pod.key == refused.victim.key).expect("it is there"));
    core.run();
    assert_eq!(core.placed(&gang), 4);
}

#[test]
fn a_gang_that_falls_short_of_pods_gives_up_what_was_promised() {
    let (mut core, _) = four_full();
    let gang = high(4, 800, 4);
    core.try_gang(&gang);
    core.delete(&gang[3]);
    let ordered = core.plan();
    assert_eq!(core.queued(&gang[0]), Some(QueueStage::Gated));
    assert_eq!(core.n_nominated(&gang), 0);
    assert!(
        gang[..3].iter().all(|pod| ordered.nomination_of(pod) == Some(None)),
        "and the API server is told"
    );
    assert_eq!(core.wasted(End::PreemptorGone), 4);
}

#[test]
fn the_last_awaited_victim_may_be_that_of_a_member_that_goes() {
    let (mut core, low) = four_full();
    let gang = high(4, 800, 3);
    let ordered = core.try_gang(&gang);
    assert_eq!(ordered.victims().len(), 3);
    let book = core.scheduler.cluster().preemptions();
    let (of_first, first) = (book.of(core.id(&gang[0]).expect("there")).expect("open"), &gang[0]);
    let its = of_first.victims[0].key.clone();
    for pod in low.iter().filter(|pod| ordered.victims().contains(&&*pod.key.name) && pod.key != its) {
        core.delete(pod);
    }
    core.delete(first);
    // The fourth member takes over: another victim is needed, or the same one.
    let again = core.plan();
    assert_eq!(core.n_nominated(&gang[1..]), 3);
    assert!(again.victims().len() <= 1);
    low.iter().for_each(|pod| core.delete(pod));
    core.run();
    assert_eq!(core.placed(&gang[1..]), 3);
}

#[test]
fn a_higher_pod_takes_a_node_and_the_gang_is_planned_anew() {
    let (mut core, low) = four_full();
    let gang = high(4, 800, 4);
    core.try_gang(&gang);
    let top = [ranked(single("top", 800), 20)];
    let ordered = core.try_gang(&top);
    assert_eq!(ordered.victims().len(), 0, "the victims are on their way already");
    assert_eq!((core.n_nominated(&gang), core.n_nominated(&top)), (3, 1));
    low.iter().for_each(|pod| core.delete(pod));
    core.idle();
    assert_eq!((core.placed(&top), core.placed(&gang)), (1, 0));
    assert_eq!(core.n_nominated(&gang), 0, "three cannot stay for a quorum of four");
}

#[test]
fn members_that_wait_lose_their_places_in_memory() {
    let mut core = core_with(&[1000; 2]);
    let waiting = members("low", 3, 800, &non_strict(3, 600 * SECOND));
    core.attempt_all(&waiting);
    assert_eq!(core.gang("low").counts.waiting, 2);
    let gang = high(2, 800, 2);
    let ordered = core.try_gang(&gang);
    assert_eq!(ordered.victims().len(), 0, "nothing is deleted");
    assert_eq!((core.placed(&gang), core.gang("low").counts.waiting), (2, 0));
    let lost = waiting.iter().find(|pod| core.message(pod).starts_with("lost its place on n"));
    assert!(lost.is_some(), "{:?}", waiting.iter().map(|pod| core.message(pod)).collect::<Vec<_>>());
    let lost = waiting.iter().filter(|pod| core.message(pod).starts_with("lost its place on n"));
    for pod in lost.collect::<Vec<_>>() {
        let history = ask(&mut core, &format!("/apis/v1/history/pods/{}", pod.key));
        let taken = list(&history, "/entries").iter().find(|entry| entry["kind"] == "TakenBack");
        let taken = taken.unwrap_or_else(|| panic!("{history:#}"));
        assert!(
            text(taken, "/message").contains("was taken back before it was bound to make room for "),
            "{taken}"
        );
        assert!(text(taken, "/message").contains(" with its gang "), "{taken}");
        let own = ask(&mut core, &format!("/apis/v1/explain/pods/{}/evictions", pod.key));
        let event = &list(&own, "/events")[0];
        assert_eq!((text(event, "/type"), text(event, "/state")), ("GangPreemption", "cancelled"));
        assert_eq!(text(event, "/preemptor"), text(taken, "/by"));
    }
    let notes: Vec<_> = ordered.events.iter().filter(|e| e.reason == "Preempted").collect();
    assert!(notes.iter().all(|e| e.note.ends_with("(in kube-scheduler memory).")), "{notes:?}");
    assert_eq!(notes.len(), 2);
}
