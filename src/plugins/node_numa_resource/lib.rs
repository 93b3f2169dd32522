//! NodeNUMAResource: gives pods CPUs of their own and amounts on NUMA nodes, and keeps both apart from what others have.
//!
//! See README.md for the rules. `node_topology` and `node_settings` read what nodes report, `resource_spec` what pods ask
//! for, `holding` what they hold. `on_node` adds up one node and `numa_nodes` is the state of all, with the `facts` of each
//! that most decisions read. `allocation` says what a
//! pod would get on a node, with CPUs picked by `cpus::accumulator`; `hints` offers NUMA nodes to the framework. `detail` and
//! `advice` are for people.

use std::sync::{Arc, LazyLock};

use pellucid_cluster::columns::CPU as CPU_COLUMN;
use pellucid_cluster::derived::DerivedState;
use pellucid_cluster::{ClusterEvent, EventKinds, Marks, NodeChange};
use pellucid_framework::plugin::{
    CycleValue, DeclaredKeys, Filter, Hint, Hints, Measure, Nodes, Plugin, PreFilter, PreFiltered, Reads,
    Reservation, Reserve, Room,
};
use pellucid_framework::topology::{NumaMask, NumaPolicy};
use pellucid_framework::{Cause, CauseId, EveryReason, NodeReason, NumaAffinity, Registration, View, points};
use pellucid_model::custom::CustomKind;
use pellucid_model::effect::BindingMarks;
use pellucid_model::{CustomObject, NodeIdx, Now, Pod, PodSpec};
use serde_json::Value;
use smallvec::SmallVec;

mod advice;
mod allocation;
mod amounts;
mod args;
pub mod cpus;
mod detail;
mod endpoints;
mod facts;
mod hints;
mod holding;
mod keys;
mod node_settings;
mod node_topology;
mod numa_nodes;
mod on_node;
mod reasons;
mod resource_spec;
mod score;
#[cfg(test)]
mod tests;

use allocation::NodeRequest;
use amounts::amplify;
use args::NumaArgs;
use holding::Holding;
use node_topology::NodeTopology;
use numa_nodes::NumaNodes;
use on_node::OnNode;
use pellucid_plugin_helper::koordinator::{PRIORITY_CLASS, QOS_CLASS};
use reasons::Refusal;
use resource_spec::{PodRequest, may_have_cpus};

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "NodeNUMAResource";

/// The annotation of Bindings.
static RESOURCE_STATUS: LazyLock<Arc<str>> = LazyLock::new(|| keys::RESOURCE_STATUS.into());

/// What the plugin reads of pods and nodes, and writes on pods.
const KEYS: DeclaredKeys = DeclaredKeys {
    pod_labels: &[PRIORITY_CLASS, QOS_CLASS],
    pod_annotations: &[keys::RESOURCE_SPEC, keys::NUMA_TOPOLOGY_SPEC],
    binding_annotations: &[keys::RESOURCE_STATUS],
    node_annotations: &[keys::AMPLIFICATION_RATIO, keys::RESERVATION, keys::SYSTEM_QOS_RESOURCE],
    ..DeclaredKeys::NONE
};

/// NodeResourceTopologies, one per node and with its name.
pub static NODE_RESOURCE_TOPOLOGY: CustomKind = CustomKind {
    group: "topology.node.k8s.io",
    version: "v1alpha1",
    kind: "NodeResourceTopology",
    plural: "noderesourcetopologies",
    qualified: "NodeResourceTopology.topology.node.k8s.io",
    is_namespaced: false,
    is_required: false,
    is_decisive: true,
    verbs: &[],
    pod: None,
    decode: |manifest| Ok(Arc::new(NodeTopology::read(manifest)?)),
    encode: |value| value.downcast_ref().map_or(Value::Null, NodeTopology::manifest),
};

/// Returns the plugin's entry in the registry.
pub fn registration() -> Registration {
    let summary = "Gives pods CPUs of their own and aligns what they get on NUMA nodes";
    Registration::new(NAME, summary, args::schema, |args| {
        Ok(NodeNumaResource { args: Arc::new(NumaArgs::read(args)?) })
    })
    .with_weight(1)
    .off_by_default()
    .with_keys(KEYS)
    .with_kinds([&NODE_RESOURCE_TOPOLOGY])
    .with_reasons(reasons::all())
    .with_endpoints(endpoints::all())
}

/// The plugin, as a profile uses it.
struct NodeNumaResource {
    args: Arc<NumaArgs>,
}

impl Plugin for NodeNumaResource {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        self.args.show()
    }
    points! { pre_filter, filter, pre_score, score, reserve, hints, topology_hints, advice }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(NumaNodes::default())]
    }
}

impl NodeNumaResource {
    /// Returns why a node cannot take a pod, apart from the alignment of NUMA nodes.
    fn refusal(&self, view: View<'_>, pod: &PodRequest, node: NodeIdx) -> Option<Refusal> {
        let asked = match NodeRequest::of(self.on(view, node), pod, self.args.allocate_strategy()) {
            Ok(asked) => asked,
            Err(refusal) => return Some(refusal),
        };
        let checked = check_amplified(view, &asked, node).and_then(|()| asked.check_machine());
        checked.and_then(|()| check_room(&asked)).err()
    }

    /// Returns everything for which a node cannot take a pod, apart from the alignment of NUMA nodes.
    fn refusals(&self, view: View<'_>, pod: &PodRequest, node: NodeIdx) -> SmallVec<[Refusal; 4]> {
        let asked = NodeRequest::unchecked(self.on(view, node), pod, self.args.allocate_strategy());
        let mut all: SmallVec<[Refusal; 4]> = asked.contradictions().collect();
        let is_clear = all.is_empty();
        all.extend(check_amplified(view, &asked, node).err());
        all.extend(asked.misfits());
        // What there is room for is known of a pod and a node that agree.
        if is_clear && asked.check_machine().is_ok() {
            all.extend(check_room(&asked).err());
        }
        all
    }

    /// Returns whether a node takes a pod, by this plugin's filter and its own hints.
    fn accepts(&self, view: View<'_>, pod: &PodRequest, node: NodeIdx) -> bool {
        if self.refusal(view, pod, node).is_some() {
            return false;
        }
        let asked = NodeRequest::of(self.on(view, node), pod, self.args.allocate_strategy());
        asked.is_ok_and(|asked| asked.policy == NumaPolicy::None || self.hints_of(&asked).is_ok())
    }

    fn reservation(&self, view: View<'_>, pod: &Pod, node: NodeIdx, mask: Option<NumaMask>) -> Reserved {
        // Most pods and nodes ask for nothing. What is known of the node itself lies farther away, and of all nodes at hand.
        let demands = |state: &NumaNodes| state.is_demanding() && state.facts(node).is_demanding;
        let demands = || view.state::<NumaNodes>().is_some_and(demands);
        let may_hold = mask.is_some() || may_have_cpus(&pod.spec);
        if !may_hold && !demands() {
            return Ok(None);
        }
        self.reservation_on(self.on(view, node), pod, mask, may_hold)
    }

    /// `may_hold` says whether the pod may hold something where the node forces nothing.
    fn reservation_on(&self, on: &OnNode, pod: &Pod, mask: Option<NumaMask>, may_hold: bool) -> Reserved {
        if !may_hold && on.forced_bind().is_none() {
            return Ok(None);
        }
        // Amounts are split among NUMA nodes alone.
        let request = match mask {
            Some(_) => PodRequest::of(&pod.spec, self.args.default_bind),
            None => PodRequest::without_amounts(&pod.spec, self.args.default_bind),
        };
        self.reservation_for(on, &request.map_err(|problem| problem.cause())?, mask)
    }

    /// Chooses what the node gives a pod that may hold something.
    fn reservation_for(&self, on: &OnNode, request: &PodRequest, mask: Option<NumaMask>) -> Reserved {
        let asked = NodeRequest::of(on, request, self.args.allocate_strategy());
        let asked = asked.map_err(|refusal| refusal.cause())?;
        if mask.is_none() && asked.bind.is_none() {
            return Ok(None);
        }
        let mut holding = asked.allocate(mask).map_err(|refusal| refusal.cause())?;
        if holding.cpus.is_empty() && holding.zones.is_empty() {
            return Ok(None);
        }
        holding.exclusive = request.named_exclusive;
        let marks = Marks::Of(|what| match what.downcast_ref::<Holding>() {
            Some(holding) => BindingMarks::annotation(RESOURCE_STATUS.clone(), holding.status()),
            None => BindingMarks::default(),
        });
        Ok(Some(Reservation { what: Arc::new(holding), marks: Some(marks) }))
    }
}

/// What Reserve returns.
type Reserved = Result<Option<Reservation>, Cause>;

/// Checks that the CPUs of the pod's own are there where no NUMA policy asks for more, and else that there are NUMA nodes.
fn check_room(asked: &NodeRequest<'_>) -> Result<(), Refusal> {
    match asked.policy {
        NumaPolicy::None if asked.bind.is_some() => asked.allocate(None).map(drop),
        NumaPolicy::None => Ok(()),
        _ if asked.on.zones.is_empty() => Err(Refusal::NoZones),
        _ => Ok(()),
    }
}

/// Checks the CPU of an amplified node. Pods with CPUs of their own take real ones, so theirs count amplified
/// (Koordinator's `filterAmplifiedCPUs`).
fn check_amplified(view: View<'_>, asked: &NodeRequest<'_>, node: NodeIdx) -> Result<(), Refusal> {
    let Some(settings) = asked.on.settings.as_deref().filter(|_| asked.pod.milli_cpu > 0) else {
        return Ok(());
    };
    if settings.has_bad_ratios {
        return Err(Refusal::BadRatios);
    }
    let ratio = settings.ratios.of(amounts::CPU);
    if ratio <= 1.0 {
        return Ok(());
    }
    let (requested, free) = amplified(view, asked, node, ratio);
    let is_fixed = requested > view.columns().allocatable(node, CPU_COLUMN);
    if requested > free { Err(Refusal::AmplifiedCpu { is_fixed }) } else { Ok(()) }
}

/// Returns what a pod requests of an amplified node's CPU, and what is left of it.
fn amplified(view: View<'_>, asked: &NodeRequest<'_>, node: NodeIdx, ratio: f64) -> (i64, i64) {
    let own = asked.pod.milli_cpu;
    let own = if asked.bind.is_some() { amplify(own, ratio) } else { own };
    let pinned = asked.on.taken.len() as i64 * 1000;
    let mut used = view.columns().requested(node, CPU_COLUMN);
    if used >= pinned && pinned > 0 {
        used = used - pinned + amplify(pinned, ratio);
    }
    (own, view.columns().allocatable(node, CPU_COLUMN) - used)
}

impl PreFilter for NodeNumaResource {
    /// Whether any node demands something decides whether pods are checked that ask for nothing.
    fn reads(&self) -> Reads {
        Reads::NodeSet
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        let is_demanding = view.state::<NumaNodes>().is_some_and(NumaNodes::is_demanding);
        match PodRequest::of(spec, self.args.default_bind) {
            Ok(request) if request.amounts.is_empty() => PreFiltered::Skip,
            Ok(request) if !is_demanding && request.asks_for_nothing() => PreFiltered::Skip,
            Ok(request) => PreFiltered::Ready { value: Arc::new(request), nodes: None },
            Err(problem) => PreFiltered::Refused(problem.cause()),
        }
    }
}

impl Filter for NodeNumaResource {
    fn reads(&self) -> Reads {
        Reads::Usage
    }

    fn filter(&self, view: View<'_>, _spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>) {
        let Some(pod) = value.downcast_ref::<PodRequest>() else { return };
        let mut known: SmallVec<[(Refusal, CauseId); 4]> = SmallVec::new();
        let state = view.state::<NumaNodes>();
        nodes.refuse_with(|causes, node| {
            if state.is_some_and(|state| state.facts(node).take(pod)) {
                return CauseId::FEASIBLE;
            }
            let Some(refusal) = self.refusal(view, pod, node) else { return CauseId::FEASIBLE };
            if let Some((_, cause)) = known.iter().find(|(same, _)| *same == refusal) {
                return *cause;
            }
            let cause = causes.id(refusal.cause());
            known.push((refusal, cause));
            cause
        });
    }

    fn measure(&self, view: View<'_>, spec: &PodSpec, cause: &Cause, nodes: &[NodeIdx]) -> Vec<Measure> {
        self.measures(view, spec, cause, nodes)
    }

    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        _spec: &'a PodSpec,
        value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        let pod = value.downcast_ref::<PodRequest>()?;
        Some(Box::new(move |node, out| {
            let all = self.refusals(view, pod, node);
            out.extend(
                all.iter().flat_map(|refusal| NodeReason::of_cause(&refusal.cause()).collect::<Vec<_>>()),
            );
        }))
    }

    fn detail(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        cause: &Cause,
        node: NodeIdx,
        _now: Now,
    ) -> Option<String> {
        self.words(view, spec, cause, node)
    }
}

impl Reserve for NodeNumaResource {
    fn may_hold(&self, view: View<'_>, spec: &PodSpec) -> bool {
        may_have_cpus(spec)
            || view.state::<NumaNodes>().is_some_and(NumaNodes::is_demanding)
            || spec.annotations.text(keys::NUMA_TOPOLOGY_SPEC).is_some()
    }

    fn reserve(&self, view: View<'_>, pod: &Pod, node: NodeIdx) -> Reserved {
        self.reservation(view, pod, node, None)
    }

    fn reserve_prepared(&self, view: View<'_>, pod: &Pod, node: NodeIdx, prepared: &CycleValue) -> Reserved {
        match prepared.downcast_ref::<PodRequest>().filter(|request| request.wants_cpus) {
            Some(request) => self.reservation_for(self.on(view, node), request, None),
            None => self.reservation(view, pod, node, None),
        }
    }

    fn reserve_aligned(&self, view: View<'_>, pod: &Pod, node: NodeIdx, affinity: NumaAffinity) -> Reserved {
        self.reservation(view, pod, node, Some(affinity.mask))
    }

    fn reserve_within(
        &self,
        view: View<'_>,
        pod: &Pod,
        node: NodeIdx,
        affinity: Option<NumaAffinity>,
        room: &Room,
    ) -> Reserved {
        let mask = affinity.map(|affinity| affinity.mask);
        let within = room.what.downcast_ref().map(|room| self.on(view, node).within(room));
        let may_hold = mask.is_some() || may_have_cpus(&pod.spec);
        match within.map(|within| self.reservation_on(&within, pod, mask, may_hold)) {
            Some(Err(cause)) if room.is_limit => Err(cause),
            Some(Ok(chosen)) => Ok(chosen),
            _ => self.reservation(view, pod, node, mask),
        }
    }
}

impl Hints for NodeNumaResource {
    fn events(&self) -> EventKinds {
        EventKinds::NODE_ADD
            .with(EventKinds::NODE_ALLOCATABLE)
            .with(EventKinds::NODE_LABEL)
            .with(EventKinds::NODE_ANNOTATION)
            .with(EventKinds::POD_DELETE)
            .with(EventKinds::POD_SCALE_DOWN)
            .with(EventKinds::POD_SELF)
            .with(EventKinds::CUSTOM_OBJECT)
            .with(EventKinds::PLUGIN_STATE)
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let concerns = [NodeChange::ALLOCATABLE, NodeChange::LABELS, NodeChange::ANNOTATIONS];
        let find = |object: &CustomObject| {
            let is_topology = object.get::<NodeTopology>().is_some();
            is_topology.then(|| view.cluster().find_node(&object.name)).flatten()
        };
        let node = match event {
            ClusterEvent::NodeAdded(node)
            | ClusterEvent::PodReleased { node, .. }
            | ClusterEvent::PodShrunk { node, .. } => Some(*node),
            ClusterEvent::NodeUpdated { node, change, .. } if concerns.iter().any(|c| change.any(*c)) => {
                Some(*node)
            }
            ClusterEvent::NominationEnded { node, .. } => view.cluster().find_node(node),
            ClusterEvent::CustomChanged { old, new } => new.as_deref().or(old.as_deref()).and_then(find),
            ClusterEvent::PendingUpdated { old, .. } if old.spec != pod.spec => return Hint::Queue,
            ClusterEvent::PluginStateChanged { nodes } => {
                let Ok(request) = PodRequest::of(&pod.spec, self.args.default_bind) else {
                    return Hint::Skip;
                };
                let helps = nodes.iter().any(|node| self.accepts(view, &request, *node));
                return if helps { Hint::Queue } else { Hint::Skip };
            }
            _ => None,
        };
        let request = PodRequest::of(&pod.spec, self.args.default_bind).ok();
        let helps = node.zip(request).is_some_and(|(node, request)| self.accepts(view, &request, node));
        if helps { Hint::Queue } else { Hint::Skip }
    }
}
