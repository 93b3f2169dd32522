//! Reads from the API server with limits on every wait and every size: for the response head, between two parts of the
//! body, and on the number of bytes.
//!
//! Does not retry: each caller handles errors in its own way.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use crate::connection::client::chain;
use crate::connection::limits::WatchLimits;
use crate::connection::server_probe::ServerStatus;
use crate::watches::list_items::ListError;

/// Maximum size of an error or a discovery document, in bytes.
const SMALL_BYTES: usize = 4 << 20;

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The server answered with an error.
    #[error("{} {}: {}", status.code, status.reason, status.message)]
    Status {
        /// Status of the response, completed from the HTTP status if the body had none.
        status: Box<Status>,
        /// Delay that the server asked for.
        retry_after: Option<Duration>,
    },
    /// The server did not answer within the time limit.
    #[error("no answer within {0:?}")]
    NoAnswer(Duration),
    /// The server was away and came back, but did not answer this request.
    #[error("no answer although the server is back")]
    Lost,
    /// A response began, and then nothing came for this long.
    #[error("nothing came for {0:?}")]
    Silent(Duration),
    /// The connection failed or broke.
    #[error("{0}")]
    Connection(String),
    /// The response cannot be parsed, or is too large.
    #[error("{0}")]
    Unreadable(String),
}

impl ReadError {
    /// Returns the HTTP status, if the server sent one.
    pub(crate) fn code(&self) -> Option<u16> {
        if let Self::Status { status, .. } = self { Some(status.code) } else { None }
    }

    /// Returns the delay that the server asked for.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        if let Self::Status { retry_after, .. } = self { *retry_after } else { None }
    }
}

impl From<kube::Error> for ReadError {
    fn from(error: kube::Error) -> Self {
        Self::Connection(chain(&error))
    }
}

impl From<ListError> for ReadError {
    fn from(error: ListError) -> Self {
        match error {
            ListError::BrokeOff => Self::Connection(error.to_string()),
            _ => Self::Unreadable(error.to_string()),
        }
    }
}

/// Sends the requests of watches, lists and discovery.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) client: Client,
    pub(crate) limits: Arc<WatchLimits>,
    pub(crate) server: Arc<ServerStatus>,
}

impl Reader {
    /// Sends a request and returns the body of a successful response. Fails on any other status, and when the head
    /// takes longer than `limit`.
    pub(crate) async fn open(
        &self,
        mut request: Request<Vec<u8>>,
        limit: Duration,
    ) -> Result<Body, ReadError> {
        // A server compresses a watch event by event, which few decompressors can read.
        let plain = header::HeaderValue::from_static("identity");
        request.headers_mut().insert(header::ACCEPT_ENCODING, plain);
        let mut recovery = self.server.subscribe();
        let answer = tokio::select! {
            biased;
            answer = self.client.send(request.map(Body::from)) => answer?,
            () = sleep(limit) => return Err(ReadError::NoAnswer(limit)),
            () = recovery.answer_is_lost() => return Err(ReadError::Lost),
        };
        let (head, body) = answer.into_parts();
        if head.status.is_success() {
            return Ok(body);
        }
        let wish = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let wish = wish.and_then(|value| value.parse().ok()).map(Duration::from_secs);
        let text = timeout(limit, self.collect(body)).await.map_err(|_| ReadError::NoAnswer(limit))??;
        Err(status_error(head.status, &text, wish))
    }

    /// Reads and parses a small JSON document.
    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, ReadError> {
        let request =
            Request::get(path).body(Vec::new()).map_err(|e| ReadError::Unreadable(e.to_string()))?;
        let limit = self.limits.answer;
        let body = self.open(request, limit).await?;
        let text = timeout(limit, self.collect(body)).await.map_err(|_| ReadError::NoAnswer(limit))??;
        serde_json::from_slice(&text).map_err(|e| ReadError::Unreadable(format!("{path}: {e}")))
    }

    /// Returns the next part of a page, or `None` at its end. Fails after `limits.page_silence` without one.
    pub(crate) async fn part(&self, body: &mut Body) -> Result<Option<Bytes>, ReadError> {
        let limit = self.limits.page_silence;
        timeout(limit, next_part(body)).await.map_err(|_| ReadError::Silent(limit))?
    }

    async fn collect(&self, mut body: Body) -> Result<BytesMut, ReadError> {
        let mut text = BytesMut::new();
        while let Some(part) = self.part(&mut body).await? {
            if text.len() + part.len() > SMALL_BYTES {
                return Err(ReadError::Unreadable(format!("an answer of more than {SMALL_BYTES} bytes")));
            }
            text.extend_from_slice(&part);
        }
        Ok(text)
    }
}

/// Parses an error response. Proxies and the server's own load shedding do not always send a `Status`.
fn status_error(code: http::StatusCode, text: &[u8], header_wish: Option<Duration>) -> ReadError {
    let mut status = serde_json::from_slice::<Status>(text).unwrap_or_default();
    if status.code == 0 {
        status.code = code.as_u16();
    }
    if status.reason.is_empty() && status.message.is_empty() {
        status.reason = code.canonical_reason().unwrap_or_default().into();
        status.message = String::from_utf8_lossy(&text[..text.len().min(256)]).trim().to_owned();
    }
    let in_body = status.details.as_ref().map(|d| u64::from(d.retry_after_seconds)).filter(|s| *s > 0);
    let retry_after = header_wish.or(in_body.map(Duration::from_secs));
    ReadError::Status { status: Box::new(status), retry_after }
}

/// Splits the body of a watch into lines.
pub(crate) struct Lines {
    body: Body,
    buffer: BytesMut,
    /// Length of the start of `buffer` that contains no line end.
    searched: usize,
    most: usize,
}

impl Lines {
    /// Reads lines of at most `most` bytes from a body.
    pub(crate) fn new(body: Body, most: usize) -> Self {
        Self { body, buffer: BytesMut::new(), searched: 0, most }
    }

    /// Returns the next complete, non-empty line in the buffer.
    pub(crate) fn arrived(&mut self) -> Option<Bytes> {
        loop {
            let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return None;
            };
            let line = self.buffer.split_to(self.searched + end + 1).freeze();
            self.searched = 0;
            if !line.trim_ascii().is_empty() {
                return Some(line);
            }
        }
    }

    /// Waits for a line; `None` at the end of the body. Cancel safe: the buffer stays when the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ReadError> {
        loop {
            if let Some(line) = self.arrived() {
                return Ok(Some(line));
            }
            if self.buffer.len() > self.most {
                return Err(ReadError::Unreadable(format!("an event of more than {} bytes", self.most)));
            }
            let Some(part) = next_part(&mut self.body).await? else {
                // An incomplete last line is dropped.
                return Ok(None);
            };
            self.buffer.extend_from_slice(&part);
        }
    }
}

/// Returns the next data frame of a body, or `None` at its end.
async fn next_part(body: &mut Body) -> Result<Option<Bytes>, ReadError> {
    loop {
        let Some(frame) = body.frame().await else { return Ok(None) };
        // Skip trailers.
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_and_empty_ones_not_at_all() {
        let mut lines = Lines::new(Body::empty(), 100);
        lines.buffer.extend_from_slice(b"one\n\r\ntw");
        assert_eq!(lines.arrived().as_deref(), Some(&b"one\n"[..]));
        assert_eq!(lines.arrived(), None);
        lines.buffer.extend_from_slice(b"o\nthree");
        assert_eq!(lines.arrived().as_deref(), Some(&b"two\n"[..]));
        assert_eq!(lines.arrived(), None);
    }

    #[test]
    fn errors_without_a_status_keep_their_text() {
        let wish = Some(Duration::from_secs(3600));
        let error = status_error(http::StatusCode::TOO_MANY_REQUESTS, b"slow down\n", wish);
        assert_eq!(error.to_string(), "429 Too Many Requests: slow down");
        assert_eq!((error.code(), error.retry_after()), (Some(429), wish));
    }
}
