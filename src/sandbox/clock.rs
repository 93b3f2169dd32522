//! The sandbox's clock: the machine's, or a manual one for tests.
//!
//! Every deadline in the sandbox (pod lifecycle, watch timeouts, bookmarks, injected delays) is a point on this clock,
//! so a test with a manual clock never waits for real time. *Invariant:* only this file of the sandbox reads the
//! machine's clock.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

/// A clock that can be waited for. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Real { base: Timestamp, start: std::time::Instant },
    Manual(watch::Sender<Timestamp>),
}

impl Clock {
    /// Returns a clock that starts at the current wall time and follows the machine's monotonic clock.
    #[expect(
        clippy::disallowed_methods,
        reason = "the sandbox is a server of its own and reads its clock here"
    )]
    pub fn real() -> Self {
        Self(Kind::Real { base: Timestamp::now(), start: std::time::Instant::now() })
    }

    /// Returns a clock that stays at `start` until [`Clock::advance`] moves it.
    pub fn manual(start: Timestamp) -> Self {
        Self(Kind::Manual(watch::Sender::new(start)))
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Kind::Real { base, start } => later(*base, start.elapsed()),
            Kind::Manual(time) => *time.borrow(),
        }
    }

    /// Advances a manual clock. Does nothing on a real one.
    pub fn advance(&self, by: Duration) {
        if let Kind::Manual(time) = &self.0 {
            time.send_modify(|now| *now = later(*now, by));
        }
    }

    /// Waits until the clock reaches `deadline`.
    pub async fn wait_until(&self, deadline: Timestamp) {
        match &self.0 {
            Kind::Real { .. } => {
                let left = deadline.duration_since(self.now());
                if let Ok(left) = Duration::try_from(left) {
                    tokio::time::sleep(left).await;
                }
            }
            Kind::Manual(time) => {
                let mut time = time.subscribe();
                if time.wait_for(|now| *now >= deadline).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// Waits until the clock reaches `deadline`, or forever if there is none.
    pub async fn wait_until_some(&self, deadline: Option<Timestamp>) {
        match deadline {
            Some(deadline) => self.wait_until(deadline).await,
            None => std::future::pending().await,
        }
    }
}

/// Returns `time` plus `by`, at most the end of time.
pub(super) fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// Formats a time as `metav1.Time`: whole seconds, UTC.
pub(super) fn seconds(time: Timestamp) -> String {
    let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
    whole.to_string()
}
