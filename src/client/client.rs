//! A client for one HTTP request or feed: HTTP/1.1 on its own connection, with a deadline and errors that suggest what to do.
//!
//! [`Target`] says where the scheduler is: at an address, plain or within TLS, or behind the API server of its cluster. A token
//! is sent within TLS only.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use pellucid_api::rest::ErrorBody;
use pellucid_kubernetes::ServiceProxy;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::trust::Trust;

/// Most bytes of an answer that are read. An explanation takes kilobytes, all nodes of a large cluster megabytes.
const LONGEST_ANSWER: usize = 256 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    /// Sends a plain text.
    Put(String),
    /// Sends JSON.
    Post(String),
}

/// Where the scheduler is, and with what it is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    /// Address with or without a path; not used with `behind`.
    pub(crate) base: &'a str,
    /// Which certificate is the right one.
    pub(crate) trust: Option<Trust<'a>>,
    /// Bearer token.
    pub(crate) token: Option<&'a str>,
    /// Namespaces that the question is about, with commas.
    pub(crate) namespaces: Option<&'a str>,
    /// Kubeconfig and Service, to go through the API server.
    pub(crate) behind: Option<(&'a Path, &'a str)>,
}

impl<'a> Target<'a> {
    /// Returns an address that is asked without credentials.
    pub(crate) fn at(base: &'a str) -> Self {
        Self { base, trust: None, token: None, namespaces: None, behind: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) body: String,
}

/// Why there is no response to show.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("{url:?} is not an address such as http://127.0.0.1:10251: {problem}")]
    Address { url: String, problem: String },
    // Not a `source`, which would be printed again after the hint.
    #[error(
        "no scheduler answers at {url}: {cause}\nIs `pellucid run` up there? --server or PELLUCID_SERVER say where \
         else. One in a cluster is reached through the API server: --kubeconfig ~/.kube/config"
    )]
    Unreachable { url: String, cause: std::io::Error },
    #[error("no answer from {url} within {} s", .after.as_secs_f64())]
    Timeout { url: String, after: Duration },
    #[error("the connection to {url} failed: {problem}")]
    Broken { url: String, problem: String },
    #[error("{message} ({status}{code})")]
    Refused { status: StatusCode, code: String, message: String },
}

impl Answered {
    /// Returns the body of a success, or the server's error.
    pub(crate) fn accepted(self) -> Result<String, ClientError> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let (code, message) = match serde_json::from_str::<ErrorBody>(&self.body) {
            Ok(error) => (format!(", {}", error.code), error.message),
            Err(_) if self.body.trim().is_empty() => (String::new(), "the server refused".to_owned()),
            Err(_) => (String::new(), self.body.trim().chars().take(500).collect()),
        };
        Err(ClientError::Refused { status: self.status, code, message })
    }
}

/// Sends one request and waits for the response.
pub(crate) fn request(
    method: Method,
    target: Target<'_>,
    path: &str,
    timeout: Duration,
) -> Result<Answered, ClientError> {
    runtime(target.base)?.block_on(async {
        let place = Place::of(target).await?;
        let url = place.url(path);
        let exchange = async { whole(place.send(method, target, path, &url).await?, &url).await };
        within(timeout, &url, exchange).await
    })
}

/// Requests a feed and calls `take` with each of its lines, until that breaks or the feed ends. The answer must begin
/// within `timeout`; between two lines no more than `silence` may pass, if that is limited.
pub(crate) fn lines(
    target: Target<'_>,
    path: &str,
    timeout: Duration,
    silence: Option<Duration>,
    mut take: impl FnMut(&str) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<ControlFlow<()>> {
    runtime(target.base)?.block_on(async {
        let place = Place::of(target).await?;
        let url = place.url(path);
        let mut opened = within(timeout, &url, place.send(Method::Get, target, path, &url)).await?;
        if !opened.response.status().is_success() {
            within(timeout, &url, whole(opened, &url)).await?.accepted()?;
            return Ok(ControlFlow::Continue(()));
        }
        let mut rest = Vec::new();
        loop {
            let frame = async { Ok(opened.response.frame().await) };
            let frame = match silence {
                Some(silence) => within(silence, &url, frame).await?,
                None => frame.await?,
            };
            let Some(frame) = frame else { return Ok(ControlFlow::Continue(())) };
            rest.extend_from_slice(frame.map_err(|e| broken(&url, &*e))?.data_ref().unwrap_or(&Bytes::new()));
            let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let text: Vec<u8> = rest.drain(..whole).collect();
            for line in String::from_utf8_lossy(&text).lines().filter(|line| !line.is_empty()) {
                if take(line)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if rest.len() > LONGEST_ANSWER {
                return Err(ClientError::Broken { url, problem: "a line has no end".to_owned() }.into());
            }
        }
    })
}

fn runtime(url: &str) -> Result<tokio::runtime::Runtime, ClientError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| broken(url, &error))
}

async fn within<T>(
    limit: Duration,
    url: &str,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    let late = |_| ClientError::Timeout { url: url.to_owned(), after: limit };
    tokio::time::timeout(limit, work).await.map_err(late)?
}

fn broken(url: &str, error: &dyn std::error::Error) -> ClientError {
    ClientError::Broken { url: url.to_owned(), problem: with_causes(error) }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A response whose body is still to be read, and the task that reads its connection, if it has one of its own.
struct Opened {
    response: Response<UnsyncBoxBody<Bytes, BoxError>>,
    driver: Option<tokio::task::JoinHandle<Result<(), hyper::Error>>>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(driver) = &self.driver {
            driver.abort();
        }
    }
}

async fn whole(mut opened: Opened, url: &str) -> Result<Answered, ClientError> {
    let status = opened.response.status();
    let body = Limited::new(opened.response.body_mut(), LONGEST_ANSWER).collect().await;
    let body = body.map_err(|error| broken(url, &*error))?.to_bytes();
    Ok(Answered { status, body: String::from_utf8_lossy(&body).into_owned() })
}

/// Where requests go.
enum Place {
    Address(Address),
    Behind(Box<ServiceProxy>),
}

impl Place {
    async fn of(target: Target<'_>) -> Result<Self, ClientError> {
        let Some((kubeconfig, service)) = target.behind else {
            return Address::parse(target.base).map(Self::Address);
        };
        // This fails only if a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let proxy = ServiceProxy::open(kubeconfig, service).await;
        proxy
            .map(|proxy| Self::Behind(Box::new(proxy)))
            .map_err(|error| ClientError::Broken { url: service.to_owned(), problem: error.to_string() })
    }

    fn url(&self, path: &str) -> String {
        match self {
            Self::Address(address) => address.url(path),
            Self::Behind(proxy) => format!("{}{path}", proxy.url()),
        }
    }

    async fn send(
        &self,
        method: Method,
        target: Target<'_>,
        path: &str,
        url: &str,
    ) -> Result<Opened, ClientError> {
        match self {
            Self::Address(address) => address.send(method, target, path, url).await,
            Self::Behind(proxy) => {
                let request = asked(method, target, path, "x-pellucid-authorization");
                let response = proxy.send(request.map_err(|e| broken(url, &e))?).await;
                let response =
                    response.map_err(|problem| ClientError::Broken { url: url.to_owned(), problem })?;
                let response = response.map(|body| body.map_err(BoxError::from).boxed_unsync());
                Ok(Opened { response, driver: None })
            }
        }
    }
}

/// Returns the request of a question. The token goes into the header `credentials`.
fn asked(
    method: Method,
    target: Target<'_>,
    uri: &str,
    credentials: &'static str,
) -> Result<Request<Bytes>, http::Error> {
    let (verb, content_type, body) = match method {
        Method::Get => (http::Method::GET, None, String::new()),
        Method::Put(body) => (http::Method::PUT, Some("text/plain"), body),
        Method::Post(body) => (http::Method::POST, Some("application/json"), body),
    };
    let mut request = Request::builder()
        .method(&verb)
        .uri(if uri.is_empty() { "/" } else { uri })
        .header(header::USER_AGENT, concat!("pellucid/", env!("CARGO_PKG_VERSION")))
        .header(header::ACCEPT, "application/json, text/plain;q=0.9, */*;q=0.1");
    if let Some(content_type) = content_type {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    if let Some(token) = target.token {
        request = request.header(credentials, format!("Bearer {token}"));
    }
    if let Some(namespaces) = target.namespaces {
        request = request.header("x-pellucid-namespaces", namespaces);
    }
    request.body(Bytes::from(body))
}

impl Address {
    async fn send(
        &self,
        method: Method,
        target: Target<'_>,
        path: &str,
        url: &str,
    ) -> Result<Opened, ClientError> {
        let wrong = |problem: String| ClientError::Address { url: url.to_owned(), problem };
        if target.token.is_some() && !self.is_tls {
            return Err(wrong("a token is sent to https addresses only".to_owned()));
        }
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|cause| ClientError::Unreachable { url: url.to_owned(), cause })?;
        let uri = format!("{}{path}", self.prefix);
        let mut request = asked(method, target, &uri, "authorization").map_err(|e| broken(url, &e))?;
        let host = self.authority.parse().map_err(|e| broken(url, &e))?;
        request.headers_mut().insert(header::HOST, host);
        if !self.is_tls {
            return exchange(stream, request, url).await;
        }
        let trust = target.trust.ok_or_else(|| {
            wrong("say which certificate is the right one: --certificate-authority FILE or --fingerprint SHA256".to_owned())
        })?;
        let name = ServerName::try_from(self.host.clone()).map_err(|error| wrong(error.to_string()))?;
        let connector = TlsConnector::from(trust.config().map_err(wrong)?);
        let stream = connector.connect(name, stream).await.map_err(|error| broken(url, &error))?;
        exchange(stream, request, url).await
    }
}

/// Sends a request on a connection and returns the head of the response.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Bytes>,
    url: &str,
) -> Result<Opened, ClientError> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| broken(url, &e))?;
    // Its errors also reach the request.
    let driver = Some(tokio::spawn(connection));
    let response = sender.send_request(request.map(Full::new)).await.map_err(|e| broken(url, &e))?;
    let response = response.map(|body| body.map_err(BoxError::from).boxed_unsync());
    Ok(Opened { response, driver })
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[derive(Debug, PartialEq, Eq)]
struct Address {
    host: String,
    port: u16,
    authority: String,
    /// Path prefix of every request, without a trailing slash.
    prefix: String,
    is_tls: bool,
}

impl Address {
    fn url(&self, path: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{}{path}", self.authority, self.prefix)
    }

    fn parse(text: &str) -> Result<Self, ClientError> {
        let wrong =
            |problem: &str| ClientError::Address { url: text.to_owned(), problem: problem.to_owned() };
        let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = full.parse().map_err(|error: http::uri::InvalidUri| wrong(&error.to_string()))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("only http and https are spoken")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("there is no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("credentials are not sent this way; --token is"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(wrong("there is no host"));
        }
        let prefix = uri.path_and_query().map_or("", |path| path.as_str()).trim_end_matches('/').to_owned();
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self { host, port, authority: authority.to_string(), prefix, is_tls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let parts = |text: &str| {
            let address = Address::parse(text).unwrap();
            (address.host, address.port, address.prefix)
        };
        let expected = |host: &str, port, prefix: &str| (host.to_owned(), port, prefix.to_owned());
        assert_eq!(parts("http://127.0.0.1:10251"), expected("127.0.0.1", 10251, ""));
        assert_eq!(parts("localhost:1/"), expected("localhost", 1, ""));
        assert_eq!(parts("http://[::1]:7"), expected("::1", 7, ""));
        assert_eq!(parts("https://[::1]/"), expected("::1", 443, ""));
        assert_eq!(parts("http://proxy/pellucid/"), expected("proxy", 80, "/pellucid"));
        for text in ["ftp://x", "http://", "http://u:p@x", "a b", ""] {
            assert!(matches!(Address::parse(text), Err(ClientError::Address { .. })), "{text}");
        }
    }

    #[test]
    fn a_refusal_shows_what_the_server_says() {
        let refused = |body: &str| {
            let answered = Answered { status: StatusCode::NOT_FOUND, body: body.to_owned() };
            answered.accepted().unwrap_err().to_string()
        };
        let body = r#"{"code": "PodNotFound", "message": "there is no pod a/b", "requestId": "1"}"#;
        assert_eq!(refused(body), "there is no pod a/b (404 Not Found, PodNotFound)");
        assert_eq!(refused("nothing here\n"), "nothing here (404 Not Found)");
        assert_eq!(refused(""), "the server refused (404 Not Found)");
    }
}
