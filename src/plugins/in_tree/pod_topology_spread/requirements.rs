//! Words for spread constraints: each domain's matching pods, the fewest, and the skew that the pod would make.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::{RequirementDetail, SpreadNumbers};
use pellucid_framework::View;
use pellucid_model::{NodeIdx, PodSpec, cancellation};

use super::super::relations::{NO_VALUE, selector_text};
use super::NAME;
use super::constraints::Constraint;
use super::domains::Domains;
use pellucid_plugin_helper::describing::{
    MAX_REQUIREMENTS, ask_meant, detail, meant, most_frequent, objects, shown, tally, values_text,
};

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

#[cfg(test)]
mod tests {
    use pellucid_model::relations::{NodeInclusion, SpreadConstraint};

    use super::*;
    use crate::pod_topology_spread::args;
    use crate::pod_topology_spread::constraints::constraints;
    use crate::relations::testing::{in_zone, labelled, pairs, selecting};
    use crate::testing::{TestCluster, cluster_of};

    fn constraint(key: &str, app: &str, min_domains: i32) -> SpreadConstraint {
        SpreadConstraint {
            max_skew: 1,
            topology_key: key.into(),
            is_hard: true,
            selector: Some(selecting("app", app)),
            min_domains,
            node_affinity_policy: NodeInclusion::Honor,
            node_taints_policy: NodeInclusion::Ignore,
        }
    }

    fn spec(all: &[SpreadConstraint]) -> PodSpec {
        PodSpec {
            namespace: "d".into(),
            labels: pairs(&[("app", "web")]),
            spread: all.into(),
            ..PodSpec::default()
        }
    }

    /// Describes what a pending pod with this spec is refused for. It stays, so that its selectors are known.
    fn described(cluster: &mut TestCluster, spec: &PodSpec) -> Vec<RequirementDetail> {
        let spec = &cluster.see(labelled("asks", &[("app", "web")], spec.clone())).spec;
        let defaults = args::read(&serde_json::Value::Null).expect("valid");
        let hard = constraints(cluster.view(), spec, &defaults, true);
        of(cluster.view(), spec, &hard, cluster.view().nodes())
    }

    #[test]
    fn domains_and_skew_are_told_and_too_few_domains_count_as_empty() {
        let zone = "topology.kubernetes.io/zone";
        let mut cluster = cluster_of([in_zone("a1", "za"), in_zone("b1", "zb"), in_zone("none", "")]);
        cluster.put(("app", "web"), &["a1", "a1", "b1"]);
        let all = described(&mut cluster, &spec(&[constraint(zone, "web", 3)]));
        let [of] = &all[..] else { panic!("one constraint refuses: {all:?}") };
        let numbers = of.spread.clone().expect("it has numbers");
        assert_eq!((numbers.domains, numbers.minimum, numbers.least_skew), (2, 0, Some(2)));
        assert_eq!((numbers.nodes_without_label, of.matching_pods, of.nodes), (1, Some(3), 0));
        let want = "matching pods: za (2), zb (1); only 2 of minDomains 3, so the fewest counts as 0; where it is \
                    refused the skew would be 2 or more; 1 of 3 nodes have no label topology.kubernetes.io/zone";
        assert!(of.text.ends_with(want), "{}", of.text);
        let hard = spec(&[constraint(zone, "web", 1)]);
        let defaults = args::read(&serde_json::Value::Null).expect("valid");
        let own = |node: &str| {
            let all = constraints(cluster.view(), &hard, &defaults, true);
            on_node(cluster.view(), &hard, &all, cluster.idx(node))
        };
        let a1 = "topology.kubernetes.io/zone za has 2 matching pods, the fewest is 1: skew 2 of at most 1";
        assert_eq!(own("a1").as_deref(), Some(a1));
        assert_eq!(own("none").as_deref(), Some("has no label topology.kubernetes.io/zone"));
        assert_eq!(own("b1"), None);
    }

    #[test]
    fn a_key_that_no_node_has_is_asked_about() {
        let mut cluster = cluster_of([in_zone("a1", "za")]);
        let all = described(&mut cluster, &spec(&[constraint("zone", "web", 1)]));
        let want = "0 of 1 nodes; 1 of 1 nodes have no label zone; did you mean topology.kubernetes.io/zone?";
        assert!(all[0].text.ends_with(want), "{}", all[0].text);
        assert_eq!(all[0].code, "SpreadLabelMissing");
    }

    #[test]
    fn constraints_with_one_key_are_told_apart() {
        let spec =
            spec(&[constraint("k", "web", 1), constraint("k", "db", 1), constraint("other", "web", 1)]);
        let cluster = cluster_of([]);
        let defaults = args::read(&serde_json::Value::Null).expect("valid");
        let all = constraints(cluster.view(), &spec, &defaults, true);
        assert_eq!(
            (0..3).map(|at| subject(&all, at)).collect::<Vec<_>>(),
            ["k of app=web", "k of app=db", "other"]
        );
    }
}
