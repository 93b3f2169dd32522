//! What the recordings of ElasticQuota do not have: other arguments, deleted quotas, and classes of priority.

use serde_json::{Value, json};

use super::{Case, PriorityClasses};

fn node() -> Value {
    let offer = json!({"cpu": "100", "memory": "100Gi", "pods": "110"});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": offer}})
}

fn quota(name: &str, parent: &str, max: &Value) -> Value {
    let labels = json!({
        "quota.scheduling.koordinator.sh/parent": parent,
        "quota.scheduling.koordinator.sh/is-parent": if name == "org" { "true" } else { "false" },
    });
    json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": {"max": max},
    })
}

fn pod(name: &str, of: &str, cpu: &str) -> Value {
    let containers = json!([{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]);
    json!({
        "apiVersion": "v1", "kind": "Pod", "spec": {"schedulerName": "koord-scheduler", "containers": containers},
        "metadata": {
            "name": name, "namespace": "default", "labels": {"quota.scheduling.koordinator.sh/name": of},
        },
    })
}

#[test]
fn refusals_name_the_quota_as_koordinator_does_whatever_the_arguments_say() {
    let (cpu, both) = (|n: &str| json!({"cpu": n}), json!({"cpu": "9", "memory": "1Gi"}));
    let objects = json!([
        node(),
        quota("org", "koordinator-root-quota", &cpu("3")),
        quota("leaf", "org", &cpu("4")),
        quota("sibling", "org", &both),
    ]);
    let (no_runtime, parents) =
        (json!({"enableRuntimeQuota": false}), json!({"enableCheckParentQuota": true}));
    let neither = json!({"enableRuntimeQuota": false, "enableCheckParentQuota": true});
    let said = |name: &str, limit: &str, request: &str| {
        format!(
            "Insufficient quotas, {name}, runtime: {limit}, used: <empty>, pod's request: cpu:{request}, exceedDimensions: [cpu]"
        )
    };
    for (args, request, message) in [
        (&parents, "5", said("quotaName: leaf", "cpu:3", "5")),
        (&no_runtime, "5", said("quotaName: leaf", "cpu:4", "5")),
        (&neither, "5", said("quotaName: leaf", "cpu:4", "5")),
        (&neither, "3500m", said("quotaNameTopo: [org leaf]", "cpu:3", "3500m")),
    ] {
        let case = json!({"id": format!("{args} {request}"), "objects": objects, "args": args});
        let step = json!({"pod": pod("p", "leaf", request), "message": message});
        assert_eq!(Case::new(&case).check_steps(&[step]), 1);
    }
}

#[test]
fn objects_of_every_kind_are_deleted_and_classes_are_read() {
    let mut class = json!({"kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 7});
    class["preemptionPolicy"] = json!("Never");
    let mut classes = PriorityClasses::default();
    classes.put(&class);
    for (spec, expected) in [
        (json!({"priorityClassName": "urgent"}), json!([7, "Never"])),
        (json!({"priorityClassName": "p3"}), json!([3, null])),
        (json!({"priorityClassName": "n10"}), json!([10, "Never"])),
        (json!({"priorityClassName": "p3", "priority": 9}), json!([9, null])),
        (json!({}), json!([0, null])),
    ] {
        let mut pod = json!({"spec": spec});
        classes.admit(&mut pod);
        assert_eq!(json!([pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]]), expected, "{spec}");
    }
    let own = quota("leaf", "koordinator-root-quota", &json!({"cpu": "4"}));
    let mut case = Case::new(&json!({"id": "deleted", "objects": [node(), own]}));
    assert!(case.quotas()["leaf"].is_object());
    case.delete(&own);
    case.settle();
    assert!(case.quotas()["leaf"].is_null());
}
