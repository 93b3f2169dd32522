//! Outages of the API server as its clients see them: hanging, silent, refusing, resetting, restarting.
//!
//! The clock stands still unless a test advances it, so nothing here depends on the speed of the machine.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use kube::client::Body;

use super::*;

const HALF_A_MINUTE: Duration = Duration::from_secs(30);

async fn names(client: &Client) -> Vec<String> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let list = in_time(pods.list(&ListParams::default())).await.expect("an answer");
    list.items.iter().map(ResourceExt::name_any).collect()
}

fn seed(sandbox: &Handle, name: &str) {
    let mut object = serde_json::to_value(pod(name)).expect("a pod is JSON");
    (object["apiVersion"], object["kind"]) = (json!("v1"), json!("Pod"));
    sandbox.create(object).expect("a pod");
}

async fn watch_from_now(
    sandbox: &Handle,
    client: &Client,
) -> impl Stream<Item = kube::Result<WatchEvent<Pod>>> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let params = WatchParams { bookmarks: true, ..WatchParams::default() };
    Box::pin(pods.watch(&params, &sandbox.revision().to_string()).await.expect("a watch"))
}

fn is_added(event: Option<kube::Result<WatchEvent<Pod>>>, name: &str) -> bool {
    matches!(event, Some(Ok(WatchEvent::Added(pod))) if pod.name_any() == name)
}

/// Sends the beginning of a request. Returns how many bytes came back until the end, or how the connection broke.
async fn sent(sandbox: &Handle, head: String) -> Result<usize, ErrorKind> {
    let address = sandbox.address();
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).map_err(|error| error.kind())?;
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream.write_all(head.as_bytes()).map_err(|error| error.kind())?;
        stream.read_to_end(&mut Vec::new()).map_err(|error| error.kind())
    });
    in_time(answer).await.expect("no panic")
}

/// Waits until connecting succeeds or fails, as wanted.
async fn until_listening(sandbox: &Handle, wanted: bool) {
    in_time(async {
        while tokio::net::TcpStream::connect(sandbox.address()).await.is_ok() != wanted {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn met(sandbox: &Handle) {
    in_time(async {
        while sandbox.faults().pending() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_hanging_request_is_carried_out_when_the_hang_ends() {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut watch = watch_from_now(&sandbox, &client).await;
    sandbox.faults().next(Match::on("POST", "pods"), Fault::Hang);
    let create = tokio::spawn({
        let pods = pods.clone();
        async move { pods.create(&PostParams::default(), &pod("late")).await }
    });
    met(&sandbox).await;
    seed(&sandbox, "meanwhile");
    assert!(is_added(in_time(watch.next()).await, "meanwhile"), "open watches go on");
    assert_eq!(
        names(&client).await,
        ["meanwhile"],
        "other requests are answered, the hanging one is not done"
    );
    assert!(!create.is_finished());
    sandbox.faults().clear();
    in_time(create).await.expect("no panic").expect("created");

    sandbox.faults().during(Match::all(), Fault::Hang, HALF_A_MINUTE);
    let list = tokio::spawn({
        let client = client.clone();
        async move { names(&client).await.len() }
    });
    sandbox.clock().advance(HALF_A_MINUTE);
    assert_eq!(in_time(list).await.expect("no panic"), 2);
    assert_eq!(sandbox.faults().pending(), 0, "the time is over");
}

#[tokio::test]
async fn a_black_hole_swallows_requests_and_open_watches_for_good() {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut swallowed = watch_from_now(&sandbox, &client).await;
    seed(&sandbox, "before");
    assert!(is_added(in_time(swallowed.next()).await, "before"));
    sandbox.faults().next(Match::on("DELETE", "pods"), Fault::BlackHole);
    let delete = tokio::spawn(async move { pods.delete("before", &DeleteParams::default()).await.is_ok() });
    met(&sandbox).await;
    sandbox.faults().next(Match::watches("pods"), Fault::BlackHole);
    met(&sandbox).await;
    seed(&sandbox, "during");
    sandbox.faults().clear();

    let mut fresh = watch_from_now(&sandbox, &client).await;
    seed(&sandbox, "after");
    assert!(is_added(in_time(fresh.next()).await, "after"), "new watches are served");
    sandbox.clock().advance(Duration::from_secs(61));
    assert!(matches!(in_time(fresh.next()).await, Some(Ok(WatchEvent::Bookmark(_)))));
    assert!(swallowed.next().now_or_never().is_none(), "neither events nor bookmarks nor an end");
    assert!(!delete.is_finished(), "swallowed requests are not answered");
    assert_eq!(names(&client).await, ["after", "before", "during"], "nor carried out");
}

#[tokio::test]
async fn refusals_for_a_time_say_when_to_come_back() {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let nodes: Api<Node> = Api::all(client.clone());
    sandbox.faults().during(Match::on("GET", "pods"), Fault::RetryAfter(429, 7), HALF_A_MINUTE);
    sandbox.faults().during(Match::reads("nodes"), Fault::Status(503), HALF_A_MINUTE);
    for _ in 0..3 {
        let request = http::Request::get("/api/v1/pods").body(Body::empty()).expect("a request");
        let response = client.send(request).await.expect("an answer");
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "7");
        assert_eq!(code(&nodes.list(&ListParams::default()).await.expect_err("refused")), 503);
    }
    let refused = pods.list(&ListParams::default()).await.expect_err("refused");
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert_eq!(status.details.map(|details| details.retry_after_seconds), Some(7));
    assert!(nodes.watch(&WatchParams::default(), "0").await.is_ok(), "watches are not reads");
    sandbox.clock().advance(HALF_A_MINUTE);
    assert!(pods.list(&ListParams::default()).await.is_ok());
    assert!(nodes.list(&ListParams::default()).await.is_ok());
}

#[tokio::test]
async fn a_reset_is_not_an_ordinary_end() {
    let (sandbox, client) = still().await;
    let mut open = watch_from_now(&sandbox, &client).await;
    let ask = async |path: &str| sent(&sandbox, format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
    sandbox.faults().during(Match::all(), Fault::Reset, HALF_A_MINUTE);
    assert_eq!(ask("/api/v1/nodes").await, Err(ErrorKind::ConnectionReset));
    assert_eq!(ask("/api/v1/pods?watch=1").await, Err(ErrorKind::ConnectionReset));
    assert!(!matches!(in_time(open.next()).await, Some(Ok(_))), "open watches are reset too");
    sandbox.faults().clear();
    sandbox.faults().next(Match::all(), Fault::Drop);
    assert_eq!(ask("/api/v1/nodes").await, Ok(0), "a dropped connection ends");
    assert!(names(&client).await.is_empty());
}

#[tokio::test]
async fn a_watch_can_end_at_once() {
    let (sandbox, client) = still().await;
    sandbox.faults().during(Match::watches("pods"), Fault::EndWatch, HALF_A_MINUTE);
    for _ in 0..3 {
        let mut watch = watch_from_now(&sandbox, &client).await;
        seed(&sandbox, &format!("p{}", sandbox.revision()));
        assert!(in_time(watch.next()).await.is_none());
    }
    assert_eq!(names(&client).await.len(), 3, "lists are served");
    sandbox.clock().advance(HALF_A_MINUTE);
    let mut watch = watch_from_now(&sandbox, &client).await;
    seed(&sandbox, "last");
    assert!(is_added(in_time(watch.next()).await, "last"));
}

#[tokio::test]
async fn a_restart_closes_everything_and_comes_back_with_the_same_data() {
    let (sandbox, client) = still().await;
    seed(&sandbox, "a");
    for _ in 0..2 {
        let revision = sandbox.revision();
        let mut watch = watch_from_now(&sandbox, &client).await;
        let half = sent(&sandbox, "GET /api/v1/pods HTT".to_owned());
        let restart = async {
            tokio::task::yield_now().await;
            sandbox.restart(HALF_A_MINUTE);
        };
        let (half, ()) = tokio::join!(half, restart);
        assert!(matches!(half, Ok(0) | Err(_)), "connections without a request close: {half:?}");
        assert!(!matches!(in_time(watch.next()).await, Some(Ok(_))), "watches end");
        until_listening(&sandbox, false).await;
        assert_eq!(sent(&sandbox, String::new()).await, Err(ErrorKind::ConnectionRefused));
        sandbox.clock().advance(HALF_A_MINUTE);
        until_listening(&sandbox, true).await;
        assert_eq!(names(&client).await, ["a"]);
        assert_eq!(sandbox.revision(), revision, "nothing happened in between");
    }
    sandbox.stop().await;
}
