//! All-or-nothing placement in one step.

use std::sync::Arc;

use pellucid::model::Pod;
use pellucid::model::gang::{GangTerms, MatchPolicy};
use pellucid::queue::QueueStage;
use pellucid::recording::GangOutcome;
use pellucid::recording::switches::Setter;
use pellucid_api::reason::ReasonCode;

use crate::common::made::mark;
use crate::gangs::made::{SECOND, core_with, host, member, members, single, terms, tried};

#[test]
fn a_quorum_that_fits_is_placed_at_once() {
    let mut core = core_with(&[2000, 2000]);
    let pods = members("g", 4, 1000, &terms(4));
    core.see_all(&pods);
    let step = core.step().expect("the gang is planned");
    assert_eq!((step.all().count(), core.placed(&pods)), (4, 4));
    assert!(core.step().is_none());
    let names = core.bind_all();
    assert_eq!(names, ["g-0", "g-1", "g-2", "g-3"]);
    assert_eq!(core.gang("g").counts.bound, 4);
    assert!(matches!(core.outcome("g"), GangOutcome::Placed { members: 4, .. }));
    assert_eq!(core.scheduler.n_in_flight(), 0);
}

#[test]
fn a_gang_that_does_not_fit_leaves_nothing_behind() {
    let (mut core, pods) = tried(&[2000, 1000], 4, &terms(4));
    assert_eq!(core.placed(&pods), 0);
    assert!(core.orders().is_empty());
    let refusal = core.refusal("g");
    assert_eq!(refusal.code, ReasonCode::GangInsufficientCapacity);
    assert_eq!((refusal.shares[0].wanted, refusal.shares[0].placeable), (4, 3));
    let (snapshot, why) = refusal.root_cause.clone().expect("a member stands for it");
    let reason = "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: \
                  2 No preemption victims found for incoming pod.";
    assert_eq!((&*snapshot.name, &*why.message()), ("g-3", reason));
    let told = "gang ns/g: 3 of 4 members that its quorum needs can be placed; ns/g-3 cannot:";
    assert_eq!(core.message(&pods[0]), format!("{told} {reason}"));
    // Other pods may continue.
    let other = single("other", 2000);
    core.attempt(&other);
    assert_eq!(core.placed(&[other]), 1);
}

/// One member is bound when the scheduler starts, another one comes again, and the third is gone.
#[test]
fn a_bound_member_shows_that_a_gang_had_its_quorum() {
    let policies = [(MatchPolicy::OnceSatisfied, 2), (MatchPolicy::WaitingAndRunning, 1)];
    for (policy, placed) in policies {
        let mut core = core_with(&[2000]);
        let terms = GangTerms { policy: Some(policy), ..terms(3) };
        let pods = members("g", 2, 1000, &terms);
        core.see(&Pod { node_name: Some("n0".into()), ..pods[0].clone() });
        core.attempt_all(&pods[1..]);
        assert_eq!(core.placed(&pods), placed, "{policy:?}");
        assert!(core.gang("g").was_satisfied());
    }
}

#[test]
fn a_refused_gang_is_woken_by_what_helps_its_member() {
    let (mut core, pods) = tried(&[3000], 4, &terms(4));
    assert_eq!(core.queued(&pods[0]), Some(QueueStage::Unschedulable));
    core.see_node(&host("small", 500));
    assert_eq!(core.queued(&pods[0]), Some(QueueStage::Unschedulable), "no member fits there");
    core.see_node(&host("more", 1000));
    assert_eq!(core.queued(&pods[0]), Some(QueueStage::Backoff));
    core.run_after(SECOND);
    assert_eq!(core.placed(&pods), 4);
}

#[test]
fn members_beyond_the_quorum_do_not_fail_it() {
    let mut core = core_with(&[3000, 3000, 3000, 3000]);
    let pods = members("nginx", 6, 3000, &terms(4));
    core.attempt_all(&pods);
    assert_eq!(core.placed(&pods), 4, "article 002: four run and two pend");
    assert_eq!(
        core.message(&pods[5]),
        "0/4 nodes are available: 4 Insufficient cpu. preemption: 0/4 nodes are available: 4 No preemption victims found for incoming pod."
    );
    assert_eq!(core.unit(&pods[5]).and_then(|u| u.gang.clone()), None, "it waits on its own");
    let mut small = core_with(&[3000, 3000, 3000]);
    small.see_all(&pods);
    small.run();
    assert_eq!(small.placed(&pods), 0, "on a smaller cluster all six pend");
}

#[test]
fn a_bad_mix_is_refused_by_name_or_runs_what_its_quorum_asks() {
    let mix = |min| {
        let of = |i: usize| {
            let (name, size) = if i.is_multiple_of(2) { ("small", 1000) } else { ("large", 100_000) };
            member("mix", &format!("{name}-{i}"), size, terms(min))
        };
        (0..12).map(of).collect::<Vec<_>>()
    };
    let mut core = core_with(&[6000]);
    core.attempt_all(&mix(12));
    let refusal = core.refusal("mix");
    assert_eq!((refusal.shares[0].wanted, refusal.shares[0].placeable), (12, 6));
    let (snapshot, _) = refusal.root_cause.clone().expect("a member stands for it");
    assert!(snapshot.name.starts_with("large"), "{snapshot}");
    let mut core = core_with(&[6000]);
    let pods = mix(6);
    core.attempt_all(&pods);
    let (small, large): (Vec<_>, Vec<_>) = pods.into_iter().partition(|p| p.key.name.starts_with("small"));
    assert_eq!((core.placed(&small), core.placed(&large)), (6, 0));
}

#[test]
fn other_orders_are_tried_before_different_members_are_refused() {
    // In their own order the small members spread over both nodes, and the large one finds no room.
    let mut core = core_with(&[4000, 4000]);
    let pods = vec![
        member("g", "a", 1000, terms(3)),
        member("g", "b", 1000, terms(3)),
        member("g", "c", 4000, terms(3)),
    ];
    core.attempt_all(&pods);
    assert_eq!(core.placed(&pods), 3);
    assert!(matches!(core.outcome("g"), GangOutcome::Placed { order: "largest first", .. }));
    // When all orders fail, no trial leaves a trace.
    let mut core = core_with(&[4000, 3000]);
    let pods = vec![
        member("g", "a", 2500, terms(3)),
        member("g", "b", 2500, terms(3)),
        member("g", "c", 2500, terms(3)),
        member("g", "d", 100, terms(3)),
    ];
    core.attempt_all(&pods);
    assert_eq!(core.placed(&pods), 3, "one large one of them is not needed");
}

#[test]
fn a_member_that_wants_what_no_node_has_is_not_called_a_lack_of_room() {
    let mut core = core_with(&[9000]);
    let mut pods = members("g", 3, 1000, &terms(3));
    let label = ("rack".into(), "r1".into());
    std::sync::Arc::make_mut(&mut pods[1].spec).affinity.selector = [label].into();
    core.attempt_all(&pods);
    let refusal = core.refusal("g");
    assert_eq!(refusal.code, ReasonCode::GangMemberUnschedulable);
    assert_eq!((refusal.shares[0].placeable, refusal.orders.len() > 1), (2, true));
    let (snapshot, why) = refusal.root_cause.clone().expect("a member stands for it");
    assert_eq!(&*snapshot.name, "g-1");
    assert_eq!(
        &*why.message(),
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. \
         preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    );
}

#[test]
fn late_members_of_a_satisfied_gang_are_scheduled_one_by_one() {
    let (mut core, _) = tried(&[3000], 2, &terms(2));
    core.bind_all();
    let late = member("g", "late", 1000, terms(2));
    core.attempt(&late);
    assert_eq!(core.placed(&[late]), 1);
}

#[test]
fn an_old_gang_that_cannot_be_placed_does_not_starve_singles() {
    let mut core = core_with(&[3000]);
    core.attempt_all(&members("old", 4, 1000, &terms(4)));
    let singles: Vec<_> = (0..3).map(|i| single(&format!("s{i}"), 1000)).collect();
    core.attempt_all(&singles);
    assert_eq!(core.placed(&singles), 3);
}

#[test]
fn groups_reach_their_quorum_together_across_namespaces() {
    use pellucid::model::gang::GangTerms;
    use pellucid::model::{GangKey, Pod, PodKey};
    let groups: Arc<[GangKey]> = Arc::new([GangKey::new("ns-a", "a"), GangKey::new("ns-b", "b")]);
    let of = |namespace: &str, gang: &str, i: usize| {
        let terms = GangTerms { groups: groups.clone(), ..terms(2) };
        let mark = mark(GangKey::new(namespace, gang), terms);
        let key = PodKey::new(namespace, &format!("{gang}-{i}"));
        let uid = format!("uid-{gang}-{i}").into();
        Pod { key, uid, gang: Some(mark.into()), ..single("x", 1000) }
    };
    let mut core = core_with(&[3000]);
    let a: Vec<_> = (0..2).map(|i| of("ns-a", "a", i)).collect();
    let b: Vec<_> = (0..2).map(|i| of("ns-b", "b", i)).collect();
    core.attempt_all(&a);
    assert_eq!(core.queued(&a[0]), Some(QueueStage::Gated), "its partner does not exist");
    assert_eq!(core.message(&a[1]), "the gang group waits for ns-b/b");
    core.attempt_all(&b);
    assert_eq!(core.placed(&a) + core.placed(&b), 0, "three of four fit");
    core.see_node(&host("more", 1000));
    core.run_after(SECOND);
    assert_eq!(core.placed(&a) + core.placed(&b), 4);
}

#[test]
fn the_tables_of_a_quorum_are_those_of_the_order_that_was_kept() {
    let mut core = core_with(&[2000, 2000, 500]);
    core.switches.set_top_n_scores(2, &Setter::default());
    core.switches.set_filter_failures(true, &Setter::default());
    let pods = members("g", 4, 1000, &terms(4));
    core.see_all(&pods);
    let step = core.step().expect("the gang is planned");
    assert_eq!(step.all().count(), 4);
    for member in step.all() {
        let table = member.table.as_ref().expect("a member that is placed has a table");
        assert_eq!((&table.pod, &table.rows[0].node), (&member.pod.key, &table.chosen));
        assert!(table.rows.len() <= 2);
    }
    assert_eq!(core.scheduler.publish(core.now).recorder.tables().count(), 4, "and no other order left one");
}

#[test]
fn of_a_gang_that_was_refused_the_nodes_that_refused_are_recorded() {
    let mut core = core_with(&[2000, 500]);
    core.switches.set_top_n_scores(2, &Setter::default());
    core.switches.set_filter_failures(true, &Setter::default());
    core.see_all(&members("g", 3, 1000, &terms(3)));
    let step = core.step().expect("the gang is planned");
    assert!(step.all().all(|member| member.table.is_none()), "nobody was placed");
    let refused = step.all().filter_map(|member| member.failure.as_ref());
    let nodes: Vec<usize> = refused.map(|failure| failure.nodes.len()).collect();
    assert_eq!(nodes, [2], "the third member found no room on either node");
}
