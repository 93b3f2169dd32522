//! A bucket of tokens: how often something may happen on average, and how often at once after a rest.

use std::time::Duration;

use tokio::time::Instant;

/// How often something may happen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Times per second, on average.
    pub(crate) per_second: f64,
    /// Times that it may happen at once after a rest.
    pub(crate) burst: f64,
}

/// What is left of a rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    /// Creates a full bucket.
    pub(crate) fn full(rate: Rate, now: Instant) -> Self {
        Self { tokens: rate.burst, filled: now }
    }

    /// Returns whether nothing was taken for so long that the bucket is as good as a new one.
    pub(crate) fn is_full(&self, rate: Rate, now: Instant) -> bool {
        self.level(rate, now) >= rate.burst
    }

    /// Returns how long it takes until there is a token; nothing when there is one.
    pub(crate) fn wait(&self, rate: Rate, now: Instant) -> Option<Duration> {
        let missing = 1.0 - self.level(rate, now);
        (missing > 0.0).then(|| Duration::from_secs_f64((missing / rate.per_second).clamp(0.0, 3600.0)))
    }

    /// Takes a token. Below none it stays at none.
    pub(crate) fn take(&mut self, rate: Rate, now: Instant) {
        *self = Self { tokens: (self.level(rate, now) - 1.0).max(0.0), filled: now };
    }

    /// Gives a token back that was taken for nothing.
    pub(crate) fn give_back(&mut self, rate: Rate, now: Instant) {
        *self = Self { tokens: (self.level(rate, now) + 1.0).min(rate.burst), filled: now };
    }

    fn level(&self, rate: Rate, now: Instant) -> f64 {
        rate.burst.min(self.tokens + now.duration_since(self.filled).as_secs_f64() * rate.per_second)
    }
}
