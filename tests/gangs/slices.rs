//! Attempts in slices: long attempts continue between other units, have the same result, and are not repeated
//! needlessly.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid::cluster::Stage;
use pellucid::cluster::columns::CPU;
use pellucid::cycle::scheduler::Step;
use pellucid::cycle::scheduler::turn::Advance;
use pellucid::model::{Node, Pod};
use pellucid::queue::QueueStage;
use proptest::prelude::*;

use crate::common::driver::Core;
use crate::gangs::made::{SECOND, core_with, host, member, members, non_strict, single, terms};

/// Generous bound on the work of one slice: some milliseconds.
const SLICE: u64 = 100_000;

fn of_priority(pods: Vec<Pod>, priority: i32) -> Vec<Pod> {
    pods.into_iter().map(|pod| Pod { priority, ..pod }).collect()
}

/// Makes nodes of 16 cores, each filled by 20 pods of priority 0.
fn full(nodes: usize) -> Core {
    let mut core = core_with(&vec![16_000; nodes]);
    for n in 0..nodes {
        for i in 0..20 {
            let pod = single(&format!("low-{n:03}-{i:02}"), 800);
            core.see(&Pod { node_name: Some(format!("n{n}").as_str().into()), ..pod });
        }
    }
    core
}

/// Makes members that all have different requests.
fn different(gang: &str, n: usize, from: i64) -> Vec<Pod> {
    let one = |i: usize| member(gang, &format!("{gang}-{i:04}"), from + i as i64, terms(n as u32));
    (0..n).map(one).collect()
}

/// The largest slice of work, the number of pauses, and the last verdict.
struct Pieces {
    largest: u64,
    pauses: usize,
    step: Option<Step>,
}

impl Core {
    /// Advances until there is a verdict.
    fn pieces(&mut self) -> Pieces {
        let mut pieces = Pieces { largest: 0, pauses: 0, step: None };
        loop {
            let before = self.scheduler.work();
            let advance = self.advance();
            pieces.largest = pieces.largest.max(self.scheduler.work() - before);
            match advance {
                Advance::Paused(_) => pieces.pauses += 1,
                Advance::Judged(step) => return Pieces { step: Some(step), ..pieces },
                Advance::Idle => return pieces,
            }
        }
    }

    fn places(&self, pods: &[Pod]) -> BTreeMap<String, Option<String>> {
        pods.iter().map(|pod| (pod.key.name.to_string(), self.node_of(pod))).collect()
    }

    fn n_evictions(&mut self) -> usize {
        self.ordered().evictions.len()
    }

    fn nobody_is_overcommitted(&self) {
        let cluster = self.scheduler.cluster();
        for node in cluster.present() {
            let Node { allocatable, name, .. } = &**cluster.node(*node).expect("present");
            let pods = cluster.slot(*node).pods.iter().filter_map(|id| cluster.pod(*id));
            let used: i64 = pods.map(|r| r.pod.spec.requests.list.milli_cpu).sum();
            assert!(used <= allocatable.milli_cpu, "{name}: {used} of {}", allocatable.milli_cpu);
        }
    }
}

#[test]
fn a_gang_that_no_victims_can_help_looks_for_none() {
    let mut core = full(400);
    // Five members of three cores fit on an empty node: 2,000 in all. Of nine cores one fits.
    core.see_all(&of_priority(members("high", 900, 9_000, &terms(900)), 10));
    let before = core.scheduler.work();
    let pieces = core.pieces();
    let work = core.scheduler.work() - before;
    assert!(pieces.step.is_some_and(|step| step.gang.is_some()));
    assert!(work < SLICE, "the attempt took {work}");
    assert_eq!(core.n_evictions(), 0);
    let message = core.refusal("high").message.to_string();
    let note = "with all pods of a priority below 10 gone, at most 400 of the 900 members that are needed would fit.";
    assert!(message.ends_with(note), "{message}");
}

#[test]
fn equal_members_share_what_they_know_of_nodes() {
    let mut core = full(100);
    let gang = of_priority(members("high", 100, 9_000, &terms(100)), 10);
    core.see_all(&gang);
    let before = core.scheduler.work();
    while !matches!(core.advance(), Advance::Idle) {}
    let work = core.scheduler.work() - before;
    // Each node has twenty pods to examine: about 400 units of work, once or twice per node, not once per member.
    assert!(work < 400_000, "the attempt took {work}");
    assert_eq!(core.n_evictions(), 100 * 12);
}

#[test]
fn a_plain_pod_is_placed_between_two_pieces_of_a_long_attempt() {
    let mut core = core_with(&vec![16_000; 100]);
    let gang = of_priority(different("long", 800, 1_000), 10);
    core.see_all(&gang);
    let (mut waited, mut is_planned) = (0, false);
    while !is_planned {
        waited += 1;
        let plain = single(&format!("plain-{waited}"), 100);
        core.see(&plain);
        for n in 0.. {
            assert!(n < 3, "it waits for more than a piece of the gang");
            let advance = core.piece();
            is_planned |= matches!(&advance, Advance::Judged(step) if step.gang.is_some());
            if core.stage(&plain).is_some_and(Stage::is_placed) {
                break;
            }
        }
    }
    assert!(waited > 3, "it took {waited} pieces");
    assert_eq!(core.placed(&gang), 800, "others took room meanwhile, and enough is left");
    core.nobody_is_overcommitted();
}

/// Checks that the free amounts in the columns equal what the nodes offer minus their pods.
fn columns_add_up(core: &Core) {
    let cluster = core.scheduler.cluster();
    for node in cluster.present() {
        let Node { allocatable, name, .. } = &**cluster.node(*node).expect("present");
        let pods = cluster.slot(*node).pods.iter().filter_map(|id| cluster.pod(*id));
        let used: i64 = pods.map(|r| r.pod.spec.requests.list.milli_cpu).sum();
        assert_eq!(cluster.columns().free(*node, CPU), allocatable.milli_cpu - used, "{name}");
    }
}

#[test]
fn a_search_for_victims_that_no_longer_holds_begins_anew_from_nothing() {
    // However much was planned, the node of any member may have changed.
    for pieces in 0..24 {
        for shrunk in 0..4 {
            let mut core = full(4);
            core.scheduler.set_slice(1);
            let gang = of_priority(members("g", 3, 9_000, &terms(3)), 10);
            core.see_all(&gang);
            for _ in 0..pieces {
                core.advance();
            }
            core.see_node(&host(&format!("n{shrunk}"), 1_000));
            while !matches!(core.advance(), Advance::Idle) {}
            columns_add_up(&core);
            let evicted = core.n_evictions();
            assert!(
                evicted >= 36,
                "{pieces} pieces, node {shrunk}: {evicted} evictions for three nodes of twelve"
            );
        }
    }
}

impl Core {
    /// Advances once, within the bound of a slice.
    fn piece(&mut self) -> Advance {
        let before = self.scheduler.work();
        let advance = self.advance();
        let work = self.scheduler.work() - before;
        assert!(work < 3 * SLICE, "a piece took {work}");
        advance
    }
}

#[test]
fn an_attempt_that_was_dear_is_not_repeated_for_every_event() {
    let mut core = full(200);
    // Only a complete attempt shows that the gang does not fit.
    let gang = of_priority(different("dear", 1_500, 3_000), 10);
    core.see_all(&gang);
    let mut attempts = 0;
    let dear = core.scheduler.work();
    for n in 0..100 {
        if core.pieces().step.is_some_and(|step| step.gang.is_some()) {
            attempts += 1;
        }
        core.delete(&Pod { node_name: None, ..single(&format!("low-{:03}-19", n), 800) });
        core.wait(SECOND / 100);
    }
    assert_eq!(attempts, 1, "each pod that went could help, but not a second later");
    assert!(core.refusal("dear").is_truncated || core.scheduler.work() - dear < 50_000_000);
    // After its pause it is tried.
    core.wait(60 * SECOND);
    assert!(core.pieces().step.is_some_and(|step| step.gang.is_some()));
}

#[test]
fn a_gang_that_was_refused_in_many_ways_is_woken_by_what_its_plugins_listen_to() {
    let mut core = core_with(&[4_000, 4_000]);
    let mut gang = different("ways", 60, 4_001);
    gang.extend(members("small", 1, 4_000, &terms(1)));
    core.attempt_all(&gang[..60]);
    assert_eq!(core.queued(&gang[0]), Some(QueueStage::Unschedulable));
    // Adding a pod or changing a label does not help a pod that lacks CPU.
    core.attempt(&gang[60]);
    core.bind_all();
    assert_eq!(core.queued(&gang[0]), Some(QueueStage::Unschedulable));
    core.delete(&gang[60]);
    assert_ne!(core.queued(&gang[0]), Some(QueueStage::Unschedulable), "room came free");
}

#[derive(Clone, Debug)]
struct Sized {
    members: Vec<i64>,
    min: usize,
    is_strict: bool,
}

fn sized() -> impl Strategy<Value = Sized> {
    (prop::collection::vec(1..8_i64, 1..12), 0..12_usize, any::<bool>()).prop_map(
        |(members, min, is_strict)| {
            let min = 1 + min % members.len();
            Sized { members, min, is_strict }
        },
    )
}

/// Plans some gangs on nodes with pods of lower priority, with slices of this much work.
fn planned(
    nodes: &[i64],
    low: &[(usize, i64)],
    gangs: &[Sized],
    slice: u64,
) -> impl PartialEq + std::fmt::Debug {
    let mut core = core_with(nodes);
    core.scheduler.set_slice(slice);
    for (i, (node, size)) in low.iter().enumerate() {
        let pod = single(&format!("low-{i}"), size * 500);
        core.see(&Pod { node_name: Some(format!("n{}", node % nodes.len()).as_str().into()), ..pod });
    }
    let mut all = Vec::new();
    for (g, gang) in gangs.iter().enumerate() {
        let terms =
            if gang.is_strict { terms(gang.min as u32) } else { non_strict(gang.min as u32, 60 * SECOND) };
        let name = format!("g{g}");
        let one = |(i, size): (usize, &i64)| Pod {
            // The gang that is first in the queue is planned to its end before the next.
            priority: 10 - g as i32,
            ..member(&name, &format!("{name}-{i}"), size * 500, terms.clone())
        };
        let pods: Vec<Pod> = gang.members.iter().enumerate().map(one).collect();
        core.see_all(&pods);
        // One after another: nothing happens in between.
        core.run();
        all.extend(pods);
    }
    let messages: Vec<String> = all.iter().map(|pod| core.message(pod)).collect();
    (core.places(&all), messages, core.n_evictions())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn an_attempt_comes_to_the_same_in_many_slices(
        nodes in prop::collection::vec(1_000..8_000_i64, 1..5),
        low in prop::collection::vec((0..5_usize, 1..6_i64), 0..10),
        gangs in prop::collection::vec(sized(), 1..4),
    ) {
        let whole = planned(&nodes, &low, &gangs, u64::MAX);
        prop_assert_eq!(&planned(&nodes, &low, &gangs, 1), &whole);
        prop_assert_eq!(&planned(&nodes, &low, &gangs, 120), &whole);
    }
}

#[test]
fn what_happens_while_a_gang_is_planned_is_not_missed() {
    let mut core = core_with(&[4_000, 4_000]);
    core.scheduler.set_slice(1);
    let (low, gang) = (single("low", 4_000), members("gang", 3, 4_000, &terms(3)));
    core.attempt(&low);
    core.see_all(&gang);
    // The first member has the remaining node; then there is none for the second.
    assert!(matches!(core.advance(), Advance::Paused(_)));
    assert!(matches!(core.advance(), Advance::Paused(_)));
    core.delete(&low);
    core.see_node(&host("n2", 4_000));
    core.run();
    assert_eq!(core.placed(&gang), 3, "{}", core.message(&gang[2]));
}

#[test]
fn an_attempt_that_is_not_gone_on_with_keeps_no_pod() {
    // The pods are deleted, the gang lacks its quorum, or it gets its quorum by other means.
    let ends: [fn(&mut Core, &[Pod]); 3] = [
        |core, gang| gang.iter().for_each(|pod| core.delete(pod)),
        |core, gang| core.delete(&gang[0]),
        |core, gang| {
            for pod in gang {
                core.see(&Pod { node_name: Some("n0".into()), ..pod.clone() });
            }
        },
    ];
    for (n, end) in ends.into_iter().enumerate() {
        let mut core = core_with(&[4_000, 4_000]);
        core.scheduler.set_slice(1);
        let gang = members("gang", 3, 4_000, &terms(3));
        core.see_all(&gang);
        assert!(matches!(core.advance(), Advance::Paused(_)));
        let kept = |core: &Core| {
            let id = core.id(&gang[0]).expect("it is known");
            Arc::downgrade(&core.scheduler.cluster().pod(id).expect("it is known").pod)
        };
        let first = kept(&core);
        end(&mut core, &gang);
        // Drain the effects, which may refer to the pods.
        core.scheduler.take_effects();
        assert_eq!(first.strong_count(), 0, "end {n}");
    }
}
