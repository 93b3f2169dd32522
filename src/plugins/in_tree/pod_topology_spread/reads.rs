//! The endpoints: all constraints with the spread of their pods, and the skew that one pod would cause in each domain.

use std::collections::BTreeMap;

use pellucid_api::rest::relations::{
    DomainCount, PodTopologySpreadState, SpreadDomain, SpreadOfConstraint, SpreadOfPod, SpreadUse,
};
use pellucid_framework::View;
use pellucid_framework::endpoint::{ReadContext, ReadError};
use pellucid_model::PodSpec;
use pellucid_model::relations::SpreadConstraint;
use serde_json::{Value, json};

use super::super::relations::{NO_VALUE, Relations, selector_text};
use super::args::SYSTEM;
use super::constraints::{Constraint, constraints};
use super::domains::{Domains, for_each_matching};
use pellucid_plugin_helper::listing::{MAX_EXAMPLES, MAX_ROWS, cut, pod_of};

fn when_unsatisfiable(rule: &SpreadConstraint) -> String {
    if rule.is_hard { "DoNotSchedule" } else { "ScheduleAnyway" }.to_owned()
}

pub(super) fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    // Keyed by what a row shows, so that rows are distinct and sorted.
    let mut all: BTreeMap<_, (SpreadUse, &PodSpec, &SpreadConstraint)> = BTreeMap::new();
    for (_, record) in cx.view.cluster().pods() {
        let spec = &*record.pod.spec;
        for rule in &spec.spread {
            let selector = selector_text(rule.selector.as_ref());
            let key = (
                &spec.namespace,
                &rule.topology_key,
                selector,
                rule.is_hard,
                rule.max_skew,
                rule.min_domains,
            );
            let (row, ..) = all.entry(key).or_insert_with(|| (SpreadUse::default(), spec, rule));
            row.pods += 1;
            row.pending_pods += usize::from(!record.stage.is_placed());
        }
    }
    let total_constraints = all.len();
    let rows = all.into_values().take(MAX_ROWS).map(|(row, spec, rule)| describe(cx.view, row, spec, rule));
    let constraints = rows.collect();
    let truncated = total_constraints > MAX_ROWS;
    Ok(json!(PodTopologySpreadState { constraints, total_constraints, truncated }))
}

/// Completes a row whose pods are counted.
fn describe(view: View<'_>, row: SpreadUse, spec: &PodSpec, rule: &SpreadConstraint) -> SpreadUse {
    let selector = selector_text(rule.selector.as_ref());
    let mut domains = counts_by_value(view, spec, rule);
    let matching_pods = domains.iter().map(|d| u64::from(d.pods)).sum();
    let n_domains = domains.len();
    domains.sort_by(|a, b| (a.pods, &a.value).cmp(&(b.pods, &b.value)));
    let emptiest = domains[..n_domains.min(MAX_EXAMPLES)].to_vec();
    domains.sort_by(|a, b| (b.pods, &a.value).cmp(&(a.pods, &b.value)));
    let fullest = domains[..n_domains.min(MAX_EXAMPLES)].to_vec();
    SpreadUse {
        namespace: spec.namespace.to_string(),
        topology_key: rule.topology_key.to_string(),
        when_unsatisfiable: when_unsatisfiable(rule),
        max_skew: rule.max_skew,
        min_domains: rule.min_domains,
        selector,
        matching_pods,
        domains: n_domains,
        fewest: emptiest.first().map_or(0, |d| d.pods),
        most: fullest.first().map_or(0, |d| d.pods),
        emptiest,
        fullest,
        ..row
    }
}

/// Counts matching pods per value, over all nodes with the label.
fn counts_by_value(view: View<'_>, spec: &PodSpec, rule: &SpreadConstraint) -> Vec<DomainCount> {
    let Some(relations) = view.state::<Relations>() else { return Vec::new() };
    let column = relations.topology.column(&rule.topology_key);
    let mut counts = vec![0u32; column.len()];
    for_each_matching(relations, spec, rule.selector.as_ref(), |class| {
        class.counts.for_each(|node, pods| counts[column.of(node) as usize] += pods);
    });
    let of =
        |value| Some(DomainCount { value: column.name(value)?.to_string(), pods: counts[value as usize] });
    column.values().filter(|v| *v != NO_VALUE).filter_map(of).collect()
}

pub(super) fn read_pod(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let record = pod_of(cx)?;
    let spec = &*record.pod.spec;
    let mut body = SpreadOfPod {
        pod: record.pod.key.to_string(),
        is_defaulted: spec.spread.is_empty(),
        ..SpreadOfPod::default()
    };
    for is_hard in [true, false] {
        let all = constraints(cx.view, spec, &SYSTEM, is_hard);
        for (constraint, domains) in all.iter().zip(Domains::count(cx.view, spec, &all)) {
            add_constraint(&mut body, spec, constraint, &domains);
        }
    }
    (body.domains, body.truncated) = cut(body.domains, MAX_ROWS);
    Ok(json!(body))
}

fn add_constraint(body: &mut SpreadOfPod, spec: &PodSpec, constraint: &Constraint<'_>, domains: &Domains) {
    let rule = constraint.rule;
    let row = |value| {
        let skew = domains.skew(value);
        Some(SpreadDomain {
            constraint: body.constraints.len(),
            topology_key: rule.topology_key.to_string(),
            value: domains.column.name(value)?.to_string(),
            matching_pods: domains.matching(value)?,
            skew,
            is_within: skew <= i64::from(rule.max_skew),
        })
    };
    let mut rows: Vec<SpreadDomain> = domains.values().filter_map(row).collect();
    rows.sort_by(|a, b| a.value.cmp(&b.value));
    body.domains.append(&mut rows);
    body.constraints.push(SpreadOfConstraint {
        topology_key: rule.topology_key.to_string(),
        when_unsatisfiable: when_unsatisfiable(rule),
        max_skew: rule.max_skew,
        min_domains: rule.min_domains,
        selector: selector_text(constraint.selector.as_deref()),
        counts_itself: constraint.counts(&spec.labels),
        domains: domains.n_domains,
        global_minimum: if domains.n_domains == 0 { 0 } else { domains.minimum },
    });
}
