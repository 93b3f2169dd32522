//! Writes of objects for plugins: patches, creates, deletes, evictions, conflicts, unknown outcomes.

use std::sync::Arc;

use pellucid::model::effect::{
    Effect, EffectId, ObjectPart, ObjectRef, ObjectWrite, Precondition, WriteOutcome,
};
use serde_json::{Value, json};

use crate::mock::{
    Answer, Mock, bind_volume, core_object, failure, object, object_done, ok, pod_ref, select_node,
};

const VOLUME: &str = "PATCH /api/v1/persistentvolumes/pv";
const CLAIM: &str = "PATCH /api/v1/namespaces/ns/persistentvolumeclaims/c";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";

fn refused(status: u16, message: &str) -> WriteOutcome {
    WriteOutcome::Refused { status, message: message.into() }
}

fn lost() -> Answer {
    failure(504, "Timeout", "x")
}

fn conflict() -> Answer {
    failure(409, "Conflict", "modified")
}

fn lease() -> ObjectRef {
    ObjectRef {
        group: "coordination.k8s.io",
        version: "v1",
        plural: "leases",
        namespace: Some("ns".into()),
        name: "l".into(),
    }
}

fn create() -> Effect {
    let body = json!({"metadata": {"name": "l", "namespace": "ns"}, "spec": {"holderIdentity": "me"}});
    object(1, ObjectWrite::Create { object: lease(), body: Arc::new(body) })
}

fn delete() -> Effect {
    object(1, ObjectWrite::Delete { object: lease(), precondition: Precondition::uid("u".into()) })
}

#[tokio::test(start_paused = true)]
async fn objects_are_patched_at_the_version_that_was_seen() {
    let mock = Mock::new();
    mock.on(VOLUME, [ok()]);
    mock.on(CLAIM, [ok()]);
    let (io, mut inputs) = mock.start_io(|config| config.object_writers = 1);
    io.queues.push_all([bind_volume(1), select_node(2)]);
    assert_eq!(object_done(&mut inputs).await, (EffectId(1), WriteOutcome::Written));
    assert_eq!(object_done(&mut inputs).await, (EffectId(2), WriteOutcome::Written));
    let (volume, claim) = (mock.seen(VOLUME).remove(0), mock.seen(CLAIM).remove(0));
    assert_eq!(volume.content_type, "application/merge-patch+json");
    assert_eq!(
        volume.body,
        json!({"metadata": {"resourceVersion": "7"}, "spec": {"claimRef": {"uid": "uid-c"}}})
    );
    assert_eq!(
        claim.body,
        json!({"metadata": {"resourceVersion": "8",
            "annotations": {"volume.kubernetes.io/selected-node": "n1"}}})
    );
    assert_eq!(io.objects.counts().written, 2);
}

#[tokio::test(start_paused = true)]
async fn a_status_is_patched_through_its_subresource_with_the_uid() {
    let mock = Mock::new();
    let path = format!("PATCH {LEASES}/l/status");
    mock.on(&path, [ok()]);
    let (io, mut inputs) = mock.start_io(|_| {});
    let write = ObjectWrite::Patch {
        object: lease(),
        part: ObjectPart::Status,
        precondition: Precondition::uid("u".into()),
        patch: Arc::new(json!({"status": {"used": 1}})),
    };
    io.queues.push_all([object(1, write)]);
    assert_eq!(object_done(&mut inputs).await.1, WriteOutcome::Written);
    assert_eq!(mock.seen(&path).remove(0).body, json!({"metadata": {"uid": "u"}, "status": {"used": 1}}));
}

/// Responses to the write and the read; the outcome; the number of writes and reads sent.
type Case = (Vec<Answer>, Vec<Answer>, WriteOutcome, usize, usize);

/// Carries out an order against scripted responses of two paths.
async fn settles(order: impl Fn() -> Effect, write: &str, read: &str, cases: Vec<Case>) {
    for (number, (writes, reads, want, n_writes, n_reads)) in cases.into_iter().enumerate() {
        let mock = Mock::new();
        mock.on(write, writes);
        mock.on(read, reads);
        let (io, mut inputs) = mock.start_io(|_| {});
        io.queues.push_all([order()]);
        assert_eq!(object_done(&mut inputs).await.1, want, "case {number}");
        assert_eq!((mock.seen(write).len(), mock.seen(read).len()), (n_writes, n_reads), "case {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_answer_to_a_patch_is_settled() {
    let bound_to = |uid: &str| Answer::Json(200, json!({"spec": {"claimRef": {"uid": uid, "name": "c"}}}));
    let written = WriteOutcome::Written;
    let cases: Vec<Case> = vec![
        // Another client changed it: the core decides anew.
        (vec![conflict()], vec![], refused(409, "modified"), 1, 0),
        (vec![failure(404, "NotFound", "none")], vec![], refused(404, "none"), 1, 0),
        (vec![failure(403, "Forbidden", "no")], vec![], refused(403, "no"), 1, 0),
        (vec![Answer::Later(2), ok()], vec![], written.clone(), 2, 0),
        (vec![lost(), ok()], vec![], written.clone(), 2, 0),
        // The first try was committed after all, or another client's write came first.
        (vec![lost(), conflict()], vec![bound_to("uid-c")], written.clone(), 2, 1),
        (vec![lost(), conflict()], vec![lost(), bound_to("uid-c")], written, 3, 2),
        (vec![lost(), conflict()], vec![bound_to("uid-d")], refused(409, "modified"), 2, 1),
        (vec![lost()], vec![], refused(504, "x"), 6, 0),
    ];
    settles(|| bind_volume(1), VOLUME, &VOLUME.replace("PATCH", "GET"), cases).await;
}

#[tokio::test(start_paused = true)]
async fn every_answer_to_a_create_is_settled() {
    let there = || failure(409, "AlreadyExists", "there");
    let held_by = |name: &str| {
        Answer::Json(
            200,
            json!({"metadata": {"name": "l", "namespace": "ns", "uid": "u"},
        "spec": {"holderIdentity": name}}),
        )
    };
    let cases: Vec<Case> = vec![
        (vec![ok()], vec![], WriteOutcome::Written, 1, 0),
        (vec![there()], vec![], WriteOutcome::AlreadyExists, 1, 0),
        (vec![failure(422, "Invalid", "no")], vec![], refused(422, "no"), 1, 0),
        // The first try was committed after all, or another client was faster.
        (vec![lost(), there()], vec![held_by("me")], WriteOutcome::Written, 2, 1),
        (vec![lost(), there()], vec![held_by("you")], WriteOutcome::AlreadyExists, 2, 1),
    ];
    settles(create, &format!("POST {LEASES}"), &format!("GET {LEASES}/l"), cases).await;
}

#[tokio::test(start_paused = true)]
async fn every_answer_to_a_delete_is_settled() {
    let of = |uid: &str, ends: Value| {
        Answer::Json(200, json!({"metadata": {"uid": uid, "deletionTimestamp": ends}}))
    };
    let gone = || failure(404, "NotFound", "none");
    let cases: Vec<Case> = vec![
        (vec![ok()], vec![], WriteOutcome::Written, 1, 0),
        (vec![gone()], vec![], WriteOutcome::Written, 1, 0),
        (vec![lost(), gone()], vec![], WriteOutcome::Written, 2, 0),
        (vec![conflict()], vec![], refused(409, "modified"), 1, 0),
        (vec![lost(), conflict()], vec![of("v", Value::Null)], WriteOutcome::Written, 2, 1),
        (vec![lost(), conflict()], vec![of("u", json!("2026-01-01T00:00:00Z"))], WriteOutcome::Written, 2, 1),
        (vec![lost(), conflict()], vec![of("u", Value::Null)], refused(409, "modified"), 2, 1),
    ];
    settles(delete, &format!("DELETE {LEASES}/l"), &format!("GET {LEASES}/l"), cases).await;
}

#[tokio::test(start_paused = true)]
async fn a_plugin_evicts_a_pod_with_a_condition_and_its_uid() {
    let mock = Mock::new();
    let (status, pod) = ("PATCH /api/v1/namespaces/ns/pods/v/status", "DELETE /api/v1/namespaces/ns/pods/v");
    mock.on(status, [ok()]);
    mock.on(pod, [ok()]);
    let (io, mut inputs) = mock.start_io(|_| {});
    let write = ObjectWrite::Evict { pod: pod_ref("v"), reason: "QuotaRevoked", message: "over".into() };
    io.queues.push_all([object(1, write)]);
    assert_eq!(object_done(&mut inputs).await.1, WriteOutcome::Written);
    let condition = &mock.seen(status).remove(0).body["status"]["conditions"][0];
    assert_eq!((&condition["reason"], &condition["message"]), (&json!("QuotaRevoked"), &json!("over")));
    assert_eq!(mock.seen(pod).remove(0).body["preconditions"]["uid"], "uid-v");
}

#[tokio::test(start_paused = true)]
async fn the_node_of_a_claim_is_found_again_after_a_lost_answer() {
    let mock = Mock::new();
    mock.on(CLAIM, [Answer::Hang, conflict()]);
    let read =
        |node: Value| json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": node}}});
    mock.on(&CLAIM.replace("PATCH", "GET"), [Answer::Json(200, read(json!("n1")))]);
    let (io, mut inputs) = mock.start_io(|_| {});
    io.queues.push_all([select_node(1)]);
    assert_eq!(object_done(&mut inputs).await.1, WriteOutcome::Written);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_leads_elsewhere_is_not_sent() {
    let mock = Mock::new();
    let (io, mut inputs) = mock.start_io(|_| {});
    let elsewhere = core_object("persistentvolumes", None, "../nodes/n1");
    let delete = ObjectWrite::Delete { object: elsewhere, precondition: Precondition::default() };
    io.queues.push_all([object(1, delete)]);
    let want = refused(0, "name of persistentvolumes: not a name of an object (../nodes/n1)");
    assert_eq!(object_done(&mut inputs).await.1, want);
    assert_eq!(mock.seen("DELETE").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_closed_door_writes_no_object() {
    let mock = Mock::new();
    let (io, mut inputs) = mock.start_io(|config| config.writes = false);
    let evict = ObjectWrite::Evict { pod: pod_ref("v"), reason: "QuotaRevoked", message: "over".into() };
    for order in [bind_volume(1), create(), delete(), object(1, evict)] {
        io.queues.push_all([order]);
        assert_eq!(object_done(&mut inputs).await.1, refused(0, "writes are switched off"));
    }
    let sent = ["PATCH", "POST", "DELETE"].map(|method| mock.seen(method).len());
    assert_eq!((sent, io.objects.counts().refused), ([0; 3], 4));
}
