//! What one user may take of the server: requests at once, and requests in a time.
//!
//! The bounds of the whole server protect it from everybody together; these keep one user from taking all of it. A
//! bucket of tokens fills at the allowed rate. Users are forgotten when their bucket is full and nothing of theirs is
//! under way, so the number that is kept is bounded by the number of recent requests, and by [`MOST_USERS`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{StatusCode, header};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use pellucid_model::collections::HashMap;
use tokio::time::Instant;

use crate::access::bucket::{Bucket, Rate};
use crate::error::Failure;

/// Largest number of users that are kept count of. Beyond it, new users share one bucket.
const MOST_USERS: usize = 4096;

/// Bounds of one user.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Requests under way at once, followed feeds included.
    pub at_once: usize,
    /// Requests per second, on average.
    pub per_second: f64,
    /// Requests that may come at once after a rest.
    pub burst: f64,
}

impl Default for Share {
    fn default() -> Self {
        Self { at_once: 16, per_second: 100.0, burst: 400.0 }
    }
}

/// The shares that users have taken.
pub(crate) struct Shares {
    share: Share,
    users: Mutex<HashMap<String, Taken>>,
}

struct Taken {
    under_way: usize,
    bucket: Bucket,
}

/// A request under way. Dropping it gives its place back.
pub(crate) struct Place {
    shares: Arc<Shares>,
    user: String,
}

impl Place {
    /// Keeps the place until the body of a response was sent or dropped.
    pub(crate) fn until_sent(self, response: Response) -> Response {
        response.map(|body| Body::new(Placed { body, _place: self }))
    }
}

/// A body, and the place that it takes.
struct Placed {
    body: Body,
    _place: Place,
}

impl hyper::body::Body for Placed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(taken) = self.shares.users.lock().get_mut(&self.user) {
            taken.under_way = taken.under_way.saturating_sub(1);
        }
    }
}

impl Shares {
    pub(crate) fn new(share: Share) -> Self {
        Self { share, users: Mutex::default() }
    }

    /// Takes a place for a request of a user. Fails with 429 when the user has too many, or asks too often.
    pub(crate) fn take(self: &Arc<Self>, user: &str) -> Result<Place, Failure> {
        let Share { at_once, per_second, burst } = self.share;
        let (rate, now) = (Rate { per_second, burst }, Instant::now());
        let mut users = self.users.lock();
        if users.len() >= MOST_USERS && !users.contains_key(user) {
            users.retain(|_, taken| taken.under_way > 0 || !taken.bucket.is_full(rate, now));
        }
        let user = if users.len() >= MOST_USERS && !users.contains_key(user) { "" } else { user };
        let fresh = || Taken { under_way: 0, bucket: Bucket::full(rate, now) };
        let taken = users.entry(user.to_owned()).or_insert_with(fresh);
        if taken.under_way >= at_once {
            let message = format!("{at_once} requests of this user are under way already; let some end");
            return Err(refused(message, Duration::from_secs(1)));
        }
        if let Some(wait) = taken.bucket.wait(rate, now) {
            let message = format!("this user asks more often than {per_second} times per second");
            return Err(refused(message, wait));
        }
        taken.bucket.take(rate, now);
        taken.under_way += 1;
        Ok(Place { shares: Arc::clone(self), user: user.to_owned() })
    }
}

fn refused(message: String, wait: Duration) -> Failure {
    let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
    Failure::new(StatusCode::TOO_MANY_REQUESTS, "TooManyOfUser", message)
        .with(header::RETRY_AFTER, seconds.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_user_has_a_rate_and_places_and_leaves_others_alone() {
        let shares = Arc::new(Shares::new(Share { at_once: 2, per_second: 0.5, burst: 3.0 }));
        let status = |taken: Result<Place, Failure>| taken.map(|_| ()).map_err(|f| Box::new(f.respond("r")));
        let (first, second) = (shares.take("a").unwrap(), shares.take("a").unwrap());
        assert!(status(shares.take("a")).is_err(), "two are under way");
        assert!(status(shares.take("b")).is_ok());
        drop((first, second));
        assert!(status(shares.take("a")).is_ok(), "the third of the burst");
        let refused = status(shares.take("a")).unwrap_err();
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (429, &"2".parse().unwrap())
        );
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(status(shares.take("a")).is_ok(), "one more after two seconds");
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded() {
        let shares = Arc::new(Shares::new(Share { at_once: 1, per_second: 1.0, burst: 2.0 }));
        for n in 0..2 * MOST_USERS {
            let _ = shares.take(&n.to_string());
        }
        assert_eq!(shares.users.lock().len(), MOST_USERS + 1, "and one for all others");
        tokio::time::advance(Duration::from_secs(2)).await;
        shares.take("new").unwrap();
        assert_eq!(shares.users.lock().len(), 1, "users with a full bucket are forgotten");
    }
}
