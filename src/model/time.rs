//! Time as a value. The I/O rooms read the clock (`app::clock`) and pass the time to the pure rooms.

use std::time::Duration;

/// One instant on the monotonic and the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Time since the process started; never decreases. Deadlines and ages use it.
    pub monotonic: Duration,
    /// Time since 1970-01-01 00:00 UTC. Only for display and for the API.
    pub wall: Duration,
}

impl Now {
    /// Returns the wall time of another monotonic instant, computed from this one.
    pub fn wall_at(self, monotonic: Duration) -> Duration {
        (self.wall + monotonic).saturating_sub(self.monotonic)
    }

    /// Returns the wall time in nanoseconds since 1970, a compact form for places that store many.
    #[inline]
    pub fn wall_nanos(self) -> u64 {
        let whole = self.wall.as_secs().wrapping_mul(1_000_000_000);
        whole.wrapping_add(u64::from(self.wall.subsec_nanos()))
    }
}

/// Measures how long something took. The I/O rooms implement it; no decision reads it.
pub trait Probe {
    /// Returns the time since some fixed point.
    fn elapsed(&self) -> Duration;

    /// Returns the same in nanoseconds.
    fn nanos(&self) -> u64 {
        self.elapsed().as_nanos() as u64
    }
}

/// A probe that measures nothing, for tests and benches.
pub struct NoProbe;

impl Probe for NoProbe {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}
