//! Reads request bodies: checks their type, and limits their length, their time to arrive, and what all of them take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Failure;
use crate::registration::params::shortened;

/// Fails unless the body declares one of the accepted types. The error suggests the first one.
///
/// A body without a type could come from any page: browsers send it without asking the server first.
pub(super) fn check_type(headers: &HeaderMap, accepted: &[&str]) -> Result<(), Failure> {
    let unsupported = |what: &str| {
        let message = format!("{what}; send it as {}", accepted.first().unwrap_or(&"text"));
        Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message))
    };
    if headers.contains_key(header::CONTENT_ENCODING) {
        return unsupported("compressed bodies are not read");
    }
    let Some(given) = headers.get(header::CONTENT_TYPE) else {
        return if has_body(headers) { unsupported("the body has no Content-Type") } else { Ok(()) };
    };
    let given = given.to_str().unwrap_or("(not text)");
    let kind = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if accepted.contains(&kind.as_str()) {
        return Ok(());
    }
    unsupported(&format!("a body of type `{}` is not read", shortened(given)))
}

fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(header::TRANSFER_ENCODING)
        || headers.get(header::CONTENT_LENGTH).is_some_and(|length| length != "0")
}

/// The room for the bodies that are being read or answered, in bytes.
pub(super) struct BodyBudget {
    room: Arc<Semaphore>,
    most: usize,
}

/// The room that one body takes. Dropping it returns the room.
pub(super) struct Room(Option<OwnedSemaphorePermit>);

impl BodyBudget {
    pub(super) fn new(most: usize) -> Self {
        let most = most.clamp(1, u32::MAX as usize);
        Self { room: Arc::new(Semaphore::new(most)), most }
    }

    /// Waits for more room. A body takes what has arrived of it: one that is announced and never comes takes none.
    async fn grow(&self, taken: &mut Room, bytes: usize) {
        let bytes = u32::try_from(bytes.min(self.most)).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let Ok(more) = Arc::clone(&self.room).acquire_many_owned(bytes).await else { return };
        match &mut taken.0 {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
    }
}

/// Reads a text body. Fails when it is too long, late, incomplete or no UTF-8. A body that declares too great a length
/// is not read.
pub(super) async fn read_text(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    patience: Duration,
) -> Result<String, Failure> {
    read_within(headers, body, limit, patience, &BodyBudget::new(limit)).await.map(|(text, _)| text)
}

/// Reads a text body as [`read_text`], and takes room for it. Fails with 429 when there is none in the time that it has.
pub(super) async fn read_within(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    patience: Duration,
    budget: &BodyBudget,
) -> Result<(String, Room), Failure> {
    let too_long = || {
        let message = format!("the body is longer than {limit} bytes");
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "BodyTooLarge", message).with(header::CONNECTION, "close")
    };
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_long());
    }
    let bad = |code, message: &str| Failure::new(StatusCode::BAD_REQUEST, code, message);
    let waits_for_room = AtomicBool::new(false);
    let collected = async {
        let (mut body, mut bytes, mut room) = (Limited::new(body, limit), Vec::new(), Room(None));
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            waits_for_room.store(true, Ordering::Relaxed);
            budget.grow(&mut room, data.len()).await;
            waits_for_room.store(false, Ordering::Relaxed);
            bytes.extend_from_slice(&data);
        }
        Ok::<_, axum::BoxError>((bytes, room))
    };
    let (bytes, room) = match tokio::time::timeout(patience, collected).await {
        Ok(Ok(collected)) => collected,
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_long()),
        Ok(Err(_)) => return Err(bad("BodyIncomplete", "the body broke off")),
        Err(_) if waits_for_room.into_inner() => return Err(crowded(budget.most)),
        Err(_) => return Err(bad("BodyTimeout", "the body did not arrive in time")),
    };
    let text = String::from_utf8(bytes).map_err(|_| bad("BodyNotText", "the body is not UTF-8 text"))?;
    Ok((text, room))
}

fn crowded(most: usize) -> Failure {
    let message = format!(
        "bodies of other requests take all of the {most} bytes that there are for all; ask again in a second"
    );
    let failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
    failure.with(header::RETRY_AFTER, "1").with(header::CONNECTION, "close")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::{FutureExt, StreamExt, stream};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    /// Reads a body that comes in parts of 10 bytes.
    async fn read(budget: &BodyBudget, n_parts: usize) -> Result<(String, Room), Failure> {
        let parts =
            stream::iter((0..n_parts).map(|_| Ok::<_, axum::BoxError>(Bytes::from_static(b"0123456789"))));
        read_within(&HeaderMap::new(), Body::from_stream(parts), 1000, PATIENCE, budget).await
    }

    #[tokio::test(start_paused = true)]
    async fn all_bodies_together_have_so_much_room() {
        let budget = BodyBudget::new(100);
        let first = read(&budget, 6).await.expect("there is room");
        // What is announced and does not come takes no room.
        let silent = Body::from_stream(stream::pending::<Result<Bytes, axum::BoxError>>());
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_LENGTH, 900.into());
        let silent = read_within(&headers, silent, 1000, PATIENCE, &budget);
        let small = read(&budget, 4).await.expect("there is room for a small one");
        let (silent, refused) = tokio::join!(silent, read(&budget, 1));
        assert_eq!(silent.err().expect("nothing came").respond("r").status(), StatusCode::BAD_REQUEST);
        assert_eq!(refused.err().expect("no room").respond("r").status(), StatusCode::TOO_MANY_REQUESTS);
        drop(small);
        // One that waits goes on when another is answered.
        let mut waiting = Box::pin(read(&budget, 7));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(first);
        assert_eq!(waiting.await.expect("there is room again").0.len(), 70);
        assert_eq!(budget.room.available_permits(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_breaks_off_returns_its_room() {
        let budget = BodyBudget::new(100);
        let part = stream::iter([Ok::<_, axum::BoxError>(Bytes::from_static(b"0123456789"))]);
        let body = Body::from_stream(part.chain(stream::iter([Err("broken".into())])));
        let broken = read_within(&HeaderMap::new(), body, 1000, PATIENCE, &budget).await;
        assert_eq!(broken.err().expect("it broke off").respond("r").status(), StatusCode::BAD_REQUEST);
        assert_eq!(budget.room.available_permits(), 100);
    }
}
