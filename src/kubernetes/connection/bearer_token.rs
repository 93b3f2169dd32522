//! Bearer tokens that expire: those of a credential plugin, and those in a file that is replaced now and then.
//!
//! A token is renewed shortly before its end, one of a file every minute, and when the server rejects one with 401: the
//! request is then sent once more with the new token, for a server that does not know the user has done nothing. kube renews
//! after fixed times only, so each request of up to a minute would fail after a token was revoked.
//!
//! Not here: tokens without an end and passwords, which kube adds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use kube::config::{AuthInfo, ExecConfig};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceExt};

use crate::connection::exec_plugin::{Credential, LIMIT, PluginError, failed, run};

/// How long before its expiry a token is renewed.
const EARLY: SignedDuration = SignedDuration::from_secs(60);
/// How long a token from a file is used before the file is read again.
const FILE: Duration = Duration::from_secs(60);
/// Shortest pause between two renewals of tokens that the server rejects.
const AGAIN: Duration = Duration::from_secs(5);

/// Why there is no token. Never contains one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    /// The plugin gave none.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The file has none.
    #[error("users[].user.tokenFile: {path}: {cause}")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        cause: String,
    },
}

/// Where tokens come from.
enum Source {
    Plugin(Box<ExecConfig>),
    File(PathBuf),
}

/// A token as a header.
struct Token {
    header: HeaderValue,
    /// Its expiry, if a plugin gave one.
    end: Option<Timestamp>,
    made: Instant,
    /// Whether the server rejected it.
    is_rejected: bool,
}

/// Adds a token to requests, and renews it.
#[derive(Clone)]
pub(crate) struct BearerToken(Arc<Inner>);

struct Inner {
    source: Source,
    token: Mutex<Token>,
}

impl BearerToken {
    /// Takes the credentials of a user that expire: runs its plugin or reads its file, unless other credentials take
    /// precedence. Moves a certificate of a plugin into the user. Fails when there is no usable credential.
    pub(crate) async fn of(user: &mut AuthInfo) -> Result<Option<Self>, TokenError> {
        let has_other = user.auth_provider.is_some()
            || user.token.is_some()
            || (user.username.is_some() && user.password.is_some());
        let exec = user.exec.take();
        let file = user.token_file.take_if(|_| !has_other);
        let (source, token) = match (file, exec.filter(|_| !has_other)) {
            (Some(path), _) => {
                let path = PathBuf::from(path);
                let token = read(&path).await?;
                (Source::File(path), token)
            }
            (None, Some(exec)) => {
                let mut credential = run(&exec, LIMIT).await?;
                let token = bearer(&credential)?;
                let has_certificate = credential.give_certificate(user);
                let Some(token) = token else {
                    let neither = || failed(&exec, "printed neither a token nor a certificate with its key");
                    return if has_certificate { Ok(None) } else { Err(neither().into()) };
                };
                (Source::Plugin(Box::new(exec)), token)
            }
            (None, None) => return Ok(None),
        };
        Ok(Some(Self(Arc::new(Inner { source, token: Mutex::new(token) }))))
    }

    /// Returns the header, with a new token when the current one is about to expire or was rejected.
    async fn header(&self) -> Result<HeaderValue, TokenError> {
        let mut token = self.0.token.lock().await;
        let age = token.made.elapsed();
        let is_over = token.end.is_some_and(|end| now() + EARLY >= end);
        let is_due = is_over || (token.is_rejected && age >= AGAIN);
        match &self.0.source {
            Source::Plugin(exec) if is_due => {
                let credential = run(exec, LIMIT).await?;
                *token = bearer(&credential)?.ok_or_else(|| failed(exec, "printed no token"))?;
            }
            Source::File(path) if is_due || age >= FILE => match read(path).await {
                Ok(new) => *token = new,
                // It is being replaced, or the old token still has some time.
                Err(error) => {
                    tracing::warn!(error = %error, "the old token is used on");
                    token.made = Instant::now();
                }
            },
            Source::Plugin(_) | Source::File(_) => {}
        }
        Ok(token.header.clone())
    }

    /// Notes that the server rejected a request with this header.
    async fn reject(&self, header: &HeaderValue) {
        let mut token = self.0.token.lock().await;
        token.is_rejected |= token.header == *header;
    }
}

/// Reads the token of a file.
async fn read(path: &Path) -> Result<Token, TokenError> {
    let wrong = |cause: String| TokenError::File { path: path.display().to_string(), cause };
    let file = path.to_path_buf();
    let text =
        spawn_blocking(move || std::fs::read_to_string(file)).await.map_err(|e| wrong(e.to_string()))?;
    let text = text.map_err(|error| wrong(error.to_string()))?;
    if text.trim().is_empty() {
        return Err(wrong("it is empty".into()));
    }
    token(text.trim(), None).ok_or_else(|| wrong(UNUSABLE.into()))
}

const UNUSABLE: &str = "the token has characters that no HTTP header may have";

/// Makes a token of what a plugin printed, if that has one.
fn bearer(credential: &Credential) -> Result<Option<Token>, PluginError> {
    let Some(text) = &credential.token else { return Ok(None) };
    let end = credential.expiration_timestamp.as_ref().map(|end| {
        let wrong = || PluginError(format!("expirationTimestamp {end:?} is no point in time"));
        end.parse().map_err(|_| wrong())
    });
    token(text, end.transpose()?).map(Some).ok_or_else(|| PluginError(UNUSABLE.into()))
}

fn token(text: &str, end: Option<Timestamp>) -> Option<Token> {
    let mut header = HeaderValue::try_from(format!("Bearer {text}")).ok()?;
    header.set_sensitive(true);
    Some(Token { header, end, made: Instant::now(), is_rejected: false })
}

/// Copies a request; `None` if its body is a stream, which can be sent only once.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

#[expect(clippy::disallowed_methods, reason = "the end of a token is given in wall time")]
fn now() -> Timestamp {
    Timestamp::now()
}

impl<S> Layer<S> for BearerToken {
    type Service = WithToken<S>;

    fn layer(&self, inner: S) -> WithToken<S> {
        WithToken { inner, token: self.clone() }
    }
}

/// A service whose requests have the token.
#[derive(Clone)]
pub(crate) struct WithToken<S> {
    inner: S,
    token: BearerToken,
}

impl<S, B> Service<Request<Body>> for WithToken<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: Send,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let Self { inner, token } = self.clone();
        let answered = async move {
            let again = copy(&request);
            let header = token.header().await?;
            request.headers_mut().insert(AUTHORIZATION, header.clone());
            let response = inner.clone().oneshot(request).await?;
            if response.status() != StatusCode::UNAUTHORIZED {
                return Ok(response);
            }
            token.reject(&header).await;
            // The old answer says more than why there is no new token, which the next request will meet.
            let new = token.header().await.ok().filter(|new| *new != header);
            let (Some(mut again), Some(new)) = (again, new) else { return Ok(response) };
            again.headers_mut().insert(AUTHORIZATION, new.clone());
            let response = inner.oneshot(again).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                token.reject(&new).await;
            }
            Ok(response)
        };
        answered.boxed()
    }
}

#[cfg(test)]
mod tests {
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
            assert_eq!(header(&token).await == header(&token).await, is_kept, "{end}");
        }
    }

    #[tokio::test]
    async fn a_rejected_token_is_renewed_but_not_at_every_request() {
        let script = "echo '{\"status\":{\"token\":\"'$(date +%N)'\"}}'";
        let token = BearerToken::of(&mut user(script)).await.expect("a token").expect("a plugin");
        tokio::time::pause();
        let one = token.header().await.expect("one");
        token.reject(&HeaderValue::from_static("Bearer another")).await;
        tokio::time::advance(AGAIN).await;
        assert_eq!(token.header().await.expect("the same"), one);
        token.reject(&one).await;
        tokio::time::resume();
        let two = token.header().await.expect("two");
        assert_ne!(two, one);
        token.reject(&two).await;
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
        token.reject(&HeaderValue::from_static("Bearer two")).await;
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
            let status =
                client.clone().oneshot(Request::new(Body::empty())).await.expect("an answer").status();
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
}
