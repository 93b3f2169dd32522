//! Random clusters in a scheduler: some pods placed, some refused, some not tried, some nominated by others.

use std::sync::Arc;

use pellucid::model::taint::{TaintEffect, Toleration, TolerationOperator};
use pellucid::model::{Pod, PodSpec};
use proptest::prelude::*;

use crate::common::cluster::{World, node_name, world};
use crate::common::driver::Core;
use crate::common::made::core;

/// A world, and what happens in it.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    pub(crate) world: World,
    /// Number of units that are planned.
    steps: usize,
    /// Pending pods that others nominated, with their nodes, as indices.
    nominated: Vec<(usize, usize)>,
}

pub(crate) fn story() -> impl Strategy<Value = Story> {
    let nominated = prop::collection::vec((0..12usize, 0..8usize), 0..3);
    (world(8, 10), 0..12usize, nominated).prop_map(|(world, steps, nominated)| Story {
        world,
        steps,
        nominated,
    })
}

/// Generates a story in which most pods fit on most nodes, so that only scores distinguish the nodes.
pub(crate) fn easy_story() -> impl Strategy<Value = Story> {
    story().prop_map(|mut story| {
        for pod in story.world.pending.iter_mut().chain(&mut story.world.placed) {
            pod.gates = [].into();
            relax(Arc::make_mut(&mut pod.spec));
        }
        for node in &mut story.world.nodes {
            (node.unschedulable, node.allocatable.pods) = (false, 110);
            node.allocatable.milli_cpu += 64_000;
            node.allocatable.memory += 1 << 40;
            node.allocatable.ephemeral_storage += 1 << 40;
        }
        story
    })
}

/// Removes what refuses nodes and keeps what prefers some.
fn relax(spec: &mut PodSpec) {
    spec.node_name = None;
    spec.affinity.required = None;
    spec.affinity.selector = Default::default();
    spec.pod_affinity.required = [].into();
    spec.pod_anti_affinity.required = [].into();
    spec.host_ports = [].into();
    spec.spread.iter_mut().for_each(|constraint| constraint.is_hard = false);
    spec.requests.list.scalars = [].into();
    let all = |effect| Toleration {
        key: "".into(),
        operator: TolerationOperator::Exists,
        value: "".into(),
        effect: Some(effect),
    };
    spec.tolerations = [TaintEffect::NoSchedule, TaintEffect::NoExecute].map(all).into();
}

impl Story {
    /// Plays the story; returns the core afterwards.
    pub(crate) fn play(&self) -> Core {
        let mut core = core();
        self.world.objects.iter().for_each(|object| core.see_object(object.clone()));
        self.world.nodes.iter().for_each(|node| core.see_node(node));
        self.world.placed.iter().for_each(|pod| core.see(pod));
        for (i, pod) in self.world.pending.iter().enumerate() {
            let on = self.nominated.iter().find(|(pod, _)| *pod == i).map(|(_, node)| node_name(*node));
            core.see(&Pod { nominated_node: on, uid: format!("uid-{i}").into(), ..pod.clone() });
        }
        for _ in 0..self.steps {
            let _ = core.step();
        }
        core
    }
}

/// Returns the sorted keys of our pods that satisfy a condition.
pub(crate) fn ours(core: &Core, is: impl Fn(&pellucid::cluster::PodRecord) -> bool) -> Vec<String> {
    let pods = core.scheduler.cluster().pods().map(|(_, record)| record).filter(|record| is(record));
    let mut keys: Vec<String> = pods.map(|record| record.pod.key.to_string()).collect();
    keys.sort();
    keys
}

/// Returns the names of all nodes, sorted.
pub(crate) fn nodes(core: &Core) -> Vec<String> {
    let cluster = core.scheduler.cluster();
    cluster.by_name().iter().map(|node| cluster.node_name(*node).to_string()).collect()
}
