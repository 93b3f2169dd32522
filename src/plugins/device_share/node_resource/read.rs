//! Endpoint `nodeResources`: what controller `noderesource` publishes, and what stands on the nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use pellucid_api::rest::device_share::{NodeResourcesState, PublishedNode};
use pellucid_framework::endpoint::{ReadContext, ReadError};
use pellucid_framework::manifest::format_moment;
use pellucid_model::Name;
use serde_json::{Value, json};

use super::super::amounts::Resource;
use super::{Entry, NodeResources, Published};
use pellucid_plugin_helper::listing::MAX_ROWS;

pub(crate) fn read(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let Some(state) = cx.view.state::<NodeResources>() else {
        return Ok(json!(NodeResourcesState::default()));
    };
    let mut all: Vec<(&Name, &Entry)> = state.shown().collect();
    all.sort_by_key(|(name, _)| *name);
    let in_step = all.iter().filter(|(_, entry)| entry.is_in_step()).count();
    let is_truncated = all.len() > MAX_ROWS;
    all.truncate(MAX_ROWS);
    let nodes = all.into_iter().map(|(name, entry)| node(name, entry)).collect();
    Ok(json!(NodeResourcesState { is_enabled: true, in_step, nodes, truncated: is_truncated }))
}

fn node(name: &Name, entry: &Entry) -> PublishedNode {
    let moment = |at: Duration| format_moment(i64::try_from(at.as_secs()).unwrap_or_default());
    PublishedNode {
        node_name: name.to_string(),
        in_step: entry.is_in_step(),
        of_devices: quantities(&entry.amounts),
        on_node: entry.published().map(quantities).unwrap_or_default(),
        last_written: entry.written.map(moment),
        problem: entry.problem.as_deref().map(str::to_owned),
    }
}

fn quantities(amounts: &Published) -> BTreeMap<String, String> {
    let text = |(name, amount): (&&'static str, &i64)| {
        let text = Resource::find(name).map_or_else(|| amount.to_string(), |r| r.format(*amount));
        ((*name).to_owned(), text)
    };
    amounts.iter().map(text).collect()
}
