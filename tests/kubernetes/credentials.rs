//! Credentials that are replaced: a server that rejects the old token from one moment on sees each watch and each write
//! once more with the new one, and nothing else notices.
//!
//! Real connections, as the token is added below the client; the time between two renewals is skipped, not waited for.
//! When a token is renewed is tried in `src/kubernetes/connection/bearer_token.rs`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use parking_lot::Mutex;
use pellucid::cluster::input::Input;
use pellucid::kubernetes::watches::status::RetryCause;
use pellucid::kubernetes::{ClusterIo, ClusterIoConfig};
use pellucid::model::effect::BindOutcome;
use serde_json::json;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;

use crate::connect::{kubeconfig_of, open, version};
use crate::mock::{Answer, Mock, bind, bind_done, clock, status};

const PODS: &str = "/api/v1/pods";
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(3);
/// Longer than the shortest pause between two renewals, and shorter than any time limit of a watch.
const LATER: Duration = Duration::from_secs(6);

/// A server that knows one token at a time, and the scheduler's side of the connection.
struct Guarded {
    mock: Mock,
    token: Arc<Mutex<String>>,
    /// Requests with another token, by method and path.
    rejected: Arc<Mutex<Vec<String>>>,
    io: ClusterIo,
    inputs: Receiver<Input>,
    serving: JoinHandle<()>,
}

impl Guarded {
    /// Starts both, with the credentials of this user of a kubeconfig. The first token is replaced before anything is listed.
    async fn start(user: &str, file: &Path) -> Self {
        let mock = Mock::new();
        mock.serve_all();
        mock.on("GET /version", [Answer::Json(200, version())]);
        std::fs::write(file, "first").expect("it is written");
        let token = Arc::new(Mutex::new("first".to_owned()));
        let rejected = Arc::new(Mutex::new(Vec::new()));
        let (known, noted) = (token.clone(), rejected.clone());
        let guard = from_fn(move |request: Request, next: Next| {
            let right = format!("Bearer {}", known.lock());
            let is_known = request.headers().get(AUTHORIZATION).is_some_and(|given| *given == *right);
            if !is_known {
                noted.lock().push(format!("{} {}", request.method(), request.uri().path()));
            }
            async move {
                match is_known {
                    true => next.run(request).await,
                    false => {
                        let body = status(401, "Unauthorized", "Unauthorized").to_string();
                        (http::StatusCode::UNAUTHORIZED, [(CONTENT_TYPE, "application/json")], body)
                            .into_response()
                    }
                }
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let router = mock.router().layer(guard);
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        let connection = open(&kubeconfig_of(&url, user), LATER).await.expect("connected");
        replace(&token, file, "second").await;
        let (inputs, received) = channel(64);
        let io = ClusterIo::start(ClusterIoConfig::new(connection, clock(), "test"), inputs);
        let this = Self { mock, token, rejected, io, inputs: received, serving };
        this.until("all watches are open", |this| this.are_watched(0)).await;
        this
    }

    /// Returns whether every watch is open and none met an error; each was reopened at least so often.
    fn are_watched(&self, reopened: u64) -> bool {
        self.io.watches.iter().all(|(_, status)| {
            let report = status.report();
            report.connected && report.failing.is_none() && report.retries.iter().sum::<u64>() >= reopened
        })
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let asked = async {
            while !is_so(self) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("{what}: not so"));
    }

    /// Returns the requests with another token since the last call.
    fn rejected(&self) -> Vec<String> {
        std::mem::take(&mut *self.rejected.lock())
    }

    /// Asserts that nothing but broken connections was seen, and that each kind was listed once.
    fn check_watches(&self) {
        for (kind, status) in self.io.watches.iter() {
            let report = status.report();
            assert_eq!(report.retries[RetryCause::Status as usize], 0, "{kind}: {:?}", report.last_error);
            assert_eq!(report.lists, 1, "{kind}");
        }
    }
}

/// Replaces the token on both sides, long after it was made.
async fn replace(known: &Mutex<String>, file: &Path, token: &str) {
    std::fs::write(file, token).expect("it is written");
    token.clone_into(&mut known.lock());
    tokio::time::pause();
    tokio::time::advance(LATER).await;
    tokio::time::resume();
}

/// `renewals` returns how often the credentials were read, if that is counted.
async fn replaced_tokens_are_taken(user: &str, file: &Path, renewals: impl Fn() -> usize) {
    let mut guarded = Guarded::start(user, file).await;
    let is_pods = |what: &String| what == &format!("GET {PODS}");
    let rejected = guarded.rejected();
    assert_eq!(rejected.iter().filter(|what| is_pods(what)).count(), 1, "a list is sent again: {rejected:?}");
    guarded.check_watches();

    let binding = "/api/v1/namespaces/ns/pods/p1/binding";
    guarded.mock.on(&format!("POST {binding}"), [Answer::Json(201, json!({}))]);
    let before = renewals();
    replace(&guarded.token, file, "third").await;
    guarded.io.queues.push_all([bind(1, "p1")]);
    assert_eq!(bind_done(&mut guarded.inputs).await.1, BindOutcome::Bound);
    let rejected = guarded.rejected();
    assert!(rejected.iter().filter(|what| **what == format!("POST {binding}")).count() <= 1, "{rejected:?}");
    assert!(!rejected.is_empty(), "somebody met the end of the token");
    assert_eq!(guarded.mock.seen(&format!("POST {binding}")).len(), 1, "it is carried out once");

    replace(&guarded.token, file, "fourth").await;
    guarded.mock.cut_watches();
    guarded.until("all watches are open again", |this| this.are_watched(1)).await;
    let rejected = guarded.rejected();
    assert!(rejected.iter().all(|what| rejected.iter().filter(|other| *other == what).count() == 1));
    assert!(!rejected.is_empty(), "somebody met the end of the token");
    guarded.check_watches();
    assert!(renewals() <= before + 2, "one renewal serves everybody: {} after {before}", renewals());

    assert_eq!(guarded.io.shutdown(Duration::from_secs(10)).await.aborted, 0);
    guarded.serving.abort();
}

#[tokio::test]
async fn a_token_file_that_is_replaced_costs_one_request_more() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let user = format!("{{tokenFile: '{}'}}", file.path().display());
    replaced_tokens_are_taken(&user, file.path(), || 0).await;
}

#[tokio::test]
async fn a_credential_plugin_whose_token_is_revoked_is_run_once_more() {
    let (file, runs) = (tempfile::NamedTempFile::new(), tempfile::NamedTempFile::new());
    let (file, runs) = (file.expect("a file"), runs.expect("a file"));
    let script = "echo run >> $RUNS; \
                  echo \"{status: {token: $(cat $TOKEN), expirationTimestamp: \\\"2999-01-01T00:00:00Z\\\"}}\"";
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
        "env": [
            {"name": "RUNS", "value": runs.path().display().to_string()},
            {"name": "TOKEN", "value": file.path().display().to_string()},
        ],
    });
    let runs = || std::fs::read_to_string(runs.path()).expect("the runs").lines().count();
    replaced_tokens_are_taken(&json!({"exec": exec}).to_string(), file.path(), runs).await;
}
