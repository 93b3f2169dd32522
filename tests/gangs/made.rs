//! Hosts, members and what the core knows of gangs.

use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Stage;
use pellucid::cluster::gangs::Gang;
use pellucid::model::effect::BindOutcome;
use pellucid::model::gang::{Dialect, GangDeclaration, GangMode, GangTerms};
use pellucid::model::{GangKey, Node, Pod};
use pellucid::recording::{GangOutcome, GangRefusal, Outcome};

use crate::common::driver::Core;
use crate::common::made::{self, mark, node};

pub(crate) use crate::common::cluster::SCHEDULER;
// `single` is a pod without a gang.
pub(crate) use crate::common::made::{SECOND, pod as single};

/// Makes a node with this much CPU and room for 110 pods.
pub(crate) fn host(name: &str, milli_cpu: i64) -> Node {
    let mut node = node(name, milli_cpu);
    node.allocatable.pods = 110;
    node
}

/// Makes a core with nodes `n0`, `n1`, ... of these sizes, in thousandths of a core.
pub(crate) fn core_with(nodes: &[i64]) -> Core {
    let host = |(i, milli_cpu): (usize, &i64)| host(&format!("n{i}"), *milli_cpu);
    made::core_with(&nodes.iter().enumerate().map(host).collect::<Vec<_>>())
}

/// Makes a core with nodes of these sizes, and tries to place gang `g`: this many members of one CPU each.
pub(crate) fn tried(nodes: &[i64], n: usize, terms: &GangTerms) -> (Core, Vec<Pod>) {
    let (mut core, pods) = (core_with(nodes), members("g", n, 1000, terms));
    core.attempt_all(&pods);
    (core, pods)
}

/// Returns the terms of a gang with this quorum.
pub(crate) fn terms(min: u32) -> GangTerms {
    GangTerms { min: Some(min), ..GangTerms::default() }
}

pub(crate) fn non_strict(min: u32, wait: Duration) -> GangTerms {
    GangTerms { mode: Some(GangMode::NonStrict), wait: Some(wait), ..terms(min) }
}

/// Makes a member in Koordinator's dialect, in which later members are independent of the quorum.
pub(crate) fn member(gang: &str, name: &str, milli_cpu: i64, terms: GangTerms) -> Pod {
    in_dialect(Dialect::Koordinator, gang, name, milli_cpu, terms)
}

/// Makes a member in another dialect.
pub(crate) fn in_dialect(dialect: Dialect, gang: &str, name: &str, milli_cpu: i64, terms: GangTerms) -> Pod {
    let mark = GangDeclaration { dialect, ..mark(GangKey::new("ns", gang), terms) };
    Pod { gang: Some(Arc::new(mark)), ..single(name, milli_cpu) }
}

/// Makes equal members named `<gang>-0`, `<gang>-1`, ...
pub(crate) fn members(gang: &str, n: usize, milli_cpu: i64, terms: &GangTerms) -> Vec<Pod> {
    (0..n).map(|i| member(gang, &format!("{gang}-{i}"), milli_cpu, terms.clone())).collect()
}

impl Core {
    pub(crate) fn see_all(&mut self, pods: &[Pod]) {
        pods.iter().for_each(|pod| self.see(pod));
    }

    /// Applies pods, and plans.
    pub(crate) fn attempt_all(&mut self, pods: &[Pod]) {
        self.see_all(pods);
        self.run();
    }

    /// Counts the pods that use resources of a node.
    pub(crate) fn placed(&self, pods: &[Pod]) -> usize {
        pods.iter().filter(|pod| self.stage(pod).is_some_and(Stage::is_placed)).count()
    }

    pub(crate) fn gang(&self, name: &str) -> &Gang {
        self.scheduler.cluster().gangs().get(&GangKey::new("ns", name)).expect("the gang is known")
    }

    /// Returns the outcome of the last attempt at a gang.
    pub(crate) fn outcome(&mut self, name: &str) -> GangOutcome {
        let snapshot = self.scheduler.publish(self.now);
        snapshot.gang_verdicts.get(&GangKey::new("ns", name)).expect("it was tried").outcome.clone()
    }

    /// Returns why a gang was refused.
    pub(crate) fn refusal(&mut self, name: &str) -> Arc<GangRefusal> {
        match self.outcome(name) {
            GangOutcome::Refused(refusal) | GangOutcome::Waiting { refusal, .. } => refusal,
            other => panic!("{name} was not refused: {other:?}"),
        }
    }

    /// Returns the message of a pod's last verdict.
    pub(crate) fn message(&self, pod: &Pod) -> String {
        let id = self.id(pod).expect("the pod is known");
        match &self.scheduler.verdict(id).expect("it has a verdict").outcome {
            Outcome::Refused(refusal) | Outcome::Gated(refusal) => refusal.message().to_string(),
            Outcome::Placed(placement) => {
                format!("on {}", self.scheduler.cluster().node_name(placement.node))
            }
        }
    }

    /// Takes the bind orders, reports their success and shows the pods as bound on the watch.
    pub(crate) fn bind_all(&mut self) -> Vec<String> {
        let orders = self.orders();
        orders.iter().for_each(|order| self.report(order, BindOutcome::Bound));
        orders.into_iter().map(|order| order.pod.key.name.to_string()).collect()
    }

    /// Returns the conditions ordered since the last call, with their pods' names.
    pub(crate) fn conditions(&mut self) -> Vec<(String, &'static str, String)> {
        let told = self.ordered().statuses.into_iter().filter_map(|order| {
            let condition = order.condition?;
            Some((order.pod.key.name.to_string(), condition.reason, condition.message.to_string()))
        });
        told.collect()
    }
}
