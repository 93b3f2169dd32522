//! When tokens are renewed, and what is said when there is none.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn user(script: &str) -> AuthInfo {
    let exec = ExecConfig {
        command: Some("sh".into()),
        args: Some(vec!["-c".into(), script.into()]),
        ..ExecConfig::default()
    };
    AuthInfo { exec: Some(exec), ..AuthInfo::default() }
}

fn printing(status: &str) -> AuthInfo {
    user(&format!("echo '{{\"kind\":\"ExecCredential\",\"status\":{status}}}'"))
}

fn file(token: &str) -> (tempfile::NamedTempFile, AuthInfo) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(&file, token).expect("it is written");
    let token_file = Some(file.path().display().to_string());
    (file, AuthInfo { token_file, ..AuthInfo::default() })
}

async fn header(token: &BearerToken) -> String {
    let header = token.header().await.expect("a token");
    assert!(header.is_sensitive());
    header.to_str().expect("text").to_owned()
}

#[tokio::test]
async fn a_token_is_renewed_when_it_ends_and_kept_while_it_does_not() {
    for (end, is_kept) in [("2020-01-01T00:00:00Z", false), ("2999-01-01T00:00:00Z", true)] {
        let script = format!(
            "echo '{{\"status\":{{\"expirationTimestamp\":\"{end}\",\"token\":\"'$(date +%N)'\"}}}}'"
        );
        let token = BearerToken::of(&mut user(&script)).await.expect("a token").expect("a plugin");
        tokio::time::pause();
        let first = header(&token).await;
        tokio::time::advance(AGAIN).await;
        tokio::time::resume();
        assert_eq!(header(&token).await == first, is_kept, "{end}");
    }
}

/// A plugin that prints a first token at once, and from then on what it is given.
struct Gated {
    folder: tempfile::TempDir,
    token: BearerToken,
}

impl Gated {
    /// Runs it once. The first token, `one`, has `seconds` left.
    async fn start(seconds: i64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display();
        let first = printed("one", seconds);
        let script = format!(
            "echo run >> {path}/runs; if [ -p {path}/gate ]; then cat {path}/gate; else echo '{first}'; fi"
        );
        let token = BearerToken::of(&mut user(&script)).await.expect("a token").expect("a plugin");
        let gate = folder.path().join("gate");
        let made = std::process::Command::new("mkfifo").arg(gate).status().expect("mkfifo");
        assert!(made.success());
        Self { folder, token }
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.folder.path().join("runs")).expect("the runs").lines().count()
    }

    /// Has the run that waits, or the next one, print this. Returns once it reads.
    async fn print(&self, text: String) {
        let gate = self.folder.path().join("gate");
        tokio::task::spawn_blocking(move || std::fs::write(gate, text))
            .await
            .expect("it ends")
            .expect("written");
    }

    async fn until_renewed(&self) {
        let mut renewal = self.token.0.state.lock().renewal.clone();
        while renewal.changed().await.is_ok() {}
    }
}

/// What a plugin prints.
fn printed(token: &str, seconds: i64) -> String {
    let end = now() + SignedDuration::from_secs(seconds);
    format!("{{\"status\":{{\"token\":\"{token}\",\"expirationTimestamp\":\"{end}\"}}}}")
}

/// Lets the pause between two renewals pass.
async fn pass() {
    tokio::time::pause();
    tokio::time::advance(AGAIN).await;
    tokio::time::resume();
}

#[tokio::test]
async fn requests_with_a_valid_token_neither_wait_for_a_plugin_nor_run_it_each() {
    let gated = Gated::start(50).await;
    let now_or_never = || gated.token.header().now_or_never().map(|header| header.expect("a token"));
    for _ in 0..20 {
        assert_eq!(now_or_never().expect("no wait"), "Bearer one");
    }
    for (text, then) in [
        (printed("two", 40), "Bearer two"),
        ("nonsense".to_owned(), "Bearer two"),
        (printed("three", 1000), "Bearer three"),
    ] {
        let before = gated.runs();
        pass().await;
        let held = now_or_never().expect("no wait while the plugin runs");
        assert_eq!(now_or_never().expect("nor later"), held);
        gated.print(text).await;
        gated.until_renewed().await;
        assert_eq!(now_or_never().expect("no wait"), then);
        assert_eq!(gated.runs(), before + 1, "one run, whatever it gave");
    }
    pass().await;
    assert_eq!(now_or_never().expect("no wait"), "Bearer three");
    assert_eq!(gated.runs(), 4);
}

#[tokio::test]
async fn a_request_that_gives_up_leaves_the_plugin_to_those_that_wait() {
    let gated = Gated::start(1000).await;
    gated.token.reject(&HeaderValue::from_static("Bearer one"));
    pass().await;
    for _ in 0..3 {
        assert!(gated.token.header().now_or_never().is_none(), "a rejected token is not used");
    }
    let (waiting, ()) = tokio::join!(gated.token.header(), gated.print(printed("two", 1000)));
    assert_eq!(waiting.expect("a token"), "Bearer two");
    assert_eq!(gated.runs(), 2, "all waited for one run");
}

#[tokio::test]
async fn without_a_valid_token_a_request_says_what_the_plugin_lacks() {
    let gated = Gated::start(-1).await;
    pass().await;
    let said = async || gated.token.header().await.expect_err("no token").to_string();
    let (first, ()) = tokio::join!(said(), gated.print("nonsense".to_owned()));
    assert_eq!(first, "users[].user.exec: \"sh\" printed no ExecCredential with a status");
    assert_eq!(said().await, first);
    assert_eq!(gated.runs(), 2, "not at every request");
}

#[tokio::test]
async fn a_rejected_token_is_renewed_but_not_at_every_request() {
    let script = "echo '{\"status\":{\"token\":\"'$(date +%N)'\"}}'";
    let token = BearerToken::of(&mut user(script)).await.expect("a token").expect("a plugin");
    tokio::time::pause();
    let one = token.header().await.expect("one");
    token.reject(&HeaderValue::from_static("Bearer another"));
    tokio::time::advance(AGAIN).await;
    assert_eq!(token.header().await.expect("the same"), one);
    token.reject(&one);
    tokio::time::resume();
    let two = token.header().await.expect("two");
    assert_ne!(two, one);
    token.reject(&two);
    assert_eq!(token.header().await.expect("the same"), two, "the plugin has just run");
}

#[tokio::test(start_paused = true)]
async fn a_file_is_read_again_after_a_minute_and_after_a_rejection() {
    let (mut file, mut user) = file("one\n");
    let token = BearerToken::of(&mut user).await.expect("a token").expect("a file");
    assert!(user.token_file.is_none(), "kube does not add it as well");
    std::fs::write(&file, "two").expect("it is written");
    assert_eq!(header(&token).await, "Bearer one");
    tokio::time::advance(FILE).await;
    assert_eq!(header(&token).await, "Bearer two");
    std::fs::write(&file, "three").expect("it is written");
    tokio::time::advance(AGAIN).await;
    assert_eq!(header(&token).await, "Bearer two");
    token.reject(&HeaderValue::from_static("Bearer two"));
    assert_eq!(header(&token).await, "Bearer three");
    // While it is replaced it may be empty.
    file.as_file_mut().set_len(0).expect("it is emptied");
    tokio::time::advance(FILE).await;
    assert_eq!(header(&token).await, "Bearer three");
    file.as_file_mut().write_all(b"four").expect("it is written");
    tokio::time::advance(FILE).await;
    assert!(header(&token).await.ends_with("four"));
}

#[tokio::test(start_paused = true)]
async fn a_request_with_a_replaced_token_is_sent_once_more_and_not_more_often() {
    let (file, mut user) = file("one");
    let token = BearerToken::of(&mut user).await.expect("a token").expect("a file");
    let right = Arc::new(parking_lot::Mutex::new("one"));
    let asked = Arc::new(AtomicUsize::new(0));
    let (known, counted) = (right.clone(), asked.clone());
    let server = tower::service_fn(move |request: Request<Body>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let right = format!("Bearer {}", known.lock());
        let is_known = request.headers()[AUTHORIZATION] == *right;
        let status = if is_known { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        let response = Response::builder().status(status).body(()).expect("a response");
        std::future::ready(Ok::<_, BoxError>(response))
    });
    let client = token.layer(server);
    let ask = async || {
        let status = client.clone().oneshot(Request::new(Body::empty())).await.expect("an answer").status();
        (status, asked.swap(0, Ordering::Relaxed))
    };
    let set = |token| *right.lock() = token;
    assert_eq!(ask().await, (StatusCode::OK, 1));
    tokio::time::advance(AGAIN).await;
    std::fs::write(&file, "two").expect("it is written");
    set("two");
    assert_eq!(ask().await, (StatusCode::OK, 2));
    // The new one may be wrong as well; what has just been renewed is not renewed again.
    tokio::time::advance(AGAIN).await;
    std::fs::write(&file, "wrong").expect("it is written");
    set("three");
    assert_eq!(ask().await, (StatusCode::UNAUTHORIZED, 2));
    assert_eq!(ask().await, (StatusCode::UNAUTHORIZED, 1));
    tokio::time::advance(AGAIN).await;
    assert_eq!(ask().await, (StatusCode::UNAUTHORIZED, 1), "a token that stays the same is sent once");
    tokio::time::advance(AGAIN).await;
    std::fs::write(&file, "three").expect("it is written");
    assert_eq!(ask().await, (StatusCode::OK, 1));
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_said() {
    for (text, want) in [("", "it is empty"), (" \n", "it is empty"), ("a\nb", UNUSABLE)] {
        let (file, mut user) = file(text);
        let error = BearerToken::of(&mut user).await.err().expect(want).to_string();
        assert_eq!(error, format!("users[].user.tokenFile: {}: {want}", file.path().display()));
    }
    let mut user = AuthInfo { token_file: Some("/does/not/exist".into()), ..AuthInfo::default() };
    let error = BearerToken::of(&mut user).await.err().expect("there is no file").to_string();
    assert!(error.starts_with("users[].user.tokenFile: /does/not/exist: "), "{error}");
}

#[tokio::test]
async fn a_certificate_goes_to_the_user() {
    let mut user = printing(r#"{"clientCertificateData":"cert","clientKeyData":"keys"}"#);
    assert!(BearerToken::of(&mut user).await.expect("a certificate").is_none());
    assert_eq!(user.client_certificate_data.as_deref(), Some("Y2VydA=="));
    assert!(user.client_key_data.is_some() && user.exec.is_none());
}

#[tokio::test]
async fn what_is_wrong_with_a_plugin_is_said_without_its_output() {
    for (mut user, want) in [
        (user("echo secret; exit 3"), "\"sh\" failed: exit status: 3"),
        (user("echo '{\"status\": secret'"), "\"sh\" printed no ExecCredential with a status"),
        (printing("{}"), "\"sh\" printed neither a token nor a certificate with its key"),
        (
            printing(r#"{"token":"x","expirationTimestamp":"soon"}"#),
            "expirationTimestamp \"soon\" is no point in time",
        ),
        (AuthInfo { exec: Some(ExecConfig::default()), ..AuthInfo::default() }, "command is not set"),
    ] {
        let error = BearerToken::of(&mut user).await.err().expect(want).to_string();
        assert_eq!(error, format!("users[].user.exec: {want}"));
    }
}
