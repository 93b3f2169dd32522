//! What readers see: snapshots do not change, and they share unchanged parts.

use pellucid::cluster::Stage;
use pellucid::cluster::columns::CPU;
use pellucid::cycle::NodeResultCache;
use pellucid::cycle::attempt::node_result_cache::CycleContext;
use pellucid::cycle::scheduler::PluginTally;
use pellucid::framework::View;
use pellucid::queue::QueueStage;

use crate::common::made::{core_with, node, pod};

#[test]
fn an_old_root_keeps_what_it_saw() {
    let mut core = core_with(&[node("a", 1000)]);
    let p = pod("p", 300);
    core.see(&p);
    let before = core.scheduler.publish(core.now);
    core.run();
    core.see_node(&node("b", 500));
    let after = core.scheduler.publish(core.now);
    core.delete(&p);
    assert_eq!((before.generation, after.generation), (1, 2));

    let a = before.cluster.find_node(&"a".into()).expect("known");
    let id = before.cluster.find_pod(&p.key).expect("known");
    let seen = |snapshot: &pellucid::cycle::Snapshot| {
        let unit = snapshot.queue.unit_of(id).and_then(|u| snapshot.queue.unit(u)).map(|u| u.stage);
        let taken = snapshot.cluster.columns().requested(a, CPU);
        (snapshot.cluster.pod(id).map(|r| r.stage), unit, taken, snapshot.cluster.present().len())
    };
    assert_eq!(seen(&before), (Some(Stage::Pending), Some(QueueStage::Active), 0, 1));
    assert_eq!(seen(&after), (Some(Stage::Permitted), Some(QueueStage::InFlight), 300, 2));
    assert!(before.verdict(id).is_none() && after.verdict(id).is_some());
    assert_eq!(after.queue.counts().in_flight, 1);
    assert_eq!(core.scheduler.cluster().pods().count(), 0);
}

#[test]
fn a_root_shares_the_pages_that_did_not_change() {
    let nodes: Vec<_> = (0..640).map(|i| node(&format!("n{i}"), 1000)).collect();
    let mut core = core_with(&nodes);
    let before = core.scheduler.publish(core.now);
    core.attempt(&pod("p", 100));
    let after = core.scheduler.publish(core.now);
    let pages = before.cluster.columns().pages().iter().zip(after.cluster.columns().pages());
    let copied = pages.filter(|(a, b)| !std::sync::Arc::ptr_eq(a, b)).count();
    assert_eq!((copied, before.cluster.columns().pages().len()), (1, 10));
}

#[test]
fn the_cycle_runs_on_a_root_and_decides_alike() {
    let nodes: Vec<_> = (0..20).map(|i| node(&format!("n{i}"), 1000 + i % 3)).collect();
    let mut core = core_with(&nodes);
    let p = pod("p", 100);
    let snapshot = core.scheduler.publish(core.now);
    let profile = &snapshot.profiles[0];
    let of = CycleContext::new(profile, View::new(&snapshot.cluster), &p.spec);
    let mut rows = NodeResultCache::default();
    let mut tally = vec![PluginTally::default(); profile.plugins.len()];
    rows.run_filters(&of, true, &mut tally);
    rows.run_global_filters(&of, &mut tally);
    let best = rows.top(&of, 3, &mut tally);
    let order = core.place(&p);
    assert_eq!(*snapshot.cluster.node_name(best[0].node), *order.node);
    assert!(best[0].total >= best[1].total);
    // Changes on a copy of a snapshot's state do not affect the snapshot.
    let mut simulation = snapshot.cluster.fork();
    let overlay = simulation.begin();
    simulation.rollback(overlay);
    assert_eq!(simulation.present().len(), 20);
}
