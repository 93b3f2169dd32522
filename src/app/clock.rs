//! The scheduler's clock. *Invariant:* time is read only here; the sandbox has its own clock (`sandbox::clock`).

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use pellucid_model::Now;
use pellucid_model::time::Probe;

/// Returns the current time.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// Returns the clock of this machine. Its monotonic time starts at zero now.
#[expect(clippy::disallowed_methods, reason = "this is the place where the clock is read")]
pub fn system() -> Clock {
    let start = Instant::now();
    Arc::new(move || Now {
        monotonic: start.elapsed(),
        wall: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO),
    })
}

#[cfg(feature = "otel")]
pub(super) fn instant(wall: Duration) -> SystemTime {
    SystemTime::UNIX_EPOCH + wall
}

/// Measures durations for plugins and attempts. No decision depends on it.
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts a stopwatch.
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
