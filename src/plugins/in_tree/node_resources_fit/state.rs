//! The endpoints: totals per resource, and the resources of one node.

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::plugins::{
    MostFree, NodeResource, NodeResourcesFitNode, NodeResourcesFitState, ResourceTotals,
};
use pellucid_cluster::ResourceIdx;
use pellucid_cluster::columns::{CPU, MEMORY, PODS};
use pellucid_framework::View;
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_model::Name;
use pellucid_model::pages::PAGE;
use serde_json::{Value, json};

use super::best;
use pellucid_plugin_helper::listing::node_of;
use pellucid_plugin_helper::scored::unit;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            "state",
            "What all nodes offer and what is left, per resource",
            BodySchema::of::<NodeResourcesFitState>(),
            read_state,
        )
        .with_rows("resources"),
        Endpoint::new(
            "nodes/:nodeName",
            "What one node offers and what is left, per resource",
            BodySchema::of::<NodeResourcesFitNode>(),
            read_node,
        )
        .with_rows("resources"),
    ]
}

/// Returns the columns: the four fixed ones first, then the others by name.
fn columns(view: View<'_>) -> Vec<(Name, ResourceIdx)> {
    let mut named: Vec<_> = view.columns().offered().map(|r| (view.columns().name(r), r)).collect();
    named.sort_by(|(a, i), (b, j)| {
        let (fixed_a, fixed_b) = (*i <= PODS, *j <= PODS);
        fixed_b.cmp(&fixed_a).then_with(|| if fixed_a && fixed_b { i.cmp(j) } else { a.cmp(b) })
    });
    named
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let (view, nodes) = (cx.view, cx.view.nodes());
    let rows = columns(view).into_iter().map(|(name, resource)| {
        let mut row = ResourceTotals {
            resource: name.to_string(),
            unit: unit(&name).to_owned(),
            ..ResourceTotals::default()
        };
        for node in nodes {
            let (has, taken) =
                (view.columns().allocatable(*node, resource), view.columns().requested(*node, resource));
            row.allocatable = row.allocatable.saturating_add(has);
            row.requested = row.requested.saturating_add(taken);
            row.overcommitted_nodes += usize::from(taken > has);
        }
        row.free = row.allocatable.saturating_sub(row.requested);
        let offering: Vec<_> =
            nodes.iter().copied().filter(|n| view.columns().allocatable(*n, resource) > 0).collect();
        row.most_free = best(view, resource, &offering)
            .map(|(free, n)| MostFree { node_name: view.name(n).to_string(), free });
        (resource, row)
    });
    let in_use = rows.filter(|(r, row)| *r <= PODS || row.allocatable != 0 || row.requested != 0);
    let resources = in_use.map(|(_, row)| row).collect();
    Ok(json!(NodeResourcesFitState { resources, total_nodes: nodes.len() }))
}

fn read_node(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let node = node_of(cx)?;
    let page = cx.view.columns().page(node);
    let mut resources = Vec::new();
    for (name, resource) in columns(cx.view) {
        let allocatable = cx.view.columns().allocatable(node, resource);
        let requested = cx.view.columns().requested(node, resource);
        if resource > PODS && allocatable == 0 && requested == 0 {
            continue;
        }
        resources.push(NodeResource {
            resource: name.to_string(),
            unit: unit(&name).to_owned(),
            allocatable,
            requested,
            requested_for_scoring: match resource {
                CPU => Some(page.non_zero_cpu[node.index() % PAGE]),
                MEMORY => Some(page.non_zero_memory[node.index() % PAGE]),
                _ => None,
            },
            free: allocatable.saturating_sub(requested),
        });
    }
    Ok(json!(NodeResourcesFitNode { node_name: cx.view.name(node).to_string(), resources }))
}
