//! Invariants of gangs in random histories: members appear and disappear, Bindings fail, nodes are lost, waits
//! expire.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::gangs::{Gang, GangCounts};
use pellucid::cluster::{Input, Stage};
use pellucid::cycle::scheduler::turn::Advance;
use pellucid::diagnosis::dump::Dump;
use pellucid::diagnosis::dump::restore::Rewind;
use pellucid::model::effect::{BindOrder, BindOutcome, EffectReport};
use pellucid::model::gang::{Dialect, GangMode, GangTerms};
use pellucid::model::pod::PodPhase;
use pellucid::model::{GangKey, Pod};
use pellucid::queue::QueueStage;
use pellucid::recording::Outcome;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::common::driver::Core;
use crate::common::dumps::{decides_alike, dump, rebuilt, state};
use crate::gangs::made::{core_with, host, in_dialect, single, terms};

mod groups;

const GANGS: usize = 4;
const PODS: usize = 7;
const NODES: usize = 4;

/// A random change; orders are taken modulo the number of open ones.
#[derive(Clone, Debug)]
enum Happening {
    /// A member of a gang appears.
    Member(usize, usize),
    /// A gang names others of its mode from now on, as bits.
    Names(usize, usize),
    /// A list moves members to other gangs of their mode, all at once.
    Moves(Vec<(usize, usize, usize)>),
    /// A pod without a gang.
    Single(usize),
    Gone(usize, usize),
    Ended(usize, usize, bool),
    Node(usize, i64),
    NodeGone(usize),
    Steps(usize),
    Wait(u64),
    Reported(usize, usize),
    /// The watch is faster than the report.
    Confirmed(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    prop_oneof![
        12 => (0..GANGS, 0..PODS).prop_map(|(g, p)| Member(g, p)),
        3 => (0..GANGS, 0..1usize << GANGS).prop_map(|(g, others)| Names(g, others)),
        2 => (0..GANGS).prop_map(|g| Names(g, (1 << GANGS) - 1)),
        2 => vec((0..GANGS, 0..PODS, 0..GANGS), 1..5).prop_map(Moves),
        2 => (0..PODS).prop_map(Single),
        3 => (0..=GANGS, 0..PODS).prop_map(|(g, p)| Gone(g, p)),
        1 => (0..GANGS, 0..PODS, any::<bool>()).prop_map(|(g, p, well)| Ended(g, p, well)),
        3 => (0..NODES, 1..6i64).prop_map(|(n, room)| Node(n, room * 1000)),
        1 => (0..NODES).prop_map(NodeGone),
        8 => (1..4usize).prop_map(Steps),
        4 => (0..20_000u64).prop_map(Wait),
        6 => (0..8usize, 0..5usize).prop_map(|(i, how)| Reported(i, how)),
        2 => (0..8usize).prop_map(Confirmed),
    ]
}

/// The kind of a gang: dialect, mode, quorum, and whether its members differ.
#[derive(Clone, Debug)]
struct Kind {
    dialect: Dialect,
    is_strict: bool,
    min: u32,
    is_mixed: bool,
}

fn kind() -> impl Strategy<Value = Kind> {
    let dialect = prop::sample::select(vec![Dialect::Unicore, Dialect::Coscheduling, Dialect::Koordinator]);
    (dialect, any::<bool>(), 1..5u32, any::<bool>()).prop_map(|(dialect, is_strict, min, is_mixed)| Kind {
        dialect,
        is_strict,
        min,
        is_mixed,
    })
}

struct Life {
    core: Core,
    kinds: Vec<Kind>,
    /// Gangs that each gang names, as bits.
    names: [usize; GANGS],
    pods: BTreeMap<String, Pod>,
    nodes: BTreeSet<usize>,
    open: Vec<BindOrder>,
    uids: usize,
}

impl Life {
    fn new(kinds: Vec<Kind>) -> Self {
        let (pods, nodes) = (BTreeMap::new(), BTreeSet::new());
        let mut core = core_with(&[]);
        // Attempts run in one piece, in a few, or member by member, with other changes between the pieces.
        core.scheduler.set_slice([100_000, 150, 1][kinds[0].min as usize % 3]);
        Self { core, kinds, names: [0; GANGS], pods, nodes, open: Vec::new(), uids: 0 }
    }

    fn happen(&mut self, what: &Happening) {
        match *what {
            Happening::Moves(ref all) => self.move_members(all),
            Happening::Member(g, p) => self.create(&self.member(g, p)),
            Happening::Names(g, others) => self.name_others(g, others),
            Happening::Single(p) => self.create(&single(&format!("s-{p}"), 1000)),
            Happening::Gone(g, p) => self.remove(&name(g, p)),
            Happening::Ended(g, p, well) => self.end(&name(g, p), well),
            Happening::Node(n, room) => {
                self.nodes.insert(n);
                self.core.see_node(&host(&format!("n{n}"), room));
            }
            Happening::NodeGone(n) => {
                self.nodes.remove(&n);
                self.core.apply(Input::NodeDeleted(format!("n{n}").as_str().into()));
            }
            Happening::Steps(n) => (0..n).for_each(|_| self.step()),
            Happening::Wait(milliseconds) => self.core.wait(Duration::from_millis(milliseconds)),
            Happening::Reported(i, how) => self.report(i, how),
            Happening::Confirmed(i) => self.confirm(i),
        }
        self.take_orders();
        self.check();
    }

    fn member(&self, g: usize, p: usize) -> Pod {
        let kind = &self.kinds[g];
        let mode = if kind.is_strict { GangMode::Strict } else { GangMode::NonStrict };
        let wait = Some(Duration::from_secs(15));
        let terms = GangTerms { mode: Some(mode), wait, groups: self.named(g), ..terms(kind.min) };
        let size = if kind.is_mixed { 500 * (p as i64 + 1) } else { 1000 };
        in_dialect(kind.dialect, &format!("g{g}"), &name(g, p), size, terms)
    }

    fn create(&mut self, pod: &Pod) {
        if self.pods.contains_key(&*pod.key.name) {
            return;
        }
        self.uids += 1;
        let pod = Pod { uid: format!("uid-{}", self.uids).into(), ..pod.clone() };
        self.core.see(&pod);
        self.pods.insert(pod.key.name.to_string(), pod);
    }

    fn remove(&mut self, name: &str) {
        if let Some(pod) = self.pods.remove(name) {
            self.core.delete(&pod);
        }
    }

    fn end(&mut self, name: &str, well: bool) {
        let Some(pod) = self.pods.get_mut(name).filter(|pod| pod.node_name.is_some()) else { return };
        pod.phase = if well { PodPhase::Succeeded } else { PodPhase::Failed };
        self.core.see(&pod.clone());
    }

    fn step(&mut self) {
        let Advance::Judged(step) = self.core.advance() else { return };
        for judged in step.all() {
            let is_placed = self.core.stage(&judged.pod).is_some_and(Stage::is_placed);
            let has_place = matches!(judged.verdict.outcome, Outcome::Placed(_));
            assert!(!is_placed || has_place, "{} was refused and holds a place", judged.pod.key);
        }
        if let Some(key) = &step.gang {
            let gangs = self.core.scheduler.cluster().gangs();
            for gang in gangs.group_of(key).iter().map(|k| gangs.get(k).expect("the gang is known")) {
                let is_strict = gang.definition.mode == GangMode::Strict;
                let any = step.all().any(|s| matches!(s.verdict.outcome, Outcome::Placed(_)));
                assert!(
                    !is_strict || !any || has_quorum(gang),
                    "{key} was placed below its quorum: {gang:?}"
                );
                assert!(!is_strict || gang.counts.waiting == 0, "{key} is strict and waits");
            }
        }
    }

    /// Takes the bind orders; each must be for a gang that has its quorum at that time.
    fn take_orders(&mut self) {
        for order in self.core.orders() {
            let pod = self.pods.get(&*order.pod.key.name).filter(|p| p.uid == order.pod.uid);
            if let Some(gang) = pod.and_then(|p| self.core.scheduler.cluster().gangs().of(p)) {
                assert!(has_quorum(gang), "{} is bound below its quorum: {gang:?}", order.pod.key);
            }
            self.open.push(order);
        }
    }

    fn report(&mut self, i: usize, how: usize) {
        if self.open.is_empty() {
            return;
        }
        let order = self.open.remove(i % self.open.len());
        let node_is_there = self.nodes.iter().any(|n| **order.node == *format!("n{n}"));
        let pod = self.pods.get_mut(&*order.pod.key.name).filter(|p| p.uid == order.pod.uid);
        let outcome = match (how, pod) {
            (_, None) => BindOutcome::Gone,
            (0, _) => BindOutcome::Refused { status: 500, reason: "".into(), message: "no".into() },
            (_, Some(_)) if !node_is_there => {
                BindOutcome::Refused { status: 404, reason: "NotFound".into(), message: "no node".into() }
            }
            (_, Some(pod)) => {
                pod.node_name = Some((*order.node).clone());
                BindOutcome::Bound
            }
        };
        let (id, uid) = (order.id, order.pod.uid.clone());
        self.core.apply(Input::Report(EffectReport::BindDone { id, uid, outcome }));
    }

    fn confirm(&mut self, i: usize) {
        if self.open.is_empty() {
            return;
        }
        let order = self.open[i % self.open.len()].clone();
        if let Some(pod) = self.pods.get_mut(&*order.pod.key.name).filter(|p| p.uid == order.pod.uid) {
            pod.node_name = Some((*order.node).clone());
            pod.phase = PodPhase::Running;
            let pod = pod.clone();
            self.core.see(&pod);
        }
    }

    /// Checks the invariants.
    fn check(&self) {
        let cluster = self.core.scheduler.cluster();
        for (key, gang) in cluster.gangs().all() {
            assert_eq!(counted(&self.core, gang), gang.counts, "{key}");
            let counts = gang.counts;
            let live = counts.pending + counts.waiting + counts.permitted + counts.bound;
            assert_eq!(gang.created(), live + gang.finished.len() as u32, "{key}");
            assert_eq!(gang.created() as usize, self.existing(key), "{key}");
            for (id, member) in &gang.members {
                let stage = cluster.pod(*id).expect("a member is in the state").stage;
                assert_eq!(stage == Stage::Waiting, member.deadline.is_some(), "{key} {stage:?} {member:?}");
                self.check_unit(key, *id, stage);
            }
        }
        self.check_groups();
        for node in cluster.present() {
            for resource in cluster.columns().offered() {
                let columns = cluster.columns();
                let over = columns.requested(*node, resource) - columns.allocatable(*node, resource);
                // A node may have shrunk below the requests of its pods.
                assert!(over <= 40_000, "{over} over");
            }
        }
    }

    /// Checks that a pending member is in exactly one unit: that of its group while the group lacks its quorum.
    fn check_unit(&self, key: &GangKey, id: pellucid::model::PodId, stage: Stage) {
        let queue = self.core.scheduler.queue();
        let unit = queue.unit_of(id).and_then(|unit| queue.unit(unit));
        match stage {
            Stage::Pending => {
                let unit = unit.unwrap_or_else(|| panic!("a pending member of {key} is in no unit"));
                let gangs = self.core.scheduler.cluster().gangs();
                let group: Vec<_> =
                    gangs.group_of(key).iter().filter_map(|k| gangs.get(k).cloned()).collect();
                let is_satisfied = group.iter().all(|gang| gang.is_satisfied());
                assert_eq!(unit.gang.is_none(), is_satisfied, "{key}: {unit:?} {group:?}");
                assert!(unit.pods.contains(&id));
                assert_ne!(unit.stage, QueueStage::InFlight, "{key} is pending and in flight");
            }
            Stage::Bound => {}
            _ => assert_eq!(unit.map(|u| u.stage), Some(QueueStage::InFlight), "a placed member of {key}"),
        }
    }

    fn existing(&self, key: &GangKey) -> usize {
        self.pods.values().filter(|pod| pod.member_of() == Some(key)).count()
    }

    /// Advances until everything has settled, without further failures.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            while let Some(at) =
                self.core.scheduler.next_deadline().filter(|_| !self.core.scheduler.has_work())
            {
                if at > self.core.now.monotonic + Duration::from_secs(60) {
                    break;
                }
                self.core.wait(at.saturating_sub(self.core.now.monotonic).max(Duration::from_millis(1)));
                self.check();
            }
            self.step();
            self.take_orders();
            while !self.open.is_empty() {
                self.report(0, 4);
                self.take_orders();
            }
            self.check();
            let soon = self.core.now.monotonic + Duration::from_secs(60);
            let is_due = self.core.scheduler.next_deadline().is_some_and(|at| at <= soon);
            if !self.core.scheduler.has_work() && !is_due {
                return;
            }
        }
    }

    /// Checks that a scheduler that knows only the objects of the API server would place no strict gang and no single
    /// pod.
    fn nothing_is_left_behind(&self) {
        let mut fresh = core_with(&[]);
        let cluster = self.core.scheduler.cluster();
        for node in cluster.present() {
            let node = cluster.node(*node).expect("present").clone();
            fresh.apply(Input::NodeApplied(node));
        }
        self.pods.values().for_each(|pod| fresh.see(pod));
        for n in 0.. {
            assert!(n < 1_000, "gangs keep waking each other");
            let Some(step) = fresh.step() else { break };
            let is_strict = step.pod.gang.as_ref().is_none_or(|m| m.terms.mode == Some(GangMode::Strict));
            for judged in step.all().filter(|_| is_strict) {
                if let Some(node) = fresh.scheduler.chosen(&judged.verdict) {
                    let message = self.core.message(&judged.pod);
                    panic!("{} fits on {node} and was left behind: {message}", judged.pod.key);
                }
            }
        }
    }

    fn everybody_goes(&mut self) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        names.iter().for_each(|name| self.remove(name));
        self.core.orders();
        let scheduler = &self.core.scheduler;
        assert_eq!(scheduler.n_in_flight(), 0);
        assert_eq!(scheduler.queue().units().count(), 0);
        for gang in scheduler.cluster().gangs().all().values() {
            assert_eq!((gang.counts, gang.created()), (GangCounts::default(), 0), "{}", gang.key);
        }
        self.core.wait(Duration::from_secs(600));
        assert!(self.core.scheduler.cluster().gangs().all().is_empty());
        assert_eq!(self.core.scheduler.next_deadline(), None);
    }
}

fn gang_key(g: usize) -> GangKey {
    GangKey::new("ns", &format!("g{g}"))
}

fn name(g: usize, p: usize) -> String {
    if g == GANGS { format!("s-{p}") } else { format!("g{g}-{p}") }
}

/// Returns whether a quorum is placed, or was once where that suffices.
fn has_quorum(gang: &Gang) -> bool {
    let once = gang.definition.dialect == Dialect::Koordinator && gang.was_satisfied();
    once || gang.counts.placed() >= gang.definition.min
}

fn counted(core: &Core, gang: &Gang) -> GangCounts {
    let mut counts = GangCounts::default();
    for id in gang.members.keys() {
        match core.scheduler.cluster().pod(*id).map(|r| r.stage) {
            Some(Stage::Pending) | None => counts.pending += 1,
            Some(Stage::Waiting) => counts.waiting += 1,
            Some(Stage::Bound) => counts.bound += 1,
            Some(_) => counts.permitted += 1,
        }
    }
    counts
}

/// Returns a configuration with the same histories every time; `PROPTEST_CASES` sets their number.
fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(20_260);
    ProptestConfig { failure_persistence: None, rng_seed, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn gangs_are_whole_whatever_happens(
        kinds in vec(kind(), GANGS),
        happenings in vec(happening(), 1..90),
    ) {
        let mut life = Life::new(kinds);
        (0..NODES).for_each(|n| life.happen(&Happening::Node(n, 2000)));
        for what in &happenings {
            life.happen(what);
        }
        life.settle();
        life.nothing_is_left_behind();
        life.everybody_goes();
    }

    #[test]
    fn what_is_rebuilt_of_a_snapshot_is_the_same(
        kinds in vec(kind(), GANGS),
        happenings in vec(happening(), 1..60),
    ) {
        let mut life = Life::new(kinds);
        (0..NODES).for_each(|n| life.happen(&Happening::Node(n, 2000)));
        for what in &happenings {
            life.happen(what);
        }
        let now = life.core.now;
        let first = dump(&mut life.core.scheduler, now, false);
        let again = dump(&mut rebuilt(&first, &Rewind::default()), now, false);
        prop_assert_eq!(state(&first), state(&again));
        check_gated(&first)?;
        // A moment later the members' verdicts say what the gang lacks.
        life.core.wait(Duration::from_secs(64));
        let now = life.core.now;
        check_gated(&dump(&mut life.core.scheduler, now, false))?;
    }
}

/// Checks that gangs that are held back are decided on as before, unless pods came or went since their verdicts.
fn check_gated(of: &Dump) -> Result<(), TestCaseError> {
    let mut gated = of.record.verdicts.iter().filter(|v| v.outcome == "Gated" && !v.stale);
    gated.try_for_each(|verdict| decides_alike(of, verdict, &Rewind::default()))
}

/// Equal histories give equal traces.
#[test]
fn equal_histories_end_alike() {
    let run = || {
        let mut core = core_with(&[3000, 3000, 2000]);
        for i in 0..6 {
            core.see(&in_dialect(Dialect::Unicore, "g", &format!("g-{i}"), 500 * (1 + i % 3), terms(5)));
        }
        core.run();
        let nodes: Vec<Arc<str>> = core.orders().iter().map(|o| Arc::from(&**o.node)).collect();
        nodes
    };
    assert_eq!(run(), run());
}
