//! Outages of the API server: whatever goes wrong, watches and writers recover soon after the server does.
//!
//! Time is that of the runtime, which stands still while there is work. The tests therefore use the limits of a real
//! process, and minutes cost nothing.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pellucid::cluster::input::Input;
use pellucid::kubernetes::watches::status::RetryCause;
use pellucid::kubernetes::{ClusterIo, ClusterIoConfig, Connection};
use pellucid::model::effect::{BindOutcome, EffectReport};
use serde_json::json;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::{Instant, sleep};

use crate::connect::version;
use crate::mock::{Answer, Fault, Mock, bind, clock, list, pod};
use crate::watching::{event, line, next};

const PODS: &str = "WATCH /api/v1/pods";
/// Time limit after the server's return.
const PATIENCE: Duration = Duration::from_secs(15);

/// The inputs that arrived, one line each.
#[derive(Clone, Default)]
struct Arrived(Arc<Mutex<Vec<String>>>);

impl Arrived {
    fn collect(mut inputs: Receiver<Input>) -> Self {
        let arrived = Self::default();
        let lines = arrived.0.clone();
        tokio::spawn(async move {
            while let Some(input) = inputs.recv().await {
                let text = match &input {
                    Input::Report(EffectReport::BindDone { outcome: BindOutcome::Bound, .. }) => {
                        "bound".into()
                    }
                    input => line(input),
                };
                lines.lock().push(text);
            }
        });
        arrived
    }

    fn has(&self, text: &str) -> bool {
        self.count(text) > 0
    }

    fn count(&self, text: &str) -> usize {
        self.0.lock().iter().filter(|line| *line == text).count()
    }
}

/// Waits until a condition holds, and returns how long it took.
async fn until(what: &str, most: Duration, is_so: impl Fn() -> bool) -> Duration {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < most, "not within {most:?}: {what}");
        sleep(Duration::from_millis(10)).await;
    }
    begun.elapsed()
}

/// Starts the I/O rooms and waits until all watches have been open for a while.
async fn running() -> (Mock, ClusterIo, Arrived) {
    let mock = Mock::new();
    mock.serve_all();
    let (io, inputs) = mock.start_io(|_| {});
    let arrived = Arrived::collect(inputs);
    until("all is well", Duration::from_secs(5), || all_well(&io)).await;
    sleep(Duration::from_secs(20)).await;
    (mock, io, arrived)
}

fn all_well(io: &ClusterIo) -> bool {
    io.watches.iter().all(|(_, status)| {
        let report = status.report();
        report.synced && report.connected && report.failing.is_none()
    })
}

/// Lets the server fail for a time; afterwards there is one more pod. Returns how soon it arrived.
async fn outage(fault: Fault, length: Duration) -> (Mock, ClusterIo, Duration) {
    let (mock, io, arrived) = running().await;
    mock.fail(Some(fault));
    sleep(length).await;
    mock.on(PODS, [Answer::Watch(vec![event("ADDED", pod("new", "u", None))])]);
    mock.fail(None);
    let took = until("the new pod arrives", PATIENCE, || arrived.has("applied ns/new")).await;
    until("all watches are back", PATIENCE - took, || all_well(&io)).await;
    (mock, io, took)
}

#[tokio::test(start_paused = true)]
async fn watches_are_back_within_seconds_whatever_the_server_did_and_for_how_long() {
    use Fault::{EndAtOnce, Hang, Later, Refuse, Unavailable};
    for fault in [Hang, Refuse, Later, Unavailable, EndAtOnce] {
        for seconds in [3, 7, 10, 90, 600] {
            // Watches that stay open through a short hang miss nothing.
            if seconds == 3 && matches!(fault, Hang | Later) {
                continue;
            }
            let (mock, _io, took) = outage(fault, Duration::from_secs(seconds)).await;
            let requests = mock.seen("").len();
            println!("{fault:?} for {seconds} s: back after {took:?}, {requests} requests in all");
            // 23 kinds, each of which retries at once and then about every 4 s, and the probe.
            assert!(requests as u64 <= 200 + seconds * 12, "{requests} requests in {seconds} s of {fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_is_back_before_anybody_waits_for_a_pod() {
    const WORKS: Duration = Duration::from_secs(5);
    // When the watch reopens is random, so one try proves little.
    for _ in 0..10 {
        let mock = Mock::new();
        mock.serve_all();
        let new = Answer::Watch(vec![event("ADDED", pod("new", "u", None))]);
        mock.on(PODS, [Answer::Breaks(WORKS), new]);
        let begun = Instant::now();
        let (_io, inputs) = mock.start_io(|_| {});
        let arrived = Arrived::collect(inputs);
        until("the new pod arrives", PATIENCE, || arrived.has("applied ns/new")).await;
        let took = begun.elapsed().saturating_sub(WORKS);
        assert!(took < Duration::from_millis(200), "not before {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_that_are_gone_after_an_outage_do_not_prolong_it() {
    for _ in 0..10 {
        let (mock, _io, arrived) = running().await;
        mock.fail(Some(Fault::Unavailable));
        sleep(Duration::from_secs(30)).await;
        // The first watch gets the error that its changes are gone, and the list contains the pod.
        let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
        mock.on(PODS, [Answer::Watch(vec![event("ERROR", gone)]), Answer::Watch(Vec::new())]);
        mock.on("GET /api/v1/pods", [Answer::Json(200, list([pod("new", "u", None)]))]);
        mock.fail(None);
        let is_listed = || arrived.has("pods [\"new\"] without []");
        // A probe per second, a second over which requests are spread, and some time for the requests.
        until("the kind is listed", Duration::from_millis(2_500), is_listed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_can_be_seen_while_it_lasts_and_afterwards() {
    let (mock, io, _) = running().await;
    let before = io.watches.pods.report();
    assert!(before.connected && before.failing.is_none() && before.last_contact.is_some());
    assert!(io.server.report().away.is_none());
    mock.fail(Some(Fault::Refuse));
    sleep(Duration::from_secs(60)).await;
    let report = io.watches.pods.report();
    let failing = report.failing.expect("it fails");
    assert!(!report.connected && failing.retries >= 5, "{failing:?}");
    assert_eq!(report.last_contact.map(|at| at.monotonic), before.last_contact.map(|at| at.monotonic));
    assert!(failing.error.contains("connection refused"), "{}", failing.error);
    let retries = report.retries[RetryCause::Connection as usize];
    assert!(retries > failing.retries, "{retries}: the break is counted too");
    let (since, _) = io.server.report().away.expect("the server is away");
    assert!(since.monotonic >= failing.since.monotonic.saturating_sub(Duration::from_secs(1)));
    mock.fail(None);
    until("all watches are back", PATIENCE, || all_well(&io)).await;
    assert_eq!((io.server.report().outages, io.server.report().away), (1, None));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_within_seconds_of_the_servers_return() {
    use Fault::{Hang, Later, Refuse, Unavailable};
    for fault in [Hang, Refuse, Later, Unavailable] {
        let (mock, io, arrived) = running().await;
        let binding = "POST /api/v1/namespaces/ns/pods/p/binding";
        mock.on(binding, [Answer::Json(201, json!({}))]);
        mock.on("GET /api/v1/namespaces/ns/pods/p", [Answer::Json(200, pod("p", "uid-p", None))]);
        mock.fail(Some(fault));
        sleep(Duration::from_secs(5)).await;
        io.queues.push_all([bind(1, "p")]);
        sleep(Duration::from_secs(5)).await;
        mock.fail(None);
        let took = until("the pod is bound", Duration::from_secs(5), || arrived.has("bound")).await;
        println!("{fault:?}: bound after {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_opened_anew_and_one_with_bookmarks_is_not() {
    let (mock, io, arrived) = running().await;
    let nodes = "WATCH /api/v1/nodes";
    let (begun, before) = (Instant::now(), mock.seen(nodes).len());
    mock.on(nodes, [Answer::Bookmarks(Duration::from_secs(60))]);
    mock.on(PODS, [Answer::Watch(vec![event("ADDED", pod("new", "u", None))])]);
    let most = Duration::from_secs(85);
    until("the new pod arrives", most, || arrived.has("applied ns/new")).await;
    sleep(Duration::from_secs(600) - begun.elapsed()).await;
    // Once, to get bookmarks.
    assert_eq!(mock.seen(nodes).len(), before + 1);
    let silent = |io: &ClusterIo| io.watches.nodes.report().retries[RetryCause::Silent as usize];
    assert_eq!(silent(&io), 1);
    let reopened = mock.seen(PODS).len();
    assert!((7..=10).contains(&reopened), "{reopened} watches of pods in ten minutes of silence");
    let asked = &mock.seen(PODS)[0].query;
    assert!(asked.contains("allowWatchBookmarks=true") && asked.contains("timeoutSeconds=2"), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_began_anew_is_listed_again_whatever_stood_in_for_it() {
    use Fault::{Later, Refuse, Unavailable};
    // A load balancer answers while there is no server behind it.
    for faults in [&[Refuse][..], &[Refuse, Unavailable], &[Unavailable], &[Refuse, Later]] {
        let (mock, _io, arrived) = running().await;
        let mut list = list([pod("other", "u", None)]);
        // The resourceVersion was 10 before.
        list["metadata"]["resourceVersion"] = json!("3");
        for fault in faults {
            mock.fail(Some(*fault));
            sleep(Duration::from_secs(5)).await;
        }
        mock.on("GET /api/v1/pods", [Answer::Json(200, list)]);
        mock.fail(None);
        let is_listed = || arrived.has("pods [\"other\"] without []");
        until(&format!("the new list after {faults:?}"), PATIENCE, is_listed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pages_follow_each_other_and_an_outage_between_them_loses_none() {
    let mock = Mock::new();
    mock.on("GET /api/v1/nodes", [Answer::Hang]);
    let page = |names: &[&str], more: &str| {
        let mut list = list(names.iter().map(|name| pod(name, "u", None)));
        list["metadata"]["continue"] = json!(more);
        Answer::Json(200, list)
    };
    mock.on("GET /api/v1/pods", [page(&["a", "b"], "t1"), Answer::Later(3600), page(&["c"], "")]);
    let (_io, mut inputs) = mock.start_io(|_| {});
    assert_eq!(next(&mut inputs).await, "pods [\"a\", \"b\", \"c\"] without []");
    let queries: Vec<_> = mock.seen("GET /api/v1/pods").into_iter().map(|seen| seen.query).collect();
    assert!(queries[0].contains("limit=50") && !queries[0].contains("continue"), "{queries:?}");
    assert!(queries[1].contains("limit=100&continue=t1") && queries[1] == queries[2], "{queries:?}");
}

/// A proxy in front of a server. It can forget connections: they stay open, but nothing passes through them.
#[derive(Clone, Default)]
struct Proxy(Arc<Mutex<Proxied>>);

#[derive(Default)]
struct Proxied {
    /// Whether new connections are forgotten at once.
    forgets: bool,
    /// Held open until the end of the test.
    clients: Vec<TcpStream>,
    servers: Vec<TcpStream>,
}

impl Proxy {
    /// Starts a proxy of a server and returns its address.
    fn start(server: SocketAddr) -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (proxy, address) = (Self::default(), listener.local_addr().expect("an address"));
        let accepting = proxy.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                accepting.connect(client.expect("a connection"), server);
            }
        });
        (proxy, address)
    }

    fn connect(&self, client: TcpStream, server: SocketAddr) {
        let mut proxied = self.0.lock();
        let clone = |stream: &TcpStream| stream.try_clone().expect("a handle");
        proxied.clients.push(clone(&client));
        if proxied.forgets {
            return;
        }
        let server = TcpStream::connect(server).expect("a connection");
        proxied.servers.push(clone(&server));
        let there = (clone(&client), clone(&server));
        for (mut from, mut to) in [there, (server, client)] {
            // Ends without closing: the handles above hold the sockets.
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        }
    }

    /// Forgets all connections, and from now on new ones.
    fn forget(&self) {
        let mut proxied = self.0.lock();
        proxied.forgets = true;
        for server in proxied.servers.drain(..) {
            let _ = server.shutdown(Shutdown::Both);
        }
    }

    /// Serves new connections again.
    fn serve(&self) {
        self.0.lock().forgets = false;
    }
}

#[tokio::test]
async fn connections_that_something_on_the_way_forgot_are_not_used_again() {
    let mock = Mock::new();
    mock.serve_all();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (proxy, address) = Proxy::start(listener.local_addr().expect("an address"));
    let router = mock.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let _ = rustls::crypto::ring::default_provider().install_default();
    mock.on("GET /version", [Answer::Json(200, version())]);
    let config = kube::Config::new(format!("http://{address}").parse().expect("a URL"));
    let connection =
        Connection::with_config(config, "a test", Duration::from_secs(10)).await.expect("connected");
    let mut config = ClusterIoConfig::new(connection, clock(), "test");
    let millis = Duration::from_millis;
    // The time limits of requests and idle connections are unchanged: waiting for one takes too long.
    config.limits.probe = millis(100);
    config.limits.probe_away = millis(50);
    config.limits.probe_answer = millis(500);
    config.limits.steady = millis(100);
    config.limits.grace = millis(100);
    config.limits.spread = millis(100);
    let (inputs, received) = channel(16);
    let io = ClusterIo::start(config, inputs);
    let arrived = Arrived::collect(received);
    until("all is well", Duration::from_secs(20), || all_well(&io)).await;
    // Concurrent Bindings leave as many idle connections behind.
    let (gate, n_pods) = (Arc::new(Notify::new()), 8);
    for n in 0..=n_pods {
        mock.on(&format!("POST /api/v1/namespaces/ns/pods/p{n}/binding"), [Answer::Gate(gate.clone())]);
    }
    io.queues.push_all((0..n_pods).map(|n| bind(n, &format!("p{n}"))));
    until("bindings are under way", Duration::from_secs(20), || mock.seen("POST").len() == 8).await;
    let is_bound = |n| {
        gate.notify_one();
        arrived.count("bound") == n
    };
    until("pods are bound", Duration::from_secs(20), || is_bound(8)).await;
    proxy.forget();
    until("that is noticed", Duration::from_secs(20), || io.server.report().away.is_some()).await;
    mock.on(PODS, [Answer::Watch(vec![event("ADDED", pod("new", "u", None))])]);
    proxy.serve();
    let took = until("the new pod arrives", Duration::from_secs(6), || arrived.has("applied ns/new")).await;
    println!("back after {took:?}");
    until("all watches are back", Duration::from_secs(6), || all_well(&io)).await;
    io.queues.push_all([bind(n_pods, &format!("p{n_pods}"))]);
    until("one pod more is bound", Duration::from_secs(5), || is_bound(9)).await;
}
