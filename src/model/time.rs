//! Time as a value. The clock is read at the edge (`app::clock`); pure rooms are told what time it is.

use std::time::Duration;

/// One instant on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Time since the process started, never going back. Deadlines and ages are made of it.
    pub monotonic: Duration,
    /// Time since 1970-01-01 00:00 UTC. Only for people and for the API.
    pub wall: Duration,
}

impl Now {
    /// Returns the wall time of another monotonic instant, as seen from here.
    pub fn wall_at(self, monotonic: Duration) -> Duration {
        (self.wall + monotonic).saturating_sub(self.monotonic)
    }

    /// Returns the wall time in nanoseconds since 1970: what is kept of it where many are kept.
    #[inline]
    pub fn wall_nanos(self) -> u64 {
        let whole = self.wall.as_secs().wrapping_mul(1_000_000_000);
        whole.wrapping_add(u64::from(self.wall.subsec_nanos()))
    }
}

/// Measures how long something took. The edge implements it; no decision reads it.
pub trait Probe {
    /// Returns the time since some fixed point.
    fn elapsed(&self) -> Duration;
}

/// A probe that measures nothing, for tests and benches.
pub struct NoProbe;

impl Probe for NoProbe {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}
