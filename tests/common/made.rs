//! Nodes and pods for a scheduler without I/O, and what it knows of them.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use pellucid::cluster::input::Quarantined;
use pellucid::cluster::{Input, Stage};
use pellucid::framework::profile::Profile;
use pellucid::model::effect::{BindOrder, BindOutcome, EffectReport};
use pellucid::model::gang::{Dialect, GangDeclaration, GangTerms};
use pellucid::model::pod::PodPhase;
use pellucid::model::requests::{ContainerRequests, PodRequests, RequestInputs, ResourceList};
use pellucid::model::{GangKey, Node, Object, Pod, PodId, PodKey, PodSpec};
use pellucid::queue::{QueueStage, Unit};

use super::cluster::SCHEDULER;
use super::driver::{Core, default_profile, settings};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The default profile, read once.
static PROFILE: LazyLock<Profile> = LazyLock::new(|| default_profile(SCHEDULER));

/// Makes a core with the default profile.
pub(crate) fn core() -> Core {
    Core::new(settings(PROFILE.clone()))
}

/// Makes a core that looks at this percentage of the nodes.
pub(crate) fn sampling(percentage: u8) -> Core {
    let mut profile = default_profile(SCHEDULER);
    profile.percentage_of_nodes_to_score = percentage;
    Core::new(settings(profile))
}

/// Makes a core with some nodes.
pub(crate) fn core_with(nodes: &[Node]) -> Core {
    let mut core = core();
    nodes.iter().for_each(|node| core.see_node(node));
    core
}

/// Makes a node with this much CPU and room for 10 pods.
pub(crate) fn node(name: &str, milli_cpu: i64) -> Node {
    let allocatable = ResourceList { milli_cpu, memory: 64 << 30, pods: 10, ..ResourceList::default() };
    Node { name: name.into(), uid: format!("uid-{name}").into(), allocatable, ready: true, ..Node::default() }
}

/// Returns the requests of a pod with one container.
pub(crate) fn requests(milli_cpu: i64) -> PodRequests {
    let container = ContainerRequests::of(vec![("cpu".into(), milli_cpu)]);
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

/// Makes a core with node `a` of one CPU, and places pod `p` of 300m there.
pub(crate) fn placed() -> (Core, Pod, BindOrder) {
    let (mut core, p) = (core_with(&[node("a", 1000)]), pod("p", 300));
    let order = core.place(&p);
    (core, p, order)
}

/// Returns the same pod, bound to a node.
pub(crate) fn on(pod: &Pod, node: &str) -> Pod {
    Pod { node_name: Some(node.into()), phase: PodPhase::Running, ..pod.clone() }
}

/// Makes a pending pod of ours with a priority.
pub(crate) fn ranked(name: &str, milli_cpu: i64, priority: i32) -> Pod {
    Pod { priority, ..pod(name, milli_cpu) }
}

/// Returns the same pod with one label.
pub(crate) fn labelled(pod: Pod, key: &str, value: &str) -> Pod {
    Pod { labels: pod.labels.with(key.into(), value.into()), ..pod }
}

/// Makes the mark of a member of one of Koordinator's gangs, in which later members are independent of the quorum.
pub(crate) fn mark(gang: GangKey, terms: GangTerms) -> GangDeclaration {
    GangDeclaration {
        gang,
        dialect: Dialect::Koordinator,
        needs_group: false,
        is_shadow: false,
        names_two: false,
        terms,
        problems: Box::default(),
    }
}

/// Makes a pod a member of a gang with this quorum in namespace `ns`.
pub(crate) fn in_gang(pod: Pod, gang: &str, min: u32) -> Pod {
    let terms = GangTerms { min: Some(min), ..GangTerms::default() };
    Pod { gang: Some(mark(GangKey::new("ns", gang), terms).into()), ..pod }
}

/// Returns a pod as watches report one that cannot be read.
pub(crate) fn unreadable(pod: &Pod) -> Quarantined {
    Quarantined {
        kind: "Pod",
        namespace: pod.key.namespace.clone(),
        name: pod.key.name.clone(),
        uid: pod.uid.clone(),
        scheduler_name: Some(pod.scheduler_name.clone()),
        is_bound: pod.node_name.is_some(),
        field: "spec".into(),
        value: "?".into(),
        problem: "not an object".into(),
    }
}

/// Returns the outcome when the API server rejects a Binding.
pub(crate) fn refused() -> BindOutcome {
    BindOutcome::Refused { status: 500, reason: "InternalError".into(), message: "etcd is away".into() }
}

impl Core {
    /// Applies a pod.
    pub(crate) fn see(&mut self, pod: &Pod) {
        self.apply(Input::PodApplied(Arc::new(pod.clone())));
    }

    /// Applies a pod, and plans.
    pub(crate) fn attempt(&mut self, pod: &Pod) {
        self.see(pod);
        self.run();
    }

    /// Applies a node.
    pub(crate) fn see_node(&mut self, node: &Node) {
        self.apply(Input::NodeApplied(Arc::new(node.clone())));
    }

    /// Applies an object of another kind.
    pub(crate) fn see_object(&mut self, object: Object) {
        self.apply(Input::ObjectApplied(Arc::new(object)));
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
        self.attempt(pod);
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
        Some(self.scheduler.cluster().node_name(record.node?).to_string())
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
}
