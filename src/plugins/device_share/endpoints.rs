//! The endpoints: devices in Koordinator's form, and all of them in short.

use std::collections::BTreeMap;

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::device_share::{
    DeviceCondition, DeviceProblem, DeviceRow, DeviceShareOfPod, DeviceShareState, DevicesOfNode,
    GpuFragmentation, NodeDeviceSummary, NodeResourcesState, PlacedDevice, VirtualFunctionCount,
};
use pellucid_framework::View;
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_model::quantity::format_amount;
use pellucid_model::{Name, NodeIdx};
use serde_json::{Value, json};

use super::amounts::{Amounts, Resource};
use super::fragmentation;
use super::node_devices::NodeDevices;
use super::node_resource;
use super::problems;
use super::row::{Card, CardInUse, Row};
use pellucid_plugin_helper::listing::{MAX_ROWS, node_of};

/// Quantities by resource name.
type Quantities = BTreeMap<String, String>;
/// Quantities by type of devices, then minor.
type ByDevice = BTreeMap<String, BTreeMap<String, Quantities>>;

pub(super) fn all() -> Vec<Endpoint> {
    let one = "The devices of a node, what is free of them, and which pod has what";
    vec![
        Endpoint::of::<DeviceShareState>(
            "state",
            "All devices in short, and what is wrong with them",
            read_state,
        )
        .with_rows("rows"),
        Endpoint::new(
            "nodeDeviceSummaries",
            "The devices of all nodes, by name of the node",
            BodySchema::map_of::<NodeDeviceSummary>(),
            read_all,
        ),
        Endpoint::of::<NodeDeviceSummary>("nodeDeviceSummaries/:name", one, read_one),
        Endpoint::of::<DevicesOfNode>(
            "nodes/:nodeName",
            "The devices of a node where they lie, and what each pod has of them",
            |cx| Ok(json!(of_node(cx.view, node_of(cx)?))),
        ),
        Endpoint::of::<GpuFragmentation>(
            "fragmentation",
            "How much of the GPUs is free, and how much of that in parts of cards",
            fragmentation::read,
        )
        .with_rows("rows"),
        Endpoint::of::<NodeResourcesState>(
            "nodeResources",
            "What controller noderesource publishes of Devices, and what stands on the nodes",
            node_resource::read,
        )
        .with_rows("nodes"),
    ]
}

/// Returns the row of a node that has a Device, or whose pods have devices.
fn shown<'a>(view: View<'a>, node: NodeIdx) -> Option<&'a Row> {
    let row = view.state::<NodeDevices>()?.known(node)?;
    (row.device().is_some() || !row.pods.is_empty()).then_some(row)
}

fn read_all(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let nodes = cx.view.cluster().by_name().iter();
    let all = nodes.filter_map(|node| {
        let row = shown(cx.view, *node)?;
        Some((cx.view.name(*node).to_string(), summary(cx.view, *node, row)))
    });
    Ok(json!(all.collect::<BTreeMap<String, NodeDeviceSummary>>()))
}

fn read_one(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let text = cx.params.get("name").map_or("", String::as_str);
    let node = cx.view.cluster().find_node(&Name::new(text));
    let node = node.filter(|node| cx.view.cluster().node(*node).is_some());
    let Some((node, row)) = node.and_then(|node| Some((node, shown(cx.view, node)?))) else {
        let message = format!("cannot find node {text}");
        return Err(ReadError::NotFound { code: "NodeNotFound", message });
    };
    Ok(json!(summary(cx.view, node, row)))
}

fn quantities(amounts: &Amounts) -> Quantities {
    let named = amounts.iter();
    named.map(|(resource, n)| (resource.name().to_owned(), resource.format(n))).collect()
}

/// Sums of amounts by resource name.
#[derive(Default)]
struct Sums(BTreeMap<String, i64>);

impl Sums {
    fn add(&mut self, name: &str, amount: i64) {
        let sum = self.0.entry(name.to_owned()).or_default();
        *sum = sum.saturating_add(amount);
    }

    fn quantities(self) -> Quantities {
        let format = |(name, sum): (String, i64)| {
            let text = Resource::find(&name).map_or_else(|| format_amount(&name, sum), |r| r.format(sum));
            (name, text)
        };
        self.0.into_iter().map(format).collect()
    }
}

/// Returns what a card has that no pod can request.
fn others<'a>(row: &'a Row, card: &Card) -> &'a [(Name, i64)] {
    row.info(card).filter(|_| card.healthy).map_or(&[], |info| &info.others)
}

/// Returns what is free of a card: nothing of what pods have of a card that has none of it.
fn free(card: CardInUse<'_>) -> Amounts {
    let unnamed = card.taken.used.iter().filter(|(resource, _)| !card.total.has(*resource));
    let mut total = card.total;
    unnamed.map(|(resource, _): (Resource, i64)| resource).for_each(|resource| total.set(resource, 0));
    total.less(&card.taken.used)
}

fn summary(view: View<'_>, node: NodeIdx, row: &Row) -> NodeDeviceSummary {
    let (mut total, mut free_sums, mut used) = (Sums::default(), Sums::default(), Sums::default());
    let mut made = NodeDeviceSummary::default();
    let insert = |into: &mut ByDevice, card: &Card, amounts: Quantities| {
        into.entry(card.kind.to_string()).or_default().insert(card.minor.to_string(), amounts);
    };
    for card in row.cards() {
        let free = free(card);
        for (sums, amounts) in
            [(&mut total, &card.total), (&mut free_sums, &free), (&mut used, &card.taken.used)]
        {
            amounts.iter().for_each(|(resource, amount)| sums.add(resource.name(), amount));
        }
        let (mut has, mut left) = (quantities(&card.total), quantities(&free));
        for (name, amount) in others(row, &card) {
            total.add(name, *amount);
            free_sums.add(name, *amount);
            for quantities in [&mut has, &mut left] {
                quantities.insert(name.to_string(), format_amount(name, *amount));
            }
        }
        if card.info.is_some() {
            insert(&mut made.device_total_detail, &card, has);
            insert(&mut made.device_free_detail, &card, left);
        }
        if card.taken.pods > 0 {
            insert(&mut made.device_used_detail, &card, quantities(&card.taken.used));
        }
    }
    for pod in &row.pods {
        for given in &pod.what.given {
            let by_pod = made.allocate_set.entry(given.kind.to_string()).or_default();
            let by_minor = by_pod.entry(pod.key(view).to_string()).or_default();
            by_minor.insert(given.minor.to_string(), quantities(&given.amounts));
        }
    }
    made.device_total = total.quantities();
    made.device_free = free_sums.quantities();
    made.device_used = used.quantities();
    made.problems = problems::of_node(view, node, row);
    made.unknown_pods = problems::unknown_pods(view, node, row);
    made
}

fn device_row(view: View<'_>, node: NodeIdx, row: &Row, card: CardInUse<'_>) -> DeviceRow {
    let info = row.info(&card);
    let functions = info.map(|info| info.vf_groups.iter().map(|group| group.functions.len()).sum::<usize>());
    let has = |pod: &&super::row::PodOnCards| {
        pod.what.given.iter().any(|given| given.minor == card.minor && given.kind == card.kind)
    };
    let mut pods: Vec<String> = row.pods.iter().filter(has).map(|pod| pod.key(view).to_string()).collect();
    pods.sort();
    let conditions = info.into_iter().flat_map(|info| &info.conditions).map(|condition| DeviceCondition {
        r#type: condition.kind.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    });
    let topology = info.and_then(|info| info.topology.as_ref());
    DeviceRow {
        node_name: view.name(node).to_string(),
        device_type: card.kind.to_string(),
        minor: card.minor,
        id: info.map(|info| info.id.to_string()).unwrap_or_default(),
        healthy: card.healthy,
        numa_node: topology.map(|topology| topology.numa),
        pcie_id: topology.map(|topology| topology.pcie.to_string()),
        total: quantities(&card.total),
        free: quantities(&free(card)),
        virtual_functions: functions
            .filter(|total| *total > 0)
            .map(|total| VirtualFunctionCount { total, used: row.functions_used(&card) }),
        pods,
        conditions: conditions.collect(),
    }
}

fn of_node(view: View<'_>, node: NodeIdx) -> DevicesOfNode {
    let mut made = DevicesOfNode { node_name: view.name(node).to_string(), ..DevicesOfNode::default() };
    let Some(row) = shown(view, node) else { return made };
    made.devices = row.cards().map(|card| placed_device(view, node, row, card)).collect();
    made.problems = problems::of_node(view, node, row);
    made.unknown_pods = problems::unknown_pods(view, node, row);
    made
}

fn placed_device(view: View<'_>, node: NodeIdx, row: &Row, card: CardInUse<'_>) -> PlacedDevice {
    let topology = row.info(&card).and_then(|info| info.topology.as_ref());
    let named = || card.total.iter().filter(|(_, total)| *total > 0);
    let percent = |amount: i64, total: i64| amount.saturating_mul(100) / total;
    let left = card.free();
    let mut shares: Vec<DeviceShareOfPod> = Vec::new();
    for pod in &row.pods {
        let own = pod.what.given.iter().filter(|given| given.minor == card.minor && given.kind == card.kind);
        let share = own.map(|given| DeviceShareOfPod {
            pod: pod.key(view).to_string(),
            percent: named().map(|(r, total)| percent(given.amounts.get(r), total)).max().unwrap_or(100),
            amounts: quantities(&given.amounts),
        });
        shares.extend(share);
    }
    shares.sort_by(|a, b| a.pod.cmp(&b.pod));
    PlacedDevice {
        device: device_row(view, node, row, card),
        socket: topology.map(|topology| topology.socket),
        bus_id: topology.map(|topology| topology.bus.to_string()).filter(|bus| !bus.is_empty()),
        free_percent: named().map(|(r, total)| percent(left.get(r), total)).min().unwrap_or(0),
        shares,
    }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut made = DeviceShareState::default();
    let mut problems: Vec<DeviceProblem> = Vec::new();
    for node in cx.view.cluster().by_name() {
        let Some(row) = shown(cx.view, *node) else { continue };
        made.nodes += usize::from(row.device().is_some());
        for card in row.cards() {
            if made.rows.len() == MAX_ROWS {
                made.truncated = true;
                break;
            }
            made.rows.push(device_row(cx.view, *node, row, card));
        }
        if problems.len() < MAX_ROWS {
            problems.extend(problems::of_node(cx.view, *node, row));
        }
    }
    problems.truncate(MAX_ROWS);
    made.problems = problems;
    Ok(json!(made))
}
