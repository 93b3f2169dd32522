//! Builds the status of a PodGroup as a merge patch with the fields of its API group.
//!
//! A merge patch replaces lists, and other clients write conditions, too. So an order with a condition is merged with
//! the object that the API server holds, and the patch carries its `resourceVersion`. The transition time stays while
//! the condition's status stays. An order without a condition needs no read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pellucid_model::ObjectKind;
use pellucid_model::effect::GroupStatusOrder;
use pellucid_model::gang::{GroupCondition, GroupStatus};
use pellucid_model::group_status::GroupFields;
use serde_json::{Map, Value, json};

/// The version of native PodGroups (Kubernetes 1.36) whose condition may become false again.
const ALPHA2: &str = "v1alpha2";

/// Returns whether the object must be read before an order for it is written.
pub(crate) fn needs_read(order: &GroupStatusOrder) -> bool {
    GroupFields::of(order.kind).condition && order.status.condition.is_some()
}

/// Builds the patch. `held` is the object as the API server holds it, if it was read. Returns `None` when `held`
/// already has everything.
pub(crate) fn patch(
    order: &GroupStatusOrder,
    version: &str,
    held: Option<&Value>,
    now: jiff::Timestamp,
) -> Option<Value> {
    let status = order.status.held_by(order.kind);
    let mut fields = plain(order.kind, &status);
    let mut metadata = json!({"uid": order.uid});
    if let Some(held) = held {
        metadata["resourceVersion"] = held["metadata"]["resourceVersion"].clone();
        if let Some(condition) = &status.condition {
            let kind = condition_type(condition.kind, version);
            let conditions = conditions(condition, kind, &held["status"]["conditions"], now);
            fields.insert("conditions".into(), conditions);
        }
        fields.retain(|field, value| !is_same(value, &held["status"][field]));
        if fields.is_empty() {
            return None;
        }
    }
    Some(json!({"metadata": metadata, "status": fields}))
}

/// Returns all status fields except the conditions.
fn plain(kind: ObjectKind, status: &GroupStatus) -> Map<String, Value> {
    let has = GroupFields::of(kind);
    let mut fields = Map::new();
    if let Some(phase) = status.phase {
        fields.insert("phase".into(), json!(phase.as_str()));
    }
    if has.scheduled {
        fields.insert("scheduled".into(), json!(status.scheduled));
    }
    if has.counts {
        for (field, n) in
            [("running", status.running), ("succeeded", status.succeeded), ("failed", status.failed)]
        {
            fields.insert(field.into(), json!(n));
        }
    }
    if has.occupied {
        let owners = Some(&*status.occupied_by).filter(|owners| !owners.is_empty());
        fields.insert("occupiedBy".into(), json!(owners));
        let start = status.schedule_start.and_then(|at| jiff::Timestamp::from_second(at).ok());
        fields.insert("scheduleStartTime".into(), json!(start.map(Time)));
    }
    fields
}

/// Returns the name of the condition: the native one was renamed in Kubernetes 1.37.
fn condition_type<'a>(kind: &'a str, version: &str) -> &'a str {
    match kind {
        "PodGroupScheduled" if version != ALPHA2 => "PodGroupInitiallyScheduled",
        other => other,
    }
}

/// Returns the conditions that the API server holds, with ours added or replaced.
fn conditions(ours: &GroupCondition, kind: &str, held: &Value, now: jiff::Timestamp) -> Value {
    let mut all = held.as_array().cloned().unwrap_or_default();
    let known = all.iter_mut().find(|condition| condition["type"] == kind);
    let word = if ours.is_true { "True" } else { "False" };
    let mut new = json!({
        "type": kind,
        "status": word,
        "reason": &*ours.reason,
        "message": &*ours.message,
        "lastTransitionTime": Time(now),
    });
    match known {
        // By definition, it says that the group was scheduled once, and stays true.
        Some(known) if kind == "PodGroupInitiallyScheduled" && known["status"] == "True" => {}
        Some(known) => {
            if known["status"] == word && known["lastTransitionTime"].is_string() {
                new["lastTransitionTime"] = known["lastTransitionTime"].take();
            }
            *known = new;
        }
        None => all.push(new),
    }
    Value::Array(all)
}

/// Returns whether the API server holds a value. An absent field equals null and zero.
fn is_same(new: &Value, held: &Value) -> bool {
    new == held || (held.is_null() && (new.is_null() || *new == json!(0)))
}

#[cfg(test)]
mod tests {
    use pellucid_model::GangKey;
    use pellucid_model::gang::GroupPhase;

    use super::*;

    fn order(kind: ObjectKind, condition: Option<(&'static str, bool, &str)>) -> GroupStatusOrder {
        let condition = condition.map(|(kind, is_true, message)| GroupCondition {
            kind,
            is_true,
            reason: "Reason".into(),
            message: message.into(),
        });
        let status = GroupStatus {
            phase: Some(GroupPhase::Scheduled),
            occupied_by: "ns/job".into(),
            scheduled: 3,
            running: 2,
            succeeded: 1,
            failed: 0,
            schedule_start: Some(60),
            condition,
        };
        GroupStatusOrder { kind, group: GangKey::new("ns", "g"), uid: "u".into(), status }
    }

    fn at(seconds: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(seconds).expect("a time")
    }

    fn shown(kind: &str, status: &str, message: &str, since: &str) -> Value {
        json!({"type": kind, "status": status, "reason": "Reason", "message": message,
            "lastTransitionTime": since})
    }

    #[test]
    fn each_api_group_gets_its_own_fields() {
        let x = json!({"phase": "Scheduling", "occupiedBy": "ns/job", "running": 2, "succeeded": 1,
            "failed": 0, "scheduleStartTime": "1970-01-01T00:01:00Z"});
        let mut sigs = x.clone();
        sigs["phase"] = json!("Scheduled");
        sigs["scheduled"] = json!(3);
        let batch = json!({"phase": "Running", "running": 2, "succeeded": 1, "failed": 0});
        for (kind, want) in [
            (ObjectKind::PodGroupX, x),
            (ObjectKind::PodGroupSigs, sigs),
            (ObjectKind::PodGroupIncubator, batch.clone()),
            (ObjectKind::PodGroupSigsDev, batch),
        ] {
            let patch = patch(&order(kind, None), "v1alpha1", None, at(0)).expect("a patch");
            assert_eq!(patch, json!({"metadata": {"uid": "u"}, "status": want}), "{kind:?}");
        }
        let mut none = order(ObjectKind::PodGroupX, None);
        none.status = GroupStatus::default();
        let patch = patch(&none, "v1alpha1", None, at(0)).expect("a patch");
        assert_eq!((&patch["status"]["occupiedBy"], &patch["status"]["phase"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn a_condition_joins_those_of_others_and_keeps_its_time_while_it_stays() {
        let disruption = json!({"type": "DisruptionTarget", "status": "False"});
        let before = shown("PodGroupScheduled", "False", "old", "1970-01-01T00:00:01Z");
        let held =
            json!({"metadata": {"resourceVersion": "9"}, "status": {"conditions": [disruption, before]}});
        for (is_true, message, want) in [
            (false, "old", None),
            (false, "new", Some(shown("PodGroupScheduled", "False", "new", "1970-01-01T00:00:01Z"))),
            (true, "old", Some(shown("PodGroupScheduled", "True", "old", "1970-01-01T00:00:05Z"))),
        ] {
            let order = order(ObjectKind::PodGroupNative, Some(("PodGroupScheduled", is_true, message)));
            let want = want.map(|ours| {
                json!({"metadata": {"uid": "u", "resourceVersion": "9"},
                    "status": {"conditions": [disruption, ours]}})
            });
            assert_eq!(patch(&order, "v1alpha2", Some(&held), at(5)), want);
        }
    }

    #[test]
    fn the_condition_of_kubernetes_1_37_stays_true() {
        let order = |is_true| order(ObjectKind::PodGroupNative, Some(("PodGroupScheduled", is_true, "m")));
        let empty = json!({"metadata": {"resourceVersion": "9"}, "status": {}});
        let first = patch(&order(true), "v1beta1", Some(&empty), at(5)).expect("a patch");
        let kind = "PodGroupInitiallyScheduled";
        assert_eq!(first["status"]["conditions"], json!([shown(kind, "True", "m", "1970-01-01T00:00:05Z")]));
        assert_eq!(patch(&order(false), "v1beta1", Some(&first), at(9)), None);
    }

    #[test]
    fn only_what_changed_is_written_where_the_object_was_read() {
        let unschedulable = shown("Unschedulable", "True", "m", "1970-01-01T00:00:01Z");
        let held = json!({"metadata": {"resourceVersion": "9"},
            "status": {"phase": "Running", "running": 1, "succeeded": 1, "conditions": [unschedulable]}});
        let order = order(ObjectKind::PodGroupIncubator, Some(("Unschedulable", true, "m")));
        assert!(needs_read(&order));
        let patch = patch(&order, "v1alpha1", Some(&held), at(5)).expect("a patch");
        assert_eq!(patch["status"], json!({"running": 2}));
    }
}
