//! PrioritySort: orders the queue by pod priority, highest first.

use pellucid_framework::points;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::plugins::{PrioritySortState, PriorityUse};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{ArgsError, Plugin, PluginFactory, QueueSort};
use pellucid_model::Pod;
use serde_json::{Value, json};

use super::listing::{MAX_ROWS, cut, pending};

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "PrioritySort";

/// Creates the plugin; listed in [`crate::registry`].
pub struct Factory;

impl PluginFactory for Factory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "Takes pods from the queue by priority"
    }

    fn make(&self, args: &Value) -> Result<Arc<dyn Plugin>, Vec<ArgsError>> {
        super::no_args(args)?;
        Ok(Arc::new(PrioritySort))
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        let body = BodySchema::of::<PrioritySortState>();
        vec![Endpoint::new("state", "Pending pods by priority", body, read_state).with_rows("priorities")]
    }
}

struct PrioritySort;

impl Plugin for PrioritySort {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { queue_sort }
}

impl QueueSort for PrioritySort {
    fn rank(&self, pod: &Pod) -> i64 {
        i64::from(pod.priority)
    }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut by_priority: BTreeMap<Reverse<i32>, PriorityUse> = BTreeMap::new();
    let mut pending_pods = 0;
    for record in pending(cx.view) {
        pending_pods += 1;
        let row = by_priority.entry(Reverse(record.pod.priority)).or_default();
        row.priority = record.pod.priority;
        row.pending_pods += 1;
        row.gated_pods += usize::from(!record.pod.gates.is_empty());
    }
    let (priorities, truncated) = cut(by_priority.into_values().collect(), MAX_ROWS);
    Ok(json!(PrioritySortState { priorities, pending_pods, truncated }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_is_the_priority() {
        let rank = |priority| PrioritySort.rank(&Pod { priority, ..Pod::default() });
        assert!(rank(i32::MAX) > rank(0) && rank(0) > rank(i32::MIN));
    }
}
