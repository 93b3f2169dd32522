//! Tests of decoding PodGroups of every API group.

use std::time::Duration;

use pellucid_api::keys::koordinator;
use pellucid_model::gang::{GangMode, GangTerms, GroupCondition, GroupPhase, GroupStatus, PodGroup};
use pellucid_model::requests::ResourceList;
use pellucid_model::{GangKey, Object, ObjectKind};
use serde_json::{Value, json};

use super::gang::{Pairs, lines, pairs};
use crate::decode::Decoder;

const X: ObjectKind = ObjectKind::PodGroupX;
const SIGS: ObjectKind = ObjectKind::PodGroupSigs;
const BATCH: ObjectKind = ObjectKind::PodGroupIncubator;
const NATIVE: ObjectKind = ObjectKind::PodGroupNative;

fn group(kind: ObjectKind, annotations: Pairs<'_>, spec: &Value, status: &Value) -> PodGroup {
    let object = json!({"metadata": {"name": "g", "namespace": "ns", "uid": "gu",
        "creationTimestamp": "1970-01-01T00:01:00Z", "annotations": pairs(annotations)},
        "spec": spec, "status": status});
    let Ok(Object::PodGroup(group)) = Decoder::default().object(kind, &object) else { panic!("a PodGroup") };
    assert_eq!((group.kind, &group.key, &*group.uid), (kind, &GangKey::new("ns", "g"), "gu"));
    group
}

fn spec_lines(kind: ObjectKind, spec: Value) -> Vec<String> {
    lines(&group(kind, &[], &spec, &Value::Null).problems)
}

#[test]
fn a_pod_group_is_read_with_its_annotations() {
    let spec = json!({"minMember": 4, "scheduleTimeoutSeconds": 30,
        "minResources": {"cpu": "1500m", "memory": "1Gi", "example.com/gpu": 8}});
    let annotations = [
        (koordinator::MODE, "NonStrict"),
        (koordinator::WAITING_TIME, "5s"),
        (koordinator::TOTAL_NUMBER, "2"),
    ];
    let group = group(SIGS, &annotations, &spec, &Value::Null);
    let resources = ResourceList {
        milli_cpu: 1500,
        memory: 1 << 30,
        scalars: Box::new([("example.com/gpu".into(), 8)]),
        ..ResourceList::default()
    };
    let total = "warning: metadata.annotations[gang.scheduling.koordinator.sh/total-number]: \
        below the quorum of 4, which is taken, got 2";
    assert_eq!(lines(&group.problems), [total]);
    let terms = GangTerms {
        min: Some(4),
        total: Some(4),
        mode: Some(GangMode::NonStrict),
        wait: Some(Duration::from_secs(30)),
        ..GangTerms::default()
    };
    assert_eq!((group.terms, group.min_resources, group.created), (terms, Some(resources), 60));
    assert!(!group.deleting && !group.is_basic);
}

#[test]
fn a_pod_group_that_cannot_be_used_is_there_and_says_why() {
    for (kind, spec, want) in [
        (X, json!({}), "spec.minMember: missing"),
        (X, Value::Null, "spec.minMember: missing"),
        (X, json!(7), "spec: not an object, got 7"),
        (X, json!({"minMember": "three"}), "spec.minMember: not a number of members, got three"),
        (X, json!({"minMember": 0}), "spec.minMember: must be 1 or more, and at most 2147483647, got 0"),
        (SIGS, json!({"minMember": -1}), "spec.minMember: must be 0 or more, and at most 2147483647, got -1"),
        (
            SIGS,
            json!({"minMember": 1, "minResources": {"cpu": "1x"}}),
            "spec.minResources.cpu: not a quantity: its suffix is unknown, got 1x",
        ),
        (
            SIGS,
            json!({"minMember": 1, "minResources": {"cpu": "-1"}}),
            "spec.minResources.cpu: must not be negative, got -1000",
        ),
        (
            X,
            json!({"minMember": 1, "scheduleTimeoutSeconds": -5}),
            "warning: spec.scheduleTimeoutSeconds: not a 32-bit number above zero, the default is taken, got -5",
        ),
        (BATCH, json!({"minMember": 1, "queue": {}}), "spec.queue: not a text, got (object)"),
    ] {
        assert_eq!(spec_lines(kind, spec.clone()), [want], "{kind:?} {spec}");
    }
    assert_eq!(spec_lines(SIGS, json!({"minMember": 0, "minResources": null})).len(), 0);
}

#[test]
fn a_native_pod_group_that_cannot_be_used_is_there_and_says_why() {
    for (spec, want) in [
        (json!({}), "spec.schedulingPolicy: has neither basic nor gang"),
        (
            json!({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 2}}}),
            "spec.schedulingPolicy: has both basic and gang, got (object)",
        ),
        (
            json!({"schedulingPolicy": {"gang": {"minCount": 0}}}),
            "spec.schedulingPolicy.gang.minCount: must be 1 or more, and at most 2147483647, got 0",
        ),
        (json!({"schedulingPolicy": {"gang": 3}}), "spec.schedulingPolicy.gang: not an object, got 3"),
        (
            json!({"schedulingPolicy": {"basic": {}}, "priority": "high"}),
            "spec.priority: not an integer, got high",
        ),
        (
            json!({"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": [{"key": "rack"}]}}),
            "warning: spec.schedulingConstraints.topology: not looked at by this scheduler, got (list)",
        ),
        (
            json!({"schedulingPolicy": {"basic": {}}, "parentCompositePodGroupName": "root"}),
            "warning: spec.parentCompositePodGroupName: not looked at by this scheduler, got root",
        ),
    ] {
        assert_eq!(spec_lines(NATIVE, spec.clone()), [want], "{spec}");
    }
}

#[test]
fn groups_of_kube_batch_and_of_kubernetes() {
    let spec = json!({"minMember": 2, "queue": "q", "priorityClassName": "urgent"});
    let batch = group(ObjectKind::PodGroupSigsDev, &[], &spec, &Value::Null);
    assert_eq!((&*batch.queue, batch.priority, batch.terms.min), ("q", None, Some(2)));
    let policy = json!({"gang": {"minCount": 3}});
    for (field, reference) in [
        ("podGroupTemplateRef", json!({"workload": {"workloadName": "w", "podGroupTemplateName": "t"}})),
        ("workloadRef", json!({"workloadName": "w", "templateName": "t"})),
    ] {
        let spec = json!({"schedulingPolicy": policy, "priority": -5, field: reference});
        let native = group(NATIVE, &[(koordinator::MODE, "NonStrict")], &spec, &Value::Null);
        assert_eq!((native.terms.min, native.terms.mode, native.is_basic), (Some(3), None, false));
        assert_eq!((native.priority, native.workload.as_deref()), (Some(-5), Some("w")), "{field}");
        assert_eq!(native.problems.len(), 0);
    }
    let basic =
        json!({"podGroupTemplateRef": null, "schedulingPolicy": {"basic": {}}, "disruptionMode": "Pod"});
    let basic = group(NATIVE, &[], &basic, &Value::Null);
    assert_eq!((basic.is_basic, basic.terms.min, basic.problems.len()), (true, None, 0));
}

#[test]
fn a_status_is_read_back_as_far_as_the_api_group_has_it() {
    let status = json!({"phase": "PreScheduling", "occupiedBy": "ns/job", "scheduled": 4, "running": 3,
        "succeeded": 2, "failed": -1, "scheduleStartTime": "1970-01-01T00:00:07Z",
        "conditions": [{"type": "DisruptionTarget", "status": "True"},
            {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled", "message": "m"},
            {"type": "Unschedulable", "status": "False", "reason": "r"}]});
    let spec = json!({"minMember": 1, "schedulingPolicy": {"basic": {}}});
    let read = |kind| group(kind, &[], &spec, &status).status;
    let sigs = GroupStatus {
        phase: Some(GroupPhase::PreScheduling),
        occupied_by: "ns/job".into(),
        scheduled: 4,
        running: 3,
        succeeded: 2,
        failed: 0,
        schedule_start: Some(7),
        condition: None,
    };
    assert_eq!(read(SIGS), sigs);
    let condition = |kind, is_true, reason: &str, message: &str| {
        Some(GroupCondition { kind, is_true, reason: reason.into(), message: message.into() })
    };
    let native = GroupStatus {
        condition: condition("PodGroupScheduled", true, "Scheduled", "m"),
        ..GroupStatus::default()
    };
    assert_eq!(read(NATIVE), native);
    let batch = read(BATCH);
    assert_eq!((batch.scheduled, batch.running, &*batch.occupied_by), (0, 3, ""));
    assert_eq!(batch.condition, condition("Unschedulable", false, "r", ""));
    let unknown = json!({"phase": "Inqueue", "running": "x"});
    assert_eq!(group(X, &[], &spec, &unknown).status, GroupStatus::default());
}
