//! Nodes, pods and reads shared by the tests.

use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::{Input, Stage};
use pellucid::model::effect::{BindOrder, BindOutcome, Effect, EffectReport};
use pellucid::model::pod::PodPhase;
use pellucid::model::requests::{ContainerRequests, PodRequests, RequestInputs, ResourceList};
use pellucid::model::{Node, Pod, PodId, PodKey, PodSpec};
use pellucid::queue::{QueueStage, Unit};

use crate::cluster::SCHEDULER;
use crate::driver::{Core, default_profile, settings};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Makes a core with the default profile.
pub(crate) fn core() -> Core {
    Core::new(settings(default_profile(SCHEDULER)))
}

/// Makes a core with some nodes.
pub(crate) fn core_with(nodes: &[Node]) -> Core {
    let mut core = core();
    for node in nodes {
        core.apply(Input::NodeApplied(Arc::new(node.clone())));
    }
    core
}

/// Makes a node with this much CPU and room for 10 pods.
pub(crate) fn node(name: &str, milli_cpu: i64) -> Node {
    let allocatable = ResourceList { milli_cpu, memory: 64 << 30, pods: 10, ..ResourceList::default() };
    Node { name: name.into(), uid: format!("uid-{name}").into(), allocatable, ready: true, ..Node::default() }
}

/// Returns the requests of a pod with one container.
pub(crate) fn requests(milli_cpu: i64) -> PodRequests {
    let container = ContainerRequests { amounts: vec![("cpu".into(), milli_cpu)], is_sidecar: false };
    PodRequests::compute(&RequestInputs { containers: vec![container], ..RequestInputs::default() })
}

/// Makes a pending pod of ours.
pub(crate) fn pod(name: &str, milli_cpu: i64) -> Pod {
    let spec = PodSpec { requests: requests(milli_cpu), n_containers: 1, ..PodSpec::default() };
    Pod {
        key: PodKey::new("ns", name),
        uid: format!("uid-{name}").into(),
        scheduler_name: SCHEDULER.into(),
        spec: Arc::new(spec),
        ..Pod::default()
    }
}

/// Returns the same pod, bound to a node.
pub(crate) fn on(pod: &Pod, node: &str) -> Pod {
    Pod { node_name: Some(node.into()), phase: PodPhase::Running, ..pod.clone() }
}

impl Core {
    /// Applies a pod.
    pub(crate) fn see(&mut self, pod: &Pod) {
        self.apply(Input::PodApplied(Arc::new(pod.clone())));
    }

    /// Applies a node.
    pub(crate) fn see_node(&mut self, node: &Node) {
        self.apply(Input::NodeApplied(Arc::new(node.clone())));
    }

    /// Deletes a pod.
    pub(crate) fn delete(&mut self, pod: &Pod) {
        self.apply(Input::PodDeleted(pod.key.clone()));
    }

    /// Reports the outcome of a bind order.
    pub(crate) fn report(&mut self, order: &BindOrder, outcome: BindOutcome) {
        let report = EffectReport::BindDone { id: order.id, uid: order.pod.uid.clone(), outcome };
        self.apply(Input::Report(report));
    }

    /// Applies a pod, plans, and returns its bind order.
    pub(crate) fn place(&mut self, pod: &Pod) -> BindOrder {
        self.see(pod);
        self.run();
        let mut orders = self.orders();
        assert_eq!(orders.len(), 1, "{} is placed", pod.key);
        orders.remove(0)
    }

    pub(crate) fn id(&self, pod: &Pod) -> Option<PodId> {
        self.scheduler.cluster().find_pod(&pod.key)
    }

    /// Returns the stage of a pod, or `None` when it is not in the state.
    pub(crate) fn stage(&self, pod: &Pod) -> Option<Stage> {
        Some(self.scheduler.cluster().pod(self.id(pod)?)?.stage)
    }

    /// Returns the node whose resources a pod uses.
    pub(crate) fn node_of(&self, pod: &Pod) -> Option<String> {
        let record = self.scheduler.cluster().pod(self.id(pod)?)?;
        Some(self.scheduler.cluster().slot(record.node?).name.to_string())
    }

    pub(crate) fn unit(&self, pod: &Pod) -> Option<&Unit> {
        let queue = self.scheduler.queue();
        queue.unit(queue.unit_of(self.id(pod)?)?)
    }

    pub(crate) fn queued(&self, pod: &Pod) -> Option<QueueStage> {
        self.unit(pod).map(|u| u.stage)
    }

    /// Returns the requested CPU of a node, in thousandths of a core.
    pub(crate) fn taken(&self, node: &str) -> i64 {
        let cluster = self.scheduler.cluster();
        let node = cluster.find_node(&node.into()).expect("the node has a slot");
        cluster.columns().requested(node, pellucid::cluster::columns::CPU)
    }

    /// Drains all effects and returns the reasons of conditions and of events.
    pub(crate) fn told(&mut self) -> (Vec<&'static str>, Vec<&'static str>) {
        let (mut conditions, mut events) = (Vec::new(), Vec::new());
        for effect in self.scheduler.take_effects() {
            match effect {
                Effect::Status(order) => conditions.extend(order.condition.map(|c| c.reason)),
                Effect::Event(order) => events.push(order.reason),
                Effect::GroupStatus(_) => {}
                Effect::Bind(_) | Effect::Evict(_) | Effect::Volume(_) => {}
            }
        }
        (conditions, events)
    }
}

/// Returns the outcome when the API server rejects a Binding.
pub(crate) fn refused() -> BindOutcome {
    BindOutcome::Refused { status: 500, reason: "InternalError".into(), message: "etcd is away".into() }
}
