//! The endpoints: volumes per node and driver.

use pellucid_api::rest::volumes::{NodeVolumeLimitsOfNode, NodeVolumeLimitsState, VolumeLimit};
use pellucid_framework::View;
use pellucid_framework::endpoint::{ReadContext, ReadError};
use pellucid_model::NodeIdx;
use serde_json::{Value, json};

use super::{VolumesOnNodes, limit};
use pellucid_plugin_helper::listing::{MAX_ROWS, cut, node_of};

/// Returns one row per driver that the node has or that has volumes on the node.
fn rows(view: View<'_>, node: NodeIdx) -> Vec<VolumeLimit> {
    let name = view.name(node);
    let csi_node = view.cluster().objects().csi_node(name);
    let Some(volumes) = view.state::<VolumesOnNodes>() else { return Vec::new() };
    let mut drivers = volumes.drivers(node, name);
    drivers.extend(csi_node.into_iter().flat_map(|c| c.drivers.iter().map(|d| d.name.clone())));
    let row = |driver| {
        let fill = volumes.driver((node, name), &driver, csi_node).fill();
        VolumeLimit {
            node_name: name.to_string(),
            limit: limit(csi_node, &driver),
            driver: driver.to_string(),
            used: fill.used + fill.attached_only,
            attached_only: fill.attached_only,
        }
    };
    drivers.into_iter().map(row).collect()
}

fn left(row: &VolumeLimit) -> i64 {
    row.limit.unwrap_or(i64::MAX) - row.used as i64
}

pub(super) fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let all = cx.view.nodes().iter().flat_map(|n| rows(cx.view, *n));
    let mut limits: Vec<_> = all.filter(|row| row.limit.is_some()).collect();
    limits.sort_by(|a, b| (left(a), &a.node_name, &a.driver).cmp(&(left(b), &b.node_name, &b.driver)));
    let full = limits.iter().filter(|row| left(row) <= 0).count();
    let (limits, truncated) = cut(limits, MAX_ROWS);
    Ok(json!(NodeVolumeLimitsState { limits, full, truncated }))
}

pub(super) fn read_node(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let node = node_of(cx)?;
    let limits = rows(cx.view, node);
    Ok(json!(NodeVolumeLimitsOfNode { node_name: cx.view.name(node).to_string(), limits }))
}
