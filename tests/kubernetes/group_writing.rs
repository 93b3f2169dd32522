//! Status writes of PodGroups.

use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::input::Input;
use pellucid::kubernetes::ClusterIo;
use pellucid::model::ObjectKind;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;

use crate::mock::{Answer, Mock, NATIVE, failure, group_status, ok};

const STATUS: &str = "PATCH /apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups/g/status";
const BATCH: &str = "/apis/scheduling.sigs.dev/v1alpha2/namespaces/ns/podgroups/g";

fn running(running: u32) -> pellucid::model::effect::Effect {
    group_status(ObjectKind::PodGroupX, "g", running, None)
}

/// Waits until this many PodGroup orders are settled.
async fn settled(io: &ClusterIo, n: u64) {
    loop {
        let counts = io.group_statuses.counts();
        if counts.written + counts.unchanged + counts.superseded + counts.gone + counts.failed >= n {
            return;
        }
        tokio::time::advance(Duration::from_millis(100)).await;
    }
}

fn held(uid: &str, version: &str, status: &Value) -> Answer {
    Answer::Json(200, json!({"metadata": {"uid": uid, "resourceVersion": version}, "status": status}))
}

/// Starts the I/O rooms against a server with native groups in this version, and waits until they have synced.
async fn with_native(mock: &Mock, version: &str) -> (ClusterIo, Receiver<Input>) {
    mock.discover(&[(version, &["podgroups"])]);
    mock.serve(&format!("{NATIVE}/{version}/podgroups"), []);
    let (io, mut inputs) = mock.start_io(|_| {});
    while !io.watches.of(ObjectKind::PodGroupNative).is_synced() {
        inputs.recv().await.expect("an input");
    }
    (io, inputs)
}

#[tokio::test(start_paused = true)]
async fn the_newest_status_wins_and_carries_the_uid() {
    let mock = Mock::new();
    let gate = Arc::new(Notify::new());
    mock.on(STATUS, [Answer::Gate(gate.clone())]);
    let (io, _inputs) = mock.start_io(|_| {});
    io.queues.push_all([running(1)]);
    mock.wait(STATUS, 1).await;
    io.queues.push_all([running(2), running(3)]);
    gate.notify_one();
    let seen = mock.wait(STATUS, 2).await;
    gate.notify_one();
    assert_eq!(seen[0].content_type, "application/merge-patch+json");
    let status = |running: u32| {
        json!({"metadata": {"uid": "uid-g"}, "status": {"phase": "Scheduling", "running": running,
            "succeeded": 0, "failed": 0, "occupiedBy": null, "scheduleStartTime": null}})
    };
    assert_eq!((&seen[0].body, &seen[1].body), (&status(1), &status(3)));
    assert_eq!(io.queues.counts().group_statuses.replaced, 1);
    settled(&io, 2).await;
    assert_eq!(io.group_statuses.counts().written, 2);
}

#[tokio::test(start_paused = true)]
async fn a_status_is_tried_again_given_up_and_left_when_the_group_is_gone() {
    let mock = Mock::new();
    mock.on(STATUS, [Answer::Hang, failure(500, "InternalError", "x"), Answer::Later(1), ok()]);
    let (io, _inputs) = mock.start_io(|_| {});
    io.queues.push_all([running(1)]);
    settled(&io, 1).await;
    assert_eq!((io.group_statuses.counts().written, mock.seen(STATUS).len()), (1, 4));
    for (n, (answer, tries)) in [
        (failure(404, "NotFound", "no such group"), 1),
        (failure(409, "Conflict", "Precondition failed: UID in precondition"), 1),
        (failure(422, "Invalid", "no"), 1),
        (failure(503, "ServiceUnavailable", "x"), 5),
    ]
    .into_iter()
    .enumerate()
    {
        let before = mock.seen(STATUS).len();
        mock.on(STATUS, [answer]);
        io.queues.push_all([running(2)]);
        settled(&io, n as u64 + 2).await;
        assert_eq!(mock.seen(STATUS).len() - before, tries, "answer {n}");
    }
    let counts = io.group_statuses.counts();
    assert_eq!((counts.gone, counts.failed), (2, 2));
    // A newer order ends the retries of an older one.
    mock.on(STATUS, [Answer::Hang, ok()]);
    let before = mock.seen(STATUS).len();
    io.queues.push_all([running(3)]);
    mock.wait(STATUS, before + 1).await;
    io.queues.push_all([running(4)]);
    let last = mock.wait(STATUS, before + 2).await.pop().expect("a patch");
    assert_eq!(last.body["status"]["running"], 4);
    settled(&io, 7).await;
    assert_eq!(io.group_statuses.counts().superseded, 1);
}

#[tokio::test(start_paused = true)]
async fn conditions_of_others_stay_and_a_conflict_is_read_anew() {
    let mock = Mock::new();
    let other = json!({"type": "Other", "status": "True"});
    let mine = json!({"type": "Unschedulable", "status": "False", "reason": "Unschedulable", "message": "old",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let before = json!({"conditions": [other]});
    let after = json!({"phase": "Pending", "running": 1, "conditions": [other, mine]});
    mock.on(&format!("GET {BATCH}"), [held("uid-g", "7", &before), held("uid-g", "8", &after)]);
    let patch = format!("PATCH {BATCH}/status");
    mock.on(&patch, [failure(409, "Conflict", "the object has been modified"), ok()]);
    let (io, _inputs) = mock.start_io(|_| {});
    let order = |message| group_status(ObjectKind::PodGroupSigsDev, "g", 1, Some(message));
    io.queues.push_all([order("new")]);
    settled(&io, 1).await;
    let seen = mock.seen(&patch);
    assert_eq!(seen[0].body["metadata"], json!({"uid": "uid-g", "resourceVersion": "7"}));
    let conditions = &seen[0].body["status"]["conditions"];
    assert_eq!(
        (&conditions[0], &conditions[1]["lastTransitionTime"]),
        (&other, &json!("2027-01-15T08:00:00Z"))
    );
    let mut want = mine;
    want["message"] = json!("new");
    let status = json!({"conditions": [other, want]});
    assert_eq!(seen[1].body, json!({"metadata": {"uid": "uid-g", "resourceVersion": "8"}, "status": status}));
    // A status that the server already has is not written again, and another group of the same name is left alone.
    io.queues.push_all([order("old")]);
    settled(&io, 2).await;
    mock.on(&format!("GET {BATCH}"), [held("uid-h", "9", &json!({}))]);
    io.queues.push_all([order("new")]);
    settled(&io, 3).await;
    let counts = io.group_statuses.counts();
    assert_eq!((counts.written, counts.unchanged, counts.gone, mock.seen(&patch).len()), (1, 1, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn native_groups_are_written_in_the_version_that_is_served() {
    for (version, kind) in [("v1alpha2", "PodGroupScheduled"), ("v1beta1", "PodGroupInitiallyScheduled")] {
        let mock = Mock::new();
        let path = format!("{NATIVE}/{version}/namespaces/ns/podgroups/g");
        mock.on(&format!("GET {path}"), [held("uid-g", "7", &json!({}))]);
        mock.on(&format!("PATCH {path}/status"), [ok()]);
        let (io, _inputs) = with_native(&mock, version).await;
        io.queues.push_all([group_status(ObjectKind::PodGroupNative, "g", 1, Some("m"))]);
        let patch = mock.wait(&format!("PATCH {path}/status"), 1).await.remove(0).body;
        let status = patch["status"].as_object().expect("a status");
        assert_eq!((status.len(), &status["conditions"][0]["type"]), (1, &json!(kind)));
        assert_eq!(status["conditions"][0]["status"], "False");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_groups_is_written_or_read_behind_a_closed_door() {
    let mock = Mock::new();
    let (io, _inputs) = mock.start_io(|config| config.writes = false);
    let batch = group_status(ObjectKind::PodGroupSigsDev, "h", 1, Some("m"));
    // Native groups are not served, so the group does not exist.
    let native = group_status(ObjectKind::PodGroupNative, "i", 1, Some("m"));
    io.queues.push_all([running(1), batch, native]);
    settled(&io, 3).await;
    let counts = io.group_statuses.counts();
    assert_eq!((counts.failed, counts.gone), (2, 1));
    assert_eq!((mock.seen("PATCH").len(), mock.seen(&format!("GET {BATCH}")).len()), (0, 0));
}
