//! Limits responses in flight: their total size in bytes, and the time that each may take.
//!
//! A response holds its body in memory until the peer has taken it. All of them share one limit in bytes; beyond it,
//! requests are refused, so that clients that do not read cost no more than that. A body is sent in pieces and ends
//! early when it is read too slowly; `patient` cuts off one that is not read at all. Feeds are not counted: each holds
//! one batch of lines.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{StatusCode, header};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::error::Failure;

/// Size of one piece, in bytes.
const PIECE: usize = 64 * 1024;
/// Minimum reading speed, in bytes per second. A reader has the patience of a write in addition.
const SLOWEST: u64 = 64 * 1024;

/// Holds the room for responses in flight, in bytes.
pub(crate) struct ResponseBudget {
    room: Arc<Semaphore>,
    most: usize,
    patience: Duration,
}

/// A body and the room it takes. Dropping its last piece returns the room.
struct Held {
    bytes: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ResponseBudget {
    /// Creates room for `most` bytes. A reader may fall behind by `patience`.
    pub(crate) fn new(most: usize, patience: Duration) -> Self {
        let most = most.clamp(1, u32::MAX as usize);
        Self { room: Arc::new(Semaphore::new(most)), most, patience }
    }

    /// Creates the body of a response. Fails when too many bytes are in flight; a response larger than all the room is
    /// accepted when it is the only one.
    pub(crate) fn body(&self, mut bytes: Vec<u8>) -> Result<Body, Failure> {
        // A buffer that grew by doubling may be half empty.
        if bytes.capacity() > bytes.len() + bytes.len() / 4 {
            bytes.shrink_to_fit();
        }
        let wanted = u32::try_from(bytes.capacity().min(self.most)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).try_acquire_many_owned(wanted).map_err(|_| {
            let message = format!(
                "the {} bytes of this answer do not fit: answers that were not read yet take most of the {} bytes \
                 that there are for all; read those, or ask again in a second",
                bytes.len(),
                self.most
            );
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, "AnswersUnread", message).with(header::RETRY_AFTER, "1")
        })?;
        let time = self.patience.saturating_add(Duration::from_secs(bytes.len() as u64 / SLOWEST));
        let until = Instant::now().checked_add(time);
        Ok(Body::new(Paced { rest: Bytes::from_owner(Held { bytes, _room: room }), until }))
    }
}

/// A body that is sent in pieces, until its deadline.
struct Paced {
    rest: Bytes,
    /// Deadline; `None` when it is too far ahead to represent.
    until: Option<Instant>,
}

impl hyper::body::Body for Paced {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        if self.until.is_some_and(|until| Instant::now() > until) {
            self.rest.clear();
            let error = io::Error::new(io::ErrorKind::TimedOut, "the peer reads its answer too slowly");
            return Poll::Ready(Some(Err(error)));
        }
        let length = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn room_is_taken_until_the_last_piece_is_gone() {
        let response_budget = ResponseBudget::new(3 * PIECE, PATIENCE);
        let mut first = response_budget.body(vec![7; 2 * PIECE]).expect("there is room");
        let refused = response_budget.body(vec![7; 2 * PIECE]).expect_err("there is not").respond("r");
        assert_eq!(
            (refused.status(), &refused.headers()["retry-after"]),
            (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap())
        );
        drop(response_budget.body(vec![7; PIECE]).expect("there is room for a small one"));
        let piece = first.frame().await.expect("a piece").expect("in time").into_data().expect("bytes");
        assert_eq!(piece.len(), PIECE);
        drop(first);
        response_budget.body(vec![7; 2 * PIECE]).expect_err("a piece holds all of the memory");
        drop(piece);
        let huge = response_budget.body(vec![7; 9 * PIECE]).expect("it is the only one");
        assert_eq!(huge.collect().await.expect("in time").to_bytes().len(), 9 * PIECE);
        assert_eq!(response_budget.room.available_permits(), 3 * PIECE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_cut_off_and_a_steady_one_is_not() {
        let response_budget = ResponseBudget::new(100 * PIECE, PATIENCE);
        let steady = async |pause: Duration| {
            let mut body = response_budget.body(vec![7; 80 * PIECE]).expect("there is room");
            let mut n_read = 0;
            while let Some(piece) = body.frame().await {
                n_read += piece.ok()?.into_data().map_or(0, |data| data.len());
                tokio::time::advance(pause).await;
            }
            Some(n_read)
        };
        assert_eq!(steady(Duration::from_secs(1)).await, Some(80 * PIECE), "64 KiB per second");
        assert_eq!(steady(Duration::from_secs(2)).await, None, "half of that");
        assert_eq!(response_budget.room.available_permits(), 100 * PIECE);
    }
}
