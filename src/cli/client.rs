//! A client for one HTTP request or feed: plain HTTP/1.1 on its own connection, with a deadline and errors that suggest what to
//! do. There is no TLS: the scheduler serves plain HTTP on loopback, which `kubectl port-forward` reaches.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use pellucid_api::rest::ErrorBody;
use tokio::net::TcpStream;

/// Most bytes of an answer that are read. An explanation takes kilobytes, all nodes of a large cluster megabytes.
const LONGEST_ANSWER: usize = 256 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    /// Sends a plain text.
    Put(String),
    /// Sends JSON.
    Post(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub status: StatusCode,
    pub body: String,
}

/// Why there is no response to show.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error("{url:?} is not an address such as http://127.0.0.1:10251: {problem}")]
    Address { url: String, problem: String },
    // Not a `source`, which would be printed again after the hint.
    #[error(
        "no scheduler answers at {url}: {cause}\nIs `pellucid run` up there? --server or PELLUCID_SERVER say where \
         else. For one in a cluster, leave this running and ask again: \
         kubectl -n pellucid port-forward deploy/pellucid {ports}"
    )]
    Unreachable { url: String, cause: std::io::Error, ports: String },
    #[error("no answer from {url} within {} s", .after.as_secs_f64())]
    Timeout { url: String, after: Duration },
    #[error("the connection to {url} failed: {problem}")]
    Broken { url: String, problem: String },
    #[error("{message} ({status}{code})")]
    Refused { status: StatusCode, code: String, message: String },
}

impl Answered {
    /// Returns the body of a success, or the server's error.
    pub(super) fn accepted(self) -> Result<String, ClientError> {
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

/// Sends one request and waits for the response. `base` is an address with or without a path.
pub(super) fn request(
    method: Method,
    base: &str,
    path: &str,
    timeout: Duration,
) -> Result<Answered, ClientError> {
    let address = Address::parse(base)?;
    let url = address.url(path);
    runtime(&url)?.block_on(async {
        let exchange = async { whole(send(method, &address, &url).await?, &url).await };
        within(timeout, &url, exchange).await
    })
}

/// Requests a feed and calls `take` with each of its lines, until that breaks or the feed ends. The answer must begin
/// within `timeout`; between two lines no more than `silence` may pass, if that is limited.
pub(super) fn lines(
    base: &str,
    path: &str,
    timeout: Duration,
    silence: Option<Duration>,
    mut take: impl FnMut(&str) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<ControlFlow<()>> {
    let address = Address::parse(base)?;
    let url = address.url(path);
    runtime(&url)?.block_on(async {
        let mut opened = within(timeout, &url, send(Method::Get, &address, &url)).await?;
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
            rest.extend_from_slice(frame.map_err(|e| broken(&url, &e))?.data_ref().unwrap_or(&Bytes::new()));
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

/// A response whose body is still to be read, and the task that reads its connection.
struct Opened {
    response: Response<Incoming>,
    driver: tokio::task::JoinHandle<Result<(), hyper::Error>>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

async fn whole(mut opened: Opened, url: &str) -> Result<Answered, ClientError> {
    let status = opened.response.status();
    let body = Limited::new(opened.response.body_mut(), LONGEST_ANSWER).collect().await;
    let body = body.map_err(|error| broken(url, error.as_ref()))?.to_bytes();
    Ok(Answered { status, body: String::from_utf8_lossy(&body).into_owned() })
}

async fn send(method: Method, address: &Address, url: &str) -> Result<Opened, ClientError> {
    let stream = TcpStream::connect((address.host.as_str(), address.port))
        .await
        .map_err(|cause| ClientError::Unreachable { url: url.to_owned(), cause, ports: address.ports() })?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| broken(url, &e))?;
    // Its errors also reach the request.
    let driver = tokio::spawn(connection);
    let (verb, content_type, body) = match method {
        Method::Get => (http::Method::GET, None, String::new()),
        Method::Put(body) => (http::Method::PUT, Some("text/plain"), body),
        Method::Post(body) => (http::Method::POST, Some("application/json"), body),
    };
    let target = url.strip_prefix("http://").and_then(|rest| rest.find('/').map(|at| &rest[at..]));
    let mut request = Request::builder()
        .method(&verb)
        .uri(target.unwrap_or("/"))
        .header(header::HOST, &address.authority)
        .header(header::USER_AGENT, concat!("pellucid/", env!("CARGO_PKG_VERSION")))
        .header(header::ACCEPT, "application/json, text/plain;q=0.9, */*;q=0.1");
    if let Some(content_type) = content_type {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|e| broken(url, &e))?;
    let response = sender.send_request(request).await.map_err(|e| broken(url, &e))?;
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
}

/// Port of the REST API in `deploy/`.
const SERVED: u16 = 10251;

impl Address {
    fn url(&self, path: &str) -> String {
        format!("http://{}{}{path}", self.authority, self.prefix)
    }

    /// Returns the port argument for `kubectl port-forward` that makes a scheduler in a cluster answer at this address.
    fn ports(&self) -> String {
        let is_here = self.host == "localhost"
            || self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        match is_here && self.port != SERVED {
            true => format!("{}:{SERVED}", self.port),
            false => SERVED.to_string(),
        }
    }

    fn parse(text: &str) -> Result<Self, ClientError> {
        let wrong =
            |problem: &str| ClientError::Address { url: text.to_owned(), problem: problem.to_owned() };
        let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = full.parse().map_err(|error: http::uri::InvalidUri| wrong(&error.to_string()))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(wrong(
                    "the REST API is plain HTTP on loopback; reach it by kubectl port-forward",
                ));
            }
            _ => return Err(wrong("only http is spoken")),
        }
        let authority = uri.authority().ok_or_else(|| wrong("there is no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("credentials are not sent"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(wrong("there is no host"));
        }
        let prefix = uri.path_and_query().map_or("", |path| path.as_str()).trim_end_matches('/').to_owned();
        Ok(Self { host, port: authority.port_u16().unwrap_or(80), authority: authority.to_string(), prefix })
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
        assert_eq!(parts("http://proxy/pellucid/"), expected("proxy", 80, "/pellucid"));
        for text in ["https://127.0.0.1:1", "ftp://x", "http://", "http://u:p@x", "a b", ""] {
            assert!(matches!(Address::parse(text), Err(ClientError::Address { .. })), "{text}");
        }
    }

    #[test]
    fn the_hint_forwards_the_port_that_was_asked() {
        let ports = |text: &str| Address::parse(text).unwrap().ports();
        assert_eq!(ports("http://127.0.0.1:10251"), "10251");
        assert_eq!(ports("localhost:9"), "9:10251");
        assert_eq!(ports("http://scheduler.example:9"), "10251");
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
