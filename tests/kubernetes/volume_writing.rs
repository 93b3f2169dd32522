//! Volume writes: patches, conflicts, unknown outcomes.

use pellucid::model::effect::{EffectId, VolumeOutcome};
use serde_json::{Value, json};

use crate::mock::{Answer, Mock, bind_volume, failure, ok, select_node, volume_done};

const VOLUME: &str = "PATCH /api/v1/persistentvolumes/pv";
const CLAIM: &str = "PATCH /api/v1/namespaces/ns/persistentvolumeclaims/c";

fn refused(status: u16, message: &str) -> VolumeOutcome {
    VolumeOutcome::Refused { status, message: message.into() }
}

#[tokio::test(start_paused = true)]
async fn volumes_and_claims_are_patched_at_the_version_that_was_seen() {
    let mock = Mock::new();
    mock.on(VOLUME, [ok()]);
    mock.on(CLAIM, [ok()]);
    let (io, mut inputs) = mock.edge(|config| config.volume_writers = 1);
    io.queues.push_all([bind_volume(1), select_node(2)]);
    assert_eq!(volume_done(&mut inputs).await, (EffectId(1), VolumeOutcome::Written));
    assert_eq!(volume_done(&mut inputs).await, (EffectId(2), VolumeOutcome::Written));
    let (volume, claim) = (mock.seen(VOLUME).remove(0), mock.seen(CLAIM).remove(0));
    assert_eq!(volume.content_type, "application/merge-patch+json");
    assert_eq!(
        volume.body,
        json!({"metadata": {"resourceVersion": "7",
                "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
            "spec": {"claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "ns",
                "name": "c", "uid": "uid-c"}}})
    );
    assert_eq!(
        claim.body,
        json!({"metadata": {"resourceVersion": "8",
            "annotations": {"volume.kubernetes.io/selected-node": "n1"}}})
    );
    assert_eq!(io.volumes.counts().written, 2);
}

/// Responses to the write and the read; the outcome; the number of writes and reads sent.
type Case = (Vec<Answer>, Vec<Answer>, VolumeOutcome, usize, usize);

#[tokio::test(start_paused = true)]
async fn every_answer_to_a_volume_write_is_settled() {
    let conflict = || failure(409, "Conflict", "modified");
    let lost = || failure(504, "Timeout", "x");
    let bound_to = |uid: &str| Answer::Json(200, json!({"spec": {"claimRef": {"uid": uid}}}));
    let written = VolumeOutcome::Written;
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
    for (number, (writes, reads, want, n_writes, n_reads)) in cases.into_iter().enumerate() {
        let mock = Mock::new();
        let read = VOLUME.replace("PATCH", "GET");
        mock.on(VOLUME, writes);
        mock.on(&read, reads);
        let (io, mut inputs) = mock.edge(|_| {});
        io.queues.push_all([bind_volume(1)]);
        assert_eq!(volume_done(&mut inputs).await.1, want, "case {number}");
        assert_eq!((mock.seen(VOLUME).len(), mock.seen(&read).len()), (n_writes, n_reads), "case {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_node_of_a_claim_is_found_again_after_a_lost_answer() {
    let mock = Mock::new();
    mock.on(CLAIM, [Answer::Hang, failure(409, "Conflict", "modified")]);
    let read =
        |node: Value| json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": node}}});
    mock.on(&CLAIM.replace("PATCH", "GET"), [Answer::Json(200, read(json!("n1")))]);
    let (io, mut inputs) = mock.edge(|_| {});
    io.queues.push_all([select_node(1)]);
    assert_eq!(volume_done(&mut inputs).await.1, VolumeOutcome::Written);
}

#[tokio::test(start_paused = true)]
async fn a_closed_door_writes_no_volume() {
    let mock = Mock::new();
    let (io, mut inputs) = mock.edge(|config| config.writes = false);
    io.queues.push_all([bind_volume(1)]);
    assert_eq!(volume_done(&mut inputs).await.1, refused(0, "writes are switched off"));
    assert_eq!((mock.seen("PATCH").len(), io.volumes.counts().refused), (0, 1));
}
