//! Words for spread constraints: each domain's matching pods, the fewest, and the skew that the pod would make.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::{RequirementDetail, SpreadNumbers};
use pellucid_framework::View;
use pellucid_model::{NodeIdx, PodSpec, cancellation};

use super::super::describing::{
    MAX_REQUIREMENTS, ask_meant, detail, meant, most_frequent, objects, shown, tally, values_text,
};
use super::super::relations::{NO_VALUE, selector_text};
use super::NAME;
use super::constraints::Constraint;
use super::domains::Domains;

/// Returns what tells a constraint from the others: its key, and its selector when another one has the same key.
pub(super) fn subject(all: &[Constraint<'_>], at: usize) -> String {
    let key = &all[at].rule.topology_key;
    let is_alone = all.iter().filter(|other| other.rule.topology_key == *key).count() == 1;
    match is_alone {
        true => key.to_string(),
        false => format!("{key} of {}", selector_text(all[at].selector.as_deref())),
    }
}

/// Describes each constraint that refuses some node.
pub(super) fn of(
    view: View<'_>,
    spec: &PodSpec,
    hard: &[Constraint<'_>],
    refused: &[NodeIdx],
) -> Vec<RequirementDetail> {
    let counted = Domains::count(view, spec, hard);
    let refuses = |(constraint, domains): &(&Constraint<'_>, &Domains)| {
        refused.iter().any(|node| !passes(constraint, domains, *node))
    };
    let all = hard.iter().zip(&counted).filter(refuses).take(MAX_REQUIREMENTS);
    all.map(|(constraint, domains)| describe(view, constraint, domains)).collect()
}

fn passes(constraint: &Constraint<'_>, domains: &Domains, node: NodeIdx) -> bool {
    let value = domains.column.of(node);
    value != NO_VALUE && domains.skew(value) <= i64::from(constraint.rule.max_skew)
}

fn describe(view: View<'_>, constraint: &Constraint<'_>, domains: &Domains) -> RequirementDetail {
    cancellation::check();
    let (key, max_skew) = (&constraint.rule.topology_key, constraint.rule.max_skew);
    let selector = selector_text(constraint.selector.as_deref());
    let name = format!("topology spread of {selector} over {key}, maxSkew {max_skew}");
    let numbers = numbers(view, constraint, domains);
    let code = match numbers.least_skew {
        Some(_) => ReasonCode::SpreadSkewTooLarge,
        None => ReasonCode::SpreadLabelMissing,
    };
    let mut of = detail(view, NAME, code, name);
    of.key = Some(key.to_string());
    of.nodes = view.nodes().iter().filter(|node| passes(constraint, domains, **node)).count();
    let counts = domains
        .values()
        .filter_map(|value| Some((domains.column.name(value)?.as_str(), domains.matching(value)? as usize)));
    (of.found, of.truncated) = most_frequent(counts);
    of.matching_pods =
        Some(domains.values().filter_map(|value| domains.matching(value)).sum::<u32>() as usize);
    of.text = format!("{}: {} of {} nodes", of.requirement, of.nodes, of.total_nodes);
    add_counts(&mut of, &numbers);
    if numbers.nodes_without_label > 0 {
        of.text +=
            &format!("; {} of {} nodes have no label {key}", numbers.nodes_without_label, of.total_nodes);
    }
    if numbers.nodes_without_label == of.total_nodes {
        let keys = tally(objects(view).flat_map(|(_, node)| node.labels.iter().map(|(key, _)| key)));
        of.did_you_mean.extend(meant(key, &keys));
        ask_meant(&mut of.text, &of.did_you_mean);
    }
    of.spread = Some(numbers);
    of
}

fn add_counts(of: &mut RequirementDetail, numbers: &SpreadNumbers) {
    if of.found.is_empty() {
        return;
    }
    of.text += &format!("; matching pods: {}", values_text(&of.found, of.truncated));
    match i64::try_from(numbers.domains).is_ok_and(|n| n < numbers.min_domains) {
        true => {
            let (n, min) = (numbers.domains, numbers.min_domains);
            of.text += &format!("; only {n} of minDomains {min}, so the fewest counts as 0");
        }
        false => of.text += &format!("; the fewest is {}", numbers.minimum),
    }
    if let Some(skew) = numbers.least_skew {
        of.text += &format!("; where it is refused the skew would be {skew} or more");
    }
}

fn numbers(view: View<'_>, constraint: &Constraint<'_>, domains: &Domains) -> SpreadNumbers {
    let max_skew = i64::from(constraint.rule.max_skew);
    let on = |node: &NodeIdx| Some(domains.column.of(*node)).filter(|value| *value != NO_VALUE);
    let skews = view.nodes().iter().filter_map(on).map(|value| domains.skew(value));
    SpreadNumbers {
        max_skew,
        domains: domains.n_domains,
        min_domains: i64::from(constraint.rule.min_domains),
        minimum: domains.minimum,
        least_skew: skews.filter(|skew| *skew > max_skew).min(),
        nodes_without_label: view.nodes().iter().filter(|node| on(node).is_none()).count(),
    }
}

/// Describes the constraints that refuse one node.
pub(super) fn on_node(
    view: View<'_>,
    spec: &PodSpec,
    hard: &[Constraint<'_>],
    node: NodeIdx,
) -> Option<String> {
    let counted = Domains::count(view, spec, hard);
    let word = |(constraint, domains): (&Constraint<'_>, &Domains)| {
        let key = &constraint.rule.topology_key;
        let value = domains.column.of(node);
        let Some(name) = domains.column.name(value).filter(|_| value != NO_VALUE) else {
            return format!("has no label {key}");
        };
        let (pods, skew) = (domains.matching(value).unwrap_or(0), domains.skew(value));
        let (max, least, name) = (constraint.rule.max_skew, domains.minimum, shown(name));
        format!("{key} {name} has {pods} matching pods, the fewest is {least}: skew {skew} of at most {max}")
    };
    let refusing =
        hard.iter().zip(&counted).filter(|(constraint, domains)| !passes(constraint, domains, node));
    let all: Vec<String> = refusing.take(MAX_REQUIREMENTS).map(word).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
