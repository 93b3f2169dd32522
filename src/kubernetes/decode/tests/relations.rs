//! Tests of decoding what relates a pod to others, its volumes, and what else plugins of 1.36 read.

use std::sync::Arc;

use pellucid_model::relations::{NodeInclusion, OwnerKind};
use pellucid_model::selector::{LabelSelector, Operator, Requirement};
use pellucid_model::storage::{ClaimUse, Disk};
use pellucid_model::{Name, Pod, PodSpec};
use serde_json::{Value, json};

use crate::decode::Decoder;

fn object(spec: Value) -> Value {
    json!({"metadata": {"name": "p", "namespace": "ns", "uid": "u",
        "labels": {"app": "web", "rev": "3"}}, "spec": spec})
}

fn pod(object: &Value) -> Pod {
    Decoder::default().pod(object).expect("readable")
}

fn spec(spec: Value) -> Arc<PodSpec> {
    pod(&object(spec)).spec
}

fn selector(all: &[(&str, Operator, &[&str])]) -> LabelSelector {
    LabelSelector::new(all.iter().map(|(key, operator, values)| Requirement {
        key: (*key).into(),
        operator: *operator,
        values: values.iter().map(|v| Name::new(v)).collect(),
    }))
}

#[test]
fn the_controller_counts_if_it_is_of_a_kind_that_selects_pods() {
    let with = |references: Value| {
        let mut object = object(json!({}));
        object["metadata"]["ownerReferences"] = references;
        pod(&object).spec.owner.clone()
    };
    let reference = |version: &str, kind: &str, controller: bool| json!({"apiVersion": version, "kind": kind, "name": "o", "uid": "x", "controller": controller});
    let owner = with(json!([reference("v1", "Node", false), reference("apps/v1", "ReplicaSet", true)]));
    let owner = owner.expect("an owner");
    assert_eq!((owner.kind, &*owner.name), (OwnerKind::ReplicaSet, "o"));
    for (version, kind) in [("batch/v1", "Job"), ("apps/v1beta1", "ReplicaSet"), ("v1", "StatefulSet")] {
        assert_eq!(with(json!([reference(version, kind, true)])), None, "{version} {kind}");
    }
    assert_eq!(with(json!([reference("apps/v1", "StatefulSet", false)])), None);
    let kind = with(json!([reference("v1", "ReplicationController", true)])).map(|o| o.kind);
    assert_eq!(kind, Some(OwnerKind::ReplicationController));
}

#[test]
fn pod_affinity_terms() {
    let spec = spec(json!({"affinity": {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "zone", "namespaces": ["b", "a"], "namespaceSelector": {},
            "labelSelector": {"matchLabels": {"x": "1"},
                "matchExpressions": [{"key": "y", "operator": "Exists"}]}}]},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 7, "podAffinityTerm": {"topologyKey": "host"}}]}}}));
    let [term] = &*spec.pod_affinity.required else { panic!("one term") };
    assert_eq!((&*term.topology_key, &*term.namespaces), ("zone", &["a", "b"].map(Name::new)[..]));
    let want = selector(&[("x", Operator::In, &["1"]), ("y", Operator::Exists, &[])]);
    assert_eq!(term.selector, Some(want));
    assert_eq!(term.namespace_selector, Some(LabelSelector::default()));
    let [weighted] = &*spec.pod_anti_affinity.preferred else { panic!("one term") };
    assert_eq!((weighted.weight, &weighted.term.selector), (7, &None));
    assert!(weighted.term.namespaces.is_empty() && weighted.term.namespace_selector.is_none());
}

#[test]
fn label_keys_are_merged_once_and_only_if_the_pod_has_the_label() {
    let terms = |selector: Value| {
        let spec =
            spec(json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            [{"topologyKey": "zone", "labelSelector": selector,
                "matchLabelKeys": ["rev", "none"], "mismatchLabelKeys": ["app"]}]}}}));
        spec.pod_affinity.required[0].selector.clone()
    };
    let want =
        |rev: &str| Some(selector(&[("rev", Operator::In, &[rev]), ("app", Operator::NotIn, &["web"])]));
    assert_eq!(terms(json!({})), want("3"));
    // The API server merged the keys when the label had another value.
    let merged = json!({"matchExpressions": [{"key": "rev", "operator": "In", "values": ["2"]},
        {"key": "app", "operator": "NotIn", "values": ["web"]}]});
    assert_eq!(terms(merged), want("2"));
    assert_eq!(terms(Value::Null), None);
    let spec = spec(json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, "matchLabelKeys": ["rev"]}]}));
    assert_eq!(spec.spread[0].selector, Some(selector(&[("rev", Operator::In, &["3"])])));
}

#[test]
fn spread_constraints_have_defaults() {
    let spec = spec(json!({"topologySpreadConstraints": [
        {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
        {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 3,
            "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", "labelSelector": {}}]}));
    let [one, two] = &*spec.spread else { panic!("two constraints") };
    assert_eq!((one.max_skew, one.is_hard, one.min_domains, &one.selector), (2, true, 1, &None));
    let policies = (one.node_affinity_policy, one.node_taints_policy);
    assert_eq!(policies, (NodeInclusion::Honor, NodeInclusion::Ignore));
    assert_eq!((two.is_hard, two.min_domains, &two.selector), (false, 3, &Some(LabelSelector::default())));
    let policies = (two.node_affinity_policy, two.node_taints_policy);
    assert_eq!(policies, (NodeInclusion::Ignore, NodeInclusion::Honor));
}

#[test]
fn volumes_are_claims_and_disks() {
    let spec = spec(json!({"volumes": [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "d", "gcePersistentDisk": {"pdName": "disk", "readOnly": true}},
        {"name": "e", "awsElasticBlockStore": {"volumeID": "vol-1"}},
        {"name": "f", "iscsi": {"iqn": "iqn.x", "targetPortal": "t", "lun": 0}},
        {"name": "g", "rbd": {"monitors": ["m2", "m1"], "image": "i"}}]}));
    let claims = [
        ClaimUse { claim: "data".into(), owner: None },
        ClaimUse { claim: "p-c".into(), owner: Some("u".into()) },
    ];
    assert_eq!(&*spec.volumes.claims, &claims);
    let disks = [
        Disk::GcePersistentDisk { name: "disk".into(), read_only: true },
        Disk::AwsElasticBlockStore { id: "vol-1".into() },
        Disk::Iscsi { iqn: "iqn.x".into(), read_only: false },
        Disk::Rbd {
            monitors: ["m2", "m1"].map(Name::new).into(),
            pool: "rbd".into(),
            image: "i".into(),
            read_only: false,
        },
    ];
    assert_eq!(&*spec.volumes.disks, &disks);
}

#[test]
fn preemption_start_and_claims() {
    let mut object = object(json!({"preemptionPolicy": "Never", "resourceClaims": [{"name": "gpu"}]}));
    object["status"] = json!({"startTime": "1970-01-01T00:01:00Z", "conditions": [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]});
    let read = pod(&object);
    assert_eq!((read.never_preempts, read.started, read.is_preempted), (true, Some(60), true));
    assert_eq!(&*read.spec.resource_claims, ["gpu"].map(Name::new));
    object["status"]["conditions"][0]["reason"] = json!("EvictionByEvictionAPI");
    object["spec"]["preemptionPolicy"] = json!("PreemptLowerPriority");
    let read = pod(&object);
    assert!(!read.is_preempted && !read.never_preempts);
}

#[test]
fn features_are_inferred_from_what_the_pod_uses() {
    let features = |own: Value| -> Vec<_> { spec(own).required_features.to_vec() };
    let rules = |action: &str| json!([{"name": "c", "restartPolicyRules": [{"action": action}]}]);
    assert!(features(json!({"hostNetwork": true, "containers": rules("Restart")})).is_empty());
    assert!(features(json!({"hostUsers": false})).is_empty());
    let restarts = rules("RestartAllContainers");
    let both = features(json!({"hostUsers": false, "hostNetwork": true, "initContainers": restarts}));
    let want = ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"];
    assert_eq!(both, want.map(Name::new));
}

#[test]
fn faults_name_the_field() {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let term = |term: Value| json!({"affinity": {"podAffinity": {required: [term]}}});
    let selects = |operator: &str| {
        term(json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": operator}]}}))
    };
    let constraint = |field: &str, value: Value| {
        let mut own = json!({"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"});
        own[field] = value;
        json!({"topologySpreadConstraints": [own]})
    };
    let claim = "persistentVolumeClaim";
    let volume = |volume: Value| json!({"volumes": [volume]});
    let of_volume = |rest: &str| format!("volumes[0].{rest}");
    let at = |rest: &str| format!("affinity.podAffinity.{required}[0].{rest}");
    let spread = |rest: &str| format!("topologySpreadConstraints[0].{rest}");
    for (spec, field, problem) in [
        (term(json!({})), at("topologyKey"), "missing"),
        (selects("Gt"), at("labelSelector.matchExpressions[0].operator"), "unknown label selector operator"),
        (selects("In"), at("labelSelector.matchExpressions[0].values"), "operator In needs at least one"),
        (
            term(json!({"topologyKey": "k", "namespaceSelector": {"matchLabels": {"a": 1}}})),
            at("namespaceSelector.matchLabels.a"),
            "not a text",
        ),
        (constraint("maxSkew", json!(0)), spread("maxSkew"), "must be 1 or more"),
        (constraint("minDomains", json!("2")), spread("minDomains"), "not an integer"),
        (constraint("whenUnsatisfiable", json!("Panic")), spread("whenUnsatisfiable"), "unknown action"),
        (
            constraint("nodeTaintsPolicy", json!("Maybe")),
            spread("nodeTaintsPolicy"),
            "unknown node inclusion policy",
        ),
        (
            json!({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
                [{"weight": 1.5}]}}}),
            "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight".into(),
            "not an integer",
        ),
        (json!({"preemptionPolicy": "Sometimes"}), "preemptionPolicy".into(), "unknown preemption policy"),
        (volume(json!({claim: {}})), of_volume(&format!("{claim}.claimName")), "missing"),
        (volume(json!({"ephemeral": {}})), of_volume("name"), "missing"),
        (volume(json!({"rbd": {"readOnly": 1}})), of_volume("rbd.readOnly"), "not true or false"),
    ] {
        let q = Decoder::default().pod(&object(spec)).expect_err("unreadable");
        assert_eq!((&*q.field, &*q.problem), (format!("spec.{field}").as_str(), problem));
    }
}
