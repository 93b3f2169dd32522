//! Labels that a node lacks, or has, for a pod to accept it: the cheapest change that satisfies `nodeSelector` and one
//! term of the required node affinity.
//!
//! Labels that Kubernetes or a cloud provider sets are never changed: others rely on them, and most would be set back.

use std::collections::{BTreeMap, BTreeSet};

use pellucid_api::rest::simulate::{EditBody, LabelNode, RemoveLabel};
use pellucid_cycle::what_if::edit::Edit;
use pellucid_model::selector::{Labels, NodeAffinity, Operator, Requirement};
use pellucid_model::{Name, Node};

use super::parts::Part;

/// Costs of adding, removing and overwriting a label.
const ADD: u32 = 25;
const REMOVE: u32 = 30;
const OVERWRITE: u32 = 35;

/// The new value of each label that changes; `None` removes it.
type Changes = BTreeMap<Name, Option<Name>>;

/// Returns the cheapest change of a node's labels with which a pod accepts the node. Returns `None` when there is none,
/// or when the node is accepted as it is.
pub(super) fn cheapest(affinity: &NodeAffinity, node: &Node) -> Option<(u32, Changes)> {
    let selector: Vec<Requirement> = affinity.selector.iter().map(equal).collect();
    let of_term = |expressions: &[Requirement]| {
        let all: Vec<&Requirement> = selector.iter().chain(expressions).collect();
        let changes = changes(&all, node)?;
        let labels = changed(&node.labels, &changes);
        let is_enough = !changes.is_empty() && affinity.accepts(&node.name, &labels);
        is_enough.then(|| (changes.iter().map(|change| cost(node, change)).sum(), changes))
    };
    match &affinity.required {
        None => of_term(&[]),
        // The first of equally cheap terms.
        Some(terms) => {
            terms.iter().filter_map(|term| of_term(&term.expressions)).min_by_key(|(cost, _)| *cost)
        }
    }
}

/// Returns the parts that change the labels of a node as [`cheapest`] says.
pub(super) fn parts(affinity: &NodeAffinity, node: &Node) -> Option<Vec<Part>> {
    let (_, changes) = cheapest(affinity, node)?;
    Some(changes.iter().map(|change| part(node, change)).collect())
}

fn equal((key, value): &(Name, Name)) -> Requirement {
    Requirement { key: key.clone(), operator: Operator::In, values: Box::new([value.clone()]) }
}

fn changed(labels: &Labels, changes: &Changes) -> Labels {
    let kept = labels.iter().filter(|(key, _)| !changes.contains_key(key)).cloned();
    let set = changes.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
    Labels::new(kept.chain(set))
}

/// Returns the changes with which a node satisfies all requirements, or `None` when a label would have to change that
/// others own, or when no value does.
fn changes(all: &[&Requirement], node: &Node) -> Option<Changes> {
    let mut changes = Changes::new();
    for key in all.iter().map(|r| &r.key).collect::<BTreeSet<_>>() {
        let on_key: Vec<&Requirement> = all.iter().copied().filter(|r| r.key == *key).collect();
        let satisfies = |value: Option<&Name>| on_key.iter().all(|r| r.matches(value));
        if satisfies(node.labels.get(key)) {
            continue;
        }
        let removed = node.labels.get(key).is_some().then_some(None);
        let values = on_key.iter().flat_map(|r| values(r)).map(Some);
        let value = removed.into_iter().chain(values).find(|value| satisfies(value.as_ref()))?;
        if !may_change(key) {
            return None;
        }
        changes.insert(key.clone(), value);
    }
    Some(changes)
}

/// Returns values that may satisfy a requirement.
fn values(of: &Requirement) -> Vec<Name> {
    let beside = |by: i64| -> Vec<Name> {
        let bound = of.values.first().and_then(|bound| bound.parse::<i64>().ok());
        // No label has a negative value, because values begin with a letter or a digit.
        let value = bound.and_then(|bound| bound.checked_add(by)).filter(|value| *value >= 0);
        value.map(|value| Name::new(&value.to_string())).into_iter().collect()
    };
    match of.operator {
        Operator::In => of.values.to_vec(),
        Operator::Exists => vec!["true".into()],
        Operator::Gt => beside(1),
        Operator::Lt => beside(-1),
        Operator::NotIn | Operator::DoesNotExist => Vec::new(),
    }
}

/// Returns whether an administrator may set a label of a node: Kubernetes and cloud providers own theirs.
pub(super) fn may_change(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return true };
    let is_of =
        |owner: &str| domain.strip_suffix(owner).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let owners = ["kubernetes.io", "k8s.io", "karpenter.sh", "cloud.google.com", "eks.amazonaws.com"];
    domain == "node-role.kubernetes.io" || !owners.into_iter().chain(["kubernetes.azure.com"]).any(is_of)
}

fn cost(node: &Node, (key, value): (&Name, &Option<Name>)) -> u32 {
    match (node.labels.get(key), value) {
        (_, None) => REMOVE,
        (None, Some(_)) => ADD,
        (Some(_), Some(_)) => OVERWRITE,
    }
}

fn part(node: &Node, change: (&Name, &Option<Name>)) -> Part {
    let (key, value) = change;
    let name = &node.name;
    let Some(value) = value else {
        let edit = Edit::RemoveLabel { node: name.clone(), key: key.clone() };
        let body = EditBody::RemoveLabel(RemoveLabel { node: name.to_string(), key: key.to_string() });
        let old = node.labels.get(key).map_or("", Name::as_str);
        let text = format!("remove label {key}={old} from node {name}");
        return Part::new(edit, body, text, REMOVE)
            .with_command(format!("kubectl label nodes {name} {key}-"));
    };
    let edit = Edit::LabelNode { node: name.clone(), key: key.clone(), value: value.clone() };
    let body = LabelNode { node: name.to_string(), key: key.to_string(), value: value.to_string() };
    let (instead, overwrite) = match node.labels.get(key) {
        Some(old) => (format!(" instead of {key}={old}"), " --overwrite"),
        None => (String::new(), ""),
    };
    let text = format!("label node {name} with {key}={value}{instead}");
    let command = format!("kubectl label nodes {name} {key}={value}{overwrite}");
    Part::new(edit, EditBody::LabelNode(body), text, cost(node, change)).with_command(command)
}

#[cfg(test)]
mod tests {
    use pellucid_model::selector::NodeSelectorTerm;

    use super::*;

    fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        Requirement { key: key.into(), operator, values: values.iter().map(|v| Name::new(v)).collect() }
    }

    fn node(labels: &[(&str, &str)]) -> Node {
        let labels = labels.iter().map(|(key, value)| (Name::new(key), Name::new(value)));
        Node { name: "n".into(), labels: Labels::new(labels), ..Node::default() }
    }

    fn said(terms: &[&[Requirement]], selector: &[(&str, &str)], node: &Node) -> Vec<String> {
        let term = |of: &&[Requirement]| NodeSelectorTerm { expressions: (*of).into(), ..Default::default() };
        let affinity = NodeAffinity {
            selector: selector.iter().map(|(k, v)| (Name::new(k), Name::new(v))).collect(),
            required: (!terms.is_empty()).then(|| terms.iter().map(term).collect()),
            ..NodeAffinity::default()
        };
        let parts = parts(&affinity, node).unwrap_or_default();
        parts.iter().map(|part| part.command.clone().expect("a command")).collect()
    }

    #[test]
    fn every_operator_has_its_change() {
        use Operator::{DoesNotExist, Exists, Gt, In, Lt, NotIn};
        let labelled = node(&[("disk", "hdd"), ("gen", "5")]);
        for (of, want) in [
            (requirement("tier", In, &["a", "b"]), "kubectl label nodes n tier=a"),
            (requirement("disk", In, &["ssd"]), "kubectl label nodes n disk=ssd --overwrite"),
            (requirement("tier", Exists, &[]), "kubectl label nodes n tier=true"),
            (requirement("gen", Gt, &["7"]), "kubectl label nodes n gen=8 --overwrite"),
            (requirement("gen", Lt, &["3"]), "kubectl label nodes n gen=2 --overwrite"),
            (requirement("disk", NotIn, &["hdd"]), "kubectl label nodes n disk-"),
            (requirement("disk", DoesNotExist, &[]), "kubectl label nodes n disk-"),
        ] {
            assert_eq!(said(&[std::slice::from_ref(&of)], &[], &labelled), [want], "{of:?}");
        }
        let none = requirement("gen", Lt, &["0"]);
        assert!(said(&[&[none]], &[], &labelled).is_empty(), "no label has a negative value");
    }

    #[test]
    fn the_cheapest_term_counts_and_the_selector_with_each() {
        use Operator::{In, NotIn};
        let (two, one) = (
            [requirement("a", In, &["1"]), requirement("b", In, &["1"])],
            [requirement("c", In, &["x", "y"]), requirement("c", NotIn, &["x"])],
        );
        let plain = node(&[]);
        assert_eq!(said(&[&two, &one], &[], &plain), ["kubectl label nodes n c=y"]);
        let both = said(&[&two, &one], &[("pool", "gpu")], &plain);
        assert_eq!(both, ["kubectl label nodes n c=y", "kubectl label nodes n pool=gpu"]);
        let conflict = [requirement("pool", In, &["cpu"])];
        assert!(said(&[&conflict], &[("pool", "gpu")], &plain).is_empty());
    }

    #[test]
    fn labels_of_others_stay() {
        for key in [
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
            "node.kubernetes.io/instance-type",
            "failure-domain.beta.kubernetes.io/zone",
            "beta.kubernetes.io/arch",
            "eks.amazonaws.com/nodegroup",
        ] {
            assert!(!may_change(key), "{key}");
            let requirement = requirement(key, Operator::In, &["x"]);
            assert!(said(&[&[requirement]], &[], &node(&[(key, "y")])).is_empty(), "{key}");
        }
        for key in ["pool", "example.com/pool", "node-role.kubernetes.io/gpu", "notkubernetes.io/x"] {
            assert!(may_change(key), "{key}");
        }
    }
}
