//! The sandbox's clock: the machine's, or one that a test moves by hand.
//!
//! Every deadline of the sandbox (pod lifecycle, watch timeouts, bookmarks, injected delays) is a point
//! on this clock, so a test on a manual clock never waits for real time. This is the one file of the room
//! that reads the machine's clock.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

/// Tells the time and waits for it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Real { base: Timestamp, start: std::time::Instant },
    Manual(watch::Sender<Timestamp>),
}

impl Clock {
    /// Returns a clock that follows the machine's monotonic time from the present wall time on.
    #[expect(
        clippy::disallowed_methods,
        reason = "the sandbox is a server of its own and reads its clock here"
    )]
    pub fn real() -> Self {
        Self(Kind::Real { base: Timestamp::now(), start: std::time::Instant::now() })
    }

    /// Returns a clock that stands still at `start` until [`Clock::advance`] moves it.
    pub fn manual(start: Timestamp) -> Self {
        Self(Kind::Manual(watch::Sender::new(start)))
    }

    /// Returns the present time.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Kind::Real { base, start } => later(*base, start.elapsed()),
            Kind::Manual(time) => *time.borrow(),
        }
    }

    /// Moves a manual clock forward. Does nothing to a real one.
    pub fn advance(&self, by: Duration) {
        if let Kind::Manual(time) = &self.0 {
            time.send_modify(|now| *now = later(*now, by));
        }
    }

    /// Waits until the clock shows `deadline` or more.
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

    /// Waits until the deadline, or for ever when there is none.
    pub async fn wait_until_some(&self, deadline: Option<Timestamp>) {
        match deadline {
            Some(deadline) => self.wait_until(deadline).await,
            None => std::future::pending().await,
        }
    }
}

/// Returns the time `by` after `time`, or the end of time.
pub(super) fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// Writes a time as `metav1.Time`: whole seconds, UTC.
pub(super) fn seconds(time: Timestamp) -> String {
    let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
    whole.to_string()
}
