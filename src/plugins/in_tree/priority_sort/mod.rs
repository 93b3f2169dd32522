//! PrioritySort: orders the queue by pod priority, highest first.

use pellucid_framework::points;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use pellucid_api::rest::plugins::{PrioritySortState, PriorityUse};
use pellucid_framework::Registration;
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{Plugin, QueueSort};
use pellucid_model::Pod;
use pellucid_model::priority_class::PRIORITY_CLASS;
use serde_json::{Value, json};

use pellucid_plugin_helper::listing::{MAX_ROWS, cut, pending};

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "PrioritySort";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let about = "Pending pods by priority";
    let state = Endpoint::of::<PrioritySortState>("state", about, read_state).with_rows("priorities");
    Registration::without_args(NAME, "Takes pods from the queue by priority", || PrioritySort)
        .with_kinds([&PRIORITY_CLASS])
        .with_endpoints([state])
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
