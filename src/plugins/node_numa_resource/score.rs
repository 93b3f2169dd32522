//! Scores: how much of a node, or of the NUMA nodes that the pod would get, is requested with the pod.

use std::sync::Arc;

use pellucid_cluster::columns::{CPU as CPU_COLUMN, EPHEMERAL_STORAGE, MEMORY};
use pellucid_framework::merge::merge;
use pellucid_framework::plugin::{ColumnScore, CycleValue, PreScore, PreScored, Reads, Score};
use pellucid_framework::topology::{NumaMask, NumaPolicy, NumaTopology};
use pellucid_framework::{NumaAffinity, TopologyHints, View};
use pellucid_model::{NodeIdx, PodSpec};

use super::NodeNumaResource;
use super::allocation::{Left, NodeRequest};
use super::amounts::{Amounts, CPU, amplify};
use super::args::{Strategy, StrategyKind};
use super::holding::Holding;
use super::node_topology::Zone;
use super::numa_nodes::NumaNodes;
use super::resource_spec::PodRequest;
use pellucid_plugin_helper::scored::{Counting, ScoredResource, ScoredSet, is_scalar};
use pellucid_plugin_helper::weighted::{
    self, least_allocated, left, most_allocated, percentages, taken, truncated,
};

impl PreScore for NodeNumaResource {
    /// Whether there are NodeResourceTopologies changes the results of all nodes.
    fn reads(&self) -> Reads {
        Reads::NodeSet
    }

    fn pre_score(&self, view: View<'_>, spec: &PodSpec, _nodes: &[NodeIdx]) -> PreScored {
        let request = PodRequest::of(spec, self.args.default_bind).ok();
        let request = request.filter(|request| !request.amounts.is_empty());
        let state = view.state::<NumaNodes>().filter(|state| !state.is_empty());
        let (Some(pod), Some(state)) = (request, state) else { return PreScored::Skip };
        let by_column = self.by_column(view, spec, &pod);
        let nodes_demand_nothing = !state.is_demanding();
        PreScored::Ready(Arc::new(Scoring { pod: Arc::new(pod), by_column, nodes_demand_nothing }))
    }
}

/// What PreScore prepares.
struct Scoring {
    pod: Arc<PodRequest>,
    /// The scored resources as columns, for nodes that demand nothing: there the score is one of the node alone. `None`
    /// for a pod with a policy, and when a resource has no column.
    by_column: Option<ScoredSet>,
    /// Whether no node demands anything. Then the columns give the score of every node that takes the pod, also of one that gives
    /// it CPUs of its own. When nodes begin to, all results are made anew.
    nodes_demand_nothing: bool,
}

impl Score for NodeNumaResource {
    fn reads(&self) -> Reads {
        Reads::Usage
    }

    fn by_columns(&self, value: &CycleValue) -> Option<Box<dyn ColumnScore>> {
        let scoring = value.downcast_ref::<Scoring>().filter(|scoring| scoring.nodes_demand_nothing)?;
        let scored = scoring.by_column.as_ref()?.all();
        match self.args.scoring.kind {
            StrategyKind::LeastAllocated => weighted::by_columns(scored, left),
            StrategyKind::MostAllocated => weighted::by_columns(scored, taken),
        }
    }

    fn reads_affinity(&self) -> bool {
        true
    }

    /// Takes the NUMA nodes of this plugin's own hints.
    fn score(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]) {
        let Some(scoring) = value.downcast_ref::<Scoring>() else { return };
        if let Some(columns) = scoring.by_column.as_ref().filter(|_| scoring.nodes_demand_nothing) {
            return self.score_columns(view, columns, nodes, out);
        }
        let Some(state) = view.state::<NumaNodes>() else { return };
        let pod: CycleValue = scoring.pod.clone();
        let is_aligned = state.has_policies() || scoring.pod.policy != NumaPolicy::None;
        for (node, score) in nodes.iter().zip(out) {
            let own = || is_aligned.then(|| self.own_affinity(view, spec, &pod, *node)).flatten();
            *score = self.score_node(view, state, scoring, *node, own);
        }
    }

    fn score_aligned(
        &self,
        view: View<'_>,
        _spec: &PodSpec,
        value: &CycleValue,
        nodes: &[(NodeIdx, Option<NumaAffinity>)],
        out: &mut [i64],
    ) {
        let Some(scoring) = value.downcast_ref::<Scoring>() else { return };
        let Some(state) = view.state::<NumaNodes>() else { return };
        for ((node, affinity), score) in nodes.iter().zip(out) {
            *score = self.score_node(view, state, scoring, *node, || *affinity);
        }
    }
}

impl NodeNumaResource {
    /// Resolves the scored resources to columns.
    fn by_column(&self, view: View<'_>, spec: &PodSpec, pod: &PodRequest) -> Option<ScoredSet> {
        let resources = &self.args.scoring.resources;
        let has_column = |of: &ScoredResource| {
            matches!(of.name.as_str(), CPU | "memory" | "ephemeral-storage") || is_scalar(&of.name)
        };
        let set = ScoredSet::resolve(view, resources, spec, Counting::Real);
        let has_all = resources.iter().all(has_column) && !set.has_unknown();
        (has_all && pod.policy == NumaPolicy::None).then_some(set)
    }

    /// Returns the score of a node. It is 0 for a node that does not take the pod.
    #[inline]
    fn score_node(
        &self,
        view: View<'_>,
        state: &NumaNodes,
        Scoring { pod, by_column, .. }: &Scoring,
        node: NodeIdx,
        affinity: impl FnOnce() -> Option<NumaAffinity>,
    ) -> i64 {
        match by_column {
            Some(columns) if state.facts(node).take(pod) => {
                let mut score = [0];
                self.score_columns(view, columns, &[node], &mut score);
                score[0]
            }
            _ => self.score_of(view, pod, node, affinity()).unwrap_or(0),
        }
    }

    /// Scores nodes that demand nothing: their amounts are those of their columns.
    #[inline]
    fn score_columns(&self, view: View<'_>, columns: &ScoredSet, nodes: &[NodeIdx], out: &mut [i64]) {
        match self.args.scoring.kind {
            StrategyKind::LeastAllocated => percentages(view, columns.all(), nodes, out, left),
            StrategyKind::MostAllocated => percentages(view, columns.all(), nodes, out, taken),
        }
    }

    /// Returns a node's score; `None` for a node that does not take the pod.
    fn score_of(
        &self,
        view: View<'_>,
        pod: &PodRequest,
        node: NodeIdx,
        affinity: Option<NumaAffinity>,
    ) -> Option<i64> {
        let on = self.on(view, node);
        let asked = NodeRequest::of(on, pod, self.args.allocate_strategy()).ok()?;
        asked.check_machine().ok()?;
        let ratio = on.cpu_ratio();
        let pinned = |amount: i64| if asked.bind.is_some() { amplify(amount, ratio) } else { amount };
        let own = |name: &str, amount: i64| if name == CPU { pinned(amount) } else { amount };
        let taken = on.taken.len() as i64 * 1000;
        let holding = match asked.policy {
            NumaPolicy::None => Holding::default(),
            // The NUMA nodes count only once the node is chosen.
            NumaPolicy::BestEffort => asked.allocate(None).ok()?,
            _ => asked.allocate(Some(affinity?.mask)).ok()?,
        };
        if !holding.zones.is_empty() {
            return Some(self.score_zones(&asked, &holding, amplify(taken, ratio), own));
        }
        let amount = |name: &str| {
            let (all, mut used) = column(view, node, name)?;
            if name == CPU && !holding.cpus.is_empty() {
                used = amplify(taken, ratio);
            } else if name == CPU && pod.milli_cpu > 0 && asked.policy == NumaPolicy::None && ratio > 1.0 {
                used += amplify(taken, ratio) - taken;
            }
            Some((all, used))
        };
        let strategy = &self.args.scoring;
        Some(strategy_score(strategy, |of| {
            let requested = requested(pod, of);
            (requested > 0 || !is_scalar(of))
                .then(|| amount(of))
                .flatten()
                .map(|(all, used)| (all, used.saturating_add(own(of, requested))))
        }))
    }

    /// Returns the NUMA nodes that the pod would get by this plugin's own hints.
    fn own_affinity(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        value: &CycleValue,
        node: NodeIdx,
    ) -> Option<NumaAffinity> {
        let topology: NumaTopology = self.topology(view, spec, value, node).ok()??;
        merge(&topology, &self.hints(view, spec, value, node).ok()?)
    }

    /// Scores by the NUMA nodes on which a pod would get amounts. CPUs of pods with their own count for the whole node, as
    /// in Koordinator.
    fn score_zones(
        &self,
        asked: &NodeRequest<'_>,
        holding: &Holding,
        pinned: i64,
        own: impl Fn(&str, i64) -> i64,
    ) -> i64 {
        let on = asked.on;
        let is_used = |node: u16| holding.zones.iter().any(|(used, _)| *used == node);
        let zones = || on.zones.iter().filter(|zone| is_used(zone.node));
        let used: Vec<Amounts> = zones().filter_map(|zone| on.used_of(zone.node)).collect();
        strategy_score(&self.args.scoring, |name| {
            let requested = requested(asked.pod, name);
            if requested == 0 && is_scalar(name) {
                return None;
            }
            let all = total(zones().filter_map(|zone| zone.amounts.get(name)));
            let mut sum = total(used.iter().filter_map(|used| used.get(name)));
            if name == CPU && !holding.cpus.is_empty() {
                sum = pinned;
            }
            Some((all, sum.saturating_add(own(name, requested))))
        })
    }

    /// Scores a set of NUMA nodes for the choice among them.
    pub(super) fn zone_score(&self, asked: &NodeRequest<'_>, mask: NumaMask, left: &Left) -> i64 {
        let ratio = asked.on.cpu_ratio();
        strategy_score(&self.args.numa_scoring, |name| {
            let mut requested = requested(asked.pod, name);
            if requested == 0 && is_scalar(name) {
                return None;
            }
            if name == CPU && asked.bind.is_some() {
                requested = amplify(requested, ratio);
            }
            let zones = asked.on.zones.iter().zip(left);
            let inside = zones.filter(|(zone, _)| mask.contains(u32::from(zone.node)));
            let amounts = |(zone, (_, left)): (&Zone, &(u16, Amounts))| {
                (zone.amounts.get(name).unwrap_or(0), left.get(name).unwrap_or(0))
            };
            let (all, free) = inside.map(amounts).fold((0i64, 0i64), |(all, free), (of_all, of_free)| {
                (all.saturating_add(of_all), free.saturating_add(of_free))
            });
            Some((all, all.saturating_sub(free).max(0).saturating_add(requested)))
        })
    }
}

/// Adds amounts up; what is more than fits is as much as fits.
pub(super) fn total(amounts: impl Iterator<Item = i64>) -> i64 {
    amounts.fold(0, i64::saturating_add)
}

/// Returns how much a pod requests of a resource.
fn requested(pod: &PodRequest, name: &str) -> i64 {
    pod.amounts.iter().find(|(known, _)| known.as_str() == name).map_or(0, |(_, amount)| *amount)
}

/// Returns the allocatable and the requested amount of a node.
fn column(view: View<'_>, node: NodeIdx, name: &str) -> Option<(i64, i64)> {
    let columns = view.columns();
    let resource = match name {
        CPU => CPU_COLUMN,
        "memory" => MEMORY,
        "ephemeral-storage" => EPHEMERAL_STORAGE,
        _ => columns.find(&name.into())?,
    };
    Some((columns.allocatable(node, resource), columns.requested(node, resource)))
}

/// Returns the weighted mean of the resources' scores. `amounts` gives what there is and what is requested with the pod;
/// a resource of which there is nothing does not count.
fn strategy_score(strategy: &Strategy, amounts: impl Fn(&str) -> Option<(i64, i64)>) -> i64 {
    let (mut sum, mut weights) = (0, 0);
    for ScoredResource { name, weight } in &strategy.resources {
        let (all, requested) = amounts(name).unwrap_or_default();
        if all != 0 {
            sum += weight * resource_score(strategy.kind, all, requested);
            weights += weight;
        }
    }
    if weights == 0 { 0 } else { truncated(sum, weights) }
}

fn resource_score(kind: StrategyKind, all: i64, requested: i64) -> i64 {
    let requested = requested.max(0);
    match kind {
        _ if all <= 0 => 0,
        StrategyKind::LeastAllocated => least_allocated(requested, all),
        StrategyKind::MostAllocated => most_allocated(requested, all),
    }
}
