//! The status of PodGroups.

use std::sync::Arc;

use pellucid_model::gang::{GroupCondition, GroupPhase, GroupStatus};
use pellucid_model::{Name, ObjectKind};

use crate::decode::lenient::{Lenient, List, Moment, Shape};
use crate::decode::wire::{Condition, wire_types};

/// The names of a native PodGroup's condition in all versions.
const SCHEDULED: [&str; 2] = ["PodGroupScheduled", "PodGroupInitiallyScheduled"];
/// The condition of a kube-batch PodGroup.
const UNSCHEDULABLE: &str = "Unschedulable";

wire_types! {
    /// `status` of a PodGroup: the fields of all API groups.
    struct GroupStatusBody {
        phase: Lenient<Name>,
        occupied_by: Lenient<Arc<str>>,
        scheduled: Lenient<i64>,
        running: Lenient<i64>,
        succeeded: Lenient<i64>,
        failed: Lenient<i64>,
        schedule_start_time: Lenient<Moment>,
        conditions: List<Condition>,
    }
}

/// Reads the status. Only a scheduler writes it, so unreadable fields are ignored and written again.
pub(crate) fn status(kind: ObjectKind, status: &GroupStatusBody) -> GroupStatus {
    let read = GroupStatus {
        phase: status.phase.good().and_then(|word| phase(word)),
        occupied_by: good(&status.occupied_by).unwrap_or_else(|| "".into()),
        scheduled: count(&status.scheduled),
        running: count(&status.running),
        succeeded: count(&status.succeeded),
        failed: count(&status.failed),
        schedule_start: status.schedule_start_time.good().map(|m| m.0),
        condition: condition(kind, status),
    };
    read.held_by(kind)
}

fn good<T: Shape + Clone>(value: &Lenient<T>) -> Option<T> {
    value.good().cloned()
}

fn count(value: &Lenient<i64>) -> u32 {
    value.good().and_then(|n| u32::try_from(*n).ok()).unwrap_or(0)
}

fn phase(word: &str) -> Option<GroupPhase> {
    GroupPhase::ALL.into_iter().find(|phase| phase.as_str() == word)
}

/// Returns the condition that this scheduler writes, under its name in the model.
fn condition(kind: ObjectKind, status: &GroupStatusBody) -> Option<GroupCondition> {
    let (known, own) = if kind == ObjectKind::PodGroupNative {
        (&SCHEDULED[..], SCHEDULED[0])
    } else {
        (&[UNSCHEDULABLE][..], UNSCHEDULABLE)
    };
    let all = status.conditions.good()?.iter().filter_map(Lenient::good);
    let text = |value: &Lenient<Arc<str>>| good(value).unwrap_or_else(|| "".into());
    let mut ours = all.filter(|c| c.r#type.good().is_some_and(|word| known.contains(&word.as_str())));
    ours.next().map(|condition| GroupCondition {
        kind: own,
        is_true: condition.status.good().is_some_and(|word| word.as_str() == "True"),
        reason: text(&condition.reason),
        message: text(&condition.message),
    })
}
