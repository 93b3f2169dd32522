//! Counts the matching pods in each domain of a constraint, over the nodes that are eligible for a pod.

use std::sync::Arc;

use pellucid_framework::View;
use pellucid_model::relations::NodeInclusion;
use pellucid_model::selector::LabelSelector;
use pellucid_model::taint::{TaintEffect, tolerated};
use pellucid_model::{NodeIdx, PodSpec};

use super::super::relations::{Class, Column, NO_VALUE, Relations, ValueId};
use super::constraints::Constraint;

/// Marks a value that is not a domain because no eligible node has it.
const NO_DOMAIN: u32 = u32::MAX;

/// The domains of a hard constraint.
pub(super) struct Domains {
    /// Maps nodes to domains.
    pub(super) column: Arc<Column>,
    /// Matching pods per value id; [`NO_DOMAIN`] where the value is not a domain.
    counts: Vec<u32>,
    /// Number of domains.
    pub(super) n_domains: usize,
    /// The fewest matching pods in a domain; 0 with fewer than `minDomains` domains.
    pub(super) minimum: i64,
    self_match: i64,
}

impl Domains {
    /// Counts pods per domain for every hard constraint of a pod.
    pub(super) fn count(view: View<'_>, spec: &PodSpec, all: &[Constraint<'_>]) -> Vec<Self> {
        let Some(relations) = view.state::<Relations>() else { return Vec::new() };
        let columns: Vec<_> = all.iter().map(|c| relations.topology.column(&c.rule.topology_key)).collect();
        let count = |(at, constraint): (usize, &Constraint<'_>)| {
            let column = columns[at].clone();
            let eligible = Eligible::find(view, spec, constraint, &columns);
            let counts = count(relations, view, spec, (constraint, &column), &eligible);
            Self::of(column, counts, constraint, spec)
        };
        all.iter().enumerate().map(count).collect()
    }

    fn of(column: Arc<Column>, counts: Vec<u32>, constraint: &Constraint<'_>, spec: &PodSpec) -> Self {
        let mut n_domains = 0;
        let mut least = i32::MAX as u32;
        for count in counts.iter().filter(|c| **c != NO_DOMAIN) {
            n_domains += 1;
            least = least.min(*count);
        }
        let is_short = i64::try_from(n_domains).is_ok_and(|n| n < i64::from(constraint.rule.min_domains));
        let minimum = if is_short { 0 } else { i64::from(least) };
        let self_match = i64::from(constraint.counts(&spec.labels));
        Self { column, counts, n_domains, minimum, self_match }
    }

    /// Returns the number of matching pods of a value; `None` if the value is not a domain.
    pub(super) fn matching(&self, value: ValueId) -> Option<u32> {
        self.counts.get(value as usize).copied().filter(|count| *count != NO_DOMAIN)
    }

    /// Returns the skew with the pod placed on a node with this value.
    pub(super) fn skew(&self, value: ValueId) -> i64 {
        i64::from(self.matching(value).unwrap_or(0)) + self.self_match - self.minimum
    }

    /// Iterates over the values that are domains, in ascending order.
    pub(super) fn values(&self) -> impl Iterator<Item = ValueId> {
        (0..self.counts.len() as ValueId).filter(|v| self.matching(*v).is_some())
    }
}

fn count(
    relations: &Relations,
    view: View<'_>,
    spec: &PodSpec,
    (constraint, column): (&Constraint<'_>, &Column),
    eligible: &Eligible,
) -> Vec<u32> {
    let mut counts = vec![NO_DOMAIN; column.len()];
    match eligible {
        Eligible::All => column.values().for_each(|value| counts[value as usize] = 0),
        Eligible::Some(slots) => {
            for node in view.nodes().iter().filter(|n| slots[n.index()]) {
                counts[column.of(*node) as usize] = 0;
            }
        }
    }
    for_each_matching(relations, spec, constraint.selector.as_deref(), |class| {
        class.counts.for_each(|node, pods| {
            let value = column.of(node);
            if value != NO_VALUE && eligible.contains(node) {
                counts[value as usize] += pods;
            }
        });
    });
    counts
}

/// Calls `with` for every class that a constraint's selector counts: in the pod's namespace and not being deleted. A
/// selector without requirements selects every pod elsewhere and counts none here, as in kube-scheduler.
pub(super) fn for_each_matching<'a>(
    relations: &'a Relations,
    spec: &PodSpec,
    selector: Option<&LabelSelector>,
    mut with: impl FnMut(&'a Class),
) {
    let Some(selector) = selector.filter(|selector| !selector.is_empty()) else { return };
    relations.classes.matching(&spec.namespace, selector, |class| {
        if !class.terminating {
            with(class);
        }
    });
}

/// The nodes that count for a constraint.
pub(super) enum Eligible {
    /// All nodes that have the constraint's key.
    All,
    /// The nodes whose slot is `true`.
    Some(Vec<bool>),
}

impl Eligible {
    /// Returns the nodes that have every key and pass the constraint's policies.
    fn find(view: View<'_>, spec: &PodSpec, constraint: &Constraint<'_>, columns: &[Arc<Column>]) -> Self {
        let policies = Policies::of(spec, constraint);
        let all_keys_everywhere = columns.iter().all(|c| c.n_nodes() == view.nodes().len());
        // With a single key, nodes that lack it are in no domain anyway.
        if policies.pass_all() && (columns.len() == 1 || all_keys_everywhere) {
            return Self::All;
        }
        let mut slots = vec![false; view.cluster().n_slots()];
        for node in view.nodes() {
            let has_keys = columns.iter().all(|c| c.of(*node) != NO_VALUE);
            slots[node.index()] = has_keys && policies.pass(view, *node);
        }
        Self::Some(slots)
    }

    #[inline]
    fn contains(&self, node: NodeIdx) -> bool {
        match self {
            Self::All => true,
            Self::Some(slots) => slots.get(node.index()).copied().unwrap_or(false),
        }
    }
}

/// The node inclusion policies of a constraint (`nodeAffinityPolicy`, `nodeTaintsPolicy`).
pub(super) struct Policies<'a> {
    spec: &'a PodSpec,
    honors_affinity: bool,
    honors_taints: bool,
}

impl<'a> Policies<'a> {
    pub(super) fn of(spec: &'a PodSpec, constraint: &Constraint<'_>) -> Self {
        let rule = constraint.rule;
        Self {
            spec,
            honors_affinity: rule.node_affinity_policy == NodeInclusion::Honor
                && spec.affinity.has_required(),
            honors_taints: rule.node_taints_policy == NodeInclusion::Honor,
        }
    }

    /// Returns whether every node passes, without inspecting nodes.
    pub(super) fn pass_all(&self) -> bool {
        !self.honors_affinity && !self.honors_taints
    }

    /// Returns whether a node passes the policies.
    pub(super) fn pass(&self, view: View<'_>, node: NodeIdx) -> bool {
        let Some(object) = view.cluster().node(node) else { return false };
        let accepted = !self.honors_affinity || self.spec.affinity.accepts(&object.name, &object.labels);
        let refuses = |effect| effect != TaintEffect::PreferNoSchedule;
        accepted
            && (!self.honors_taints
                || object.taints.iter().all(|t| !refuses(t.effect) || tolerated(&self.spec.tolerations, t)))
    }
}
