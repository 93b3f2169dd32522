//! Wraps every request: request id, URL, host and origin checks, panic handling, log line, audit line of what may write.

use std::any::Any;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tracing::Instrument;

use crate::access::audit::{Asker, Line};
use crate::access::gate::Gate;
use crate::error::{Failure, ReadError, unknown_path};
use crate::registration::endpoint::Template;
use crate::registration::params::{decode, malformed, shortened};
use crate::registration::route::RequestInfo;
use crate::server::Clock;

/// One request with its response, for metrics. Invariant: every field except the time is from a bounded set.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The method, or `_OTHER` for unusual ones.
    pub method: &'static str,
    /// The path template; empty for unknown paths.
    pub template: &'a str,
    /// HTTP status of the response.
    pub status: u16,
    /// Time from the head of the request to the head of the response.
    pub took: Duration,
}

/// Called for every response, on the thread that serves the connection.
pub type Observe = Arc<dyn Fn(Observation<'_>) + Send + Sync>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Longest path that is looked at, in bytes: two names of 253 characters, each percent-encoded, and more.
const LONGEST_PATH: usize = 4096;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(crate) struct Observed {
    now: Clock,
    observe: Observe,
    started: u64,
    count: AtomicU64,
    /// Whether every request says who sends it, so that a name of this machine needs no protection.
    is_guarded: bool,
}

impl Observed {
    pub(crate) fn new(now: Clock, observe: Observe, is_guarded: bool) -> Self {
        let started = now().wall.as_secs();
        Self { now, observe, started, count: AtomicU64::new(0), is_guarded }
    }

    /// Returns the client's request id if it is a plain word of at most 64 characters. Otherwise creates one from the
    /// start time of the process and a counter.
    fn request_id(&self, headers: &HeaderMap) -> String {
        const LONGEST: usize = 64;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
        match given.filter(|id| (1..=LONGEST).contains(&id.len()) && id.bytes().all(plain)) {
            Some(id) => id.to_owned(),
            None => format!("{:x}-{}", self.started, self.count.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

pub(crate) fn layered(router: Router, observed: Arc<Observed>) -> Router {
    router.layer(middleware::from_fn_with_state(observed, around))
}

/// Responds to paths that are not served. Where there is a gate, only users learn that.
pub(crate) async fn unknown(gate: Option<Arc<Gate>>, request: Request) -> Response {
    let info = request.extensions().get::<RequestInfo>().cloned().unwrap_or_default();
    if let Some(gate) = gate {
        match gate.identify(request.headers(), request.extensions()).await {
            Ok((user, _)) => {
                request.extensions().get::<Asker>().into_iter().for_each(|asker| asker.is(&user))
            }
            Err(failure) => return failure.respond(&info.request_id),
        }
    }
    unknown_path(request.uri().path()).respond(&info.request_id)
}

/// Responds to all but health paths on a connection of the reserve.
pub(crate) async fn crowded(request: Request) -> Response {
    let info = request.extensions().get::<RequestInfo>().cloned().unwrap_or_default();
    let message = "all connections are taken; close some or ask again (health checks are answered)";
    let failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "TooManyConnections", message);
    failure.with(header::RETRY_AFTER, "1").respond(&info.request_id)
}

async fn around(State(observed): State<Arc<Observed>>, mut request: Request, next: Next) -> Response {
    let now = (observed.now)();
    let request_id = observed.request_id(request.headers());
    // An error-level span, so that no verbosity hides the request id of a failure.
    let span =
        tracing::error_span!("http", method = %request.method(), path = request.uri().path(), request_id);
    let method = usual(request.method());
    let refused = check_url(&request)
        .and_then(|()| if observed.is_guarded { Ok(()) } else { check_host(request.headers()) })
        .and_then(|()| check_origin(request.method(), request.headers()))
        .err();
    let info =
        RequestInfo { now, request_id: request_id.clone(), from: from(&request), ..RequestInfo::default() };
    let asker = Asker::default();
    // Where users are not asked for, a question with a body is no more than a read.
    let is_audited = observed.is_guarded || refused.is_some() || *request.method() == http::Method::PUT;
    let line = if is_audited { Line::of(&request, &info, asker.clone()) } else { None };
    request.extensions_mut().insert(info);
    request.extensions_mut().insert(asker);
    let mut response = match refused {
        Some(failure) => failure.respond(&request_id),
        None => {
            let answering = AssertUnwindSafe(next.run(request).instrument(span.clone())).catch_unwind();
            let failed = |payload: Box<dyn Any + Send>| {
                span.in_scope(|| Failure::panic(&*payload)).respond(&request_id)
            };
            answering.await.unwrap_or_else(failed)
        }
    };
    if let Some(line) = line {
        line.answered(response.status());
    }
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // A response's own header takes precedence: the files of the page may be cached.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        headers.insert(REQUEST_ID, value);
    }
    let status = response.status().as_u16();
    let took = (observed.now)().monotonic.saturating_sub(now.monotonic);
    let template = response.extensions().get::<Template>().map_or("", |template| &template.0);
    (observed.observe)(Observation { method, template, status, took });
    span.in_scope(|| tracing::debug!(status, took_micros = took.as_micros() as u64, "answered"));
    response
}

/// Maps a method to one of a bounded set of names.
fn usual(method: &http::Method) -> &'static str {
    const USUAL: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    USUAL.into_iter().find(|usual| method.as_str() == *usual).unwrap_or("_OTHER")
}

/// Returns address and user agent of the client. The user agent is not trusted, and shortened.
fn from(request: &Request) -> String {
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0.to_string());
    let agent = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    let words = peer.into_iter().chain(agent.map(shortened));
    words.collect::<Vec<String>>().join(" ")
}

/// Refuses paths that cannot be decoded or are very long: a path goes into questions to the API server and into the log.
fn check_url(request: &Request) -> Result<(), Failure> {
    let path = request.uri().path();
    if path.len() > LONGEST_PATH {
        let message =
            format!("the path has {} bytes, more than {LONGEST_PATH}: `{}`", path.len(), shortened(path));
        return Err(ReadError::BadRequest("MalformedUrl", message).into());
    }
    if decode(path, false).is_none() {
        return Err(malformed("path", path).into());
    }
    Ok(())
}

/// Refuses requests of pages of another origin, unless they only read.
///
/// A browser sends some requests for any page without asking the server first. The page cannot read the response, but
/// the request would take effect. Browsers state the origin of such a request; other clients send no such header. A
/// page on another port of this machine is another origin, too.
fn check_origin(method: &http::Method, headers: &HeaderMap) -> Result<(), Failure> {
    if matches!(*method, http::Method::GET | http::Method::HEAD) {
        return Ok(());
    }
    let text = |value: &HeaderValue| value.to_str().unwrap_or("(not text)").to_owned();
    let sites = headers.get_all(SEC_FETCH_SITE).iter().map(text);
    let foreign_site = sites.into_iter().find(|site| site != "same-origin" && site != "none");
    let host = headers.get(header::HOST).map(text).unwrap_or_default();
    let is_own = |origin: &String| {
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(|name| name.eq_ignore_ascii_case(&host))
    };
    let foreign_origin = headers.get_all(header::ORIGIN).iter().map(text).find(|origin| !is_own(origin));
    let said = match (foreign_origin, foreign_site) {
        (Some(origin), _) => format!("origin `{}`", shortened(&origin)),
        (None, Some(site)) => format!("a page whose Sec-Fetch-Site is `{}`", shortened(&site)),
        (None, None) => return Ok(()),
    };
    let message =
        format!("{method} from {said} is not answered; only this server's own page may change anything");
    Err(Failure::new(StatusCode::FORBIDDEN, "OriginRefused", message))
}

/// Refuses host names that are not this machine's own.
///
/// A web page could point its own name at the loopback address, and then read everything here through a visitor's
/// browser (DNS rebinding). IP addresses and `localhost` cannot be used for that.
fn check_host(headers: &HeaderMap) -> Result<(), Failure> {
    let Some(host) = headers.get(header::HOST) else { return Ok(()) };
    let host = host.to_str().unwrap_or_default();
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(name, _)| name);
    let name = bracketed.unwrap_or_else(|| host.split(':').next().unwrap_or_default());
    let is_local =
        name.is_empty() || name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok();
    if is_local {
        return Ok(());
    }
    let message =
        format!("requests for host `{}` are not answered; use localhost or an address", shortened(name));
    Err(Failure::new(StatusCode::BAD_REQUEST, "HostRefused", message))
}
