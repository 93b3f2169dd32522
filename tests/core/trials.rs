//! Trial changes leave no trace: searches for victims and the two-pass filter change the state and undo it, many
//! times per attempt.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid::cluster::{Input, Stage};
use pellucid::model::effect::{BindOutcome, Effect};
use pellucid::model::pod::PodPhase;
use pellucid::model::selector::NodeAffinity;
use pellucid::model::{Name, Pod, PodKey};
use pellucid::recording::Outcome;
use proptest::prelude::*;
use serde_json::Value;

use crate::common::cluster::{World, config, world};
use crate::common::driver::Core;
use crate::common::made::{SECOND, core};
use crate::common::seen::seen;

/// Attempts per round; enough for all pods of a small world.
const MOST_STEPS: usize = 30;

fn core_of(world: &World) -> Core {
    let mut core = core();
    world.objects.iter().for_each(|object| core.see_object(object.clone()));
    world.nodes.iter().for_each(|node| core.see_node(node));
    for pod in world.placed.iter().chain(&world.pending) {
        // Half of the pending pods are nominated by others.
        let nominated = pod.key.name.len() % 2 == 0 && pod.node_name.is_none();
        let node = nominated.then(|| world.nodes.first().map(|n| n.name.clone())).flatten();
        let mut pod = Pod { nominated_node: node, gates: [].into(), ..pod.clone() };
        if pod.node_name.is_none() {
            // Their priority is above most running pods, and taints and labels allow them, so that there are victims.
            pod.priority += 8;
            let spec = Arc::make_mut(&mut pod.spec);
            (spec.affinity, spec.node_name) = (NodeAffinity::default(), None);
        }
        core.see(&pod);
    }
    core
}

/// Plans until idle; a refusal changes nothing visible and reports no node as changed.
fn plan(core: &mut Core) -> Result<(), TestCaseError> {
    for _ in 0..MOST_STEPS {
        let cluster = core.scheduler.cluster();
        let (before, changes) = (seen(cluster), cluster.changes().head());
        let Some(step) = core.step() else { break };
        if matches!(step.verdict.outcome, Outcome::Refused(_)) {
            let cluster = core.scheduler.cluster();
            prop_assert_eq!(seen(cluster), before, "after {}", step.pod.key);
            prop_assert_eq!(cluster.changes().head(), changes);
        }
    }
    Ok(())
}

/// Confirms Bindings and removes victims. Returns the number of evictions.
fn carry_out(core: &mut Core) -> usize {
    let effects = core.scheduler.take_effects();
    let mut evictions = 0;
    for effect in effects {
        match effect {
            Effect::Bind(order) => core.report(&order, BindOutcome::Bound),
            Effect::Evict(order) => {
                evictions += 1;
                core.apply(Input::PodDeleted(order.victim.key));
            }
            _ => {}
        }
    }
    evictions
}

/// Returns the rendering of a new scheduler that was given the same pods and nodes and has tried nothing.
fn from_scratch(world: &World, core: &Core) -> BTreeMap<String, Value> {
    let cluster = core.scheduler.cluster();
    let mut pods: BTreeMap<PodKey, Pod> = BTreeMap::new();
    for (_, record) in cluster.pods() {
        assert!(matches!(record.stage, Stage::Pending | Stage::Bound), "{}", record.pod.key);
        let node: Option<Name> = record.node.map(|n| cluster.node_name(n).clone());
        let phase = if node.is_some() { PodPhase::Running } else { PodPhase::Pending };
        let pod = Pod { node_name: node, nominated_node: None, phase, ..(*record.pod).clone() };
        pods.insert(pod.key.clone(), pod);
    }
    let nothing = World { placed: Vec::new(), pending: Vec::new(), ..world.clone() };
    let mut fresh = core_of(&nothing);
    pods.values().for_each(|pod| fresh.see(pod));
    seen(fresh.scheduler.cluster())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_refused_pod_leaves_the_state_as_it_was(world in world(6, 16)) {
        let mut core = core_of(&world);
        for _ in 0..4 {
            plan(&mut core)?;
            carry_out(&mut core);
            let now = seen(core.scheduler.cluster());
            prop_assert_eq!(now, from_scratch(&world, &core));
            core.wait(20 * SECOND);
        }
    }
}

/// Guards the property above, which would hold for a search that never finds victims.
#[test]
fn random_worlds_have_victims() {
    let mut runner = proptest::test_runner::TestRunner::new(config());
    let evictions = Cell::new(0);
    let tried = runner.run(&world(6, 16), |world| {
        let mut core = core_of(&world);
        core.run();
        evictions.set(evictions.get() + carry_out(&mut core));
        Ok(())
    });
    tried.expect("nothing is asserted there");
    assert!(evictions.get() >= 10, "only {}", evictions.get());
}
