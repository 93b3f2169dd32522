//! Bearer tokens that expire: those of a credential plugin, and those in a file that is replaced now and then.
//!
//! A token is renewed shortly before its end, one of a file every minute, and when the server rejects one with 401: the
//! request is then sent once more with the new token, for a server that does not know the user has done nothing. kube renews
//! after fixed times only, so each request of up to a minute would fail after a token was revoked.
//!
//! One renewal runs at a time, for all requests, and they wait for it only when they have no valid token: a Lease must be
//! renewed while a plugin takes its time.
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
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceExt};

use crate::connection::exec_plugin::{Credential, LIMIT, PluginError, failed, run};

/// How long before its expiry a token is renewed.
const EARLY: SignedDuration = SignedDuration::from_secs(60);
/// How long a token from a file is used before the file is read again.
const FILE: Duration = Duration::from_secs(60);
/// Shortest pause between two renewals, whatever is wrong with the token: a plugin may give one that is about to expire.
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

impl Source {
    async fn ask(&self) -> Result<Token, TokenError> {
        match self {
            Self::Plugin(exec) => {
                let token = bearer(&run(exec, LIMIT).await?)?;
                Ok(token.ok_or_else(|| failed(exec, "printed no token"))?)
            }
            Self::File(path) => read(path).await,
        }
    }
}

/// A token as a header.
struct Token {
    header: HeaderValue,
    /// Its expiry, if a plugin gave one.
    end: Option<Timestamp>,
    /// Whether the server rejected it.
    is_rejected: bool,
}

impl Token {
    fn ends_within(&self, time: SignedDuration) -> bool {
        self.end.is_some_and(|end| now() + time >= end)
    }
}

/// Adds a token to requests, and renews it.
#[derive(Clone)]
pub(crate) struct BearerToken(Arc<Inner>);

struct Inner {
    source: Source,
    state: Mutex<State>,
}

struct State {
    token: Token,
    /// When the last renewal ended.
    asked: Instant,
    /// Why it failed, if it did.
    problem: Option<Arc<TokenError>>,
    /// Closed once the renewal that was begun last has ended.
    renewal: watch::Receiver<()>,
}

impl State {
    fn is_due(&self, source: &Source) -> bool {
        let age = self.asked.elapsed();
        let is_old = matches!(source, Source::File(_)) && age >= FILE;
        age >= AGAIN && (is_old || self.token.is_rejected || self.token.ends_within(EARLY))
    }

    fn is_renewing(&self) -> bool {
        self.renewal.has_changed().is_ok()
    }

    /// Returns whether requests go on with the token while it is renewed. Those with a token of a file wait, as reading one
    /// takes no time.
    fn is_usable(&self, source: &Source) -> bool {
        matches!(source, Source::Plugin(_))
            && !self.token.is_rejected
            && !self.token.ends_within(SignedDuration::ZERO)
    }

    /// Returns the token, or why there is no new one in place of one that has ended.
    fn header(&self) -> Result<HeaderValue, Arc<TokenError>> {
        match &self.problem {
            Some(problem) if self.token.ends_within(SignedDuration::ZERO) => Err(Arc::clone(problem)),
            _ => Ok(self.token.header.clone()),
        }
    }
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
        let (asked, renewal) = (Instant::now(), watch::channel(()).1);
        let state = Mutex::new(State { token, asked, problem: None, renewal });
        Ok(Some(Self(Arc::new(Inner { source, state }))))
    }

    /// Returns the header. Waits for a new token only where the current one was rejected or has ended.
    async fn header(&self) -> Result<HeaderValue, Arc<TokenError>> {
        let mut renewal = {
            let mut state = self.0.state.lock();
            if !state.is_renewing() && state.is_due(&self.0.source) {
                state.renewal = self.renew();
            }
            if !state.is_renewing() || state.is_usable(&self.0.source) {
                return state.header();
            }
            state.renewal.clone()
        };
        while renewal.changed().await.is_ok() {}
        self.0.state.lock().header()
    }

    /// Begins to renew the token. A task of its own does it for all who wait, and goes on when a request with little time
    /// has given up.
    fn renew(&self) -> watch::Receiver<()> {
        let (end, renewal) = watch::channel(());
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            let asked = inner.source.ask().await;
            let mut state = inner.state.lock();
            state.asked = Instant::now();
            match asked {
                Ok(token) => {
                    state.token = token;
                    state.problem = None;
                }
                Err(error) => {
                    tracing::warn!(error = %error, "token not renewed");
                    state.problem = Some(Arc::new(error));
                }
            }
            drop(end);
        });
        renewal
    }

    /// Notes that the server rejected a request with this header.
    fn reject(&self, header: &HeaderValue) {
        let mut state = self.0.state.lock();
        state.token.is_rejected |= state.token.header == *header;
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
    Some(Token { header, end, is_rejected: false })
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
            token.reject(&header);
            // The old answer says more than why there is no new token, which the next request will meet.
            let new = token.header().await.ok().filter(|new| *new != header);
            let (Some(mut again), Some(new)) = (again, new) else { return Ok(response) };
            again.headers_mut().insert(AUTHORIZATION, new.clone());
            let response = inner.oneshot(again).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                token.reject(&new);
            }
            Ok(response)
        };
        answered.boxed()
    }
}

#[cfg(test)]
#[path = "bearer_token_tests.rs"]
mod tests;
