//! The scheduler's clock, read here and nowhere else. The sandbox has one of its own (`sandbox::clock`).

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use pellucid_model::Now;
use pellucid_model::time::Probe;

/// Reads the time.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// Returns the clock of this machine. Its monotonic time starts now.
#[expect(clippy::disallowed_methods, reason = "this is the place where the clock is read")]
pub fn system() -> Clock {
    let start = Instant::now();
    Arc::new(move || Now {
        monotonic: start.elapsed(),
        wall: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO),
    })
}

/// Returns a wall time in the type of the standard library, for those who ask for that.
#[cfg(feature = "otel")]
pub(super) fn instant(wall: Duration) -> SystemTime {
    SystemTime::UNIX_EPOCH + wall
}

/// A stopwatch for plugins and attempts; no decision reads it.
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts it.
    #[expect(clippy::disallowed_methods, reason = "this is the place where the clock is read")]
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Probe for Stopwatch {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
