//! Labels, label selectors and node selectors, matched as in `k8s.io/component-helpers` and `apimachinery`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Name;

/// Labels, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Labels(Arc<[(Name, Name)]>);

impl Labels {
    /// Makes labels from pairs in any order; a repeated key keeps its last value.
    #[inline]
    pub fn new(pairs: impl IntoIterator<Item = (Name, Name)>) -> Self {
        let mut all: Vec<_> = pairs.into_iter().collect();
        all.reverse();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.dedup_by(|later, kept| later.0 == kept.0);
        Self(all.into())
    }

    /// Returns the value of a key that is no interned name.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known.as_str() == key).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a label. Scans linearly: nodes carry few labels, and comparing names compares pointers.
    #[inline]
    pub fn get(&self, key: &Name) -> Option<&Name> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Returns whether there is no label.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the labels in key order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &(Name, Name)> {
        self.0.iter()
    }

    /// Returns the same labels with one label added or changed.
    #[inline]
    pub fn with(&self, key: Name, value: Name) -> Self {
        Self::new(self.0.iter().cloned().chain([(key, value)]))
    }
}

/// The operator of a [`Requirement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// The value is one of the listed values.
    In,
    /// The value is none of the listed values, or the key is absent.
    NotIn,
    /// The key is present.
    Exists,
    /// The key is absent.
    DoesNotExist,
    /// The value, an integer, is greater than the listed one.
    Gt,
    /// The value, an integer, is less than the listed one.
    Lt,
}

/// One `matchExpressions` entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Requirement {
    /// Label key that the requirement reads.
    pub key: Name,
    /// How the label is compared with the values.
    pub operator: Operator,
    /// Values to compare with; empty for `Exists` and `DoesNotExist`.
    pub values: Box<[Name]>,
}

impl Requirement {
    /// Returns whether a label with this value (`None` when absent) satisfies the requirement.
    pub fn matches(&self, value: Option<&Name>) -> bool {
        match self.operator {
            Operator::In => value.is_some_and(|v| self.values.contains(v)),
            Operator::NotIn => value.is_none_or(|v| !self.values.contains(v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => self.compare(value, |have, bound| have > bound),
            Operator::Lt => self.compare(value, |have, bound| have < bound),
        }
    }

    /// Compares for Gt and Lt, which need exactly one value and 64-bit integers on both sides; anything else fails.
    fn compare(&self, value: Option<&Name>, test: impl Fn(i64, i64) -> bool) -> bool {
        let [bound] = &*self.values else { return false };
        match (value.and_then(|v| v.parse().ok()), bound.parse().ok()) {
            (Some(have), Some(bound)) => test(have, bound),
            _ => false,
        }
    }
}

/// A label selector: all requirements must hold. A selector without requirements selects everything; an absent selector
/// (`None` where one is optional) selects nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LabelSelector {
    requirements: Box<[Requirement]>,
}

impl LabelSelector {
    /// Makes a selector; a `matchLabels` pair is `In` with one value. The order of requirements does not matter.
    #[inline]
    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut all: Vec<Requirement> = requirements.into_iter().collect();
        all.sort_by(|a, b| (&a.key, a.operator as u8, &a.values).cmp(&(&b.key, b.operator as u8, &b.values)));
        all.dedup();
        Self { requirements: all.into() }
    }

    /// Makes a selector for labels that have all these pairs.
    #[inline]
    pub fn of_pairs<'a>(pairs: impl IntoIterator<Item = &'a (Name, Name)>) -> Self {
        let exactly = |(key, value): &(Name, Name)| Requirement {
            key: key.clone(),
            operator: Operator::In,
            values: Box::new([value.clone()]),
        };
        Self::new(pairs.into_iter().map(exactly))
    }

    /// Returns whether labels are selected.
    #[inline]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|r| r.matches(labels.get(&r.key)))
    }

    /// Returns whether the selector has no requirements and so selects everything.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns the requirements, sorted.
    #[inline]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Iterates over the label keys that the selector reads.
    #[inline]
    pub fn keys(&self) -> impl Iterator<Item = &Name> {
        self.requirements.iter().map(|r| &r.key)
    }
}

/// One node selector term: all its requirements must hold. A term without requirements matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeSelectorTerm {
    /// `matchExpressions`: requirements on labels.
    pub expressions: Box<[Requirement]>,
    /// `matchFields`: requirements on `metadata.name`, `In` or `NotIn` with one value.
    pub fields: Box<[Requirement]>,
}

impl NodeSelectorTerm {
    /// Returns whether a node with this name and these labels satisfies the term.
    #[inline]
    pub fn matches(&self, node: &Name, labels: &Labels) -> bool {
        let is_empty = self.expressions.is_empty() && self.fields.is_empty();
        !is_empty
            && self.expressions.iter().all(|r| r.matches(labels.get(&r.key)))
            && self.fields.iter().all(|r| &*r.key == "metadata.name" && r.matches(Some(node)))
    }
}

/// A preferred node selector term.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PreferredTerm {
    /// Weight, 1 to 100.
    pub weight: i32,
    /// The term; an empty one matches nothing.
    pub term: NodeSelectorTerm,
}

/// `nodeSelector` and node affinity of a pod, or the affinity that a profile adds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeAffinity {
    /// `spec.nodeSelector`: every pair must be on the node.
    pub selector: Box<[(Name, Name)]>,
    /// Required terms, one of which must match. `None` requires nothing; an empty list matches nothing.
    pub required: Option<Box<[NodeSelectorTerm]>>,
    /// Terms that add their weight to the score when they match.
    pub preferred: Box<[PreferredTerm]>,
}

impl NodeAffinity {
    /// Returns whether the required part accepts a node.
    #[inline]
    pub fn accepts(&self, node: &Name, labels: &Labels) -> bool {
        self.selector.iter().all(|(k, v)| labels.get(k) == Some(v))
            && self.required.as_ref().is_none_or(|terms| terms.iter().any(|t| t.matches(node, labels)))
    }

    /// Returns the sum of the weights of the preferred terms that match.
    #[inline]
    pub fn preference(&self, node: &Name, labels: &Labels) -> i64 {
        let matching = self.preferred.iter().filter(|p| p.weight != 0 && p.term.matches(node, labels));
        matching.map(|p| i64::from(p.weight)).sum()
    }

    /// Returns whether there is a required part.
    #[inline]
    pub fn has_required(&self) -> bool {
        !self.selector.is_empty() || self.required.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        Requirement { key: key.into(), operator, values: values.iter().map(|v| Name::new(v)).collect() }
    }

    #[test]
    fn requirements() {
        use Operator::*;
        let labels = Labels::new([("gen".into(), "5".into()), ("disk".into(), "ssd".into())]);
        for (key, operator, values, want) in [
            ("disk", In, &["ssd", "hdd"][..], true),
            ("disk", In, &["hdd"], false),
            ("none", In, &["hdd"], false),
            ("none", NotIn, &["hdd"], true),
            ("disk", NotIn, &["ssd"], false),
            ("disk", Exists, &[], true),
            ("disk", DoesNotExist, &[], false),
            ("none", DoesNotExist, &[], true),
            ("gen", Gt, &["4"], true),
            ("gen", Gt, &["5"], false),
            ("gen", Lt, &["6"], true),
            ("disk", Gt, &["1"], false),
            ("gen", Gt, &["x"], false),
        ] {
            let r = requirement(key, operator, values);
            assert_eq!(r.matches(labels.get(&r.key)), want, "{key} {operator:?} {values:?}");
        }
    }

    #[test]
    fn label_selectors() {
        let labels = Labels::new([("app".into(), "web".into()), ("tier".into(), "front".into())]);
        assert!(LabelSelector::default().matches(&labels), "an empty selector selects everything");
        let app = requirement("app", Operator::In, &["web"]);
        let not = requirement("track", Operator::NotIn, &["canary"]);
        let both = LabelSelector::new([not.clone(), app.clone(), app.clone()]);
        assert!(both.matches(&labels), "an absent key is in no list");
        assert_eq!(both, LabelSelector::new([app, not]), "neither order nor repeats count");
        assert_eq!(both.keys().count(), 2);
        let pairs = LabelSelector::of_pairs(labels.iter());
        assert!(pairs.matches(&labels) && !pairs.matches(&Labels::default()));
    }

    #[test]
    fn an_empty_term_matches_nothing_and_terms_are_alternatives() {
        let labels = Labels::new([("a".into(), "1".into())]);
        let node = Name::new("n");
        let empty = NodeSelectorTerm::default();
        assert!(!empty.matches(&node, &labels));
        let by_name = NodeSelectorTerm {
            fields: Box::new([requirement("metadata.name", Operator::In, &["n"])]),
            ..Default::default()
        };
        let affinity =
            NodeAffinity { required: Some(Box::new([empty.clone(), by_name])), ..Default::default() };
        assert!(affinity.accepts(&node, &labels));
        assert!(!affinity.accepts(&Name::new("m"), &labels));
        let nothing = NodeAffinity { required: Some(Box::new([])), ..Default::default() };
        assert!(!nothing.accepts(&node, &labels));
    }

    #[test]
    fn a_repeated_label_keeps_its_last_value() {
        let labels = Labels::new([("a".into(), "1".into()), ("a".into(), "2".into())]);
        assert_eq!(labels.get(&"a".into()), Some(&"2".into()));
        assert_eq!(labels.iter().count(), 1);
    }
}
