//! Lists that come as streams: a watch that begins with all objects.

use std::time::Duration;

use pellucid::cluster::input::Input;
use pellucid::kubernetes::{ClusterIo, ClusterIoConfig, Connection};
use pellucid::sandbox::{Config, Handle, Sandbox};
use serde_json::{Value, json};
use tokio::sync::mpsc::channel;
use tokio::time::Instant;

use crate::mock::{Answer, Mock, clock, failure, list, pod};
use crate::watching::{event, next};

fn bookmark(version: &str, is_end: bool) -> Value {
    let mut metadata = json!({"resourceVersion": version});
    if is_end {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    event("BOOKMARK", json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata}))
}

fn bad(name: &str) -> Value {
    let mut pod = pod(name, "u", None);
    pod["spec"]["containers"] = json!([{"resources": {"requests": {"cpu": "1x"}}}]);
    pod
}

/// A server whose pods come as this stream, and whose nodes are silent, so that the order of inputs is that of the pods.
fn streaming(streams: impl IntoIterator<Item = Answer>) -> Mock {
    let mock = Mock::new();
    mock.on("STREAM /api/v1/pods", streams);
    mock.on("GET /api/v1/nodes", [Answer::Hang]);
    mock
}

#[tokio::test(start_paused = true)]
async fn all_objects_come_at_once_and_then_the_changes_of_the_same_watch() {
    let mock = streaming([Answer::Watch(vec![
        event("ADDED", pod("b", "u", None)),
        event("ADDED", pod("a", "u", None)),
        event("ADDED", bad("bad")),
        event("ADDED", pod("gone", "u", None)),
        event("ADDED", pod("mended", "u", None)),
        bookmark("8", false),
        // The server may send changes before it says that all objects were sent.
        event("DELETED", pod("gone", "u", None)),
        event("MODIFIED", bad("mended")),
        event("MODIFIED", pod("mended", "u", None)),
        bookmark("9", true),
        event("ADDED", pod("late", "u", None)),
        event("DELETED", pod("a", "u", None)),
    ])]);
    let (io, mut inputs) = mock.start_io(|_| {});
    for want in [
        "pods [\"a\", \"b\", \"mended\"] without [\"bad at spec.containers[0].resources.requests.cpu\"]",
        "applied ns/late",
        "deleted ns/a",
    ] {
        assert_eq!(next(&mut inputs).await, want);
    }
    let report = io.watches.pods.report();
    assert_eq!((report.synced, report.lists, report.errors), (true, 1, 0));
    assert!(mock.seen("GET /api/v1/pods").is_empty(), "no page was asked for");
    let query = mock.seen("STREAM /api/v1/pods").remove(0).query;
    for part in ["allowWatchBookmarks=true", "resourceVersionMatch=NotOlderThan"] {
        assert!(query.contains(part), "{query}");
    }
    assert!(!query.contains("resourceVersion=0"), "it begins with the newest state: {query}");
    assert_eq!(io.shutdown(Duration::from_secs(1)).await.aborted, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_fails_is_read_in_pages_and_the_next_list_is_a_stream_again() {
    let gone =
        || event("ERROR", json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}));
    let whole = Answer::Watch(vec![event("ADDED", pod("c", "u", None)), bookmark("20", true)]);
    for broken in [
        // It stays silent in the middle, breaks, says why it ends, or is turned away.
        Answer::Watch(vec![event("ADDED", pod("half", "u", None))]),
        Answer::Breaks(Duration::from_secs(1)),
        Answer::Watch(vec![event("ADDED", pod("half", "u", None)), gone()]),
        Answer::Watch(vec![json!("nonsense")]),
        Answer::Later(3600),
        failure(500, "InternalError", "etcd"),
    ] {
        let mock = streaming([broken, whole.clone()]);
        mock.on("GET /api/v1/pods", [Answer::Json(200, list([pod("a", "u", None)]))]);
        mock.on("WATCH /api/v1/pods", [Answer::Watch(vec![gone()]), Answer::Watch(Vec::new())]);
        let (io, mut inputs) = mock.start_io(|_| {});
        assert_eq!(next(&mut inputs).await, "pods [\"a\"] without []");
        // The watch from the pages has expired.
        assert_eq!(next(&mut inputs).await, "pods [\"c\"] without []");
        assert_eq!((mock.seen("STREAM /api/v1/pods").len(), mock.seen("GET /api/v1/pods").len()), (2, 1));
        assert_eq!(io.shutdown(Duration::from_secs(1)).await.aborted, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streams_is_asked_for_one_once() {
    let refused = failure(
        422,
        "Invalid",
        "sendInitialEvents is forbidden for watch unless the feature gate is enabled",
    );
    let mock = streaming([refused]);
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    mock.on("WATCH /api/v1/pods", [Answer::Watch(vec![event("ERROR", gone)]), Answer::Watch(Vec::new())]);
    let (io, mut inputs) = mock.start_io(|_| {});
    for _ in 0..2 {
        assert_eq!(next(&mut inputs).await, "pods [] without []");
    }
    assert_eq!((mock.seen("STREAM /api/v1/pods").len(), mock.seen("GET /api/v1/pods").len()), (1, 2));
    assert_eq!(io.watches.pods.report().errors, 1, "only the expired watch counts as an error");
    assert_eq!(io.shutdown(Duration::from_secs(1)).await.aborted, 0);
}

/// Number of objects in the large list.
const MANY: usize = 100_000;

#[expect(clippy::print_stdout, reason = "how long each takes is worth a look")]
async fn list_many(sandbox: &Handle, streaming_lists: bool) {
    let client = || kube::Client::try_from(sandbox.kube_config()).expect("a client");
    let mut config = ClusterIoConfig::new(Connection::of_clients(client(), client()), clock(), "test");
    config.limits.streaming_lists = streaming_lists;
    let (inputs, mut received) = channel(1);
    let begun = Instant::now();
    let io = ClusterIo::start(config, inputs);
    let count = loop {
        match received.recv().await.expect("an input") {
            Input::ObjectsReset { objects, quarantined, .. } if objects.len() >= MANY => {
                assert!(quarantined.is_empty());
                let names = objects.iter().map(|object| object.key().1);
                assert!(names.is_sorted_by(|a, b| a < b), "each once, in order");
                break objects.len();
            }
            _ => {}
        }
    };
    // The cluster has some namespaces of its own.
    assert!(count < MANY + 10, "{count}");
    println!("streamed: {streaming_lists}, {count} objects in {:.1} s", begun.elapsed().as_secs_f64());
    io.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_objects_are_listed_as_a_stream_and_in_pages() {
    let object = |i: usize| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("n-{i:06}")}});
    let objects = (0..MANY).map(object).collect();
    let sandbox = Sandbox::start(Config { objects, ..Config::default() }).await.expect("it starts");
    tokio::join!(list_many(&sandbox, true), list_many(&sandbox, false));
    sandbox.stop().await;
}
