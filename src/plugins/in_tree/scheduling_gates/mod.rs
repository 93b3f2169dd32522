//! SchedulingGates: keeps a pod out of the queue while it lists scheduling gates.

use pellucid_framework::points;
use std::collections::BTreeMap;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::plugins::{GateUse, SchedulingGatesState};
use pellucid_cluster::{ClusterEvent, EventKinds};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{Hint, Hints, Plugin, PreEnqueue};
use pellucid_framework::{Cause, Code, Reason, Registration, View};
use pellucid_model::{Name, Pod};
use serde_json::{Value, json};

use pellucid_plugin_helper::listing::{Examples, MAX_ROWS, cut, pending};

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "SchedulingGates";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let about = "Which scheduling gates hold how many pods back";
    let state = Endpoint::of::<SchedulingGatesState>("state", about, read_state).with_rows("gates");
    Registration::without_args(NAME, "Keeps pods with scheduling gates out of the queue", || SchedulingGates)
        .with_endpoints([state])
}

struct SchedulingGates;

impl Plugin for SchedulingGates {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { pre_enqueue, hints }
}

impl PreEnqueue for SchedulingGates {
    fn pre_enqueue(&self, pod: &Pod) -> Result<(), Cause> {
        if pod.gates.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = pod.gates.iter().map(Name::as_str).collect();
        let reason = Reason::about(ReasonCode::SchedulingGated, names.join(" ").as_str());
        Err(Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason))
    }
}

impl Hints for SchedulingGates {
    fn events(&self) -> EventKinds {
        EventKinds::POD_SELF
    }

    fn hint(&self, _view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        match event {
            ClusterEvent::PendingUpdated { .. } if pod.gates.is_empty() => Hint::Queue,
            _ => Hint::Skip,
        }
    }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut by_gate: BTreeMap<&Name, Examples> = BTreeMap::new();
    let mut gated_pods = 0;
    for record in pending(cx.view) {
        gated_pods += usize::from(!record.pod.gates.is_empty());
        for gate in &record.pod.gates {
            by_gate.entry(gate).or_default().add(&record.pod.key.to_string());
        }
    }
    let rows = by_gate.into_iter().map(|(gate, examples)| {
        let (pods, examples) = examples.finish();
        GateUse { gate: gate.to_string(), pods, examples }
    });
    let (gates, truncated) = cut(rows.collect(), MAX_ROWS);
    Ok(json!(SchedulingGatesState { gates, gated_pods, truncated }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pellucid_model::PodId;

    use super::*;

    #[test]
    fn gates_hold_a_pod_back_until_all_are_gone() {
        let gated = Pod { gates: Box::new(["b".into(), "a".into()]), ..Pod::default() };
        let cause = PreEnqueue::pre_enqueue(&SchedulingGates, &gated).expect_err("it has gates");
        assert_eq!(cause.message(), "waiting for scheduling gates: [b a]");
        assert_eq!(cause.code, Code::UnschedulableAndUnresolvable);
        assert!(PreEnqueue::pre_enqueue(&SchedulingGates, &Pod::default()).is_ok());
    }

    #[test]
    fn only_the_last_gate_gone_wakes_it() {
        let cluster = pellucid_cluster::Cluster::new(0, [], Vec::new());
        let event = ClusterEvent::PendingUpdated { id: PodId(0), old: Arc::default() };
        let gated = Pod { gates: Box::new(["a".into()]), ..Pod::default() };
        let view = View::new(&cluster);
        assert_eq!(SchedulingGates.hint(view, &gated, &event), Hint::Skip);
        assert_eq!(SchedulingGates.hint(view, &Pod::default(), &event), Hint::Queue);
        assert_eq!(
            SchedulingGates.hint(view, &Pod::default(), &ClusterEvent::PendingAdded(PodId(0))),
            Hint::Skip
        );
    }
}
