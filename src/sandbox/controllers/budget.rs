//! Disruption budgets: how many pods are healthy, how many must be, and how many may be evicted.
//!
//! The expected number is the number of matching pods; the scale of their owners is not considered.

use serde_json::{Value, json};

use super::{BUDGETS, Rounding, set_status, share};
use crate::api::Api;
use crate::fields::list;
use crate::kinds::meta;
use crate::kinds::pods;
use crate::selectors::LabelSelector;
use crate::store::Object;

/// Updates the status of the budgets of a namespace.
pub(super) fn reconcile(api: &Api, namespace: &str) {
    let Some(kind) = api.kind_of(BUDGETS) else { return };
    let all = api.store.list("pods", namespace).items;
    for budget in api.store.list(BUDGETS, namespace).items {
        let value = budget.value();
        let Some(selector) = LabelSelector::from_object(&value["spec"]["selector"]) else { continue };
        let matching = all.iter().map(AsRef::as_ref).filter(|pod| selector.matches(&pod.labels));
        let matching: Vec<&Object> = matching.filter(|pod| !pods::is_finished(pod)).collect();
        set_status(api, &kind, &budget.key, &status(&value, &matching));
    }
}

fn status(budget: &Value, pods: &[&Object]) -> Value {
    let spec = &budget["spec"];
    let expected = pods.len() as i64;
    let part = |value: &Value| share(value, expected, Rounding::Up);
    let desired = match (&spec["minAvailable"], &spec["maxUnavailable"]) {
        (Value::Null, Value::Null) => (expected - 1).max(0),
        (Value::Null, most) => (expected - part(most)).max(0),
        (least, _) => part(least),
    };
    // Pods whose eviction was allowed and has not begun do not count as healthy.
    let mut disrupted = budget["status"]["disruptedPods"].clone();
    if let Some(fields) = disrupted.as_object_mut() {
        fields.retain(|name, _| pods.iter().any(|pod| *pod.key.1 == **name && !pod.is_deleting));
    }
    let is_healthy =
        |pod: &&&Object| pod.is_ready && !pod.is_deleting && disrupted.get(&*pod.key.1).is_none();
    let healthy = pods.iter().filter(is_healthy).count() as i64;
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let mut status = json!({
        "observedGeneration": budget["metadata"]["generation"], "expectedPods": expected, "desiredHealthy": desired,
        "currentHealthy": healthy, "disruptionsAllowed": allowed
    });
    if disrupted.as_object().is_some_and(|fields| !fields.is_empty()) {
        status["disruptedPods"] = disrupted;
    }
    let is_allowed = allowed > 0;
    let word = if is_allowed { "True" } else { "False" };
    let conditions = list(&budget["status"]["conditions"]);
    let old = conditions.iter().find(|c| c["type"] == "DisruptionAllowed" && c["status"] == word);
    let fresh = || {
        let reason = if is_allowed { "SufficientPods" } else { "InsufficientPods" };
        json!({
            "type": "DisruptionAllowed", "status": word, "reason": reason, "message": "",
            "observedGeneration": budget["metadata"]["generation"],
            "lastTransitionTime": meta::text(budget, "creationTimestamp")
        })
    };
    status["conditions"] = json!([old.cloned().unwrap_or_else(fresh)]);
    status
}
