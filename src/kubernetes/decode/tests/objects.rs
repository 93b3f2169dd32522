//! Tests of decoding the kinds beside Pods and Nodes.

use std::sync::Arc;

use pellucid_model::object::Workload;
use pellucid_model::selector::{LabelSelector, Operator, Requirement};
use pellucid_model::storage::{
    AccessModes, ClaimPhase, ClaimRef, CsiVolume, PersistentVolume, PersistentVolumeClaim,
};
use pellucid_model::{Name, Object, ObjectKind};
use serde_json::{Value, json};

use crate::decode::Decoder;

fn read(kind: ObjectKind, value: &Value) -> Object {
    let object = Decoder::default().object(kind, value).expect("readable");
    assert_eq!(object.kind(), kind);
    object
}

/// Reads an object, as the type that the model has for its kind.
macro_rules! read_as {
    ($kind:ident, $value:expr) => {
        match read(ObjectKind::$kind, &$value) {
            Object::$kind(object) => object,
            other => panic!("{other:?}"),
        }
    };
}

fn fault(kind: ObjectKind, value: &Value) -> (Arc<str>, Arc<str>) {
    let q = Decoder::default().object(kind, value).expect_err("unreadable");
    assert_eq!(q.kind, kind.as_str());
    (q.field, q.problem)
}

fn web() -> Option<LabelSelector> {
    let values = Box::new(["web".into()]);
    Some(LabelSelector::new([Requirement { key: "app".into(), operator: Operator::In, values }]))
}

#[test]
fn every_kind_is_read_from_its_name_alone_and_refused_without() {
    for kind in ObjectKind::ALL {
        let object = read(kind, &json!({"metadata": {"name": "o", "namespace": "ns"}}));
        assert_eq!(&*object.key().1, "o");
        assert_eq!(&*fault(kind, &json!({})).0, "metadata.name", "{kind:?}");
        assert_eq!(&*fault(kind, &json!(7)).0, "");
        assert_eq!(&*fault(kind, &json!({"metadata": []})).0, "metadata");
    }
}

#[test]
fn what_selects_pods() {
    let with = |kind, selector: Value| {
        let spec = json!({"selector": selector, "replicas": 0});
        let value = json!({"metadata": {"name": "o", "namespace": "ns"}, "spec": spec});
        read(kind, &value).pod_selector().cloned()
    };
    let labels = json!({"matchLabels": {"app": "web"}});
    for kind in [ObjectKind::Service, ObjectKind::ReplicationController] {
        assert_eq!(with(kind, json!({"app": "web"})), web());
        assert_eq!(with(kind, json!({})), None, "no pairs select nothing");
        assert_eq!(with(kind, Value::Null), None);
    }
    for kind in [ObjectKind::ReplicaSet, ObjectKind::StatefulSet] {
        assert_eq!(with(kind, labels.clone()), web());
        assert_eq!(with(kind, json!({})), Some(LabelSelector::default()));
        assert_eq!(with(kind, Value::Null), None);
    }
    let object = json!({"metadata": {"name": "o"}, "spec": {"selector": {"app": 1}}});
    assert_eq!(&*fault(ObjectKind::Service, &object).0, "spec.selector.app");
    let object = json!({"metadata": {"name": "o"},
        "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}});
    let field = "spec.selector.matchExpressions[0].operator";
    assert_eq!(&*fault(ObjectKind::ReplicaSet, &object).0, field);
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": true}]);
    let set = read_as!(ReplicaSet, json!({"metadata": {"name": "web-1", "ownerReferences": owner}}));
    let controller = set.controller.map(|c| (c.kind.to_string(), c.name.to_string()));
    assert_eq!(controller, Some(("Deployment".to_owned(), "web".to_owned())));
    let set = read_as!(StatefulSet, json!({"metadata": {"name": "o", "namespace": "ns"}}));
    assert_eq!(
        set,
        Workload {
            namespace: "ns".into(),
            name: "o".into(),
            selector: None,
            replicas: Some(1),
            controller: None
        }
    );
}

#[test]
fn namespaces_and_budgets() {
    let namespace = read_as!(Namespace, json!({"metadata": {"name": "ns", "labels": {"a": "1"}}}));
    assert_eq!(namespace.labels.get(&"a".into()), Some(&"1".into()));
    let value = json!({"metadata": {"name": "b", "namespace": "ns"},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}}});
    let budget = read_as!(PodDisruptionBudget, value);
    assert_eq!((budget.allowed, budget.selector), (2, web()));
    assert_eq!(budget.disrupted.iter().map(|p| &**p).collect::<Vec<_>>(), ["p"]);
}

#[test]
fn a_volume() {
    let value = json!({"metadata": {"name": "pv", "uid": "u", "resourceVersion": "7", "labels": {"a": "1"},
            "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"capacity": {"storage": "1.5Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "storageClassName": "fast", "volumeAttributesClassName": "gold", "volumeMode": "Block",
            "claimRef": {"namespace": "ns", "name": "c", "uid": "cu"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["z"]}]}]}},
            "csi": {"driver": "d", "volumeHandle": "h"}},
        "status": {"phase": "Bound"}});
    let volume = read_as!(PersistentVolume, value);
    let terms = volume.node_affinity.clone().expect("terms");
    assert_eq!(&*terms[0].expressions[0].key, "zone");
    let want = PersistentVolume {
        name: "pv".into(),
        uid: "u".into(),
        resource_version: "7".into(),
        labels: volume.labels.clone(),
        capacity: 3 << 29,
        access_modes: AccessModes::RWO.with(AccessModes::ROX),
        class: "fast".into(),
        attributes_class: "gold".into(),
        is_block: true,
        claim: Some(ClaimRef { namespace: "ns".into(), name: "c".into(), uid: "cu".into() }),
        node_affinity: Some(terms),
        is_free: false,
        deleting: true,
        csi: Some(CsiVolume { driver: "d".into(), handle: "h".into(), migrated_from: None }),
    };
    assert_eq!(volume, want);
    for (change, field, problem) in [
        (json!({"accessModes": ["Sometimes"]}), "spec.accessModes[0]", "unknown access mode"),
        (json!({"volumeMode": "Tape"}), "spec.volumeMode", "unknown volume mode"),
        (
            json!({"capacity": {"storage": "much"}}),
            "spec.capacity.storage",
            "not a quantity: it has no digits",
        ),
        (json!({"gcePersistentDisk": {}}), "spec.gcePersistentDisk.pdName", "missing"),
    ] {
        let value = json!({"metadata": {"name": "pv"}, "spec": change});
        let (at, what) = fault(ObjectKind::PersistentVolume, &value);
        assert_eq!((&*at, &*what), (field, problem));
    }
}

#[test]
fn a_volume_is_free_once_its_controller_has_looked_at_it() {
    let is_free = |status: Value| {
        let value = json!({"metadata": {"name": "pv"}, "spec": {}, "status": status});
        read_as!(PersistentVolume, value).is_free
    };
    assert!(is_free(json!({"phase": "Available"})) && is_free(json!({})));
    for phase in ["Pending", "Bound", "Released", "Failed"] {
        assert!(!is_free(json!({"phase": phase})), "{phase}");
    }
}

#[test]
fn volumes_of_clouds_are_those_of_their_csi_drivers() {
    let csi = |source: Value, labels: Value| {
        let value = json!({"metadata": {"name": "pv", "labels": labels}, "spec": source});
        let volume = read_as!(PersistentVolume, value);
        assert!(volume.is_free);
        volume.csi
    };
    let migrated = |plugin: &str, driver: &str, handle: &str| {
        let migrated_from = Some(Name::new(&format!("kubernetes.io/{plugin}")));
        Some(CsiVolume { driver: driver.into(), handle: handle.into(), migrated_from })
    };
    for (source, plugin, driver, handle) in [
        (json!({"awsElasticBlockStore": {"volumeID": "aws://eu/v-1"}}), "aws-ebs", "ebs.csi.aws.com", "v-1"),
        (json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}), "aws-ebs", "ebs.csi.aws.com", "vol-1"),
        (json!({"azureDisk": {"diskName": "n", "diskURI": "/d"}}), "azure-disk", "disk.csi.azure.com", "/d"),
        (json!({"azureFile": {"shareName": "s"}}), "azure-file", "file.csi.azure.com", "pv"),
        (json!({"cinder": {"volumeID": "c"}}), "cinder", "cinder.csi.openstack.org", "c"),
        (
            json!({"vsphereVolume": {"volumePath": "[ds] v"}}),
            "vsphere-volume",
            "csi.vsphere.vmware.com",
            "[ds] v",
        ),
        (json!({"portworxVolume": {"volumeID": "p"}}), "portworx-volume", "pxd.portworx.com", "p"),
    ] {
        assert_eq!(csi(source, json!({})), migrated(plugin, driver, handle));
    }
    let zones = |zones: &str| json!({"topology.kubernetes.io/zone": zones});
    for (labels, place) in [
        (zones("eu-west1-b"), "zones/eu-west1-b"),
        (zones("eu-west1-b__eu-west1-c"), "regions/eu-west1"),
        (json!({}), "zones/UNSPECIFIED"),
    ] {
        let disk = csi(json!({"gcePersistentDisk": {"pdName": "d"}}), labels);
        let handle = format!("projects/UNSPECIFIED/{place}/disks/d");
        assert_eq!(disk, migrated("gce-pd", "pd.csi.storage.gke.io", &handle));
    }
    assert_eq!(csi(json!({"nfs": {"server": "s"}}), json!({})), None);
}

#[test]
fn a_claim() {
    let value = json!({"metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "3",
            "annotations": {"volume.kubernetes.io/selected-node": "n1", "other": {"bad": []},
                "pv.kubernetes.io/bind-completed": "yes"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pu", "controller": true}]},
        "spec": {"resources": {"requests": {"storage": "1500m"}}, "accessModes": ["ReadWriteOncePod"],
            "storageClassName": "", "volumeAttributesClassName": "gold", "volumeName": "pv", "selector": {"matchLabels": {"app": "web"}}},
        "status": {"phase": "Bound"}});
    let claim = read_as!(PersistentVolumeClaim, value);
    let want = PersistentVolumeClaim {
        namespace: "ns".into(),
        name: "c".into(),
        uid: "u".into(),
        resource_version: "3".into(),
        requested: 2,
        access_modes: AccessModes::RWOP,
        class: Some("".into()),
        attributes_class: "gold".into(),
        is_block: false,
        selector: web(),
        volume: "pv".into(),
        phase: ClaimPhase::Bound,
        selected_node: Some("n1".into()),
        bind_completed: true,
        owner_pod: Some("pu".into()),
        deleting: false,
    };
    assert_eq!(claim, want);
    let class = |annotation: Value, class: Value| {
        let value = json!({"metadata": {"name": "c",
                "annotations": {"volume.beta.kubernetes.io/storage-class": annotation}},
            "spec": {"storageClassName": class}});
        read_as!(PersistentVolumeClaim, value).class
    };
    assert_eq!(class(json!("old"), json!("new")), Some("old".into()));
    assert_eq!(class(Value::Null, json!("new")), Some("new".into()));
    assert_eq!(class(Value::Null, Value::Null), None);
    let value = json!({"metadata": {"name": "c", "annotations": {"volume.kubernetes.io/selected-node": 1}}});
    let want = "metadata.annotations.volume.kubernetes.io/selected-node";
    assert_eq!(&*fault(ObjectKind::PersistentVolumeClaim, &value).0, want);
}

#[test]
fn classes_and_what_drivers_say() {
    let value = json!({"metadata": {"name": "fast"}, "provisioner": "p",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}]});
    let class = read_as!(StorageClass, value);
    assert!(class.waits_for_consumer && &*class.provisioner == "p");
    let requirement = &class.allowed_topologies[0][0];
    let (key, n_values) = (&*requirement.key, requirement.values.len());
    assert_eq!((key, requirement.operator, n_values), ("zone", Operator::In, 2));

    let value = json!({"metadata": {"name": "n", "annotations":
            {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"}},
        "spec": {"drivers": [{"name": "d", "nodeID": "x", "allocatable": {"count": 25}}, {"name": "e"}]}});
    let node = read_as!(CsiNode, value);
    assert_eq!(&*node.migrated, ["kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"].map(Name::new));
    assert_eq!(node.drivers.iter().map(|d| d.count).collect::<Vec<_>>(), [Some(25), None]);

    let spec = json!({"storageCapacity": true, "preventPodSchedulingIfMissing": true});
    let driver = read_as!(CsiDriver, json!({"metadata": {"name": "d"}, "spec": spec}));
    assert!(driver.tracks_capacity && driver.required_on_node);

    let capacity = |change: Value| {
        let mut value = json!({"metadata": {"name": "c", "namespace": "ns"}, "storageClassName": "fast",
            "nodeTopology": {"matchLabels": {"app": "web"}}, "capacity": "2Gi"});
        value["maximumVolumeSize"] = change;
        let capacity = read_as!(CsiStorageCapacity, value);
        assert_eq!((&*capacity.class, capacity.nodes), ("fast", web()));
        capacity.largest
    };
    assert_eq!((capacity(json!("1Gi")), capacity(Value::Null)), (Some(1 << 30), Some(2 << 30)));

    let spec = json!({"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "pv"}});
    let attachment = read_as!(VolumeAttachment, json!({"metadata": {"name": "a"}, "spec": spec}));
    assert_eq!((&*attachment.driver, &*attachment.node, &*attachment.volume), ("d", "n", "pv"));
}

#[test]
fn a_queue_that_cannot_be_used_is_there_and_says_why() {
    let of = |spec: Value| read_as!(QueueIncubator, json!({"metadata": {"name": "q"}, "spec": spec}));
    let plain =
        of(json!({"weight": 3, "capability": {"memory": "1Gi", "cpu": "1500m", "nvidia.com/gpu": 0}}));
    assert_eq!((plain.weight, plain.problems.len()), (Some(3), 0));
    let limits = plain.capability.iter().map(|(name, amount)| (name.as_str(), *amount));
    assert_eq!(limits.collect::<Vec<_>>(), [("cpu", 1500), ("memory", 1 << 30), ("nvidia.com/gpu", 0)]);
    let bad =
        of(json!({"weight": -1, "capability": {"cpu": "-2", "memory": {}, "x/y": "much", "z/y": null}}));
    let lines: Vec<String> = bad.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "spec.weight: negative; it counts as 0, so the queue deserves nothing, got -1",
            "spec.capability.cpu: negative; it counts as 0, got -2",
            "spec.capability.memory: not a quantity; the resource has no limit, got (object)",
            "spec.capability.x/y: not a quantity: it has no digits; the resource has no limit, got much",
        ]
    );
    assert_eq!((bad.weight, &*bad.capability), (Some(0), &[(Name::new("cpu"), 0)][..]));
    let weight = of(json!({"weight": 1.5}));
    assert_eq!((weight.weight, weight.problems.len()), (None, 1));
    let shapeless = of(json!([]));
    assert_eq!((shapeless.weight, &*shapeless.problems[0].field), (None, "spec"));
}
