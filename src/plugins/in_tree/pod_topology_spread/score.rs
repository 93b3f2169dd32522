//! Score: nodes whose domains hold fewer matching pods score higher.

use std::sync::Arc;

use pellucid_framework::View;
use pellucid_framework::plugin::{CycleValue, MAX_SCORE, PreScore, PreScored, Reads, Score};
use pellucid_model::{NodeIdx, PodSpec};

use super::super::relations::{Column, HOSTNAME, NO_VALUE, Relations};
use super::PodTopologySpread;
use super::constraints::{Constraint, constraints};
use super::domains::{Policies, for_each_matching};

/// The soft constraints, evaluated for all nodes.
struct Prepared {
    parts: Vec<Part>,
    /// Whether nodes that lack a key are ignored, and such nodes exist.
    ignores_some: bool,
}

impl Prepared {
    #[inline]
    fn ignores(&self, node: NodeIdx) -> bool {
        self.ignores_some && self.parts.iter().any(|p| p.column.of(node) == NO_VALUE)
    }
}

/// The contribution of one constraint to the score.
struct Part {
    column: Arc<Column>,
    /// Indexed by value id, or by node slot when the domains are the nodes themselves.
    shares: Vec<f64>,
    is_by_node: bool,
}

impl Part {
    #[inline]
    fn share(&self, node: NodeIdx) -> f64 {
        match self.column.of(node) {
            NO_VALUE => 0.0,
            _ if self.is_by_node => self.shares[node.index()],
            value => self.shares[value as usize],
        }
    }
}

/// Returns what a constraint contributes for `pods` matching pods. Many domains hold few pods each, so a pod weighs
/// more there; `maxSkew - 1` dampens differences.
fn share(pods: u32, weight: f64, max_skew: i32) -> f64 {
    f64::from(pods) * weight + f64::from(max_skew - 1)
}

/// Returns the weight of a pod when there are `domains` domains.
fn weight(domains: usize) -> f64 {
    ((domains + 2) as f64).ln()
}

/// Context for building the parts.
struct Maker<'a> {
    view: View<'a>,
    relations: &'a Relations,
    spec: &'a PodSpec,
    columns: Vec<Arc<Column>>,
    needs_all_keys: bool,
}

impl Maker<'_> {
    fn has_keys(&self, node: NodeIdx) -> bool {
        !self.needs_all_keys || self.columns.iter().all(|c| c.of(node) != NO_VALUE)
    }

    /// Builds a part whose domains are the nodes: pods are counted per node, regardless of the policies.
    fn by_node(&self, column: Arc<Column>, constraint: &Constraint<'_>, n_scored: usize) -> Part {
        let mut counts = vec![0u32; self.view.cluster().n_slots()];
        for_each_matching(self.relations, self.spec, constraint.selector.as_deref(), |class| {
            class.counts.for_each(|node, pods| counts[node.index()] += pods);
        });
        let (weight, max_skew) = (weight(n_scored), constraint.rule.max_skew);
        let shares = counts.into_iter().map(|pods| share(pods, weight, max_skew)).collect();
        Part { column, shares, is_by_node: true }
    }

    /// Builds a part by value. Pods are counted on all eligible nodes, feasible or not; domains are those of the scored
    /// nodes.
    fn by_value(&self, column: Arc<Column>, constraint: &Constraint<'_>, scored: &[NodeIdx]) -> Part {
        let mut is_domain = vec![false; column.len()];
        for node in scored {
            is_domain[column.of(*node) as usize] = true;
        }
        // For the weight, the nodes without the label count as one domain.
        let weight = weight(is_domain.iter().filter(|is| **is).count());
        let policies = Policies::of(self.spec, constraint);
        let mut counts = vec![0u32; column.len()];
        for_each_matching(self.relations, self.spec, constraint.selector.as_deref(), |class| {
            class.counts.for_each(|node, pods| {
                let value = column.of(node);
                if value != NO_VALUE
                    && self.has_keys(node)
                    && (policies.pass_all() || policies.pass(self.view, node))
                {
                    counts[value as usize] += pods;
                }
            });
        });
        let max_skew = constraint.rule.max_skew;
        let shares = counts.into_iter().map(|pods| share(pods, weight, max_skew)).collect();
        Part { column, shares, is_by_node: false }
    }
}

impl PreScore for PodTopologySpread {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_score(&self, view: View<'_>, spec: &PodSpec, nodes: &[NodeIdx]) -> PreScored {
        let soft = constraints(view, spec, &self.defaults, false);
        let Some(relations) = view.state::<Relations>().filter(|_| !soft.is_empty()) else {
            return PreScored::Skip;
        };
        let needs_all_keys = !spec.spread.is_empty() || !self.defaults.is_system;
        let columns = soft.iter().map(|c| relations.topology.column(&c.rule.topology_key)).collect();
        let maker = Maker { view, relations, spec, columns, needs_all_keys };
        let is_complete = maker.columns.iter().all(|c| c.n_nodes() == view.nodes().len());
        let ignores_some = needs_all_keys && !is_complete;
        let some: Vec<NodeIdx>;
        let scored = if ignores_some {
            some = nodes.iter().copied().filter(|n| maker.has_keys(*n)).collect();
            &some
        } else {
            nodes
        };
        let part = |(constraint, column): (&Constraint<'_>, &Arc<Column>)| {
            if constraint.rule.topology_key == *HOSTNAME {
                maker.by_node(column.clone(), constraint, scored.len())
            } else {
                maker.by_value(column.clone(), constraint, scored)
            }
        };
        let parts = soft.iter().zip(&maker.columns).map(part).collect();
        PreScored::Ready(Arc::new(Prepared { parts, ignores_some }))
    }
}

impl Score for PodTopologySpread {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn score(&self, _: View<'_>, _: &PodSpec, value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]) {
        let Some(prepared) = value.downcast_ref::<Prepared>() else { return };
        for (node, score) in nodes.iter().zip(out) {
            // Shares are summed in the order of the constraints, so that rounding is the same everywhere.
            *score = if prepared.ignores(*node) {
                0
            } else {
                prepared.parts.iter().fold(0.0, |sum, part| sum + part.share(*node)).round() as i64
            };
        }
    }

    fn normalize_all(&self, _: View<'_>, value: &CycleValue, nodes: &[NodeIdx], scores: &mut [i64]) {
        let Some(prepared) = value.downcast_ref::<Prepared>() else { return };
        let scored = || nodes.iter().zip(scores.iter()).filter(|(n, _)| !prepared.ignores(**n));
        let most = scored().map(|(_, s)| *s).max().unwrap_or(0).max(0);
        let least = scored().map(|(_, s)| *s).min().unwrap_or(0);
        for (node, score) in nodes.iter().zip(scores) {
            *score = if prepared.ignores(*node) {
                0
            } else if most == 0 {
                MAX_SCORE
            } else {
                MAX_SCORE * (most + least - *score) / most
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_domains_weigh_more_and_a_large_skew_waters_down() {
        for (pods, domains, max_skew, want) in [
            (0, 3, 1, 0),
            (1, 1, 1, 1), // ln 3 = 1.099
            (2, 3, 1, 3), // 2 ln 5 = 3.219
            (2, 3, 5, 7),
            (3, 5000, 3, 28), // 3 ln 5002 + 2 = 27.553
        ] {
            assert_eq!(share(pods, weight(domains), max_skew).round() as i64, want, "{pods} {domains}");
        }
    }
}
