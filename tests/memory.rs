//! Memory while large objects are listed: bounded by the largest object, not by a page or the list.
//!
//! A separate binary, because the test measures the whole process. The objects are generated while they are sent, so
//! the server in the same process uses next to no memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use pellucid::app::clock;
use pellucid::cluster::input::Input;
use pellucid::kubernetes::{ClusterIo, ClusterIoConfig, Connection};
use serde_json::json;

/// Number of pods in the cluster.
const PODS: usize = 150;
/// Size of each pod in bytes.
const POD_BYTES: usize = 1 << 20;
/// Allowed growth of the process in bytes; docs/operations.md states it.
const BOUND: usize = 32 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    limit: Option<usize>,
    r#continue: Option<usize>,
    watch: Option<bool>,
    send_initial_events: Option<bool>,
}

/// The largest page size requested after the first page.
type Largest = Arc<AtomicUsize>;

async fn answer(State(largest): State<Largest>, Query(params): Query<Params>, request: Request) -> Response {
    if params.send_initial_events == Some(true) {
        // As a server without streamed lists answers.
        return (http::StatusCode::UNPROCESSABLE_ENTITY, "sendInitialEvents is not known").into_response();
    }
    if params.watch == Some(true) {
        return Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>()).into_response();
    }
    match request.uri().path() {
        "/api/v1/pods" => {
            let (from, limit) = (params.r#continue.unwrap_or(0), params.limit.unwrap_or(PODS));
            if from > 0 {
                largest.fetch_max(limit, Ordering::Relaxed);
            }
            page(from, (from + limit).min(PODS))
        }
        "/api/v1/nodes" => {
            axum::Json(json!({"metadata": {"resourceVersion": "1"}, "items": []})).into_response()
        }
        "/version" => {
            let version = json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0", "gitCommit": "",
                "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""});
            axum::Json(version).into_response()
        }
        _ => (http::StatusCode::NOT_FOUND, "not served").into_response(),
    }
}

fn page(from: usize, to: usize) -> Response {
    let more = if to < PODS { to.to_string() } else { String::new() };
    let meta = json!({"resourceVersion": "1", "continue": more});
    let head = Bytes::from(format!("{{\"kind\":\"PodList\",\"metadata\":{meta},\"items\":["));
    let filler = Bytes::from(vec![b'x'; 1 << 16]);
    let pods = stream::iter(from..to).flat_map(move |n| {
        let comma = if n > from { "," } else { "" };
        let begin = Bytes::from(format!(
            "{comma}{{\"metadata\":{{\"name\":\"p{n}\",\"namespace\":\"ns\",\"uid\":\"u{n}\"}},\
             \"spec\":{{\"containers\":[{{\"name\":\"c\",\"env\":[{{\"name\":\"E\",\"value\":\""
        ));
        let filler = stream::iter(std::iter::repeat_n(filler.clone(), POD_BYTES >> 16));
        stream::iter([begin]).chain(filler).chain(stream::iter([Bytes::from_static(b"\"}]}]}}")]))
    });
    let body = stream::iter([head]).chain(pods).chain(stream::iter([Bytes::from_static(b"]}")]));
    Body::from_stream(body.map(Ok::<_, std::io::Error>)).into_response()
}

/// Returns the peak resident memory since the last call of [`forget`], in bytes.
fn most_resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

fn forget() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

#[tokio::test]
async fn a_list_of_large_objects_takes_the_memory_of_one() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let largest = Largest::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(largest.clone());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let config = kube::Config::new(url.parse().unwrap());
    let connection = Connection::with_config(config, "a test", PATIENCE).await.unwrap();
    forget();
    let before = most_resident();
    let (inputs, mut received) = tokio::sync::mpsc::channel(16);
    let io = ClusterIo::start(ClusterIoConfig::new(connection, clock::system(), "test"), inputs);
    let listed = async {
        loop {
            if let Input::PodsReset { pods, quarantined } = received.recv().await.unwrap() {
                return (pods.len(), quarantined.len());
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, listed).await.unwrap(), (PODS, 0));
    let grown = most_resident() - before;
    println!("{PODS} pods of {POD_BYTES} bytes: the process grew by {} KiB", grown >> 10);
    assert!(grown < BOUND, "{grown} bytes");
    // Four pods of a megabyte make a page, or three when the rest of a pod counts.
    assert!((1..=4).contains(&largest.load(Ordering::Relaxed)), "{largest:?}");
    drop(received);
    io.shutdown(Duration::from_secs(5)).await;
    serving.abort();
}
