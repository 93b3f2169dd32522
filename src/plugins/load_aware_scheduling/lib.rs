//! LoadAwareScheduling: keeps pods off nodes that use too much already, and prefers nodes that use little.
//!
//! See README.md for the rules. `args` parses the arguments, `node_metric` reads what nodes report, `estimate` says what
//! a pod will use, `load` adds both up for a node, `node_loads` keeps the loads of all nodes, `endpoints` serves them, `detail` words a
//! refusal.

use pellucid_framework::points;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::derived::DerivedState;
use pellucid_cluster::{ClusterEvent, EventKinds, NodeChange};
use pellucid_framework::plugin::{
    CycleValue, DeclaredKeys, Filter, Hint, Hints, Measure, Nodes, Plugin, PreFilter, PreFiltered, PreScore,
    PreScored, Reads, Score,
};
use pellucid_framework::{Cause, CauseId, Code, EveryReason, NodeReason, Reason, Registration, View};
use pellucid_model::custom::CustomKind;
use pellucid_model::{CustomObject, Name, NodeIdx, Now, Pod, PodSpec};
use serde_json::Value;
use smallvec::SmallVec;

mod args;
mod detail;
mod endpoints;
mod estimate;
mod load;
mod node_loads;
mod node_metric;
#[cfg(test)]
mod tests;

use args::LoadAwareArgs;
use estimate::Estimate;
use load::{Basis, Load};
use node_loads::NodeLoads;
use node_metric::NodeMetric;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "LoadAwareScheduling";

/// What the plugin reads of pods and nodes.
const KEYS: DeclaredKeys = DeclaredKeys {
    pod_labels: &[estimate::PRIORITY_CLASS, estimate::QOS_CLASS],
    pod_annotations: &[estimate::SCALING_FACTORS, estimate::AFTER_SCHEDULED, estimate::AFTER_INITIALIZED],
    node_annotations: &[node_loads::USAGE_THRESHOLDS, node_loads::RAW_ALLOCATABLE],
    ..DeclaredKeys::NONE
};

/// Returns the plugin's entry in the registry.
pub fn registration() -> Registration {
    let summary = "Keeps pods off nodes whose measured usage is high, and prefers nodes that use little";
    Registration::new(NAME, summary, args::schema, |args| {
        let args = LoadAwareArgs::read(args)?;
        let weight = |resource| args.weights.get(resource).copied().unwrap_or(0);
        let weights = args.resources.iter().map(weight).collect();
        Ok(LoadAwareScheduling { weights, args: Arc::new(args) })
    })
    .with_weight(1)
    .off_by_default()
    .with_keys(KEYS)
    .with_kinds([&NODE_METRIC])
    .with_endpoints(endpoints::all())
}

/// NodeMetrics, one per node and with its name.
pub static NODE_METRIC: CustomKind = CustomKind {
    group: "slo.koordinator.sh",
    version: "v1alpha1",
    kind: "NodeMetric",
    plural: "nodemetrics",
    qualified: "NodeMetric.slo.koordinator.sh",
    is_namespaced: false,
    is_required: false,
    is_decisive: true,
    verbs: &[],
    pod: None,
    decode: |manifest| Ok(Arc::new(NodeMetric::read(manifest)?)),
    encode: |value| value.downcast_ref().map_or(Value::Null, NodeMetric::manifest),
};

/// The plugin, as a profile uses it.
struct LoadAwareScheduling {
    args: Arc<LoadAwareArgs>,
    /// The resources' weights in the score, in the order of the arguments' resources.
    weights: Box<[i64]>,
}

impl Plugin for LoadAwareScheduling {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        self.args.show()
    }
    points! { pre_filter, filter, pre_score, score, hints }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(NodeLoads::new(vec![self.args.clone()]))]
    }
}

/// Resources whose usage is too much, as a bit set by position in the arguments' resources.
type Exceeded = u64;

/// Why a node is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Expired,
    Exceeded(Exceeded, Basis),
}

impl LoadAwareScheduling {
    /// Returns the loads of all nodes under the arguments; a node without a load is not judged.
    fn loads<'a>(&self, view: View<'a>) -> impl Fn(NodeIdx) -> Option<&'a Load> + use<'a> {
        let known = view.state::<NodeLoads>().and_then(|loads| Some((loads, loads.position(&self.args)?)));
        move |node| known.and_then(|(loads, at)| loads.load(at, node))
    }

    fn refusal(&self, load: &Load, pod: &Estimate) -> Option<Refusal> {
        if !load.has_thresholds_for(pod.is_prod) {
            return None;
        }
        if load.is_expired && self.args.filter_expired {
            return (!self.args.schedule_when_expired).then_some(Refusal::Expired);
        }
        let judged = load.judged.as_deref()?;
        let side = load.side(judged, pod.is_prod);
        let mut exceeded: Exceeded = 0;
        for (i, (amount, limit)) in pod.amounts.iter().zip(side.limits).enumerate() {
            if side.used.at(i).saturating_add(*amount) >= *limit {
                exceeded |= 1 << (i % 64);
            }
        }
        (exceeded != 0).then_some(Refusal::Exceeded(exceeded, side.basis))
    }

    fn cause(&self, refusal: Refusal) -> Cause {
        let Refusal::Exceeded(set, basis) = refusal else {
            return Cause::new(NAME, Code::Unschedulable, Reason::of(ReasonCode::NodeMetricExpired));
        };
        let first = self.exceeded_names(set).min_by(|a, b| a.as_str().cmp(b.as_str()));
        let reasons = first.map(|resource| Reason::about(basis.code(), resource.clone()));
        Cause { plugin: NAME, code: Code::Unschedulable, reasons: reasons.into_iter().collect() }
    }

    fn exceeded_names(&self, set: Exceeded) -> impl Iterator<Item = &Name> {
        let all = self.args.resources.iter().enumerate();
        all.filter(move |(i, _)| set & (1 << (i % 64)) != 0).map(|(_, resource)| resource)
    }
}

impl PreFilter for LoadAwareScheduling {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn pre_filter(&self, _view: View<'_>, spec: &PodSpec) -> PreFiltered {
        // DaemonSets run on their node whatever it uses.
        if spec.is_daemon {
            return PreFiltered::Skip;
        }
        PreFiltered::Ready { value: Arc::new(Estimate::of(&self.args, spec)), nodes: None }
    }
}

impl Filter for LoadAwareScheduling {
    fn reads(&self) -> Reads {
        Reads::Usage
    }

    fn is_measured(&self) -> bool {
        true
    }

    fn filter(&self, view: View<'_>, _spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>) {
        let Some(pod) = value.downcast_ref::<Estimate>() else { return };
        let load = self.loads(view);
        let mut known: SmallVec<[(Refusal, CauseId); 4]> = SmallVec::new();
        nodes.refuse_with(|causes, node| {
            let Some(refusal) = load(node).and_then(|load| self.refusal(load, pod)) else {
                return CauseId::FEASIBLE;
            };
            if let Some((_, cause)) = known.iter().find(|(same, _)| *same == refusal) {
                return *cause;
            }
            let cause = causes.id(self.cause(refusal));
            known.push((refusal, cause));
            cause
        });
    }

    /// Each resource of which a node uses too much is a reason.
    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        _spec: &'a PodSpec,
        value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        let pod = value.downcast_ref::<Estimate>()?;
        let load = self.loads(view);
        Some(Box::new(move |node, reasons| match load(node).and_then(|load| self.refusal(load, pod)) {
            None => {}
            Some(Refusal::Expired) => {
                reasons.push(NodeReason::open(Reason::of(ReasonCode::NodeMetricExpired)));
            }
            Some(Refusal::Exceeded(set, basis)) => {
                let reason = |resource: &Name| Reason::about(basis.code(), resource.clone());
                reasons.extend(self.exceeded_names(set).map(|name| NodeReason::open(reason(name))));
            }
        }))
    }

    fn measure(&self, view: View<'_>, spec: &PodSpec, cause: &Cause, nodes: &[NodeIdx]) -> Vec<Measure> {
        let pod = Estimate::of(&self.args, spec);
        let load = self.loads(view);
        let is_expired = cause.reasons.iter().any(|reason| reason.code == ReasonCode::NodeMetricExpired);
        let mut all: Vec<Measure> = is_expired.then(|| self.age(view, nodes)).flatten().into_iter().collect();
        let is_measured = cause.reasons.iter().any(|reason| reason.subject.is_some());
        let resources = self.args.resources.iter().enumerate().filter(|_| is_measured);
        for (at, resource) in resources {
            // The node where the usage, with the pod, is the least above its limit.
            let above = |node: &NodeIdx| {
                let load = load(*node)?;
                let judged = load.judged.as_deref()?;
                let side = load.side(judged, pod.is_prod);
                let (used, limit) = (side.used.at(at).saturating_add(pod.amounts[at]), side.limits[at]);
                (used >= limit).then_some(())?;
                Some((used - (limit - 1), used, limit - 1, *node))
            };
            if let Some((_, requested, available, best_node)) = nodes.iter().filter_map(above).min() {
                let resource = Name::new(&format!("{resource} usage"));
                all.push(Measure { resource, requested, available, best_node });
            }
        }
        all
    }

    fn detail(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        cause: &Cause,
        node: NodeIdx,
        now: Now,
    ) -> Option<String> {
        self.words(view, spec, cause, (node, now))
    }
}

impl PreScore for LoadAwareScheduling {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn pre_score(&self, _view: View<'_>, spec: &PodSpec, _nodes: &[NodeIdx]) -> PreScored {
        PreScored::Ready(Arc::new(Estimate::of(&self.args, spec)))
    }
}

impl Score for LoadAwareScheduling {
    fn reads(&self) -> Reads {
        Reads::Usage
    }

    fn is_measured(&self, view: View<'_>) -> bool {
        view.state::<NodeLoads>().is_some_and(NodeLoads::has_reports)
    }

    fn score(&self, view: View<'_>, _spec: &PodSpec, value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]) {
        let Some(pod) = value.downcast_ref::<Estimate>() else { return };
        let load = self.loads(view);
        for (node, score) in nodes.iter().zip(out) {
            let load = load(*node).filter(|load| !load.is_expired);
            let judged = load.and_then(|load| Some((load, load.judged.as_deref()?)));
            *score = judged.map_or(0, |(load, judged)| {
                let used = load.score_used(judged, self.args.score_by_prod && pod.is_prod);
                self.total(|i| {
                    resource_score(used.at(i).saturating_add(pod.amounts[i]), judged.allocatable[i])
                })
            });
        }
    }
}

impl LoadAwareScheduling {
    /// Returns the weighted mean of the resources' scores and of the least of them.
    fn total(&self, score: impl Fn(usize) -> i64) -> i64 {
        let (mut sum, mut weights, mut least) = (0, 0, i64::MAX);
        for (i, weight) in self.weights.iter().copied().enumerate() {
            let own = score(i);
            (sum, weights) = (sum + weight * own, weights + weight);
            // Any resource may dominate, whether or not it has a weight.
            least = least.min(own);
        }
        (sum, weights) = (sum + self.args.dominant_weight * least, weights + self.args.dominant_weight);
        if weights == 0 { 0 } else { sum / weights }
    }
}

/// Returns the free part in percent, 0 when usage is above the allocatable amount.
fn resource_score(used: i64, allocatable: i64) -> i64 {
    if allocatable <= 0 || used > allocatable {
        return 0;
    }
    match allocatable.checked_sub(used).and_then(|free| free.checked_mul(100)) {
        Some(hundredfold) => hundredfold / allocatable,
        None => ((i128::from(allocatable) - i128::from(used)) * 100 / i128::from(allocatable)) as i64,
    }
}

impl Hints for LoadAwareScheduling {
    fn events(&self) -> EventKinds {
        EventKinds::NODE_ADD
            .with(EventKinds::NODE_ALLOCATABLE)
            .with(EventKinds::NODE_ANNOTATION)
            .with(EventKinds::POD_DELETE)
            .with(EventKinds::POD_SELF)
            .with(EventKinds::CUSTOM_OBJECT)
            .with(EventKinds::PLUGIN_STATE)
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let node = match event {
            ClusterEvent::NodeAdded(node) => *node,
            ClusterEvent::NodeUpdated { node, change, .. }
                if change.any(NodeChange::ALLOCATABLE) || change.any(NodeChange::ANNOTATIONS) =>
            {
                *node
            }
            ClusterEvent::PodReleased { node, .. } => *node,
            ClusterEvent::PluginStateChanged { nodes } => {
                let helps = nodes.iter().any(|node| self.accepts(view, pod, *node));
                return if helps { Hint::Queue } else { Hint::Skip };
            }
            ClusterEvent::CustomChanged { old, new } => {
                let object: Option<&CustomObject> = new.as_deref().or(old.as_deref());
                let metric = object.filter(|object| object.get::<NodeMetric>().is_some());
                let Some(node) = metric.and_then(|metric| view.cluster().find_node(&metric.name)) else {
                    return Hint::Skip;
                };
                node
            }
            ClusterEvent::PendingUpdated { old, .. } if old.spec != pod.spec => return Hint::Queue,
            _ => return Hint::Skip,
        };
        if self.accepts(view, pod, node) { Hint::Queue } else { Hint::Skip }
    }
}

impl LoadAwareScheduling {
    /// Returns whether the filter accepts a node for a pod.
    fn accepts(&self, view: View<'_>, pod: &Pod, node: NodeIdx) -> bool {
        let estimate = Estimate::of(&self.args, &pod.spec);
        self.loads(view)(node).is_none_or(|load| self.refusal(load, &estimate).is_none())
    }
}
