//! The `meta` of a body, and how times are written.

use std::time::Duration;

use pellucid_api::rest::Meta;

use super::root::Root;
use crate::cycle::Verdict;
use crate::model::Now;

/// Returns a wall time as RFC 3339 with milliseconds.
pub fn rfc3339(wall: Duration) -> String {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX));
    at.map(|t| format!("{t:.3}")).unwrap_or_default()
}

/// Returns the meta of a body that tells of no single decision.
pub(super) fn of_root(root: &Root, now: Now) -> Meta {
    Meta {
        generated_at: rfc3339(now.wall),
        snapshot_generation: root.generation,
        leader: true,
        ..Meta::default()
    }
}

/// Returns the meta of a body about a decision. It is stale when a node, or the pods on one,
/// changed since.
pub(super) fn of_verdict(root: &Root, verdict: &Verdict, now: Now) -> Meta {
    Meta {
        decided_at: Some(rfc3339(verdict.at.wall)),
        cycle_id: Some(verdict.cycle),
        stale: verdict.changes != root.changes,
        ..of_root(root, now)
    }
}
