//! Readers of fields that several kinds share.

use std::sync::Arc;

use pellucid_model::Name;
use pellucid_model::selector::{LabelSelector, Labels, NodeSelectorTerm, Operator, Requirement};

use crate::decode::decoder::is_mark;
use crate::decode::lenient::{Fault, Lenient, Shape};
use crate::decode::wire;

/// Reads a required field.
pub(crate) fn required<T: Shape + Clone>(value: &Lenient<T>, field: &str) -> Result<T, Fault> {
    value.read(field)?.cloned().ok_or_else(|| Fault::new(field, "", "missing"))
}

/// Reads an interned text; empty when absent.
pub(crate) fn name(value: &Lenient<Name>, field: &str) -> Result<Name, Fault> {
    Ok(value.read(field)?.cloned().unwrap_or_default())
}

/// Reads an interned text; `None` when absent or empty.
pub(crate) fn filled(value: &Lenient<Name>, field: &str) -> Result<Option<Name>, Fault> {
    Ok(value.read(field)?.filter(|n| !n.is_empty()).cloned())
}

/// Reads a text that is not interned because it rarely repeats; empty when absent.
pub(crate) fn text(value: &Lenient<Arc<str>>, field: &str) -> Result<Arc<str>, Fault> {
    Ok(value.read(field)?.cloned().unwrap_or_else(|| "".into()))
}

/// Reads a boolean; false when absent.
pub(crate) fn flag(value: &Lenient<bool>, field: &str) -> Result<bool, Fault> {
    Ok(value.read(field)?.copied().unwrap_or(false))
}

/// Reads a 32-bit integer; `when_absent` when absent.
pub(crate) fn int32(value: &Lenient<i64>, field: &str, when_absent: i32) -> Result<i32, Fault> {
    let Some(&value) = value.read(field)? else { return Ok(when_absent) };
    i32::try_from(value).map_err(|_| Fault::new(field, &value.to_string(), "not a 32-bit integer"))
}

/// Reads `metadata.labels`.
pub(crate) fn labels(meta: &wire::Meta) -> Result<Labels, Fault> {
    meta.labels.entries("labels", |_, value| Ok(value.clone())).map(Labels::new)
}

/// Reads the annotations that plugins declare.
pub(crate) fn annotations(meta: &wire::Meta) -> Result<Labels, Fault> {
    declared(meta, |key| !is_mark(key))
}

/// Reads the annotations that Bindings of plugins add to pods.
pub(crate) fn marks(meta: &wire::Meta) -> Result<Labels, Fault> {
    declared(meta, is_mark)
}

fn declared(meta: &wire::Meta, is_wanted: impl Fn(&str) -> bool) -> Result<Labels, Fault> {
    let Some(known) = meta.annotations.read("annotations")? else { return Ok(Labels::default()) };
    let mut all = Vec::new();
    for (key, value) in known.declared.iter().filter(|(key, _)| is_wanted(key)) {
        all.push((key.clone(), name(value, key).map_err(|f| f.under("annotations"))?));
    }
    Ok(Labels::new(all))
}

/// Reads a node selector term.
pub(crate) fn term(term: &wire::SelectorTerm) -> Result<NodeSelectorTerm, Fault> {
    Ok(NodeSelectorTerm {
        expressions: term.match_expressions.each("matchExpressions", node_requirement)?.into(),
        fields: term.match_fields.each("matchFields", node_requirement)?.into(),
    })
}

fn node_requirement(requirement: &wire::Requirement) -> Result<Requirement, Fault> {
    let operator = match name(&requirement.operator, "operator")?.as_str() {
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        other => set_operator(other, "unknown node selector operator")?,
    };
    Ok(Requirement {
        key: required(&requirement.key, "key")?,
        operator,
        values: requirement.values.each("values", |value| Ok(value.clone()))?.into(),
    })
}

fn set_operator(word: &str, problem: &str) -> Result<Operator, Fault> {
    Ok(match word {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => return Err(Fault::new("operator", other, problem)),
    })
}

/// Reads a label selector; `None` when absent.
pub(crate) fn selector(
    value: &Lenient<wire::LabelSelector>,
    field: &str,
) -> Result<Option<LabelSelector>, Fault> {
    requirements(value, field).map(|all| all.map(LabelSelector::new))
}

/// Reads the requirements of a label selector; `None` when it is absent.
pub(crate) fn requirements(
    value: &Lenient<wire::LabelSelector>,
    field: &str,
) -> Result<Option<Vec<Requirement>>, Fault> {
    value.if_present(field, |selector| {
        let pairs = selector.match_labels.entries("matchLabels", |_, value| Ok(value.clone()))?;
        let mut all: Vec<_> = pairs.into_iter().map(|(key, value)| exactly(key, value)).collect();
        all.extend(selector.match_expressions.each("matchExpressions", label_requirement)?);
        Ok(all)
    })
}

/// Returns the requirement that a label has this value.
pub(crate) fn exactly(key: Name, value: Name) -> Requirement {
    Requirement { key, operator: Operator::In, values: Box::new([value]) }
}

fn label_requirement(requirement: &wire::Requirement) -> Result<Requirement, Fault> {
    let word = name(&requirement.operator, "operator")?;
    let operator = set_operator(&word, "unknown label selector operator")?;
    let values: Box<[Name]> = requirement.values.each("values", |value| Ok(value.clone()))?.into();
    if values.is_empty() && matches!(operator, Operator::In | Operator::NotIn) {
        return Err(Fault::new("values", "", format!("operator {word} needs at least one")));
    }
    Ok(Requirement { key: required(&requirement.key, "key")?, operator, values })
}
