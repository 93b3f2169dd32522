//! Filter: no domain may hold over `maxSkew` more matching pods than the domain with the fewest.

use std::cmp::Reverse;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_framework::plugin::{CycleValue, Filter, Measure, Nodes, PreFilter, PreFiltered, Reads};
use pellucid_framework::{Cause, CauseId, Code, EveryReason, NodeReason, Reason, View};
use pellucid_model::{Name, NodeIdx, Now, PodSpec};

use super::super::relations::{Column, NO_VALUE};
use super::constraints::{Constraint, constraints};
use super::domains::Domains;
use super::{NAME, PodTopologySpread, requirements};

/// The result of a hard constraint for all nodes.
struct Checked {
    column: Arc<Column>,
    /// Indexed by value id: whether the skew would be too large.
    refused: Vec<bool>,
}

impl PreFilter for PodTopologySpread {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        let hard = constraints(view, spec, &self.defaults, true);
        if hard.is_empty() {
            return PreFiltered::Skip;
        }
        let check = |(domains, constraint): (Domains, &Constraint<'_>)| {
            let max_skew = i64::from(constraint.rule.max_skew);
            let values = 0..domains.column.len() as u32;
            let refused = values.map(|value| domains.skew(value) > max_skew).collect();
            Checked { column: domains.column, refused }
        };
        let counted = Domains::count(view, spec, &hard);
        let checked: Vec<Checked> = counted.into_iter().zip(&hard).map(check).collect();
        PreFiltered::Ready { value: Arc::new(checked), nodes: None }
    }
}

impl Filter for PodTopologySpread {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn filter(&self, _view: View<'_>, _spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>) {
        let Some(all) = value.downcast_ref::<Vec<Checked>>() else { return };
        let label = Reason::of(ReasonCode::SpreadLabelMissing);
        let missing = nodes.cause(Cause::new(NAME, Code::UnschedulableAndUnresolvable, label));
        let skew = Reason::of(ReasonCode::SpreadSkewTooLarge);
        let skewed = nodes.cause(Cause::new(NAME, Code::Unschedulable, skew));
        nodes.refuse(|node| {
            for checked in all {
                let value = checked.column.of(node);
                if value == NO_VALUE {
                    return missing;
                }
                if checked.refused[value as usize] {
                    return skewed;
                }
            }
            CauseId::FEASIBLE
        });
    }

    /// Each constraint is a reason.
    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        spec: &'a PodSpec,
        value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        let all = value.downcast_ref::<Vec<Checked>>()?;
        let hard = constraints(view, spec, &self.defaults, true);
        let subjects: Vec<String> = (0..hard.len()).map(|at| requirements::subject(&hard, at)).collect();
        Some(Box::new(move |node, reasons| {
            for (checked, subject) in all.iter().zip(&subjects) {
                let value = checked.column.of(node);
                let reason = |code| Reason::about(code, subject);
                if value == NO_VALUE {
                    reasons.push(NodeReason::fixed(reason(ReasonCode::SpreadLabelMissing)));
                } else if checked.refused[value as usize] {
                    reasons.push(NodeReason::open(reason(ReasonCode::SpreadSkewTooLarge)));
                }
            }
        }))
    }

    fn requirements(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        requirements::of(view, spec, &constraints(view, spec, &self.defaults, true), refused)
    }

    fn detail(&self, view: View<'_>, spec: &PodSpec, _: &Cause, node: NodeIdx, _: Now) -> Option<String> {
        requirements::on_node(view, spec, &constraints(view, spec, &self.defaults, true), node)
    }

    /// Returns, per constraint that refuses some of the nodes, the least skew that the pod would cause on one of them.
    fn measure(&self, view: View<'_>, spec: &PodSpec, cause: &Cause, nodes: &[NodeIdx]) -> Vec<Measure> {
        if cause.reasons.first().is_none_or(|r| r.code != ReasonCode::SpreadSkewTooLarge) {
            return Vec::new();
        }
        let hard = constraints(view, spec, &self.defaults, true);
        let all = Domains::count(view, spec, &hard);
        let measured = hard.iter().zip(&all).filter_map(|(constraint, domains)| {
            let max_skew = i64::from(constraint.rule.max_skew);
            let skew = |node: &NodeIdx| match domains.column.of(*node) {
                NO_VALUE => None,
                value => Some((domains.skew(value), *node)).filter(|(skew, _)| *skew > max_skew),
            };
            let by_skew = |(skew, node): &(i64, NodeIdx)| (*skew, Reverse(view.cluster().slot(*node).tie));
            let (requested, best_node) = nodes.iter().filter_map(skew).min_by_key(by_skew)?;
            let resource = Name::new(&format!("skew of {}", constraint.rule.topology_key));
            Some(Measure { resource, requested, available: max_skew, best_node })
        });
        measured.collect()
    }
}
