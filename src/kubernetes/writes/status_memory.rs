//! Remembers recent writes to pod statuses, so that they are not repeated before the watch delivers them.
//!
//! Condition and nomination are remembered separately, because an order may carry either or both.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pellucid_model::collections::HashMap;
use pellucid_model::effect::{ConditionText, StatusOrder};
use pellucid_model::{Name, Now};

/// How long a write is not repeated. By then the watch has delivered it.
const ECHO: Duration = Duration::from_secs(5);
/// Maximum number of remembered pods. When it is reached, everything is forgotten, which costs a few repeated writes.
const REMEMBERED: usize = 65_536;

/// Last write per pod uid. Shared by the status writers.
#[derive(Default)]
pub(crate) struct StatusMemory(Mutex<HashMap<Arc<str>, LastWrite>>);

/// The last condition and nomination written to a pod, with monotonic times.
#[derive(Default)]
struct LastWrite {
    has_condition: bool,
    condition: Option<(ConditionText, Duration)>,
    nomination: Option<(Option<Name>, Duration)>,
}

/// The part of an order that still has to be written.
#[derive(Debug)]
pub(crate) struct Recalled {
    /// The order, without the parts that were just written.
    pub(crate) order: StatusOrder,
    /// Whether this process remembers no condition written to the pod.
    pub(crate) is_first_condition: bool,
}

impl StatusMemory {
    /// Removes from an order the parts that were written within [`ECHO`].
    pub(crate) fn recall(&self, order: &StatusOrder, now: Now) -> Recalled {
        let memory = self.0.lock();
        let mut order = order.clone();
        let Some(written) = memory.get(&order.pod.uid) else {
            return Recalled { order, is_first_condition: true };
        };
        let is_fresh = |at: Duration| now.monotonic.saturating_sub(at) < ECHO;
        if let Some((condition, at)) = &written.condition
            && is_fresh(*at)
        {
            order.condition = order.condition.filter(|new| new != condition);
        }
        if let Some((nomination, at)) = &written.nomination
            && is_fresh(*at)
        {
            order.nomination = order.nomination.filter(|new| new != nomination);
        }
        Recalled { order, is_first_condition: !written.has_condition }
    }

    /// Remembers a successful write.
    pub(crate) fn remember(&self, order: &StatusOrder, now: Now) {
        let mut memory = self.0.lock();
        if memory.len() >= REMEMBERED {
            memory.clear();
        }
        let written = memory.entry(order.pod.uid.clone()).or_default();
        if let Some(condition) = &order.condition {
            written.has_condition = true;
            written.condition = Some((condition.clone(), now.monotonic));
        }
        if let Some(nomination) = &order.nomination {
            written.nomination = Some((nomination.clone(), now.monotonic));
        }
    }

    /// Forgets the parts of an order whose write has an unknown outcome.
    pub(crate) fn doubt(&self, order: &StatusOrder) {
        let mut memory = self.0.lock();
        let Some(written) = memory.get_mut(&order.pod.uid) else { return };
        if order.condition.is_some() {
            written.condition = None;
        }
        if order.nomination.is_some() {
            written.nomination = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use pellucid_model::PodKey;
    use pellucid_model::effect::PodRef;

    use super::*;

    fn at(seconds: u64) -> Now {
        Now { monotonic: Duration::from_secs(seconds), wall: Duration::from_secs(seconds) }
    }

    fn order(message: Option<&str>, nomination: Option<Option<&str>>) -> StatusOrder {
        StatusOrder {
            pod: PodRef { key: PodKey::new("ns", "p"), uid: "u".into() },
            condition: message.map(|m| ConditionText { reason: "Unschedulable", message: m.into() }),
            nomination: nomination.map(|node| node.map(Name::new)),
        }
    }

    #[test]
    fn only_what_is_new_is_left_of_an_order() {
        let memory = StatusMemory::default();
        let both = order(Some("m"), Some(Some("n")));
        assert!(memory.recall(&both, at(0)).is_first_condition);
        memory.remember(&order(None, Some(Some("n"))), at(0));
        let left = memory.recall(&both, at(1));
        assert_eq!((left.order, left.is_first_condition), (order(Some("m"), None), true));
        memory.remember(&order(Some("m"), None), at(1));
        let left = memory.recall(&both, at(2));
        assert_eq!((left.order, left.is_first_condition), (order(None, None), false));
        let cleared = order(Some("m"), Some(None));
        assert_eq!(memory.recall(&cleared, at(2)).order, order(None, Some(None)));
    }

    #[test]
    fn what_is_old_or_in_doubt_is_written_again() {
        let memory = StatusMemory::default();
        let both = order(Some("m"), Some(None));
        memory.remember(&both, at(0));
        assert_eq!(memory.recall(&both, at(5)).order, both);
        memory.doubt(&order(None, Some(Some("n"))));
        assert_eq!(memory.recall(&both, at(1)).order, order(None, Some(None)));
        assert!(!memory.recall(&both, at(9)).is_first_condition);
    }
}
