//! The load of the demo: pods that use more than they request, and a profile with LoadAwareScheduling. The load does
//! not affect the placements of the default profile. A third profile has Reservation.

use std::time::Duration;

use pellucid_cycle::Snapshot;
use pellucid_model::CustomKindRef;
use pellucid_model::custom::CustomValue;
use pellucid_plugins::load_aware_scheduling::{NAME, NODE_METRIC};
use pellucid_plugins::{elastic_quota, reservation};
use serde_json::{Value, json};

use super::accelerators;
use super::cluster::{in_pool, pod, with};

/// Interval of the usage reports of nodes.
pub(super) const REPORT_EVERY: Duration = Duration::from_secs(10);
/// Scheduler name of the profile with LoadAwareScheduling.
const PROFILE: &str = "load-aware";
/// Scheduler name of the profile with Reservation.
const RESERVING: &str = "reserving";
const USAGE: &str = "sandbox.pellucid.dev/usage";

/// Returns the configuration of the demo's scheduler, as a file.
pub(super) fn configuration() -> String {
    let file = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": pellucid_config::DEFAULT_SCHEDULER_NAME,
                "plugins": {"multiPoint": {"enabled": [{"name": elastic_quota::NAME}]}},
            },
            {
                "schedulerName": PROFILE,
                "plugins": {"multiPoint": {"enabled": [{"name": NAME, "weight": 1}]}},
                "pluginConfig": [{"name": NAME, "args": {"usageThresholds": {"cpu": 65, "memory": 95}}}],
            },
            {
                "schedulerName": RESERVING,
                "plugins": {"multiPoint": {"enabled": [{"name": reservation::NAME, "weight": 5000}]}},
            },
            accelerators::profile(),
        ],
    });
    file.to_string()
}

/// Sets the simulated usage of pods. `metadata` is the JSON pointer of a pod's metadata, or of those of a template.
pub(super) fn using(object: Value, metadata: &str, usage: &str) -> Value {
    with(object, &format!("{metadata}/annotations"), json!({USAGE: usage}))
}

/// Assigns a pod to the profile with LoadAwareScheduling.
pub(super) fn aware(pod: Value) -> Value {
    with(pod, "/spec/schedulerName", json!(PROFILE))
}

/// Returns a pod that fits on no node, because the nodes that it may use are busy.
pub(super) fn stuck() -> Value {
    aware(in_pool(pod("waits-for-a-calm-edge", "100m", "64Mi"), "edge"))
}

/// Returns whether the scheduler knows the usage of every node.
pub(super) fn is_known(snapshot: &Snapshot) -> bool {
    let metrics = snapshot.cluster.custom_objects().iter(CustomKindRef(&NODE_METRIC));
    // A NodeMetric is created before its first report is written.
    let is_reported = |value: &CustomValue| (NODE_METRIC.encode)(value)["status"]["updateTime"].is_string();
    metrics.filter(|metric| is_reported(&metric.value)).count() >= snapshot.cluster.present().len()
}
