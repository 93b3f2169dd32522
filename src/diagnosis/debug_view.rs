//! `/apis/v1/debug`: the switches as they are now, and what the diagnosis has cost.

use pellucid_api::rest::debug::{Debug, DiagnosisCost};
use pellucid_cycle::Root;
use pellucid_model::Now;

use super::meta::of_root;

/// Shows what is recorded and who changed what.
pub(super) fn debug(root: &Root, now: Now) -> Debug {
    let active = root.switches.active(None, now);
    let (audit, audit_dropped) = root.switches.audit(now);
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let cost = DiagnosisCost {
        cycle_seconds: seconds(root.costs.cycle),
        l0_seconds: seconds(root.costs.l0),
        l1_seconds: seconds(root.costs.l1),
        budget_percent: root.switches.budget(),
    };
    Debug { meta: of_root(root, now), active, audit, audit_dropped, cost }
}
