//! Tests of decoding the kinds beside Pods and Nodes.

use std::sync::Arc;

use pellucid_model::object::Workload;
use pellucid_model::selector::{LabelSelector, Operator, Requirement};
use pellucid_model::storage::{
    AccessModes, ClaimPhase, ClaimRef, CsiVolume, PersistentVolume, PersistentVolumeClaim,
};
use pellucid_model::{Name, Object, ObjectKind};
use serde_json::{Value, json};

use crate::decode::object_from_value;

fn read(kind: ObjectKind, value: &Value) -> Object {
    let object = object_from_value(kind, value).expect("readable");
    assert_eq!(object.kind(), kind);
    object
}

fn fault(kind: ObjectKind, value: &Value) -> (Arc<str>, Arc<str>) {
    let q = object_from_value(kind, value).expect_err("unreadable");
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
        let object = read(
            kind,
            &json!({"metadata": {"name": "o", "namespace": "ns"}, "spec": {"selector": selector, "replicas": 0}}),
        );
        object.pod_selector().cloned()
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
    assert_eq!(
        &*fault(
            ObjectKind::ReplicaSet,
            &json!({"metadata": {"name": "o"},
        "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}})
        )
        .0,
        "spec.selector.matchExpressions[0].operator"
    );
    let Object::StatefulSet(set) =
        read(ObjectKind::StatefulSet, &json!({"metadata": {"name": "o", "namespace": "ns"}}))
    else {
        panic!("a StatefulSet")
    };
    assert_eq!(set, Workload { namespace: "ns".into(), name: "o".into(), selector: None, replicas: Some(1) });
}

#[test]
fn namespaces_and_budgets() {
    let Object::Namespace(namespace) =
        read(ObjectKind::Namespace, &json!({"metadata": {"name": "ns", "labels": {"a": "1"}}}))
    else {
        panic!("a Namespace")
    };
    assert_eq!(namespace.labels.get(&"a".into()), Some(&"1".into()));
    let Object::PodDisruptionBudget(budget) = read(
        ObjectKind::PodDisruptionBudget,
        &json!({"metadata": {"name": "b", "namespace": "ns"},
            "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}}}),
    ) else {
        panic!("a budget")
    };
    assert_eq!((budget.allowed, budget.selector), (2, web()));
    assert_eq!(budget.disrupted.iter().map(|p| &**p).collect::<Vec<_>>(), ["p"]);
}

#[test]
fn a_volume() {
    let value = json!({"metadata": {"name": "pv", "uid": "u", "resourceVersion": "7", "labels": {"a": "1"},
            "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"capacity": {"storage": "1.5Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "storageClassName": "fast", "volumeMode": "Block",
            "claimRef": {"namespace": "ns", "name": "c", "uid": "cu"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["z"]}]}]}},
            "csi": {"driver": "d", "volumeHandle": "h"}},
        "status": {"phase": "Bound"}});
    let Object::PersistentVolume(volume) = read(ObjectKind::PersistentVolume, &value) else {
        panic!("a volume")
    };
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
        let (at, what) =
            fault(ObjectKind::PersistentVolume, &json!({"metadata": {"name": "pv"}, "spec": change}));
        assert_eq!((&*at, &*what), (field, problem));
    }
}

#[test]
fn volumes_of_clouds_are_those_of_their_csi_drivers() {
    let zones = |zones: &str| json!({"topology.kubernetes.io/zone": zones});
    for (source, labels, plugin, driver, handle) in [
        (
            json!({"awsElasticBlockStore": {"volumeID": "aws://eu-1a/vol-1"}}),
            json!({}),
            "kubernetes.io/aws-ebs",
            "ebs.csi.aws.com",
            "vol-1",
        ),
        (
            json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}),
            json!({}),
            "kubernetes.io/aws-ebs",
            "ebs.csi.aws.com",
            "vol-1",
        ),
        (
            json!({"gcePersistentDisk": {"pdName": "d"}}),
            zones("eu-west1-b"),
            "kubernetes.io/gce-pd",
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/eu-west1-b/disks/d",
        ),
        (
            json!({"gcePersistentDisk": {"pdName": "d"}}),
            zones("eu-west1-b__eu-west1-c"),
            "kubernetes.io/gce-pd",
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/regions/eu-west1/disks/d",
        ),
        (
            json!({"gcePersistentDisk": {"pdName": "d"}}),
            json!({}),
            "kubernetes.io/gce-pd",
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
        ),
        (
            json!({"azureDisk": {"diskName": "n", "diskURI": "/s/d"}}),
            json!({}),
            "kubernetes.io/azure-disk",
            "disk.csi.azure.com",
            "/s/d",
        ),
        (
            json!({"azureFile": {"shareName": "s", "secretName": "x"}}),
            json!({}),
            "kubernetes.io/azure-file",
            "file.csi.azure.com",
            "pv",
        ),
        (
            json!({"cinder": {"volumeID": "c"}}),
            json!({}),
            "kubernetes.io/cinder",
            "cinder.csi.openstack.org",
            "c",
        ),
        (
            json!({"vsphereVolume": {"volumePath": "[ds] v"}}),
            json!({}),
            "kubernetes.io/vsphere-volume",
            "csi.vsphere.vmware.com",
            "[ds] v",
        ),
        (
            json!({"portworxVolume": {"volumeID": "p"}}),
            json!({}),
            "kubernetes.io/portworx-volume",
            "pxd.portworx.com",
            "p",
        ),
    ] {
        let value = json!({"metadata": {"name": "pv", "labels": labels}, "spec": source});
        let Object::PersistentVolume(volume) = read(ObjectKind::PersistentVolume, &value) else {
            panic!("a volume")
        };
        let migrated_from = Some(Name::new(plugin));
        assert_eq!(
            volume.csi,
            Some(CsiVolume { driver: driver.into(), handle: handle.into(), migrated_from })
        );
        assert!(volume.is_free);
    }
    let value = json!({"metadata": {"name": "pv"}, "spec": {"nfs": {"server": "s"}}});
    let Object::PersistentVolume(volume) = read(ObjectKind::PersistentVolume, &value) else {
        panic!("a volume")
    };
    assert_eq!(volume.csi, None);
}

#[test]
fn a_claim() {
    let value = json!({"metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "3",
            "annotations": {"volume.kubernetes.io/selected-node": "n1", "other": {"bad": []},
                "pv.kubernetes.io/bind-completed": "yes"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pu", "controller": true}]},
        "spec": {"resources": {"requests": {"storage": "1500m"}}, "accessModes": ["ReadWriteOncePod"],
            "storageClassName": "", "volumeName": "pv", "selector": {"matchLabels": {"app": "web"}}},
        "status": {"phase": "Bound"}});
    let Object::PersistentVolumeClaim(claim) = read(ObjectKind::PersistentVolumeClaim, &value) else {
        panic!("a claim")
    };
    let want = PersistentVolumeClaim {
        namespace: "ns".into(),
        name: "c".into(),
        uid: "u".into(),
        resource_version: "3".into(),
        requested: 2,
        access_modes: AccessModes::RWOP,
        class: Some("".into()),
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
        match read(ObjectKind::PersistentVolumeClaim, &value) {
            Object::PersistentVolumeClaim(claim) => claim.class,
            other => panic!("{other:?}"),
        }
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
    let Object::StorageClass(class) = read(
        ObjectKind::StorageClass,
        &json!({"metadata": {"name": "fast"}, "provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}]}),
    ) else {
        panic!("a class")
    };
    assert!(class.waits_for_consumer && &*class.provisioner == "p");
    let requirement = &class.allowed_topologies[0][0];
    assert_eq!(
        (&*requirement.key, requirement.operator, requirement.values.len()),
        ("zone", Operator::In, 2)
    );

    let Object::CsiNode(node) = read(
        ObjectKind::CsiNode,
        &json!({"metadata": {"name": "n", "annotations":
                {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"}},
            "spec": {"drivers": [{"name": "d", "nodeID": "x", "allocatable": {"count": 25}}, {"name": "e"}]}}),
    ) else {
        panic!("a CSINode")
    };
    assert_eq!(&*node.migrated, ["kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"].map(Name::new));
    assert_eq!(node.drivers.iter().map(|d| d.count).collect::<Vec<_>>(), [Some(25), None]);

    let Object::CsiDriver(driver) = read(
        ObjectKind::CsiDriver,
        &json!({"metadata": {"name": "d"}, "spec": {"storageCapacity": true, "preventPodSchedulingIfMissing": true}}),
    ) else {
        panic!("a driver")
    };
    assert!(driver.tracks_capacity && driver.required_on_node);

    let capacity = |change: Value| {
        let mut value = json!({"metadata": {"name": "c", "namespace": "ns"}, "storageClassName": "fast",
            "nodeTopology": {"matchLabels": {"app": "web"}}, "capacity": "2Gi"});
        value["maximumVolumeSize"] = change;
        match read(ObjectKind::CsiStorageCapacity, &value) {
            Object::CsiStorageCapacity(capacity) => {
                assert_eq!((&*capacity.class, capacity.nodes), ("fast", web()));
                capacity.largest
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((capacity(json!("1Gi")), capacity(Value::Null)), (Some(1 << 30), Some(2 << 30)));

    let Object::VolumeAttachment(attachment) = read(
        ObjectKind::VolumeAttachment,
        &json!({"metadata": {"name": "a"}, "spec": {"attacher": "d", "nodeName": "n",
            "source": {"persistentVolumeName": "pv"}}}),
    ) else {
        panic!("an attachment")
    };
    assert_eq!((&*attachment.driver, &*attachment.node, &*attachment.volume), ("d", "n", "pv"));
}
