//! NodeResourcesFit: keeps pods off nodes that lack a requested resource, and scores nodes by their free resources.
//!
//! See README.md for the rules. `args` parses the arguments, `column_requests` resolves a pod's requests to columns,
//! `strategy` scores, `state` serves the endpoints.

use pellucid_framework::points;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_cluster::columns::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, ResourceColumn};
use pellucid_cluster::{ClusterEvent, EventKinds, NodeChange, ResourceIdx};
use pellucid_framework::plugin::{
    ColumnScore, CycleValue, Filter, Hint, Hints, Measure, Nodes, Plugin, PreFilter, PreFiltered, PreScore,
    PreScored, Reads, Score,
};
use pellucid_framework::{Cause, CauseId, EveryReason, Registration, View};
use pellucid_model::pages::PAGE;
use pellucid_model::requests::ResourceList;
use pellucid_model::{Name, Node, NodeIdx, Pod, PodSpec};
use serde_json::Value;
use smallvec::SmallVec;

use pellucid_plugin_helper::scored::{Counting, ScoredSet, amount};

mod args;
mod column_requests;
mod requirements;
mod state;
mod strategy;
#[cfg(test)]
mod tests;

use args::FitArgs;
use column_requests::{ColumnRequests, InsufficientResources, UNKNOWN};

/// Nodes are sparse if no more than one in so many is looked at.
const SPARSE: usize = 8;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "NodeResourcesFit";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Keeps pods off nodes that lack a requested resource, and prefers nodes by what is left";
    Registration::new(NAME, summary, args::schema, |args| Ok(NodeResourcesFit { args: FitArgs::read(args)? }))
        .with_weight(1)
        .with_endpoints(state::endpoints())
}

struct NodeResourcesFit {
    args: FitArgs,
}

impl Plugin for NodeResourcesFit {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        self.args.show()
    }
    points! { pre_filter, filter, pre_score, score, hints }
}

impl NodeResourcesFit {
    fn column_requests(&self, view: View<'_>, spec: &PodSpec) -> ColumnRequests {
        ColumnRequests::of(view, spec, |name| self.args.ignores(name))
    }

    fn scored(&self, view: View<'_>, spec: &PodSpec) -> ScoredSet {
        ScoredSet::resolve(view, &self.args.resources, spec, Counting::WithDefaults)
    }

    /// Returns whether the pod would fit on the node if the node were empty.
    fn fits_empty(&self, node: &Node, spec: &PodSpec) -> bool {
        let (wanted, offered) = (&spec.requests.list, &node.allocatable);
        let fits = |wanted: i64, offered: i64| wanted <= 0 || wanted <= offered;
        offered.pods >= 1
            && fits(wanted.milli_cpu, offered.milli_cpu)
            && fits(wanted.memory, offered.memory)
            && fits(wanted.ephemeral_storage, offered.ephemeral_storage)
            && self.scalars(spec).all(|(name, wanted)| wanted <= offered.scalar(name))
    }

    /// Returns whether the pod fits on the node with its current pods, like the filter.
    fn fits_now(&self, view: View<'_>, node: NodeIdx, spec: &PodSpec) -> bool {
        let (columns, wanted) = (view.columns(), &spec.requests.list);
        let fits = |resource, wanted: i64| wanted <= 0 || wanted <= columns.free(node, resource);
        view.cluster().node(node).is_some()
            && fits(CPU, wanted.milli_cpu)
            && fits(MEMORY, wanted.memory)
            && fits(EPHEMERAL_STORAGE, wanted.ephemeral_storage)
            && fits(PODS, 1)
            && self.scalars(spec).all(|(name, wanted)| columns.find(name).is_some_and(|r| fits(r, wanted)))
    }

    /// Iterates over the requested resources other than CPU, memory and ephemeral storage, without ignored ones.
    fn scalars<'a>(&'a self, spec: &'a PodSpec) -> impl Iterator<Item = (&'a Name, i64)> {
        let scalars = spec.requests.list.scalars.iter().map(|(name, wanted)| (name, *wanted));
        scalars.filter(|(name, wanted)| *wanted > 0 && !self.args.ignores(name))
    }
}

impl PreFilter for NodeResourcesFit {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        PreFiltered::Ready { value: Arc::new(self.column_requests(view, spec)), nodes: None }
    }
}

impl Filter for NodeResourcesFit {
    fn reads(&self) -> Reads {
        Reads::Usage
    }

    fn filter(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>) {
        let fresh;
        let requests = match value.downcast_ref::<ColumnRequests>() {
            Some(requests) if !requests.has_unknown() => requests,
            _ => {
                fresh = self.column_requests(view, spec);
                &fresh
            }
        };
        let mut known: SmallVec<[(InsufficientResources, CauseId); 4]> = SmallVec::new();
        let mut columns: SmallVec<[(&ResourceColumn, i64); 8]> = SmallVec::new();
        let (Some(first), Some(last)) = (nodes.members().first(), nodes.members().last()) else { return };
        let mut pods = view.columns().page(*first).resource(PODS);
        let mut page_number = usize::MAX;
        let (n, span) = (nodes.members().len(), last.index().abs_diff(first.index()));
        // Nodes that have changed stand on pages of their own, or nearly so, and most fit. Where a question asks in another
        // order than that of the pages, the span says less and only speed depends on it.
        let unfit = if n < PAGE || n * SPARSE < span {
            let Some(unfit) = requests.first_unfit(view, nodes.members()) else { return };
            unfit
        } else {
            0
        };
        nodes.refuse_from(unfit, |causes, node| {
            if node.index() / PAGE != page_number {
                page_number = node.index() / PAGE;
                let page = view.columns().page(node);
                pods = page.resource(PODS);
                columns.clear();
                columns.extend(requests.iter().map(|(resource, amount)| (page.resource(resource), amount)));
            }
            let at = node.index() % PAGE;
            let mut insufficient = InsufficientResources::default();
            if pods.requested[at] >= pods.allocatable[at] {
                insufficient.add_pods();
            }
            for (i, (column, wanted)) in columns.iter().enumerate() {
                let allocatable = column.allocatable[at];
                if *wanted > allocatable.saturating_sub(column.requested[at]) {
                    insufficient.add_resource(i, *wanted > allocatable);
                    if requests.is_left_out(view, i, node) {
                        insufficient.add_left_out(i);
                    }
                }
            }
            if insufficient == InsufficientResources::default() {
                return CauseId::FEASIBLE;
            }
            if let Some((_, cause)) = known.iter().find(|(set, _)| *set == insufficient) {
                return *cause;
            }
            let cause = causes.id(requests.cause(insufficient));
            known.push((insufficient, cause));
            cause
        });
    }

    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        spec: &'a PodSpec,
        _value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        Some(requirements::every_reason(view, self.column_requests(view, spec)))
    }

    fn requirements(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        requirements::of(view, &self.column_requests(view, spec), refused)
    }

    fn at_most(&self, view: View<'_>, spec: &PodSpec, node: NodeIdx, gone: &ResourceList) -> u64 {
        let (columns, wanted) = (view.columns(), &spec.requests.list);
        let times = |resource, wanted: i64, gone: i64| match wanted {
            ..=0 => u64::MAX,
            _ => (columns.free(node, resource).saturating_add(gone).max(0) / wanted) as u64,
        };
        let fixed = times(PODS, 1, gone.pods)
            .min(times(CPU, wanted.milli_cpu, gone.milli_cpu))
            .min(times(MEMORY, wanted.memory, gone.memory))
            .min(times(EPHEMERAL_STORAGE, wanted.ephemeral_storage, gone.ephemeral_storage));
        let of_scalar = |(name, wanted): (&Name, i64)| {
            columns.find(name).map_or(0, |resource| times(resource, wanted, gone.scalar(name)))
        };
        self.scalars(spec).map(of_scalar).fold(fixed, u64::min)
    }

    fn measure(&self, view: View<'_>, spec: &PodSpec, cause: &Cause, nodes: &[NodeIdx]) -> Vec<Measure> {
        let mut all = Vec::new();
        for reason in &cause.reasons {
            let (name, requested) = match (reason.code, &reason.subject) {
                (ReasonCode::TooManyPods, _) => (Name::new("pods"), 1),
                (ReasonCode::InsufficientResource, Some(name)) => {
                    (name.clone(), amount(&spec.requests.list, name))
                }
                _ => continue,
            };
            let resource = view.columns().find(&name).unwrap_or(UNKNOWN);
            if let Some((available, best_node)) = best(view, resource, nodes) {
                all.push(Measure { resource: name, requested, available, best_node });
            }
        }
        all
    }
}

/// Returns the greatest free amount among the nodes, and its node. The tie order decides between equal nodes.
fn best(view: View<'_>, resource: ResourceIdx, nodes: &[NodeIdx]) -> Option<(i64, NodeIdx)> {
    let (columns, ties) = (view.columns(), view.cluster().ties());
    let mut best = *nodes.first()?;
    let (mut page_number, mut column) = (best.index() / PAGE, columns.page(best).resource(resource));
    let mut most = i64::MIN;
    for node in nodes {
        if node.index() / PAGE != page_number {
            (page_number, column) = (node.index() / PAGE, columns.page(*node).resource(resource));
        }
        let at = node.index() % PAGE;
        let free = column.allocatable[at].saturating_sub(column.requested[at]);
        if free > most || free == most && ties[node.index()] > ties[best.index()] {
            (most, best) = (free, *node);
        }
    }
    Some((most, best))
}

impl PreScore for NodeResourcesFit {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn pre_score(&self, view: View<'_>, spec: &PodSpec, _nodes: &[NodeIdx]) -> PreScored {
        PreScored::Ready(Arc::new(self.scored(view, spec)))
    }
}

impl Score for NodeResourcesFit {
    fn reads(&self) -> Reads {
        Reads::Usage
    }

    fn score(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]) {
        match value.downcast_ref::<ScoredSet>() {
            Some(set) if !set.has_unknown() => self.args.strategy.score(view, set.all(), nodes, out),
            _ => self.args.strategy.score(view, self.scored(view, spec).all(), nodes, out),
        }
    }

    fn by_columns(&self, value: &CycleValue) -> Option<Box<dyn ColumnScore>> {
        let set = value.downcast_ref::<ScoredSet>().filter(|set| !set.has_unknown())?;
        self.args.strategy.by_columns(set.all())
    }
}

impl Hints for NodeResourcesFit {
    fn events(&self) -> EventKinds {
        EventKinds::POD_DELETE
            .with(EventKinds::POD_SCALE_DOWN)
            .with(EventKinds::NODE_ADD)
            .with(EventKinds::NODE_ALLOCATABLE)
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let spec = &pod.spec;
        let fits = |node: NodeIdx| view.cluster().node(node).is_some_and(|n| self.fits_empty(n, spec));
        let helps = match event {
            // The pod is pending because no node had room, and only this node has more room than before.
            ClusterEvent::PodReleased { node, .. } => self.fits_now(view, *node, spec),
            ClusterEvent::PodShrunk { pod: old, node } => {
                let now = view.cluster().find_pod(&old.key).and_then(|id| view.cluster().pod(id));
                let frees = |now: &Pod| {
                    let (before, after) = (&old.spec.requests.list, &now.spec.requests.list);
                    any_grew(after, before, &spec.requests.list)
                };
                self.fits_now(view, *node, spec) && now.is_none_or(|now| frees(&now.pod))
            }
            ClusterEvent::NominationEnded { node, .. } => {
                view.cluster().find_node(node).is_some_and(|node| self.fits_now(view, node, spec))
            }
            ClusterEvent::NodeAdded(node) => fits(*node),
            ClusterEvent::NodeUpdated { node, change, old } if change.any(NodeChange::ALLOCATABLE) => {
                fits(*node) && view.cluster().node(*node).is_some_and(|now| offers_more(old, now, spec))
            }
            ClusterEvent::PendingUpdated { old, .. } => {
                let (old, now) = (&old.spec.requests.list, &spec.requests.list);
                old.named().any(|(name, before)| before > amount(now, &name))
            }
            _ => false,
        };
        if helps { Hint::Queue } else { Hint::Skip }
    }
}

/// Returns whether a node offers more pods, or more of a requested resource, than before.
fn offers_more(old: &Node, now: &Node, spec: &PodSpec) -> bool {
    let (old, now) = (&old.allocatable, &now.allocatable);
    now.pods > old.pods || any_grew(old, now, &spec.requests.list)
}

/// Returns whether `now` exceeds `old` in a wanted resource.
fn any_grew(old: &ResourceList, now: &ResourceList, wanted: &ResourceList) -> bool {
    let more = |wanted: i64, old: i64, now: i64| wanted > 0 && now > old;
    more(wanted.milli_cpu, old.milli_cpu, now.milli_cpu)
        || more(wanted.memory, old.memory, now.memory)
        || more(wanted.ephemeral_storage, old.ephemeral_storage, now.ephemeral_storage)
        || wanted.scalars.iter().any(|(name, wanted)| more(*wanted, old.scalar(name), now.scalar(name)))
}
