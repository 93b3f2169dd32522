//! Writes: Bindings and their unknown outcomes, conditions, events, shadow mode, shutdown.

use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::input::Input;
use pellucid::model::effect::{BindOutcome, EffectId, EffectReport};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::mock::{Answer, Mock, bind, bind_done, condition, event, failure, nomination, pod};

const BINDING: &str = "POST /api/v1/namespaces/ns/pods/p/binding";
const READ: &str = "GET /api/v1/namespaces/ns/pods/p";
const STATUS: &str = "PATCH /api/v1/namespaces/ns/pods/p/status";
const EVENTS: &str = "POST /apis/events.k8s.io/v1/namespaces/ns/events";

fn created() -> Answer {
    Answer::Json(201, json!({"kind": "Status", "status": "Success"}))
}

fn read(uid: &str, node: Option<&str>) -> Answer {
    Answer::Json(200, pod("p", uid, node))
}

fn refused(status: u16, reason: &str, message: &str) -> BindOutcome {
    BindOutcome::Refused { status, reason: reason.into(), message: message.into() }
}

#[tokio::test(start_paused = true)]
async fn a_binding_carries_the_uid_and_is_reported_when_sent_and_when_done() {
    let mock = Mock::new();
    mock.on(BINDING, [created()]);
    mock.on("GET /api/v1/pods", [Answer::Hang]);
    mock.on("GET /api/v1/nodes", [Answer::Hang]);
    let (io, mut inputs) = mock.start_io(|_| {});
    io.queues.push_all([bind(7, "p")]);
    let Some(Input::Report(EffectReport::BindSent { id, uid })) = inputs.recv().await else {
        panic!("not sent")
    };
    assert_eq!((id, &*uid), (EffectId(7), "uid-p"));
    assert_eq!(bind_done(&mut inputs).await, (EffectId(7), BindOutcome::Bound));
    let body = &mock.seen(BINDING)[0].body;
    assert_eq!(body["metadata"], json!({"namespace": "ns", "name": "p", "uid": "uid-p"}));
    assert_eq!(body["target"], json!({"apiVersion": "v1", "kind": "Node", "name": "n1"}));
}

/// Responses to the post and the read, the outcome, the number of posts and reads.
type Case = (Vec<Answer>, Vec<Answer>, BindOutcome, usize, usize);

#[tokio::test(start_paused = true)]
async fn every_answer_to_a_binding_is_settled() {
    let conflict = || failure(409, "Conflict", "already assigned");
    let elsewhere = || BindOutcome::BoundElsewhere { node: "n2".into() };
    let (u, other) = ("uid-p", "uid-q");
    let cases: Vec<Case> = vec![
        (vec![conflict()], vec![read(u, Some("n1"))], BindOutcome::Bound, 1, 1),
        (vec![conflict()], vec![read(u, Some("n2"))], elsewhere(), 1, 1),
        (vec![conflict()], vec![read(other, None)], BindOutcome::Gone, 1, 1),
        (vec![failure(404, "NotFound", "no pod")], vec![], BindOutcome::Gone, 1, 0),
        (vec![failure(403, "Forbidden", "no")], vec![], refused(403, "Forbidden", "no"), 1, 0),
        // No response, but it was committed.
        (vec![Answer::Hang], vec![read(u, Some("n1"))], BindOutcome::Bound, 1, 1),
        // 503 after commit, and the reads fail at first.
        (
            vec![failure(503, "ServiceUnavailable", "x")],
            vec![failure(500, "InternalError", "x"), Answer::Hang, Answer::Later(1), read(u, Some("n1"))],
            BindOutcome::Bound,
            1,
            4,
        ),
        // Not committed: posted again.
        (vec![Answer::Hang, created()], vec![read(u, None)], BindOutcome::Bound, 2, 1),
        (vec![Answer::Later(7), created()], vec![], BindOutcome::Bound, 2, 0),
        // Never committed: the writer gives up after some tries.
        (
            vec![failure(500, "InternalError", "x")],
            vec![read(u, None)],
            refused(500, "InternalError", "x"),
            6,
            6,
        ),
        // A gate: the pod is as expected, and the server still reports a conflict.
        (
            vec![failure(409, "Conflict", "pod p has non-empty .spec.schedulingGates")],
            vec![read(u, None)],
            refused(409, "Conflict", "pod p has non-empty .spec.schedulingGates"),
            1,
            1,
        ),
        // The pod is being deleted: a retry is pointless.
        (
            vec![conflict()],
            vec![Answer::Json(200, json!({"metadata": {"uid": u, "deletionTimestamp": "t"}}))],
            refused(409, "Conflict", "already assigned"),
            1,
            1,
        ),
        (vec![Answer::Hang], vec![failure(404, "NotFound", "no pod")], BindOutcome::Gone, 1, 1),
    ];
    for (number, (posts, reads, want, n_posts, n_reads)) in cases.into_iter().enumerate() {
        let mock = Mock::new();
        mock.on(BINDING, posts);
        mock.on(READ, reads);
        let (io, mut inputs) = mock.start_io(|_| {});
        io.queues.push_all([bind(1, "p")]);
        assert_eq!(bind_done(&mut inputs).await.1, want, "case {number}");
        let n_seen = (mock.seen(BINDING).len(), mock.seen(READ).len());
        assert_eq!(n_seen, (n_posts, n_reads), "case {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_says_when_to_come_back_within_reason() {
    for (says, seconds) in [(2, 2), (3600, 4)] {
        let mock = Mock::new();
        mock.on(BINDING, [Answer::Later(says), created()]);
        let (io, mut inputs) = mock.start_io(|_| {});
        let start = Instant::now();
        io.queues.push_all([bind(1, "p")]);
        bind_done(&mut inputs).await;
        assert_eq!(start.elapsed().as_secs(), seconds, "{:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_bindings_are_under_way_than_allowed() {
    let mock = Mock::new();
    let gate = Arc::new(Notify::new());
    for name in ["a", "b", "c"] {
        let what = format!("POST /api/v1/namespaces/ns/pods/{name}/binding");
        mock.on(&what, [Answer::Gate(gate.clone())]);
    }
    let (io, mut inputs) = mock.start_io(|config| config.binders = 2);
    io.queues.push_all([bind(1, "a"), bind(2, "b"), bind(3, "c")]);
    let drain = tokio::spawn(async move {
        let mut ids = Vec::new();
        while ids.len() < 3 {
            ids.push(bind_done(&mut inputs).await.0);
        }
        ids
    });
    assert_eq!(mock.wait("POST", 2).await.len(), 2);
    // Both workers wait at the gate, so the third order stays in the queue for as long as that takes.
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!((mock.seen("POST").len(), io.queues.counts().binds.depth), (2, 1));
    gate.notify_one();
    mock.wait("POST", 3).await;
    gate.notify_one();
    gate.notify_one();
    assert_eq!(drain.await.expect("ids").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_condition_is_a_patch_of_one_condition_and_the_newest_wins() {
    let mock = Mock::new();
    let gate = Arc::new(Notify::new());
    mock.on(STATUS, [Answer::Gate(gate.clone())]);
    let (io, _inputs) = mock.start_io(|_| {});
    io.queues.push_all([condition("p", "first")]);
    mock.wait(STATUS, 1).await;
    io.queues.push_all([condition("p", "second"), condition("p", "third")]);
    gate.notify_one();
    let seen = mock.wait(STATUS, 2).await;
    gate.notify_one();
    let body = |n: usize| seen[n].body["status"]["conditions"][0].clone();
    assert_eq!(seen[0].content_type, "application/strategic-merge-patch+json");
    assert_eq!(seen[0].body["metadata"], json!({"uid": "uid-p"}));
    assert_eq!(
        body(0),
        json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "first",
            "lastProbeTime": null, "lastTransitionTime": "2027-01-15T08:00:00Z"})
    );
    assert_eq!(body(1)["message"], "third");
    assert_eq!(body(1)["lastTransitionTime"], Value::Null);
    assert_eq!(io.queues.counts().statuses.replaced, 1);
}

#[tokio::test(start_paused = true)]
async fn conditions_are_tried_again_dropped_when_gone_and_not_repeated() {
    let mock = Mock::new();
    let ok = Answer::Json(200, json!({}));
    mock.on(STATUS, [Answer::Hang, failure(500, "InternalError", "x"), ok]);
    let (io, _inputs) = mock.start_io(|config| config.status_writers = 1);
    io.queues.push_all([condition("p", "m")]);
    mock.wait(STATUS, 3).await;
    // The same condition again, then a pod that is gone, then a marker.
    let other = "PATCH /api/v1/namespaces/ns/pods/q/status";
    mock.on(other, [Answer::Hang]);
    io.queues.push_all([condition("p", "m"), condition("gone", "m"), condition("q", "m")]);
    mock.wait(other, 1).await;
    let counts = io.statuses.counts();
    assert_eq!((counts.written, counts.unchanged, counts.gone), (1, 1, 1));
    assert_eq!(mock.seen(STATUS).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_nomination_goes_with_the_condition_and_is_cleared_by_a_null() {
    let mock = Mock::new();
    let gate = Arc::new(Notify::new());
    mock.on(STATUS, [Answer::Gate(gate.clone())]);
    let (io, _inputs) = mock.start_io(|_| {});
    io.queues.push_all([condition("p", "m"), nomination("p", Some("n1"))]);
    mock.wait(STATUS, 1).await;
    // Meanwhile: the same condition, and two changes of the nomination.
    io.queues.push_all([nomination("p", Some("n2")), condition("p", "m"), nomination("p", None)]);
    gate.notify_one();
    let seen = mock.wait(STATUS, 2).await;
    gate.notify_one();
    let status = |n: usize| &seen[n].body["status"];
    assert_eq!((&status(0)["nominatedNodeName"], status(0)["conditions"].is_array()), (&json!("n1"), true));
    assert_eq!(status(1), &json!({"nominatedNodeName": null}), "the condition is written already");
    assert_eq!(seen[1].body["metadata"], json!({"uid": "uid-p"}));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_given_up_leaves_its_parts_to_the_newer_one() {
    let mock = Mock::new();
    mock.on(STATUS, [Answer::Hang, Answer::Json(200, json!({}))]);
    let (io, _inputs) = mock.start_io(|_| {});
    io.queues.push_all([condition("p", "m"), nomination("p", Some("n1"))]);
    mock.wait(STATUS, 1).await;
    io.queues.push_all([nomination("p", Some("n2"))]);
    let second = mock.wait(STATUS, 2).await.remove(1).body;
    assert_eq!(second["status"]["nominatedNodeName"], "n2");
    assert_eq!(second["status"]["conditions"][0]["message"], "m");
    assert_eq!(io.statuses.counts().superseded, 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_note_moves_only_the_series_and_a_changed_note_is_a_new_event() {
    let mock = Mock::new();
    mock.on(EVENTS, [created()]);
    let (io, _inputs) = mock.start_io(|_| {});
    io.queues.push_all([event("p", "0/1 nodes")]);
    let first = mock.wait(EVENTS, 1).await.remove(0).body;
    let name = first["metadata"]["name"].as_str().expect("a name").to_owned();
    assert_eq!(first["regarding"]["uid"], "uid-p");
    assert_eq!(first["note"], "0/1 nodes");
    assert_eq!(first["type"], "Warning");
    assert_eq!(first["reportingController"], "pellucid");
    assert_eq!(first["eventTime"], "2027-01-15T08:00:00.000000Z");
    assert_eq!(first["series"], Value::Null);

    let patched = format!("PATCH /apis/events.k8s.io/v1/namespaces/ns/events/{name}");
    mock.on(&patched, [Answer::Json(200, json!({}))]);
    io.queues.push_all([event("p", "0/1 nodes")]);
    let patch = mock.wait(&patched, 1).await.remove(0).body;
    assert_eq!(patch["series"]["count"], 2);
    assert_eq!(patch.as_object().expect("an object").len(), 1);

    io.queues.push_all([event("p", "0/2 nodes")]);
    let second = mock.wait(EVENTS, 2).await.remove(1).body;
    assert_eq!(second["note"], "0/2 nodes");
    assert_ne!(second["metadata"]["name"], name.as_str());
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_first_try_was_committed_after_all_is_not_made_twice() {
    let mock = Mock::new();
    mock.on(EVENTS, [Answer::Hang, failure(409, "AlreadyExists", "there")]);
    let (io, _inputs) = mock.start_io(|_| {});
    io.queues.push_all([event("p", "a")]);
    let seen = mock.wait(EVENTS, 2).await;
    assert_eq!(seen[0].body["metadata"]["name"], seen[1].body["metadata"]["name"]);
    // The event is known to be there, so a repeat is a patch.
    let name = seen[0].body["metadata"]["name"].as_str().expect("a name");
    let patched = format!("PATCH /apis/events.k8s.io/v1/namespaces/ns/events/{name}");
    mock.on(&patched, [Answer::Json(200, json!({}))]);
    io.queues.push_all([event("p", "a")]);
    mock.wait(&patched, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_closed_door_lets_nothing_through() {
    let mock = Mock::new();
    let (io, mut inputs) = mock.start_io(|config| config.writes = false);
    io.queues.push_all([condition("p", "m"), event("p", "m"), bind(1, "p")]);
    assert_eq!(bind_done(&mut inputs).await.1, refused(0, "WritesOff", "writes are switched off"));
    assert_eq!(mock.seen("POST").len() + mock.seen("PATCH").len(), 0);
    assert!(!io.writer.is_open());
    // Once the writer is open (a lease was acquired), the next write goes through.
    mock.on(BINDING, [created()]);
    io.writer.set_open(true);
    io.queues.push_all([bind(2, "p")]);
    assert_eq!(bind_done(&mut inputs).await, (EffectId(2), BindOutcome::Bound));
}

#[tokio::test(start_paused = true)]
async fn shutdown_finishes_what_is_under_way_and_starts_nothing() {
    let mock = Mock::new();
    let gate = Arc::new(Notify::new());
    mock.on(BINDING, [Answer::Gate(gate.clone())]);
    let (io, mut inputs) = mock.start_io(|config| config.binders = 1);
    let outcome = tokio::spawn(async move {
        let outcome = bind_done(&mut inputs).await;
        while inputs.recv().await.is_some() {}
        outcome
    });
    io.queues.push_all([bind(1, "p"), bind(2, "q")]);
    mock.wait(BINDING, 1).await;
    gate.notify_one();
    let drained = io.shutdown(Duration::from_secs(5)).await;
    assert_eq!((drained.aborted, drained.unsent_binds), (0, 1));
    assert_eq!(outcome.await.expect("an outcome"), (EffectId(1), BindOutcome::Bound));
    assert_eq!(mock.seen("POST").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn shutdown_cuts_off_what_takes_too_long() {
    let mock = Mock::new();
    mock.on(BINDING, [Answer::Hang]);
    let (io, mut inputs) = mock.start_io(|config| config.binders = 1);
    tokio::spawn(async move { while inputs.recv().await.is_some() {} });
    io.queues.push_all([bind(1, "p")]);
    mock.wait(BINDING, 1).await;
    let start = Instant::now();
    assert_eq!(io.shutdown(Duration::from_secs(2)).await.aborted, 1);
    assert_eq!(start.elapsed().as_secs(), 2);
}
