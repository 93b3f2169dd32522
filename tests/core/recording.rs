//! Recording on request: what is recorded, of which attempts, and until when.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use pellucid::cycle::scheduler::records::last_attempt::LastAttempt;
use pellucid::model::time::Probe;
use pellucid::model::{Pod, PodSpec};
use pellucid::recording::meter::FREE;
use pellucid::recording::recorder::{Choice, RecordedTable};
use pellucid::recording::switches::{Ask, Flag, Setter, parse};

use crate::common::driver::Core;
use crate::common::made::{SECOND, core_with, node, pod, sampling};

/// Sets a flag by the JSON of a request.
fn set(core: &Core, flag: Flag, text: &str) {
    let by = Setter { now: core.now, from: "test".into() };
    match parse(flag, text).expect("it can be read") {
        Ask::Set(order) => drop(core.switches.begin(flag, order, None, &by).expect("it is set")),
        Ask::End(id) => drop(core.switches.end_one(flag, id, &by).expect("it ends")),
    }
}

fn table_of(core: &mut Core, pod: &Pod) -> Option<Arc<RecordedTable>> {
    core.see(pod);
    core.step().expect("it is tried").table
}

fn is_right(table: &RecordedTable) {
    assert_eq!(table.rows[0].node, table.chosen, "the first row is the winner");
    for row in &table.rows {
        assert_eq!(row.shares.iter().flatten().map(|share| share.2).sum::<i64>(), row.total);
        for ((_, weight), share) in table.plugins.iter().zip(&row.shares) {
            assert!(share.is_none_or(|(_, normalized, weighted)| normalized * weight == weighted));
        }
    }
}

#[test]
fn a_scope_records_its_pods_for_its_time() {
    let nodes: Vec<_> = (0..8).map(|i| node(&format!("n{i}"), 4000)).collect();
    let mut core = core_with(&nodes);
    set(&core, Flag::Scores, r#"{"topN": 5, "pod": "ns/in", "ttlSeconds": 60}"#);
    let table = table_of(&mut core, &pod("in", 100)).expect("it is recorded");
    assert_eq!((table.rows.len(), table.feasible, table.choice), (5, 8, Choice::Best));
    is_right(&table);
    assert!(table_of(&mut core, &pod("out", 100)).is_none(), "another pod");
    core.delete(&pod("in", 0));
    core.wait(60 * SECOND);
    assert!(table_of(&mut core, &pod("in", 100)).is_none(), "its time is over");
    let why = |core: &Core| core.switches.audit(core.now).0[0].why.clone();
    assert_eq!((why(&core).as_str(), core.switches.is_recording()), ("expired", false));
}

#[test]
fn one_shot_records_one_attempt() {
    let mut core = core_with(&[node("a", 1000), node("b", 1000)]);
    set(&core, Flag::Failures, r#"{"value": true, "oneShot": true}"#);
    core.see(&pod("fits", 100));
    assert!(
        core.step().expect("placed").failure.is_none(),
        "an attempt without refused nodes records nothing"
    );
    for (name, recorded) in [("first", true), ("second", false)] {
        core.see(&pod(name, 5000));
        assert_eq!(core.step().expect("refused").failure.is_some(), recorded, "{name}");
    }
    assert_eq!(core.switches.audit(core.now).0[0].why, "used up");
}

#[test]
fn a_node_that_was_not_chosen_by_score_stands_alone() {
    let mut core = core_with(&[node("small", 1000), node("large", 4000)]);
    core.switches.set_top_n_scores(10, &Setter::default());
    let only = table_of(&mut core, &pod("wide", 3000)).expect("it is recorded");
    assert_eq!((only.rows.len(), &*only.chosen, only.choice), (1, "large", Choice::Only));
    is_right(&only);
    let nominee = Pod { nominated_node: Some("small".into()), ..pod("nominee", 500) };
    let nominated = table_of(&mut core, &nominee).expect("it is recorded");
    assert_eq!((nominated.rows.len(), &*nominated.chosen, nominated.choice), (1, "small", Choice::Nominated));
    is_right(&nominated);
}

#[test]
fn of_a_sampled_search_the_sample_is_the_table() {
    let mut core = sampling(50);
    (0..240).for_each(|i| core.see_node(&node(&format!("n{i}"), 1000 + 50 * (i % 7))));
    core.switches.set_top_n_scores(1000, &Setter::default());
    for i in 0..20 {
        let table = table_of(&mut core, &pod(&format!("p{i}"), 100)).expect("it is recorded");
        assert_eq!((table.rows.len(), table.feasible), (120, 120));
        is_right(&table);
    }
}

/// A clock that advances by a fixed amount whenever it is read.
struct Slow(Cell<Duration>, Duration);

impl Probe for Slow {
    fn elapsed(&self) -> Duration {
        self.0.set(self.0.get() + self.1);
        self.0.get()
    }
}

#[test]
fn recording_that_takes_too_much_is_turned_off_and_says_so() {
    let mut core = core_with(&[node("a", 1000), node("b", 1000)]);
    core.switches.set_top_n_scores(3, &Setter { now: core.now, from: "test".into() });
    set(&core, Flag::Failures, r#"{"value": true, "namespace": "elsewhere"}"#);
    core.switches.set_budget(1);
    // Each reading of the clock uses a quarter of the free budget, and recording reads it at least twice.
    let probe = Slow(Cell::default(), FREE / 4);
    let mut ended = None;
    let mut steps = 0;
    while ended.is_none() {
        core.see(&pod(&format!("p{steps}"), 0));
        let start = probe.0.get();
        core.scheduler.step(core.now, &probe).expect("it is tried");
        let took = probe.0.get() - start;
        ended = core.scheduler.charge_cost(took, Duration::ZERO, core.now);
        steps += 1;
        assert!(steps < 8, "it is turned off");
    }
    let ended = ended.expect("it is turned off");
    assert_eq!((ended.flag, ended.id), (Flag::Scores, 0), "and not what recorded nothing");
    assert_eq!((core.switches.top_n_scores(), core.switches.is_recording()), (0, true));
    let (audit, _) = core.switches.audit(core.now);
    assert_eq!(
        (audit[0].why.as_str(), audit[0].by.as_str(), audit[0].from.as_str(), audit[0].to.as_str()),
        ("over budget", "scheduler", "3", "0")
    );
    assert!(core.switches.shut_off("s").is_some() && core.switches.shut_off("f").is_none());
    let costs = core.scheduler.publish(core.now).costs;
    assert!(costs.l1 > FREE.as_nanos() as u64 && costs.cycle > costs.l1, "{costs:?}");
    // Without a budget nothing is switched off.
    core.switches.set_budget(100);
    core.switches.set_top_n_scores(3, &Setter::default());
    for i in 0..20 {
        core.see(&pod(&format!("q{i}"), 0));
        core.scheduler.step(core.now, &probe);
        assert!(core.scheduler.charge_cost(FREE, FREE, core.now).is_none());
    }
}

#[test]
fn storing_verdicts_is_measured_by_a_sample() {
    let mut core = core_with(&[]);
    let probe = Slow(Cell::default(), Duration::from_nanos(100));
    for i in 0..128 {
        core.see(&Pod { spec: Arc::new(PodSpec::default()), ..pod(&format!("p{i}"), 0) });
        core.scheduler.step(core.now, &probe).expect("it is tried");
    }
    // Reading the clock takes as long as the work between two readings, and is subtracted.
    assert_eq!(core.scheduler.publish(core.now).costs.l0, 0);
}

#[test]
fn a_placement_reads_the_same_whether_the_recorder_has_it_or_the_pod() {
    let told = [true, false].map(|is_on| {
        let mut core = core_with(&[node("a", 1000), node("b", 1000)]);
        core.switches.set_recorder(is_on);
        let p = pod("p", 300);
        core.place(&p);
        let (snapshot, id) = (core.scheduler.publish(core.now), core.id(&p).expect("known"));
        assert_eq!(matches!(snapshot.last_attempts[id.index()], LastAttempt::Placed { .. }), is_on);
        assert_eq!(
            snapshot.last_attempts[id.index()].node(),
            snapshot.cluster.pod(id).and_then(|record| record.node)
        );
        format!("{:?}", snapshot.verdict(id).expect("it was placed"))
    });
    assert_eq!(told[0], told[1]);
}
