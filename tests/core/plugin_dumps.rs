//! Dumps of a scheduler whose plugin brings a kind and judges by time: what is rebuilt is the same and decides the same.

use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::diagnosis::dump::Dump;
use pellucid::diagnosis::dump::restore::{self, Rewind};
use pellucid::framework::manifest::format_moment;
use pellucid::framework::profile::Profile;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::CustomKindRef;
use pellucid::plugins::load_aware_scheduling::{NAME, NODE_METRIC};
use pellucid::plugins::registry;
use pellucid::recording::Outcome;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use crate::common::cluster::{SCHEDULER, config};
use crate::common::driver::{Core, settings};
use crate::common::dumps::{decides_alike_on, dump, rebuilt_as, state};
use crate::common::made;

/// When the histories start, in seconds since 1970.
const START: u64 = 1_800_000_000;
const NODES: [&str; 3] = ["n0", "n1", "n2"];

fn profile() -> Profile {
    let text = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": SCHEDULER,
            "plugins": {"multiPoint": {"enabled": [{"name": NAME}]}},
            "pluginConfig": [{"name": NAME, "args": {"estimatedSecondsAfterPodScheduled": 60}}],
        }],
    });
    let mut parsed = pellucid::config::parse(&text.to_string(), "the test's", &registry()).expect("valid");
    parsed.profiles.remove(0)
}

struct Life {
    core: Core,
    decoder: Decoder,
    n: usize,
}

impl Life {
    fn new() -> Self {
        let mut core = Core::new(settings(profile()));
        core.wait(Duration::from_secs(START));
        NODES.iter().for_each(|name| core.see_node(&made::node(name, 4_000)));
        Self { core, decoder: Decoder::of(&registry()), n: 0 }
    }

    /// Reports the usage of a node, and of the first pods, as it was some seconds ago.
    fn report(&mut self, node: usize, age: u64, milli: i64, pods: usize) {
        self.n += 1;
        let usage = |milli: i64| json!({"resources": {"cpu": format!("{milli}m"), "memory": "1234567Ki"}});
        let updated = self.core.now.wall.as_secs() - age;
        let pods: Vec<_> = (0..pods)
            .map(|n| json!({"namespace": "ns", "name": format!("p{n}"), "podUsage": usage(50), "priority": "koord-prod"}))
            .collect();
        let manifest = json!({
            "metadata": {"name": NODES[node], "uid": NODES[node], "resourceVersion": self.n.to_string()},
            "status": {
                "updateTime": format_moment(updated.cast_signed()),
                "nodeMetric": {
                    "nodeUsage": usage(milli),
                    "aggregatedNodeUsages": [{"duration": "5m", "usage": {"p95": usage(milli + 7)}}],
                },
                "podsMetric": pods,
            },
        });
        let object = self.decoder.custom(CustomKindRef(&NODE_METRIC), &manifest).expect("readable");
        self.core.apply(Input::CustomApplied(Arc::new(object)));
    }

    fn attempt(&mut self, milli: i64) {
        self.n += 1;
        self.core.attempt(&made::pod(&format!("p{}", self.n), milli));
        self.core.orders();
    }

    fn dump(&mut self) -> Dump {
        let now = self.core.now;
        dump(&mut self.core.scheduler, now, false)
    }
}

/// Checks that a rebuilt state is the same, and that what waits is decided on alike where nothing changed since.
fn check(life: &mut Life) -> Result<(), TestCaseError> {
    let of = life.dump();
    let again = dump(&mut rebuilt_as(&of, profile(), &Rewind::default()), life.core.now, false);
    prop_assert_eq!(state(&of), state(&again));
    let waits = |key| of.state.pods.iter().any(|p| p.pod.key == key && p.node.is_none());
    for verdict in of.record.verdicts.iter().filter(|v| !v.stale && waits(v.pod.clone())) {
        decides_alike_on(rebuilt_as(&of, profile(), &Rewind::default()), &of, verdict)?;
    }
    Ok(())
}

#[derive(Clone, Debug)]
enum Op {
    Report { node: usize, age: u64, milli: i64, pods: usize },
    Forget(usize),
    Attempt(i64),
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let report = (0..NODES.len(), 0..200u64, 0..4_000i64, 0..4usize);
    prop_oneof![
        3 => report.prop_map(|(node, age, milli, pods)| Op::Report { node, age, milli, pods }),
        1 => (0..NODES.len()).prop_map(Op::Forget),
        4 => (0..3_000i64).prop_map(Op::Attempt),
        2 => (0..100u64).prop_map(Op::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..config() })]

    #[test]
    fn a_state_with_node_metrics_is_rebuilt_and_decides_the_same(ops in vec(op(), 1..30)) {
        let mut life = Life::new();
        for op in ops {
            match op {
                Op::Report { node, age, milli, pods } => life.report(node, age, milli, pods),
                Op::Forget(node) => {
                    let key = (Default::default(), NODES[node].into());
                    life.core.apply(Input::CustomDeleted(CustomKindRef(&NODE_METRIC), key));
                }
                Op::Attempt(milli) => life.attempt(milli),
                Op::Wait(seconds) => life.core.wait(Duration::from_secs(seconds)),
            }
        }
        check(&mut life)?;
    }
}

#[test]
fn usage_decides_after_a_restore_and_would_be_missed_without_it() {
    let mut life = Life::new();
    (0..NODES.len()).for_each(|node| life.report(node, 10, 3_900, 0));
    life.attempt(500);
    let of = life.dump();
    assert_eq!(
        (of.state.plugin_objects.len(), &of.record.verdicts[0].codes[..]),
        (3, &["UsageExceeded".to_owned()][..])
    );
    check(&mut life).expect("it decides alike");
    let mut without = of.clone();
    without.state.plugin_objects.clear();
    let mut scheduler = rebuilt_as(&without, profile(), &Rewind::default());
    let decided = restore::decide(&mut scheduler, &without, &of.record.verdicts[0].pod).expect("decided");
    assert_eq!(decided.outcome, "Placed");
}

#[test]
fn an_expired_report_is_as_old_after_a_restore_as_at_the_decision() {
    let mut life = Life::new();
    (0..NODES.len()).for_each(|node| life.report(node, 170, 100, 0));
    life.core.wait(Duration::from_secs(20));
    life.attempt(500);
    life.core.wait(Duration::from_secs(1));
    let of = life.dump();
    let verdict = &of.record.verdicts[0];
    assert_eq!((verdict.stale, &verdict.codes[..]), (false, &["NodeMetricExpired".to_owned()][..]));
    check(&mut life).expect("it decides alike");
}

#[test]
fn a_placement_from_before_a_report_expired_is_made_again() {
    let mut life = Life::new();
    (0..NODES.len()).for_each(|node| life.report(node, 100, 100, 0));
    life.attempt(500);
    life.core.wait(Duration::from_secs(200));
    let of = life.dump();
    let verdict = &of.record.verdicts[0];
    assert_eq!(verdict.outcome, "Placed");
    let scheduler = rebuilt_as(&of, profile(), &Rewind::before(&of, verdict));
    decides_alike_on(scheduler, &of, verdict).expect("it decides alike");
}

/// Returns the ages of which three attempts, 20 seconds apart, tell: nodes with old reports do not change between, and a node with too
/// little room does if `changes`.
fn ages(changes: bool) -> [i64; 3] {
    let mut life = Life::new();
    (0..2).for_each(|node| life.report(node, 170, 100, 0));
    life.core.see(&made::on(&made::pod("large", 3_800), NODES[2]));
    [20, 40, 60].map(|after| {
        life.core.wait(Duration::from_secs(20));
        if changes {
            life.core.see(&made::on(&made::pod(&format!("small-{after}"), 10), NODES[2]));
        }
        life.core.see(&made::pod(&format!("tried-{after}"), 500));
        let steps = life.core.run();
        let Some(Outcome::Refused(refusal)) = steps.last().map(|step| &step.verdict.outcome) else {
            panic!("it has a node, or is not tried")
        };
        let mut measures = refusal.groups.iter().flat_map(|group| &group.measures);
        let age = measures.find(|measure| measure.resource.as_str() == "NodeMetric age");
        age.expect("two reports are old").requested
    })
}

#[test]
fn the_age_of_a_report_is_that_at_the_attempt() {
    assert_eq!([true, false].map(ages), [[190, 210, 230]; 2]);
}
