//! `/apis/v1/debug`: the current switches, and what diagnosis has cost.

use pellucid_api::rest::debug::{Debug, DiagnosisCost};
use pellucid_cycle::Snapshot;
use pellucid_model::Now;

use crate::meta::of_snapshot;

/// Returns what is recorded, the audit of switch changes, and the costs.
pub(crate) fn debug(snapshot: &Snapshot, now: Now) -> Debug {
    let active = snapshot.switches.active(None, now);
    let (audit, audit_dropped) = snapshot.switches.audit(now);
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let cost = DiagnosisCost {
        cycle_seconds: seconds(snapshot.costs.cycle),
        l0_seconds: seconds(snapshot.costs.l0),
        l1_seconds: seconds(snapshot.costs.l1),
        budget_percent: snapshot.switches.budget(),
    };
    Debug { meta: of_snapshot(snapshot, now), active, audit, audit_dropped, cost }
}
