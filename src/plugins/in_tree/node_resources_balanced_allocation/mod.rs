//! NodeResourcesBalancedAllocation: prefers nodes where the pod evens out the utilisation of resources. README.md has
//! the formula; `balance` implements it.

use pellucid_framework::points;
use std::sync::Arc;

use pellucid_api::rest::plugins::{NodeBalance, NodeResourcesBalancedAllocationState};
use pellucid_cluster::columns::{CPU, ColumnPage, MEMORY};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{ColumnScore, CycleValue, Plugin, PreScore, PreScored, Reads, Score};
use pellucid_framework::{Registration, View};
use pellucid_model::pages::PAGE;
use pellucid_model::{NodeIdx, PodSpec};
use serde_json::{Value, json};
use smallvec::SmallVec;

use pellucid_plugin_helper::listing::cut;
use pellucid_plugin_helper::scored::{
    Counting, Scored, ScoredResource, ScoredSet, by_page, pod_amount, show_resources,
};
use pellucid_plugin_helper::two::{AnyTwo, CpuAndMemory, TwoColumns};
use pellucid_plugin_helper::weighted::score_all;

mod args;
mod balance;
#[cfg(test)]
mod tests;

use balance::{balance, balance_of_two, combine, fraction};

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "NodeResourcesBalancedAllocation";
/// Maximum number of unbalanced nodes listed by `state`.
const MAX_UNBALANCED: usize = 20;

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Prefers nodes on which the pod evens out the use of resources";
    let about = "The nodes whose CPU and memory are used most unevenly";
    let state = Endpoint::of::<NodeResourcesBalancedAllocationState>("state", about, read_state);
    Registration::new(NAME, summary, args::schema, |args| {
        Ok(BalancedAllocation { resources: args::read(args)? })
    })
    .with_weight(1)
    .with_endpoints([state.with_rows("mostUnbalanced")])
}

struct BalancedAllocation {
    resources: Vec<ScoredResource>,
}

impl Plugin for BalancedAllocation {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        json!({"resources": show_resources(&self.resources)})
    }
    points! { pre_score, score }
}

impl BalancedAllocation {
    fn scored(&self, view: View<'_>, spec: &PodSpec) -> ScoredSet {
        ScoredSet::resolve(view, &self.resources, spec, Counting::Real)
    }

    fn is_best_effort(&self, spec: &PodSpec) -> bool {
        self.resources.iter().all(|r| pod_amount(&spec.requests, &r.name, Counting::Real) == 0)
    }
}

impl PreScore for BalancedAllocation {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn pre_score(&self, view: View<'_>, spec: &PodSpec, _nodes: &[NodeIdx]) -> PreScored {
        if self.is_best_effort(spec) {
            return PreScored::Skip;
        }
        PreScored::Ready(Arc::new(self.scored(view, spec)))
    }
}

impl Score for BalancedAllocation {
    fn reads(&self) -> Reads {
        Reads::Usage
    }

    fn score(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]) {
        match value.downcast_ref::<ScoredSet>() {
            Some(set) if !set.has_unknown() => score(view, set.all(), nodes, out),
            // PreScore did not run, so a pod without requests gets 0, as in kube-scheduler.
            None if self.is_best_effort(spec) => out.fill(0),
            _ => score(view, self.scored(view, spec).all(), nodes, out),
        }
    }

    fn by_columns(&self, value: &CycleValue) -> Option<Box<dyn ColumnScore>> {
        let set = value.downcast_ref::<ScoredSet>().filter(|set| !set.has_unknown())?;
        let BalanceOfTwo { two, pods } = BalanceOfTwo::of(set.all())?;
        Some(match two.of_cpu_and_memory() {
            Some(Counting::Real) => Box::new(BalanceOfTwo { two: CpuAndMemory::<false>, pods }),
            _ => Box::new(BalanceOfTwo { two, pods }),
        })
    }
}

fn score(view: View<'_>, scored: &[Scored], nodes: &[NodeIdx], out: &mut [i64]) {
    match BalanceOfTwo::of(scored) {
        Some(balance) => score_all(&balance, view, nodes, out),
        None => score_many(view, scored, nodes, out),
    }
}

/// The score by two resources, the default. If the node lacks one of them, the other alone is balanced.
struct BalanceOfTwo<T> {
    two: T,
    /// What the pod requests of each.
    pods: [i64; 2],
}

impl BalanceOfTwo<AnyTwo> {
    fn of(scored: &[Scored]) -> Option<Self> {
        let two: [Scored; 2] = scored.try_into().ok()?;
        Some(Self { two: AnyTwo(two), pods: two.map(|resource| resource.pod) })
    }
}

impl<T> BalanceOfTwo<T> {
    /// Returns the score of a node with these allocatable and requested amounts.
    #[inline(always)]
    fn score_of(&self, (a, used_a): (i64, i64), (b, used_b): (i64, i64)) -> i64 {
        if a == 0 || b == 0 {
            return combine(100, 100);
        }
        let with = |at: usize, used: i64, all: i64| fraction(used.wrapping_add(self.pods[at]), all);
        let with = balance_of_two(with(0, used_a, a), with(1, used_b, b));
        combine(with, balance_of_two(fraction(used_a, a), fraction(used_b, b)))
    }
}

impl<T: TwoColumns> ColumnScore for BalanceOfTwo<T> {
    fn score(&self, page: &ColumnPage, at: usize) -> i64 {
        let [of_a, of_b] = self.two.amounts(page, at);
        self.score_of(of_a, of_b)
    }
}

fn score_many(view: View<'_>, scored: &[Scored], nodes: &[NodeIdx], out: &mut [i64]) {
    let mut with: SmallVec<[f64; 8]> = SmallVec::new();
    let mut without: SmallVec<[f64; 8]> = SmallVec::new();
    for (page, run, scores) in by_page(view, nodes, out) {
        for (node, score) in run.iter().zip(scores) {
            let at = node.index() % PAGE;
            with.clear();
            without.clear();
            for resource in scored {
                let (allocatable, used) = resource.amounts(page);
                if allocatable[at] != 0 {
                    with.push(fraction(used[at].saturating_add(resource.pod), allocatable[at]));
                    without.push(fraction(used[at], allocatable[at]));
                }
            }
            *score = combine(balance(&with), balance(&without));
        }
    }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let (columns, nodes) = (cx.view.columns(), cx.view.nodes());
    let mut sum = 0;
    let mut rows = Vec::new();
    for node in nodes {
        let part = |r| match columns.allocatable(*node, r) {
            0 => None,
            allocatable => Some(fraction(columns.requested(*node, r), allocatable)),
        };
        let (cpu, memory) = (part(CPU), part(MEMORY));
        let both: SmallVec<[f64; 8]> = cpu.into_iter().chain(memory).collect();
        let balance = balance(&both);
        sum += balance;
        rows.push(NodeBalance {
            node_name: cx.view.name(*node).to_string(),
            balance,
            cpu_fraction: cpu.unwrap_or(0.0),
            memory_fraction: memory.unwrap_or(0.0),
        });
    }
    rows.sort_by(|a, b| a.balance.cmp(&b.balance).then_with(|| a.node_name.cmp(&b.node_name)));
    let (most_unbalanced, truncated) = cut(rows, MAX_UNBALANCED);
    let mean_balance = if nodes.is_empty() { 0.0 } else { sum as f64 / nodes.len() as f64 };
    let total_nodes = nodes.len();
    Ok(json!(NodeResourcesBalancedAllocationState { most_unbalanced, mean_balance, total_nodes, truncated }))
}
