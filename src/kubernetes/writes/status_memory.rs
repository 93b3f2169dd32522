//! What was lately written to the status of pods, so that it is not written again before the watch shows it.
//!
//! Condition and nomination are remembered apart: an order may carry one or both.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pellucid_model::collections::HashMap;
use pellucid_model::effect::{ConditionText, StatusOrder};
use pellucid_model::{Name, Now};

/// How long what was written is not written again: the watch has shown it by then.
const ECHO: Duration = Duration::from_secs(5);
/// How many pods are remembered. When it is reached everything is forgotten, at the price of a few writes.
const REMEMBERED: usize = 65_536;

/// The memory that the workers share.
#[derive(Default)]
pub(crate) struct StatusMemory(Mutex<HashMap<Arc<str>, Written>>);

/// What was last written to a pod.
#[derive(Default)]
struct Written {
    has_condition: bool,
    condition: Option<(ConditionText, Duration)>,
    nomination: Option<(Option<Name>, Duration)>,
}

/// What is left of an order.
#[derive(Debug)]
pub(crate) struct Recalled {
    /// The order, without what the server holds already.
    pub(crate) order: StatusOrder,
    /// Whether no condition was written to this pod before.
    pub(crate) is_first_condition: bool,
}

impl StatusMemory {
    /// Takes out of an order what was written a moment ago.
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

    /// Keeps what was written.
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

    /// These may or may not have been written: what was remembered holds no longer.
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
