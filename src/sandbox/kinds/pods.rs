//! The special rules of pods: priority, binding, eviction and graceful deletion.
//!
//! `binding` and `eviction`, the scheduler's two writes, are here with the errors of a real server.

use serde_json::{Value, json};

use crate::api::Api;
use crate::clock::seconds;
use crate::errors::{ApiError, ApiResult, FieldError};
use crate::fields::{list, text};
use crate::kinds::meta;
use crate::kinds::registry::Kind;
use crate::options::{DeleteOptions, Options};
use crate::selectors::LabelSelector;
use crate::store::{Key, Object};

/// Position of `spec.nodeName` in the field values of a pod.
pub(crate) const NODE_NAME: usize = 2;
/// Position of `status.phase` in the field values of a pod.
pub(crate) const PHASE: usize = 3;

pub(crate) const PRIORITY_CLASSES: &str = "priorityclasses.scheduling.k8s.io";

pub(crate) fn is_pod(kind: &Kind) -> bool {
    &*kind.storage == "pods"
}

/// Returns whether a pod has succeeded or failed.
pub(crate) fn is_finished(pod: &Object) -> bool {
    matches!(pod.field(PHASE), "Succeeded" | "Failed")
}

/// Returns whether a condition of a pod is true.
pub(crate) fn has_condition(pod: &Value, kind: &str) -> bool {
    list(&pod["status"]["conditions"]).iter().any(|c| c["type"] == kind && c["status"] == "True")
}

/// Returns whether a deleted pod still has time to end on its node.
pub(crate) fn is_running_out(pod: &Value) -> bool {
    pod["metadata"]["deletionGracePeriodSeconds"].as_i64().is_some_and(|grace| grace > 0)
}

/// Returns the grace period in seconds for a delete of a pod, or `None` for other kinds. A pod that is being deleted
/// keeps its period unless a delete names a shorter one. Negative periods count as one second.
pub(crate) fn grace(kind: &Kind, pod: &Value, wanted: Option<i64>) -> Option<i64> {
    if !is_pod(kind) {
        return None;
    }
    let at_least_one = |seconds: i64| if seconds < 0 { 1 } else { seconds };
    if let Some(left) = pod["metadata"]["deletionGracePeriodSeconds"].as_i64() {
        return Some(wanted.map_or(left, |wanted| at_least_one(wanted).min(left)));
    }
    let is_finished = matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed");
    if text(&pod["spec"]["nodeName"]).is_empty() || is_finished {
        return Some(0);
    }
    Some(at_least_one(wanted.or(pod["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30)))
}

fn class_of(api: &Api, name: &str) -> Option<Value> {
    api.store.get(PRIORITY_CLASSES, &("".into(), name.into())).map(|class| class.value())
}

fn builtin_priority(name: &str) -> Option<i64> {
    match name {
        "system-cluster-critical" => Some(2_000_000_000),
        "system-node-critical" => Some(2_000_001_000),
        _ => None,
    }
}

/// Returns the value of a priority class, or `None` if it does not exist.
pub(crate) fn class_value(api: &Api, name: &str) -> Option<i64> {
    let class = class_of(api, name);
    class.map(|class| class["value"].as_i64().unwrap_or_default()).or_else(|| builtin_priority(name))
}

/// Sets the priority and the preemption policy of a new pod. Fails if its class does not exist.
pub(crate) fn admit(api: &Api, pod: &mut Value) -> ApiResult<()> {
    let name = text(&pod["spec"]["priorityClassName"]).to_owned();
    let class = if name.is_empty() {
        let classes = api.store.list(PRIORITY_CLASSES, "").items;
        let defaults = classes.iter().map(|c| c.value()).filter(|c| c["globalDefault"] == true);
        // Concurrent creates can leave two default classes; the lower one counts.
        defaults.min_by_key(|class| class["value"].as_i64())
    } else {
        class_of(api, &name)
    };
    let refuse = |pod: &Value, why: &str| Err(ApiError::forbidden("", "pods", meta::text(pod, "name"), why));
    let (priority, policy) = match (&class, builtin_priority(&name)) {
        (Some(class), _) => (class["value"].as_i64().unwrap_or_default(), class["preemptionPolicy"].clone()),
        (None, Some(value)) => (value, Value::Null),
        (None, None) if name.is_empty() => (0, Value::Null),
        (None, None) => return refuse(pod, &format!("no PriorityClass with name {name} was found")),
    };
    if let (Some(class), true) = (&class, name.is_empty()) {
        pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
    }
    let policy = policy.as_str().unwrap_or("PreemptLowerPriority");
    if let Some(given) = pod["spec"]["priority"].as_i64().filter(|given| *given != priority) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
             controller computed {priority} from the given PriorityClass name"
        );
        return refuse(pod, &why);
    }
    if let Some(given) = pod["spec"]["preemptionPolicy"].as_str().filter(|given| *given != policy) {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return refuse(pod, &why);
    }
    pod["spec"]["priority"] = priority.into();
    pod["spec"]["preemptionPolicy"] = policy.into();
    Ok(())
}

/// Rejects a second default priority class.
pub(crate) fn only_default(api: &Api, class: &Value) -> ApiResult<()> {
    if class["globalDefault"] != true {
        return Ok(());
    }
    let name = meta::text(class, "name");
    let others = api.store.list(PRIORITY_CLASSES, "").items;
    let other = others.iter().find(|other| *other.key.1 != *name && other.value()["globalDefault"] == true);
    let Some(other) = other else { return Ok(()) };
    let why =
        format!("PriorityClass {} is already marked as default. Only one default can exist", other.key.1);
    Err(ApiError::forbidden("scheduling.k8s.io", "priorityclasses", name, &why))
}

/// Sets the condition of a new pod with scheduling gates.
pub(crate) fn gated_condition(pod: &mut Value, now: &str) {
    if !list(&pod["spec"]["schedulingGates"]).is_empty() {
        pod["status"]["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "lastProbeTime": null, "lastTransitionTime": now,
            "reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"
        }]);
    }
}

/// Sets a condition. Its transition time changes only with its status.
pub(crate) fn set_condition(pod: &mut Value, mut condition: Value, now: &str) {
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = now.into();
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = pod["status"]["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|c| c["type"] == condition["type"]) {
        Some(old) => {
            if old["status"] == condition["status"] {
                condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

impl Api {
    /// Applies a Binding, or refuses it as a real server does.
    pub(crate) fn bind(&self, kind: &Kind, key: &Key, binding: &Value, options: &Options) -> ApiResult<()> {
        let binding = &self.admit_body(kind, key, options, binding.clone(), None)?;
        let name = meta::text(binding, "name");
        if !name.is_empty() && name != &*key.1 {
            return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
        }
        let target = &binding["target"];
        let node = target["name"].as_str().unwrap_or_default();
        if !matches!(target["kind"].as_str(), None | Some("" | "Node")) {
            let error = FieldError::unsupported("target.kind", &target["kind"], &["Node", "<empty>"]);
            return Err(ApiError::internal(format!("{}: {}", error.field, error.message)));
        }
        if node.is_empty() {
            return Err(ApiError::internal("target.name: Required value"));
        }
        let now = seconds(self.clock.now());
        loop {
            let current = self.get(kind, key)?;
            let mut pod = current.value();
            assignable(&current, &pod, meta::text(binding, "uid"))?;
            pod["spec"]["nodeName"] = node.into();
            for field in ["annotations", "labels"] {
                for (name, value) in binding["metadata"][field].as_object().into_iter().flatten() {
                    pod["metadata"][field][name] = value.clone();
                }
            }
            set_condition(&mut pod, json!({"type": "PodScheduled", "status": "True"}), &now);
            pod["status"].as_object_mut().map(|status| status.remove("nominatedNodeName"));
            if options.dry_run || self.store.put(kind, Some(current.revision), pod).is_some() {
                return Ok(());
            }
        }
    }

    /// Applies an Eviction: checks the disruption budget, then deletes the pod.
    pub(crate) fn evict(&self, kind: &Kind, key: &Key, eviction: &Value, options: &Options) -> ApiResult<()> {
        let eviction = &self.admit_body(kind, key, options, eviction.clone(), None)?;
        let name = meta::text(eviction, "name");
        if !name.is_empty() && name != &*key.1 {
            let message = format!("name in URL does not match name in Eviction object: {} vs {name}", key.1);
            return Err(ApiError::bad_request(message));
        }
        let pod = self.get(kind, key)?;
        let mut delete = DeleteOptions::new(options, &eviction["deleteOptions"]);
        delete.dry_run |= options.dry_run;
        delete.requester = None;
        if !is_finished(&pod) && !pod.is_deleting && pod.field(PHASE) != "Pending" {
            self.ask_budget(&pod, delete.dry_run)?;
        }
        if !delete.dry_run && !is_finished(&pod) && !pod.is_deleting {
            let uid = delete.uid.as_deref().unwrap_or_default();
            self.note_eviction(kind, key, uid);
        }
        self.delete(kind, key, &delete).map(|_| ())
    }

    /// Sets the DisruptionTarget condition on a pod that is being evicted.
    fn note_eviction(&self, kind: &Kind, key: &Key, uid: &str) {
        let now = seconds(self.clock.now());
        // A pod that is gone is not deleted either, which is then said.
        let _ = self.edit(kind, key, |pod| {
            if uid.is_empty() || uid == meta::text(pod, "uid") {
                let condition = json!({
                    "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting"
                });
                set_condition(pod, condition, &now);
            }
            Ok(())
        });
    }

    /// Uses up one disruption of the pod's budget. Fails if none is allowed.
    fn ask_budget(&self, pod: &Object, dry_run: bool) -> ApiResult<()> {
        let Some(kind) = self.kind_of("poddisruptionbudgets.policy") else { return Ok(()) };
        let budgets = self.store.list(&kind.storage, &pod.key.0).items;
        let mut matching = budgets.into_iter().filter(|budget| {
            let selector = LabelSelector::from_object(&budget.value()["spec"]["selector"]);
            selector.is_some_and(|s| s.matches(&pod.labels))
        });
        let Some(first) = matching.next() else { return Ok(()) };
        if matching.next().is_some() {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(ApiError::internal(message));
        }
        loop {
            let current = self.get(&kind, &first.key)?;
            let mut budget = current.value();
            if is_unhealthy_and_free(&pod.value(), &budget) {
                return Ok(());
            }
            allowed(&budget)?;
            let left = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or_default();
            budget["status"]["disruptionsAllowed"] = (left - 1).into();
            budget["status"]["disruptedPods"][&*pod.key.1] = seconds(self.clock.now()).into();
            if dry_run || self.store.put(&kind, Some(current.revision), budget).is_some() {
                return Ok(());
            }
        }
    }
}

/// Returns whether an eviction needs no allowed disruption: the pod is not ready, and the budget is healthy or its
/// policy is `AlwaysAllow`.
fn is_unhealthy_and_free(pod: &Value, budget: &Value) -> bool {
    if has_condition(pod, "Ready") {
        return false;
    }
    let status = &budget["status"];
    let desired = status["desiredHealthy"].as_i64().unwrap_or_default();
    let is_healthy = desired > 0 && status["currentHealthy"].as_i64().unwrap_or_default() >= desired;
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || is_healthy
}

fn allowed(budget: &Value) -> ApiResult<()> {
    let name = meta::text(budget, "name");
    let (status, generation) = (&budget["status"], budget["metadata"]["generation"].as_i64());
    let refuse = |message: String, retry: Option<u32>| {
        Err(ApiError::budget(json!({"reason": "DisruptionBudget", "message": message}), retry))
    };
    if status["observedGeneration"].as_i64().unwrap_or_default() < generation.unwrap_or_default() {
        return refuse(
            format!("The disruption budget {name} is still being processed by the server."),
            Some(10),
        );
    }
    if status["disruptionsAllowed"].as_i64().unwrap_or_default() <= 0 {
        let message = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            status["desiredHealthy"], status["currentHealthy"]
        );
        return refuse(message, None);
    }
    Ok(())
}

/// Fails if a pod cannot be bound now.
fn assignable(current: &Object, pod: &Value, uid: &str) -> ApiResult<()> {
    let (namespace, name) = (&current.key.0, &*current.key.1);
    if !uid.is_empty() && uid != &*current.uid {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/pods/{namespace}/{name}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            current.uid
        );
        return Err(ApiError::conflict("", "pods", name, &why));
    }
    let refuse = |why: String| Err(ApiError::conflict("", "pods/binding", name, &why));
    if current.is_deleting {
        return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = current.field(NODE_NAME);
    if !node.is_empty() {
        return refuse(format!("pod {name} is already assigned to node \"{node}\""));
    }
    if !list(&pod["spec"]["schedulingGates"]).is_empty() {
        return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    Ok(())
}
