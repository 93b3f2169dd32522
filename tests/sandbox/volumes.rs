//! Volumes, claims and classes: binding, delayed binding, provisioning, loss and release.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use super::*;

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

fn volume(name: &str, size: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {"volume": name}},
        "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "hostPath": {"path": "/data"}}
    })
}

fn claim(name: &str, size: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": size}}}
    })
}

fn class(name: &str, provisioner: &str, mode: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": mode
    })
}

struct Disks {
    sandbox: Handle,
    volumes: Api<PersistentVolume>,
    claims: Api<PersistentVolumeClaim>,
}

/// Starts a sandbox whose clock stands still, with some objects.
async fn disks(objects: &[Value]) -> Disks {
    let (sandbox, client) = still().await;
    objects.iter().for_each(|object| sandbox.create(object.clone()).expect("created"));
    let (volumes, claims) = (Api::all(client.clone()), Api::default_namespaced(client));
    Disks { sandbox, volumes, claims }
}

impl Disks {
    async fn volume(&self, name: &str, wanted: &str) -> PersistentVolume {
        let is_there = |volume: Option<&PersistentVolume>| {
            volume.and_then(|v| v.status.as_ref()?.phase.as_deref()) == Some(wanted)
        };
        until(self.volumes.clone(), name, wanted, is_there).await.expect("a volume")
    }

    /// Waits for a claim to be bound and returns the volume's name.
    async fn bound(&self, name: &str) -> String {
        let is_bound = |claim: Option<&PersistentVolumeClaim>| {
            claim.and_then(|c| c.status.as_ref()?.phase.as_deref()) == Some("Bound")
        };
        let claim = until(self.claims.clone(), name, "bound", is_bound).await.expect("a claim");
        assert_eq!(
            claim.annotations().get("pv.kubernetes.io/bind-completed").map(String::as_str),
            Some("yes")
        );
        claim.spec.and_then(|spec| spec.volume_name).expect("the name of the volume")
    }

    async fn select(&self, claim: &str, node: &str) {
        let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
        self.claims.patch(claim, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
    }

    async fn is_selected(&self, claim: &str, wanted: bool) {
        let is_selected = |c: Option<&PersistentVolumeClaim>| {
            c.is_some_and(|c| c.annotations().contains_key(SELECTED_NODE))
        };
        until(self.claims.clone(), claim, "selection", |claim| is_selected(claim) == wanted).await;
    }
}

#[tokio::test]
async fn a_claim_gets_the_smallest_volume_that_fits() {
    let mut other_mode = volume("block", "3Gi", "manual");
    other_mode["spec"]["volumeMode"] = "Block".into();
    let mut shared = volume("shared", "4Gi", "manual");
    shared["spec"]["accessModes"] = json!(["ReadWriteMany"]);
    let disks = disks(&[
        volume("large", "100Gi", "manual"),
        volume("small", "1Gi", "manual"),
        volume("other", "5Gi", "other"),
        other_mode,
        shared,
        volume("right", "10Gi", "manual"),
    ])
    .await;
    disks.volume("right", "Available").await;
    disks.sandbox.create(claim("a", "2Gi", "manual")).expect("created");
    assert_eq!(disks.bound("a").await, "right");
    let right = disks.volume("right", "Bound").await;
    let a = disks.claims.get("a").await.expect("the claim");
    let reference = right.spec.as_ref().and_then(|spec| spec.claim_ref.clone()).expect("a claim");
    assert_eq!((reference.name.as_deref(), reference.uid), (Some("a"), a.uid()));
    assert!(right.annotations().contains_key("pv.kubernetes.io/bound-by-controller"));
    assert!(a.annotations().contains_key("pv.kubernetes.io/bound-by-controller"));
    assert_eq!(a.status.and_then(|s| s.capacity).map(|c| c["storage"].0.clone()).as_deref(), Some("10Gi"));
    let mut chosen = claim("b", "1Gi", "manual");
    chosen["spec"]["selector"] = json!({"matchLabels": {"volume": "large"}});
    disks.sandbox.create(chosen).expect("created");
    assert_eq!(disks.bound("b").await, "large");
    disks.sandbox.create(claim("late", "200Gi", "manual")).expect("created");
    disks.sandbox.create(volume("huge", "1Ti", "manual")).expect("created");
    assert_eq!(disks.bound("late").await, "huge");
}

#[tokio::test]
async fn a_volume_outlives_its_claim_or_goes_with_it() {
    let mut goes = volume("goes", "1Gi", "a");
    goes["spec"]["persistentVolumeReclaimPolicy"] = "Delete".into();
    let disks = disks(&[volume("stays", "1Gi", "b"), goes]).await;
    for (name, class) in [("one", "a"), ("two", "b")] {
        disks.sandbox.create(claim(name, "1Gi", class)).expect("created");
        disks.bound(name).await;
        disks.claims.delete(name, &DeleteParams::default()).await.expect("deleted");
    }
    until(disks.volumes.clone(), "goes", "gone", |volume| volume.is_none()).await;
    disks.volume("stays", "Released").await;
    disks.sandbox.create(claim("two", "1Gi", "b")).expect("created");
    disks.sandbox.create(volume("fresh", "9Gi", "b")).expect("created");
    assert_eq!(disks.bound("two").await, "fresh", "a released volume is not given again");
    disks.volumes.delete("fresh", &DeleteParams::default()).await.expect("deleted");
    until(disks.claims.clone(), "two", "lost", |claim| {
        claim.and_then(|c| c.status.as_ref()?.phase.as_deref()) == Some("Lost")
    })
    .await;
}

#[tokio::test]
async fn a_scheduler_binds_by_naming_the_claim_on_the_volume() {
    let wait = class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer");
    let disks = disks(&[wait, volume("v1", "1Gi", "local"), volume("v2", "1Gi", "local")]).await;
    for (name, with_uid) in [("a", true), ("b", false)] {
        disks.sandbox.create(claim(name, "1Gi", "local")).expect("created");
        let uid = disks.claims.get(name).await.expect("the claim").uid().filter(|_| with_uid);
        let volume = if with_uid { "v2" } else { "v1" };
        disks.volume(volume, "Available").await;
        let reference =
            json!({"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": uid});
        let patch = Patch::Strategic(json!({"spec": {"claimRef": reference}}));
        disks.volumes.patch(volume, &PatchParams::default(), &patch).await.expect("patched");
        assert_eq!(disks.bound(name).await, volume);
        let bound = disks.volume(volume, "Bound").await;
        let uid = bound.spec.and_then(|spec| spec.claim_ref?.uid);
        assert_eq!(uid, disks.claims.get(name).await.expect("the claim").uid());
    }
}

#[tokio::test]
async fn a_driver_provisions_at_once_or_for_the_selected_node() {
    let node =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"zone": "z1"}}});
    let csi = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n1"},
        "spec": {"drivers": [{"name": "disk.example", "nodeID": "n1", "topologyKeys": ["zone"]}]}
    });
    let mut zones = class("zones", "other.example", "WaitForFirstConsumer");
    zones["allowedTopologies"] =
        json!([{"matchLabelExpressions": [{"key": "zone", "values": ["z0", "z1"]}]}]);
    let mut now = class("now", "disk.example", "Immediate");
    now["metadata"]["annotations"] = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    let later = class("later", "disk.example", "WaitForFirstConsumer");
    let disks = disks(&[node, csi, now, later, zones]).await;
    let mut unclassed = claim("a", "1Gi", "");
    unclassed["spec"].as_object_mut().expect("a spec").remove("storageClassName");
    disks.sandbox.create(unclassed).expect("created");
    let made = disks.volume(&disks.bound("a").await, "Bound").await.spec.expect("a spec");
    assert_eq!(made.persistent_volume_reclaim_policy.as_deref(), Some("Delete"));
    assert_eq!((made.storage_class_name.as_deref(), made.node_affinity.is_none()), (Some("now"), true));
    for (name, class) in [("b", "later"), ("c", "zones")] {
        disks.sandbox.create(claim(name, "2Gi", class)).expect("created");
        assert_eq!(disks.sandbox.count("persistentvolumes"), if name == "b" { 1 } else { 2 });
        disks.select(name, "n1").await;
        let made = disks.volume(&disks.bound(name).await, "Bound").await.spec.expect("a spec");
        let affinity = serde_json::to_value(made.node_affinity).expect("JSON");
        assert_eq!(
            affinity["required"]["nodeSelectorTerms"],
            json!([{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}])
        );
    }
    let made = disks.bound("b").await;
    disks.claims.delete("b", &DeleteParams::default()).await.expect("deleted");
    until(disks.volumes.clone(), &made, "gone", |volume| volume.is_none()).await;
}

#[tokio::test]
async fn provisioning_can_fail_hang_and_take_its_time() {
    let disks = disks(&[class("later", "disk.example", "WaitForFirstConsumer")]).await;
    for name in ["fails", "hangs", "slow"] {
        let mut object = claim(name, "1Gi", "later");
        object["metadata"]["labels"] = json!({"is": name});
        disks.sandbox.create(object).expect("created");
    }
    let faults = disks.sandbox.faults();
    faults.trouble_times(Objects::named("default", "fails"), Trouble::ProvisioningFails, 1);
    disks.select("fails", "n1").await;
    disks.is_selected("fails", false).await;
    disks.select("fails", "n2").await;
    disks.bound("fails").await;
    faults.trouble(Objects::labelled("is", "hangs"), Trouble::ProvisioningHangs);
    faults.trouble(Objects::All, Trouble::ProvisioningTakes(Duration::from_secs(5)));
    disks.select("hangs", "n1").await;
    disks.select("slow", "n1").await;
    // The provisioner has seen both once it has annotated them.
    for name in ["hangs", "slow"] {
        until(disks.claims.clone(), name, "begun", |claim| {
            claim.is_some_and(|c| c.annotations().contains_key("volume.kubernetes.io/storage-provisioner"))
        })
        .await;
    }
    tokio::task::yield_now().await;
    assert_eq!(disks.sandbox.count("persistentvolumes"), 1);
    disks.sandbox.clock().advance(Duration::from_secs(5));
    disks.bound("slow").await;
    assert_eq!(disks.sandbox.count("persistentvolumes"), 2);
    faults.clear();
    disks.bound("hangs").await;
}

#[tokio::test]
async fn objects_of_storage_are_checked() {
    let (_sandbox, client) = still().await;
    let send = async |path: &str, object: &Value| {
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(kube::client::Body::from(object.to_string().into_bytes()));
        client.send(request.expect("a request")).await.expect("an answer").status().as_u16()
    };
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let without = |mut object: Value, key: &str| {
        object["spec"].as_object_mut().expect("a spec").remove(key);
        object
    };
    assert_eq!(send(claims, &without(claim("a", "1Gi", ""), "accessModes")).await, 422);
    assert_eq!(send(claims, &without(claim("a", "1Gi", ""), "resources")).await, 422);
    assert_eq!(send(claims, &claim("a", "0", "")).await, 422);
    assert_eq!(send(claims, &claim("a", "1Gi", "")).await, 201);
    assert_eq!(send("/api/v1/persistentvolumes", &without(volume("v", "1Gi", ""), "hostPath")).await, 422);
    assert_eq!(send("/api/v1/persistentvolumes", &without(volume("v", "1Gi", ""), "capacity")).await, 422);
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    assert_eq!(send(classes, &class("c", "", "Immediate")).await, 422);
    assert_eq!(send(classes, &class("c", "p", "Sometimes")).await, 422);
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client.clone());
    let patch = Patch::Merge(json!({"spec": {"accessModes": ["ReadWriteMany"]}}));
    let refused = claims.patch("a", &PatchParams::default(), &patch).await.expect_err("immutable");
    assert_eq!(code(&refused), 422);
    for (path, object) in [
        (
            "/apis/storage.k8s.io/v1/csidrivers",
            json!({"metadata": {"name": "d"}, "spec": {"storageCapacity": true}}),
        ),
        (
            "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities",
            json!({"metadata": {"generateName": "c-"}, "storageClassName": "s", "capacity": "10Gi"}),
        ),
        (
            "/apis/storage.k8s.io/v1/volumeattachments",
            json!({"metadata": {"name": "a"}, "spec": {
                "attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}),
        ),
    ] {
        assert_eq!(send(path, &object).await, 201, "{path}");
    }
}
