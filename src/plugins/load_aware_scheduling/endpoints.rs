//! The endpoints: the load of nodes, and the sums behind it in Koordinator's form.

use std::collections::BTreeMap;

use pellucid_api::rest::load_aware::{
    AssignedPod, AssignedPodMeta, AssignedPodObject, LoadAwareState, LoadOfNode, NodeLoad,
};
use pellucid_api::rest::{BodySchema, Meta};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::list::{Attribute, Facts, List};
use pellucid_framework::manifest::format_moment;
use pellucid_model::NodeIdx;
use pellucid_model::quantity::format_amount;
use serde_json::{Value, json};

use super::args::Percents;
use super::estimate::Amounts;
use super::load::{Basis, Load, NO_LIMIT, contribution, percent};
use super::node_loads::NodeLoads;
use pellucid_plugin_helper::listing::{MAX_ROWS, node_of};

/// What nodes are filtered and sorted by.
const OF_NODES: &[Attribute] = &[Attribute::Name, Attribute::Labels];

pub(super) fn all() -> Vec<Endpoint> {
    let body = BodySchema::of::<LoadAwareState>;
    vec![
        Endpoint::new("state", "The load of nodes with a NodeMetric, the first thousand", body(), |cx| {
            read_nodes(cx, &List::first(MAX_ROWS))
        })
        .with_rows("nodes"),
        Endpoint::new("nodes", "The load of all nodes with a NodeMetric, in pages", body(), |cx| {
            read_nodes(cx, cx.list)
        })
        .with_pages::<NodeLoad>("nodes", OF_NODES),
        Endpoint::new(
            "node/:nodeName",
            "The pods of a node, its reported usage and what estimates add",
            BodySchema::of::<LoadOfNode>(),
            read_node,
        ),
    ]
}

fn quantities(loads: &NodeLoads, amounts: &Amounts) -> BTreeMap<String, String> {
    let named = loads.resources().iter().zip(amounts);
    named.map(|(name, amount)| (name.to_string(), format_amount(name, *amount))).collect()
}

fn percents(of: &Percents) -> BTreeMap<String, i64> {
    of.iter().map(|(name, percent)| (name.to_string(), *percent)).collect()
}

/// Returns usage in percent, rounded half up as thresholds compare it.
fn used_percent(loads: &NodeLoads, used: &Amounts, allocatable: &Amounts) -> BTreeMap<String, i64> {
    let all = loads.resources().iter().zip(used.iter().zip(allocatable)).filter(|(_, (_, all))| **all > 0);
    all.map(|(name, (used, all))| (name.to_string(), percent(*used, *all))).collect()
}

/// Describes a node; `None` when it has no NodeMetric.
fn row(cx: &ReadContext<'_>, loads: &NodeLoads, node: NodeIdx) -> Option<NodeLoad> {
    let (on, load) = (loads.on(node)?, loads.load(0, node)?);
    let metric = on.metric.as_deref()?;
    let now = cx.now.wall.as_secs() as i64;
    let mut made = NodeLoad {
        node_name: cx.view.name(node).to_string(),
        update_time: metric.updated.map(format_moment),
        age_seconds: metric.updated.map(|at| now - at),
        expired: load.is_expired,
        estimated_pods: load.sums.delta_pods,
        ..NodeLoad::default()
    };
    if let Some(judged) = load.judged.as_deref() {
        let side = load.side(judged, false);
        made.used = quantities(loads, &side.used.all());
        made.allocatable = quantities(loads, &judged.allocatable);
        made.percent = used_percent(loads, &side.used.all(), &judged.allocatable);
        let thresholds = &judged.thresholds;
        made.thresholds = percents(thresholds.aggregated.as_ref().map_or(&thresholds.plain, |a| &a.percents));
        made.aggregated = judged.basis == Basis::Aggregated;
        let prod = load.side(judged, true);
        if prod.basis == Basis::Prod {
            made.prod_thresholds = percents(&thresholds.prod);
            made.prod_percent = used_percent(loads, &prod.used.all(), &judged.allocatable);
        }
    }
    Some(made)
}

fn is_exceeded(load: &Load) -> bool {
    let Some(judged) = load.judged.as_deref() else { return false };
    let side = load.side(judged, false);
    side.used.all().iter().zip(side.limits).any(|(used, limit)| *limit != NO_LIMIT && used >= limit)
}

fn read_nodes(cx: &ReadContext<'_>, list: &List) -> Result<Value, ReadError> {
    let Some(loads) = cx.view.state::<NodeLoads>() else { return Ok(json!(LoadAwareState::default())) };
    let mut body = LoadAwareState::default();
    let mut reported = Vec::new();
    for node in cx.view.cluster().by_name() {
        let metric = loads.on(*node).is_some_and(|on| on.metric.is_some());
        let Some(load) = loads.load(0, *node).filter(|_| metric) else {
            body.unreported += 1;
            continue;
        };
        body.reported += usize::from(load.judged.is_some() && !load.is_expired);
        body.expired += usize::from(load.is_expired);
        body.exceeded += usize::from(is_exceeded(load));
        reported.push(*node);
    }
    let cluster = cx.view.cluster();
    let page = list.page(reported, |node| {
        let labels = cluster.node(*node).map(|node| &node.labels);
        Facts { name: cx.view.name(*node), labels, ..Facts::default() }
    });
    body.nodes = page.items.iter().filter_map(|node| row(cx, loads, *node)).collect();
    body.meta = page.meta(Meta::default());
    body.truncated = page.is_cut();
    Ok(json!(body))
}

fn read_node(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let node = node_of(cx)?;
    let loads = cx.view.state::<NodeLoads>();
    let known = loads.and_then(|loads| Some((loads, loads.on(node)?, loads.load(0, node)?)));
    let Some((loads, on, load)) = known else { return Ok(json!(LoadOfNode::default())) };
    let sums = &load.sums;
    let mut body = LoadOfNode {
        prod_usage: quantities(loads, &sums.prod_usage),
        node_delta: quantities(loads, &sums.node_delta),
        prod_delta: quantities(loads, &sums.prod_delta),
        node_estimated: quantities(loads, &sums.node_estimated),
        load: row(cx, loads, node),
        ..LoadOfNode::default()
    };
    let mut assigned: Vec<_> = on.assigned.iter().collect();
    assigned.sort_by(|a, b| (a.since, &a.key).cmp(&(b.since, &b.key)));
    for pod in assigned {
        let by = contribution(&loads.args()[0], on.metric.as_deref(), pod);
        let key = pod.key.to_string();
        for (amounts, names) in [
            (&by.delta, &mut body.node_delta_pods),
            (&by.prod_delta, &mut body.prod_delta_pods),
            (&by.estimated, &mut body.node_estimated_pods),
        ] {
            if amounts.iter().any(|amount| *amount != 0) {
                names.push(key.clone());
            }
        }
        let (namespace, name) = (pod.key.namespace.to_string(), pod.key.name.to_string());
        let metadata = AssignedPodMeta { namespace, name };
        body.pods.push(AssignedPod {
            timestamp: format_moment(pod.since / 1000),
            pod: AssignedPodObject { metadata },
        });
    }
    for names in [&mut body.node_delta_pods, &mut body.prod_delta_pods, &mut body.node_estimated_pods] {
        names.sort();
    }
    Ok(json!(body))
}
