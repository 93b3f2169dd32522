//! Connecting: the errors when the cluster is not where the kubeconfig says.

use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;

use pellucid::kubernetes::{ClusterIo, ClusterIoConfig, ConnectError, Connection};
use pellucid::model::effect::BindOutcome;
use serde_json::json;

use crate::mock::{Answer, Mock, bind, bind_done, clock};

fn kubeconfig(port: u16) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n\
         users: [{{name: u, user: {{}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    );
    file.write_all(text.as_bytes()).expect("written");
    file
}

/// Returns an API server's response to `/version`.
pub(crate) fn version() -> serde_json::Value {
    json!({"major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "0",
        "gitTreeState": "clean", "buildDate": "", "goVersion": "", "compiler": "gc", "platform": ""})
}

pub(crate) async fn open(
    file: &tempfile::NamedTempFile,
    patience: Duration,
) -> Result<Connection, ConnectError> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Connection::open(Some(file.path()), patience).await
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let file = kubeconfig(port);
    let error = open(&file, Duration::from_secs(10)).await.expect_err("unreachable").to_string();
    assert!(error.contains(&format!("http://127.0.0.1:{port}/")), "{error}");
    assert!(error.contains(file.path().to_str().expect("a path")), "{error}");
    assert!(error.to_lowercase().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_waited_for() {
    // The kernel accepts the connection, but nobody reads from it.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let file = kubeconfig(listener.local_addr().expect("an address").port());
    let error = open(&file, Duration::from_millis(30)).await.expect_err("unreachable").to_string();
    assert!(error.contains("no answer within 30ms"), "{error}");
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_is_named() {
    let path = std::path::Path::new("/nowhere/kubeconfig");
    let error = Connection::open(Some(path), Duration::from_secs(1)).await.expect_err("no file");
    assert!(matches!(error, ConnectError::Kubeconfig { .. }));
    assert!(error.to_string().starts_with("kubeconfig /nowhere/kubeconfig: "), "{error}");
}

#[tokio::test]
async fn a_server_that_answers_tells_its_version_and_binds_over_real_connections() {
    let mock = Mock::new();
    mock.on("GET /version", [Answer::Json(200, version())]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let file = kubeconfig(listener.local_addr().expect("an address").port());
    let server = mock.router();
    let serving = tokio::spawn(async move { axum::serve(listener, server).await });
    let connection = open(&file, Duration::from_secs(10)).await.expect("connected");
    assert_eq!(connection.version, "v1.36.2");

    let (n_pods, capacity) = (100, 64);
    for n in 0..n_pods {
        let binding = format!("POST /api/v1/namespaces/ns/pods/p{n}/binding");
        mock.on(&binding, [Answer::Json(201, json!({}))]);
    }
    let (inputs, mut received) = tokio::sync::mpsc::channel(capacity);
    let io = ClusterIo::start(ClusterIoConfig::new(connection, clock(), "test"), inputs);
    io.queues.push_all((0..n_pods).map(|n| bind(n, &format!("p{n}"))));
    for _ in 0..n_pods {
        assert_eq!(bind_done(&mut received).await.1, BindOutcome::Bound);
    }
    drop(received);
    assert_eq!(io.shutdown(Duration::from_secs(10)).await.aborted, 0);
    serving.abort();
}

/// Writes a kubeconfig with a server and the fields of a user.
pub(crate) fn kubeconfig_of(server: &str, user: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: other}}, {{name: c, cluster: {{server: '{server}'}}}}]\n\
         users: [{{name: u, user: {user}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    );
    file.write_all(text.as_bytes()).expect("written");
    file
}

#[tokio::test]
async fn a_server_that_is_no_url_is_named_with_file_and_field() {
    for server in ["nonsense", "", "10.0.0.1:6443", "https://", "unix:///run/api"] {
        let file = kubeconfig_of(server, "{}");
        let error = open(&file, Duration::from_secs(10)).await.expect_err("no URL").to_string();
        let path = file.path().display();
        let want = format!("kubeconfig {path}: clusters[1].cluster.server (of cluster \"c\"): ");
        assert!(error.starts_with(&want), "{server:?}: {error}");
        assert!(server.is_empty() || error.contains(server), "{server:?}: {error}");
    }
}

#[tokio::test]
async fn no_secret_of_a_kubeconfig_is_shown() {
    let servers =
        ["https://me:s3cret@127.0.0.1:1", "me:s3cret@127.0.0.1", "https://me:s3cret@", "ht tp://me:s3cret@a"];
    for server in servers {
        let error =
            open(&kubeconfig_of(server, "{}"), Duration::from_secs(10)).await.expect_err("a password");
        assert!(error.to_string().contains("clusters[1].cluster.server"), "{error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{server}: {error:?}");
    }
    for user in ["{token: s3cret, token: s3cret}", "{token: [s3cret", "s3cret", "{token: {s3cret: s3cret}}"] {
        let file = kubeconfig_of("http://127.0.0.1:1", user);
        let error = open(&file, Duration::from_secs(10)).await.expect_err("no kubeconfig");
        assert!(error.to_string().contains("not a kubeconfig: "), "{error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{user}: {error:?}");
    }
    // A configuration from elsewhere is neither checked by us nor shown.
    let uri = "http://me:s3cret@127.0.0.1:1".parse().expect("a URL");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let error = Connection::with_config(kube::Config::new(uri), "a test", Duration::from_secs(10)).await;
    let error = error.expect_err("nobody listens");
    assert!(error.to_string().contains("(redacted)@127.0.0.1:1"), "{error}");
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
}

#[tokio::test]
async fn a_credential_plugin_gives_the_token_of_every_request() {
    let mock = Mock::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let seen = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let noted = seen.clone();
    let note = axum::middleware::map_request(move |request: axum::extract::Request| {
        let header = request.headers().get(http::header::AUTHORIZATION).cloned();
        noted.lock().push(header.map(|h| h.to_str().expect("a text").to_owned()));
        std::future::ready(request)
    });
    let server = mock.router().layer(note);
    let serving = tokio::spawn(async move { axum::serve(listener, server).await });
    let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, \
                args: [-c, 'echo \"{status: {token: $NAME}}\"'], env: [{name: NAME, value: t0ken}]}}";
    let file = kubeconfig_of(&url, user);
    // The mock has no version and says so; the test is about the credentials that were sent.
    assert!(open(&file, Duration::from_secs(10)).await.is_err());
    assert_eq!(*seen.lock(), [Some("Bearer t0ken".to_owned())]);
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn a_credential_plugin_that_hangs_is_named_with_its_file() {
    let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: sleep, args: ['1000']}}";
    let file = kubeconfig_of("http://127.0.0.1:1", user);
    let error = open(&file, Duration::from_secs(10)).await.expect_err("no credential").to_string();
    let path = file.path().display();
    let want = "users[].user.exec: \"sleep\" printed no credential within 8s";
    assert_eq!(error, format!("kubeconfig {path}: {want}"));
}
