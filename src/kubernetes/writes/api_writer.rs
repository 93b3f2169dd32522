//! All API writes but those of the Lease go through [`ApiWriter`]. Shadow mode closes it, and so does the end of the
//! right to write that comes with the Lease ([`WriteRight`]): it is asked right before a request is sent, and no request
//! waits for its answer beyond it.
//!
//! Each write is a single request with a time limit. Responses are classified as rejected, retry later, or unknown
//! ([`ErrorClass`]). The caller resolves unknown outcomes by reading the object.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::core::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::connection::client::{ErrorClass, chain, classify, classify_status};
use crate::connection::server_probe::ServerStatus;
use crate::writes::write_right::WriteRight;

/// Pause before the second try of a write.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// Longest pause between two tries, whatever `Retry-After` says: a pod must be bound within 5 s of the server's
/// return, even when the server rejected only writes and the probe saw no outage.
const LONGEST_BACKOFF: Duration = Duration::from_secs(4);

/// Why a write, or the read that resolves it, failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The writer is closed; nothing was sent.
    #[error("writes are switched off")]
    Closed,
    /// This instance does not hold the lease; nothing was sent.
    #[error("this instance is not the leader")]
    NotLeader,
    /// The API server answered with an error.
    #[error("{code} {reason}: {message}")]
    Status {
        /// HTTP status.
        code: u16,
        /// `Status.reason`.
        reason: String,
        /// `Status.message`, or the start of the body if it was no `Status`.
        message: String,
        /// Delay that the server asked for.
        retry_after: Option<Duration>,
    },
    /// The server did not answer within the time limit.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The server was away and came back, but did not answer this request.
    #[error("no answer although the server is back")]
    Lost,
    /// The connection failed, or the response could not be read.
    #[error("{cause}")]
    Transport {
        /// Error text with all its causes.
        cause: String,
        /// How to handle the error.
        class: ErrorClass,
    },
}

impl WriteError {
    /// Returns how to handle the error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Closed | Self::NotLeader => ErrorClass::Refused,
            Self::Status { code, .. } => classify_status(*code),
            Self::TimedOut(_) | Self::Lost => ErrorClass::Unknown,
            Self::Transport { class, .. } => *class,
        }
    }

    /// Returns whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Status { code: 404, .. })
    }

    /// Returns the HTTP status and message for an effect report. Status 0: no response, or nothing was sent.
    pub(crate) fn as_refusal(&self) -> (u16, Arc<str>) {
        match self {
            Self::Status { code, message, .. } => (*code, message.as_str().into()),
            _ => (0, self.to_string().into()),
        }
    }

    /// Returns the delay that the server asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::Status { retry_after, .. } = self { *retry_after } else { None }
    }
}

/// Sends all writes to the API server, unless it is closed. Shared by all writer tasks.
pub struct ApiWriter {
    client: kube::Client,
    timeout: Duration,
    is_open: AtomicBool,
    right: Arc<WriteRight>,
    server: Arc<ServerStatus>,
}

impl ApiWriter {
    /// Creates a writer. `timeout` limits each request, and `right` says until when writes may be sent.
    pub fn new(
        client: kube::Client,
        timeout: Duration,
        is_open: bool,
        right: Arc<WriteRight>,
        server: Arc<ServerStatus>,
    ) -> Self {
        Self { client, timeout, is_open: AtomicBool::new(is_open), right, server }
    }

    /// Returns a fresh back-off for one order.
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff { next: FIRST_BACKOFF, server: self.server.clone() }
    }

    /// Returns whether writes are sent.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Opens or closes the writer. Writes in flight are not cancelled.
    pub fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Release);
    }

    /// Posts an object, or a subresource such as a Binding.
    pub(crate) async fn post(&self, path: String, body: &impl Serialize) -> Result<Bytes, WriteError> {
        self.write(Method::POST, path, "application/json", body).await
    }

    /// Applies a strategic merge patch: lists with merge keys are merged.
    pub(crate) async fn patch(&self, path: String, body: &Value) -> Result<Bytes, WriteError> {
        self.write(Method::PATCH, path, "application/strategic-merge-patch+json", body).await
    }

    /// Applies a JSON merge patch: lists are replaced.
    pub(crate) async fn merge(&self, path: String, body: &Value) -> Result<Bytes, WriteError> {
        self.write(Method::PATCH, path, "application/merge-patch+json", body).await
    }

    /// Deletes an object, with `DeleteOptions`.
    pub(crate) async fn delete(&self, path: String, options: &Value) -> Result<Bytes, WriteError> {
        self.write(Method::DELETE, path, "application/json", options).await
    }

    /// Reads an object. Works even when the writer is closed.
    pub(crate) async fn get(&self, path: String) -> Result<Bytes, WriteError> {
        self.send(Method::GET, path, None, Vec::new(), self.timeout).await
    }

    /// Reads and parses an object.
    pub(crate) async fn read<T: DeserializeOwned>(&self, path: String) -> Result<T, WriteError> {
        let body = self.get(path).await?;
        serde_json::from_slice(&body)
            .map_err(|e| WriteError::Transport { cause: e.to_string(), class: ErrorClass::Unknown })
    }

    async fn write(
        &self,
        method: Method,
        path: String,
        content_type: &'static str,
        body: &impl Serialize,
    ) -> Result<Bytes, WriteError> {
        if !self.is_open() {
            return Err(WriteError::Closed);
        }
        let body = serde_json::to_vec(body)
            .map_err(|e| WriteError::Transport { cause: e.to_string(), class: ErrorClass::Bug })?;
        let Some(limit) = self.right.limit(self.timeout) else {
            self.right.count_refused();
            return Err(WriteError::NotLeader);
        };
        let outcome = self.send(method, path, Some(content_type), body, limit).await;
        if limit < self.timeout && matches!(outcome, Err(WriteError::TimedOut(_))) {
            self.right.count_cut_off();
        }
        outcome
    }

    async fn send(
        &self,
        method: Method,
        path: String,
        content_type: Option<&'static str>,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<Bytes, WriteError> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(content_type) = content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        let request = request
            .header(header::ACCEPT, "application/json")
            .body(Body::from(body))
            .map_err(|e| WriteError::Transport { cause: e.to_string(), class: ErrorClass::Bug })?;
        let mut recovery = self.server.subscribe();
        tokio::select! {
            biased;
            // Comes first: when the process stood still beyond the limit, nothing may be sent any more.
            () = tokio::time::sleep(limit) => Err(WriteError::TimedOut(limit)),
            answer = exchange(&self.client, request) => answer,
            // The request was sent over a connection that is gone. The caller resolves its outcome.
            () = recovery.answer_is_lost() => Err(WriteError::Lost),
        }
    }
}

/// Sends a request and reads the answer. Fails on any status that is no success.
pub(crate) async fn exchange(client: &kube::Client, request: Request<Body>) -> Result<Bytes, WriteError> {
    let failed = |e: kube::Error| WriteError::Transport { cause: chain(&e), class: classify(&e) };
    let response = client.send(request).await.map_err(failed)?;
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(failed)?.to_bytes();
    if head.status.is_success() {
        return Ok(body);
    }
    let header_wait = head.headers.get(header::RETRY_AFTER).and_then(|v| v.to_str().ok());
    Err(status_error(head.status.as_u16(), &body, header_wait.and_then(|v| v.parse().ok())))
}

/// Parses an error response. Proxies and the server's own load shedding do not always send a `Status`.
fn status_error(code: u16, body: &[u8], header_wait: Option<u64>) -> WriteError {
    let status = serde_json::from_slice::<Status>(body).ok();
    let in_body = status.as_ref().and_then(|s| s.details.as_ref()).map(|d| u64::from(d.retry_after_seconds));
    let wait = header_wait.or(in_body.filter(|seconds| *seconds > 0));
    let (reason, message) = match status {
        Some(status) => (status.reason, status.message),
        None => (String::new(), String::from_utf8_lossy(&body[..body.len().min(256)]).trim().to_owned()),
    };
    WriteError::Status { code, reason, message, retry_after: wait.map(Duration::from_secs) }
}

/// Returns the path of a pod, or of its subresource.
pub(crate) fn pod_path(namespace: &str, name: &str, subresource: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods/{name}{subresource}")
}

/// Back-off of one order: doubles up to a bound, without jitter, and ends early when the server comes back.
pub(crate) struct Backoff {
    next: Duration,
    server: Arc<ServerStatus>,
}

impl Backoff {
    /// Waits for the next pause, or for the server's `Retry-After` if that is longer, up to the bound.
    pub(crate) async fn wait(&mut self, retry_after: Option<Duration>) {
        let wish = retry_after.unwrap_or_default().min(LONGEST_BACKOFF);
        self.server.pause(self.next.max(wish)).await;
        self.next = (self.next * 2).min(LONGEST_BACKOFF);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_without_a_status_keep_their_text() {
        let error = status_error(429, b"Too many requests, please try again later.\n", Some(3));
        assert_eq!(error.to_string(), "429 : Too many requests, please try again later.");
        assert_eq!((error.class(), error.retry_after()), (ErrorClass::Retry, Some(Duration::from_secs(3))));
        let body = br#"{"kind":"Status","status":"Failure","reason":"Conflict","message":"m","code":409,
            "details":{"retryAfterSeconds":2}}"#;
        let error = status_error(409, body, None);
        assert_eq!(
            (error.to_string().as_str(), error.retry_after()),
            ("409 Conflict: m", Some(Duration::from_secs(2)))
        );
    }
}
