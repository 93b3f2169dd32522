//! The endpoints: the terms of all placed pods, and those that apply to one node.

use pellucid_api::rest::relations::{InterPodAffinityOfNode, InterPodAffinityState, TermUse};
use pellucid_framework::View;
use pellucid_framework::endpoint::{ReadContext, ReadError};
use pellucid_model::NodeIdx;
use serde_json::{Value, json};

use super::super::relations::{Column, NO_VALUE, Relations, ValueId, selector_text};
use super::terms::{Group, Terms};
use pellucid_plugin_helper::listing::{MAX_ROWS, cut, node_of};

pub(super) fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut rows = rows(cx.view, |_| None);
    rows.sort();
    let total_terms = rows.len();
    let (terms, truncated) = cut(rows, MAX_ROWS);
    Ok(json!(InterPodAffinityState { terms, total_terms, truncated }))
}

pub(super) fn read_node(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let node = node_of(cx)?;
    let mut rows = rows(cx.view, |column| Some(column.of(node)));
    rows.sort();
    let (terms, truncated) = cut(rows, MAX_ROWS);
    let node_name = cx.view.name(node).to_string();
    Ok(json!(InterPodAffinityOfNode { node_name, terms, truncated }))
}

/// Returns one row per term of placed pods: over all domains, or over one domain per key.
fn rows(view: View<'_>, domain: impl Fn(&Column) -> Option<ValueId>) -> Vec<TermUse> {
    let (Some(relations), Some(terms)) = (view.state::<Relations>(), view.state::<Terms>()) else {
        return Vec::new();
    };
    let row = |group: &Group| {
        let column = relations.topology.column(&group.term.term.topology_key);
        let only = domain(&column);
        let mut is_domain = vec![false; column.len()];
        let mut row = describe(group);
        group.counts.for_each(|node, pods| {
            let value = column.of(node);
            let counts = match only {
                Some(only) => value != NO_VALUE && value == only,
                None => is_present(view, node),
            };
            if counts {
                row.pods += pods as usize;
                row.nodes += 1;
                is_domain[value as usize] = value != NO_VALUE;
            }
        });
        row.domains = is_domain.into_iter().filter(|is| *is).count();
        (row.pods > 0).then_some(row)
    };
    terms.groups().filter_map(row).collect()
}

fn is_present(view: View<'_>, node: NodeIdx) -> bool {
    view.cluster().node(node).is_some()
}

fn describe(group: &Group) -> TermUse {
    let term = &group.term.term;
    TermUse {
        kind: group.term.kind.as_str().to_owned(),
        topology_key: term.topology_key.to_string(),
        namespaces: term.namespaces.iter().map(ToString::to_string).collect(),
        namespace_selector: term.namespace_selector.as_ref().map(|s| selector_text(Some(s))),
        selector: selector_text(term.selector.as_ref()),
        weight: group.term.weight,
        ..TermUse::default()
    }
}
