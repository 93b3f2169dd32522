//! Evictions: the order of calls, the UID, and the outcome of every response.

use pellucid::model::effect::{EffectId, EvictOutcome};
use serde_json::json;

use crate::mock::{Answer, Mock, evict, evict_done, failure, ok, pod};

const STATUS: &str = "PATCH /api/v1/namespaces/ns/pods/p/status";
const DELETE: &str = "DELETE /api/v1/namespaces/ns/pods/p";
const READ: &str = "GET /api/v1/namespaces/ns/pods/p";

fn conflict() -> Answer {
    failure(409, "Conflict", "the UID in the precondition does not match")
}

fn unavailable() -> Answer {
    failure(503, "ServiceUnavailable", "x")
}

fn refused(status: u16, message: &str) -> EvictOutcome {
    EvictOutcome::Refused { status, message: message.into() }
}

#[tokio::test(start_paused = true)]
async fn a_victim_gets_its_condition_and_is_then_deleted_by_uid() {
    let mock = Mock::new();
    mock.on(STATUS, [ok()]);
    mock.on(DELETE, [ok()]);
    let (io, mut inputs) = mock.start_io(|_| {});
    io.queues.push_all([evict(7, "p")]);
    assert_eq!(evict_done(&mut inputs).await, (EffectId(7), EvictOutcome::Deleted));
    let calls: Vec<_> = mock.seen("").into_iter().filter(|s| s.what.contains("/pods/")).collect();
    let [patch, delete] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!((&*patch.what, &*delete.what), (STATUS, DELETE));
    assert_eq!(patch.content_type, "application/strategic-merge-patch+json");
    assert_eq!(
        patch.body,
        json!({"metadata": {"uid": "uid-p"}, "status": {"conditions": [{
            "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
            "message": "make room", "lastTransitionTime": "2027-01-15T08:00:00Z"}]}})
    );
    assert_eq!(
        delete.body,
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "uid-p"}})
    );
    assert_eq!(io.evictor.counts().deleted, 1);
}

/// Responses to the patch, the delete and the read; the outcome; the number of deletes and reads sent.
type Case = (Vec<Answer>, Vec<Answer>, Vec<Answer>, EvictOutcome, usize, usize);

#[tokio::test(start_paused = true)]
async fn every_answer_to_an_eviction_is_settled() {
    let alive = |uid: &str| Answer::Json(200, pod("p", uid, Some("n1")));
    let mut ending = pod("p", "uid-p", Some("n1"));
    ending["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
    let ending = || Answer::Json(200, ending.clone());
    let missing = || failure(404, "NotFound", "no pod");
    let (deleted, gone) = (EvictOutcome::Deleted, EvictOutcome::Gone);
    let cases: Vec<Case> = vec![
        // The pod is gone before the condition or before the delete, or another pod has its name.
        (vec![missing()], vec![], vec![], gone.clone(), 0, 0),
        (vec![ok()], vec![missing()], vec![], gone.clone(), 1, 0),
        (vec![ok()], vec![conflict()], vec![alive("uid-q")], gone.clone(), 1, 1),
        (vec![conflict()], vec![conflict()], vec![alive("uid-q")], gone, 1, 1),
        // The condition cannot be written: the pod is deleted nevertheless.
        (vec![failure(403, "Forbidden", "no")], vec![ok()], vec![], deleted.clone(), 1, 0),
        (vec![unavailable()], vec![ok()], vec![], deleted.clone(), 1, 0),
        // 503 after commit: the pod is terminating or gone.
        (vec![ok()], vec![unavailable()], vec![ending()], deleted.clone(), 1, 1),
        (vec![ok()], vec![Answer::Hang], vec![missing()], deleted.clone(), 1, 1),
        // Not committed: sent again, also when the pod cannot be read.
        (vec![ok()], vec![unavailable(), ok()], vec![alive("uid-p")], deleted.clone(), 2, 1),
        (vec![ok()], vec![Answer::Hang, missing()], vec![unavailable()], deleted.clone(), 2, 1),
        (vec![ok()], vec![Answer::Later(3), ok()], vec![], deleted.clone(), 2, 0),
        // A conflict although it is the right pod.
        (vec![ok()], vec![conflict()], vec![ending()], deleted, 1, 1),
        (
            vec![ok()],
            vec![conflict()],
            vec![alive("uid-p")],
            refused(409, "the UID in the precondition does not match"),
            1,
            1,
        ),
        (vec![ok()], vec![failure(403, "Forbidden", "no")], vec![], refused(403, "no"), 1, 0),
        (vec![ok()], vec![unavailable()], vec![alive("uid-p")], refused(503, "x"), 6, 6),
        (vec![ok()], vec![Answer::Hang], vec![alive("uid-p")], refused(0, "no answer within 10s"), 6, 6),
    ];
    for (number, (patches, deletes, reads, want, n_deletes, n_reads)) in cases.into_iter().enumerate() {
        let mock = Mock::new();
        mock.on(STATUS, patches);
        mock.on(DELETE, deletes);
        mock.on(READ, reads);
        let (io, mut inputs) = mock.start_io(|_| {});
        io.queues.push_all([evict(1, "p")]);
        assert_eq!(evict_done(&mut inputs).await.1, want, "case {number}");
        let seen = (mock.seen(DELETE).len(), mock.seen(READ).len());
        assert_eq!(seen, (n_deletes, n_reads), "case {number}");
        let counts = io.evictor.counts();
        assert_eq!(counts.deleted + counts.gone + counts.refused, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_door_evicts_nobody() {
    let mock = Mock::new();
    let (io, mut inputs) = mock.start_io(|config| config.writes = false);
    io.queues.push_all([evict(1, "p")]);
    assert_eq!(evict_done(&mut inputs).await.1, refused(0, "writes are switched off"));
    assert_eq!(mock.seen("PATCH").len() + mock.seen("DELETE").len(), 0);
    assert_eq!(io.evictor.counts().without_condition, 0);
}
