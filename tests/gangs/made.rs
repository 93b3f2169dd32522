//! Nodes, members and reads shared by the tests.

use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::gangs::Gang;
use pellucid::cluster::{Input, Stage};
use pellucid::model::effect::{BindOutcome, Effect, EffectReport};
use pellucid::model::gang::{Dialect, GangMark, GangMode, GangTerms};
use pellucid::model::requests::{ContainerRequests, PodRequests, RequestInputs, ResourceList};
use pellucid::model::{GangKey, Node, Pod, PodId, PodKey, PodSpec};
use pellucid::queue::{QueueStage, Unit};
use pellucid::recording::{GangOutcome, GangRefusal};

use crate::driver::{Core, default_profile, settings};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const SCHEDULER: &str = "default-scheduler";

/// Makes a core with nodes `n0`, `n1`, ... of these sizes, in thousandths of a core.
pub(crate) fn core_with(nodes: &[i64]) -> Core {
    let mut core = Core::new(settings(default_profile(SCHEDULER)));
    for (i, milli_cpu) in nodes.iter().enumerate() {
        core.see_node(&format!("n{i}"), *milli_cpu);
    }
    core
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
    let mark = GangMark {
        gang: GangKey::new("ns", gang),
        dialect,
        needs_group: false,
        is_shadow: false,
        names_two: false,
        terms,
        problems: Box::default(),
    };
    Pod { gang: Some(Arc::new(mark)), ..single(name, milli_cpu) }
}

/// Makes a pod without a gang.
pub(crate) fn single(name: &str, milli_cpu: i64) -> Pod {
    let container = ContainerRequests { amounts: vec![("cpu".into(), milli_cpu)], is_sidecar: false };
    let requests =
        PodRequests::compute(&RequestInputs { containers: vec![container], ..RequestInputs::default() });
    let spec = PodSpec { requests, n_containers: 1, ..PodSpec::default() };
    Pod {
        key: PodKey::new("ns", name),
        uid: format!("uid-{name}").into(),
        scheduler_name: SCHEDULER.into(),
        spec: Arc::new(spec),
        ..Pod::default()
    }
}

/// Makes equal members named `<gang>-0`, `<gang>-1`, ...
pub(crate) fn members(gang: &str, n: usize, milli_cpu: i64, terms: &GangTerms) -> Vec<Pod> {
    (0..n).map(|i| member(gang, &format!("{gang}-{i}"), milli_cpu, terms.clone())).collect()
}

impl Core {
    pub(crate) fn see(&mut self, pod: &Pod) {
        self.apply(Input::PodApplied(Arc::new(pod.clone())));
    }

    pub(crate) fn see_all(&mut self, pods: &[Pod]) {
        pods.iter().for_each(|pod| self.see(pod));
    }

    pub(crate) fn delete(&mut self, pod: &Pod) {
        self.apply(Input::PodDeleted(pod.key.clone()));
    }

    pub(crate) fn see_node(&mut self, name: &str, milli_cpu: i64) {
        let allocatable = ResourceList { milli_cpu, memory: 64 << 30, pods: 110, ..ResourceList::default() };
        let uid = format!("uid-{name}").into();
        let node = Node { name: name.into(), uid, allocatable, ready: true, ..Node::default() };
        self.apply(Input::NodeApplied(Arc::new(node)));
    }

    pub(crate) fn id(&self, pod: &Pod) -> Option<PodId> {
        self.scheduler.cluster().find_pod(&pod.key)
    }

    /// Returns the stage of a pod.
    pub(crate) fn stage(&self, pod: &Pod) -> Option<Stage> {
        Some(self.scheduler.cluster().pod(self.id(pod)?)?.stage)
    }

    /// Counts the pods that use resources of a node.
    pub(crate) fn placed(&self, pods: &[Pod]) -> usize {
        pods.iter().filter(|pod| self.stage(pod).is_some_and(Stage::is_placed)).count()
    }

    pub(crate) fn unit(&self, pod: &Pod) -> Option<&Unit> {
        let queue = self.scheduler.queue();
        queue.unit(queue.unit_of(self.id(pod)?)?)
    }

    pub(crate) fn queue_stage(&self, pod: &Pod) -> Option<QueueStage> {
        self.unit(pod).map(|unit| unit.stage)
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
        use pellucid::recording::Outcome;
        let id = self.id(pod).expect("the pod is known");
        match &self.scheduler.verdict(id).expect("it has a verdict").outcome {
            Outcome::Refused(refusal) | Outcome::Gated(refusal) => refusal.message().to_string(),
            Outcome::Placed(placement) => {
                format!("on {}", self.scheduler.cluster().slot(placement.node).name)
            }
        }
    }

    /// Takes the bind orders, reports their success and shows the pods as bound on the watch.
    pub(crate) fn bind_all(&mut self) -> Vec<String> {
        let orders = self.orders();
        for order in &orders {
            let report = EffectReport::BindDone {
                id: order.id,
                uid: order.pod.uid.clone(),
                outcome: BindOutcome::Bound,
            };
            self.apply(Input::Report(report));
        }
        orders.into_iter().map(|order| order.pod.key.name.to_string()).collect()
    }

    /// Returns the conditions ordered since the last call, with their pods' names.
    pub(crate) fn conditions(&mut self) -> Vec<(String, &'static str, String)> {
        let effects = self.scheduler.take_effects().into_iter();
        let orders = effects.filter_map(|e| if let Effect::Status(order) = e { Some(order) } else { None });
        let told = orders.filter_map(|order| {
            let condition = order.condition?;
            Some((order.pod.key.name.to_string(), condition.reason, condition.message.to_string()))
        });
        told.collect()
    }
}
