//! Words for nodeSelectors and node affinity: each pair and each expression with the nodes that it alone leaves, the
//! values that are there, and did you mean.

use std::collections::BTreeMap;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::{DidYouMean, RequirementDetail};
use pellucid_framework::View;
use pellucid_model::selector::{NodeAffinity, Operator, Requirement};
use pellucid_model::{Name, Node, NodeIdx, cancellation};

use super::super::relations::requirement_text;
use super::NAME;
use pellucid_plugin_helper::describing::{
    MAX_REQUIREMENTS, ask_meant, detail, meant, most_frequent, objects, shown, tally, values_text,
};

/// One pair of a nodeSelector, or one expression of a required term.
struct Part {
    code: ReasonCode,
    /// Where the pod states it: `nodeSelector`, or a term of its node affinity.
    place: String,
    requirement: Requirement,
    /// Whether the requirement is about the node's name instead of a label.
    is_field: bool,
}

impl Part {
    fn value<'a>(&self, node: &'a Node) -> Option<&'a Name> {
        if self.is_field { Some(&node.name) } else { node.labels.get(&self.requirement.key) }
    }

    fn holds(&self, node: &Node) -> bool {
        self.requirement.matches(self.value(node))
    }
}

/// Returns the required parts of an affinity, in the order in which the pod states them.
fn parts(affinity: &NodeAffinity, code: ReasonCode) -> Vec<Part> {
    let make = |place: &str, requirement: &Requirement, is_field| Part {
        code,
        place: place.into(),
        requirement: requirement.clone(),
        is_field,
    };
    let pair = |(key, value): &(Name, Name)| {
        let (key, values) = (key.clone(), [value.clone()].into());
        make("nodeSelector", &Requirement { key, operator: Operator::In, values }, false)
    };
    let mut all: Vec<Part> = affinity.selector.iter().map(pair).collect();
    let terms = affinity.required.as_deref().unwrap_or_default();
    for (at, term) in terms.iter().enumerate() {
        let place = match (code, terms.len()) {
            (ReasonCode::AddedAffinityMismatch, 1) => "addedAffinity of the profile".to_owned(),
            (ReasonCode::AddedAffinityMismatch, n) => {
                format!("addedAffinity of the profile, term {} of {n}", at + 1)
            }
            (_, 1) => "node affinity".to_owned(),
            (_, n) => format!("node affinity, term {} of {n}", at + 1),
        };
        all.extend(term.expressions.iter().map(|r| make(&place, r, false)));
        all.extend(term.fields.iter().map(|r| make(&place, r, true)));
    }
    all
}

/// Describes each part that some refusing node does not fulfil, and what the parts leave together when each alone leaves
/// some nodes.
pub(super) fn of(
    view: View<'_>,
    (added, own): (&NodeAffinity, &NodeAffinity),
    refused: &[NodeIdx],
) -> Vec<RequirementDetail> {
    let mut all = Vec::new();
    for (affinity, code) in
        [(added, ReasonCode::AddedAffinityMismatch), (own, ReasonCode::NodeAffinityMismatch)]
    {
        let is_refusing = |n: &NodeIdx| {
            view.cluster().node(*n).is_some_and(|node| !affinity.accepts(&node.name, &node.labels))
        };
        let refused: Vec<NodeIdx> = refused.iter().copied().filter(is_refusing).collect();
        if refused.is_empty() {
            continue;
        }
        let parts = parts(affinity, code);
        let fails = |part: &&Part| {
            refused.iter().any(|n| view.cluster().node(*n).is_some_and(|node| !part.holds(node)))
        };
        let described: Vec<RequirementDetail> =
            parts.iter().filter(fails).take(MAX_REQUIREMENTS).map(|part| describe(view, part)).collect();
        let is_joint = parts.len() > 1 && described.iter().all(|of| of.nodes > 0);
        all.extend(described);
        all.extend(is_joint.then(|| together(view, affinity, code)));
    }
    all
}

fn describe(view: View<'_>, part: &Part) -> RequirementDetail {
    cancellation::check();
    let requirement = &part.requirement;
    let name = format!("{} {}", part.place, requirement_text(requirement));
    let mut of = detail(view, NAME, part.code, name);
    of.nodes = objects(view).filter(|(_, node)| part.holds(node)).count();
    of.key = Some(requirement.key.to_string());
    of.operator = Some(operator(requirement.operator).into());
    of.values = requirement.values.iter().map(ToString::to_string).collect();
    of.text = format!("{}: {} of {} nodes", of.requirement, of.nodes, of.total_nodes);
    let values = tally(objects(view).filter_map(|(_, node)| part.value(node)));
    if part.is_field {
        of.did_you_mean = questions(requirement, &values);
    } else if values.is_empty() {
        of.text += "; no node has this label";
        let keys = tally(objects(view).flat_map(|(_, node)| node.labels.iter().map(|(key, _)| key)));
        of.did_you_mean = meant(&requirement.key, &keys).into_iter().collect();
    } else {
        of.did_you_mean = questions(requirement, &values);
        (of.found, of.truncated) = most_frequent(values);
        of.text += &format!("; values there: {}", values_text(&of.found, of.truncated));
    }
    ask_meant(&mut of.text, &of.did_you_mean);
    of
}

/// Returns what the values of an `In` requirement could mean, if no node has any of them.
fn questions(requirement: &Requirement, values: &BTreeMap<&str, usize>) -> Vec<DidYouMean> {
    let is_known = |value: &Name| values.contains_key(value.as_str());
    if requirement.operator != Operator::In || requirement.values.iter().any(is_known) {
        return Vec::new();
    }
    requirement.values.iter().take(MAX_REQUIREMENTS).filter_map(|value| meant(value, values)).collect()
}

fn together(view: View<'_>, affinity: &NodeAffinity, code: ReasonCode) -> RequirementDetail {
    let mut of = detail(
        view,
        NAME,
        code,
        match code {
            ReasonCode::AddedAffinityMismatch => "addedAffinity of the profile as a whole",
            _ => "nodeSelector and node affinity together",
        },
    );
    of.nodes = objects(view).filter(|(_, node)| affinity.accepts(&node.name, &node.labels)).count();
    of.text = format!("{}: {} of {} nodes", of.requirement, of.nodes, of.total_nodes);
    of
}

fn operator(operator: Operator) -> &'static str {
    match operator {
        Operator::In => "In",
        Operator::NotIn => "NotIn",
        Operator::Exists => "Exists",
        Operator::DoesNotExist => "DoesNotExist",
        Operator::Gt => "Gt",
        Operator::Lt => "Lt",
    }
}

/// Describes the parts that one node does not fulfil, with the node's own values.
pub(super) fn on_node(
    view: View<'_>,
    (added, own): (&NodeAffinity, &NodeAffinity),
    node: NodeIdx,
) -> Option<String> {
    let node = view.cluster().node(node)?;
    let refusing = [(added, ReasonCode::AddedAffinityMismatch), (own, ReasonCode::NodeAffinityMismatch)];
    let refusing = refusing.into_iter().filter(|(affinity, _)| !affinity.accepts(&node.name, &node.labels));
    let failing =
        refusing.flat_map(|(affinity, code)| parts(affinity, code)).filter(|part| !part.holds(node));
    let word = |part: Part| {
        let has = part.value(node).map_or("not there", |value| shown(value));
        let (place, key) = (&part.place, &part.requirement.key);
        format!("{place} {}: {key} is {has}", requirement_text(&part.requirement))
    };
    let all: Vec<String> = failing.take(MAX_REQUIREMENTS).map(word).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

#[cfg(test)]
mod tests {
    use pellucid_model::selector::{Labels, NodeSelectorTerm};

    use super::*;
    use crate::testing::{TestCluster, cluster_of, names, node};

    fn labelled(name: &str, labels: &[(&str, &str)]) -> Node {
        let labels = Labels::new(labels.iter().map(|(k, v)| (Name::new(k), Name::new(v))));
        Node { labels, ..node(name) }
    }

    fn cluster() -> TestCluster {
        let zone = "topology.kubernetes.io/zone";
        cluster_of([
            labelled("n1", &[("disktype", "ssd"), (zone, "a")]),
            labelled("n2", &[("disktype", "ssd"), (zone, "a")]),
            labelled("n3", &[("disktype", "ssd"), (zone, "b")]),
            labelled("n4", &[("disktype", "hdd"), (zone, "b")]),
            labelled("n5", &[("disktype", "hdd")]),
        ])
    }

    fn texts(affinity: &NodeAffinity) -> Vec<String> {
        let cluster = cluster();
        let none = NodeAffinity::default();
        let all = of(cluster.view(), (&none, affinity), cluster.view().nodes());
        all.into_iter().map(|of| of.text).collect()
    }

    fn selector(pairs: &[(&str, &str)]) -> NodeAffinity {
        let selector = pairs.iter().map(|(k, v)| (Name::new(k), Name::new(v))).collect();
        NodeAffinity { selector, ..NodeAffinity::default() }
    }

    #[test]
    fn a_typo_in_a_node_selector_is_found() {
        assert_eq!(
            texts(&selector(&[("disktype", "sdd")])),
            ["nodeSelector disktype=sdd: 0 of 5 nodes; values there: ssd (3), hdd (2); did you mean ssd?"]
        );
        assert_eq!(
            texts(&selector(&[("disktyp", "ssd")])),
            ["nodeSelector disktyp=ssd: 0 of 5 nodes; no node has this label; did you mean disktype?"]
        );
        let zone = "nodeSelector zone=a: 0 of 5 nodes; no node has this label";
        assert_eq!(
            texts(&selector(&[("zone", "a")])),
            [format!("{zone}; did you mean topology.kubernetes.io/zone?")]
        );
    }

    #[test]
    fn pairs_that_exclude_each_other_say_so() {
        let both = selector(&[("disktype", "hdd"), ("topology.kubernetes.io/zone", "a")]);
        assert_eq!(
            texts(&both),
            [
                "nodeSelector disktype=hdd: 2 of 5 nodes; values there: ssd (3), hdd (2)",
                "nodeSelector topology.kubernetes.io/zone=a: 2 of 5 nodes; values there: a (2), b (2)",
                "nodeSelector and node affinity together: 0 of 5 nodes",
            ]
        );
    }

    #[test]
    fn each_expression_of_each_term_stands_alone() {
        let expression = |key: &str, operator, values: &[&str]| Requirement {
            key: key.into(),
            operator,
            values: names(values),
        };
        let terms = [
            NodeSelectorTerm {
                expressions: [expression("disktype", Operator::In, &["nvme", "hhd"])].into(),
                fields: [].into(),
            },
            NodeSelectorTerm {
                expressions: [].into(),
                fields: [expression("metadata.name", Operator::In, &["n99"])].into(),
            },
        ];
        let affinity = NodeAffinity { required: Some(terms.into()), ..NodeAffinity::default() };
        let cluster = cluster();
        let none = NodeAffinity::default();
        let all = of(cluster.view(), (&none, &affinity), cluster.view().nodes());
        let texts: Vec<&str> = all.iter().map(|of| of.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "node affinity, term 1 of 2 disktype in (nvme,hhd): 0 of 5 nodes; values there: ssd (3), hdd (2); \
                 did you mean hdd?",
                "node affinity, term 2 of 2 metadata.name=n99: 0 of 5 nodes",
            ]
        );
        assert_eq!(
            (all[0].operator.as_deref(), &all[0].values[..]),
            (Some("In"), &["nvme".into(), "hhd".into()][..])
        );
        let own = on_node(
            cluster.view(),
            (&none, &selector(&[("disktype", "ssd"), ("gpu", "1")])),
            cluster.idx("n4"),
        );
        assert_eq!(
            own.as_deref(),
            Some("nodeSelector disktype=ssd: disktype is hdd, nodeSelector gpu=1: gpu is not there")
        );
    }
}
