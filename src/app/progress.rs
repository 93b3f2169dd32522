//! Reports whether the scheduling thread makes progress, for `/livez` and metrics.
//!
//! The thread records the time between two pieces of work, each of which should take milliseconds. While it waits for
//! inputs, it cannot be stuck.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A piece of work that takes longer than this is considered stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(20);

/// Progress of the scheduling thread, which is its only writer.
#[derive(Debug, Default)]
pub struct Progress {
    /// When the last piece of work ended, in nanoseconds of the monotonic clock.
    at: AtomicU64,
    is_working: AtomicBool,
    has_ended: AtomicBool,
}

impl Progress {
    /// Records that a piece of work begins.
    pub fn working(&self, now: Duration) {
        self.record_time(now);
        self.is_working.store(true, Ordering::Relaxed);
    }

    /// Records that there is nothing to do.
    pub fn waiting(&self, now: Duration) {
        self.record_time(now);
        self.is_working.store(false, Ordering::Relaxed);
    }

    /// Records that the thread has ended.
    pub fn ended(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Returns how long the current piece of work has taken, or zero while the thread waits.
    pub fn age(&self, now: Duration) -> Duration {
        match self.is_working.load(Ordering::Relaxed) {
            true => now.saturating_sub(Duration::from_nanos(self.at.load(Ordering::Relaxed))),
            false => Duration::ZERO,
        }
    }

    /// Fails when the thread has ended or is stuck.
    pub fn check(&self, now: Duration) -> Result<(), String> {
        if self.has_ended.load(Ordering::Relaxed) {
            return Err("the scheduling thread has ended".into());
        }
        match self.age(now) {
            age if age > STUCK_AFTER => Err(format!(
                "the scheduling thread has been at one piece of work for {} s; at most {} s are expected",
                age.as_secs(),
                STUCK_AFTER.as_secs()
            )),
            _ => Ok(()),
        }
    }

    fn record_time(&self, now: Duration) {
        self.at.store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_thread_that_works_can_be_stuck() {
        let (progress, second) = (Progress::default(), Duration::from_secs(1));
        assert_eq!(progress.check(1000 * second), Ok(()), "it has not begun");
        progress.working(1000 * second);
        assert_eq!(progress.check(1000 * second + STUCK_AFTER), Ok(()));
        let late = progress.check(1001 * second + STUCK_AFTER).expect_err("it is stuck");
        assert!(late.contains("for 21 s; at most 20 s"), "{late}");
        assert_eq!(progress.age(1005 * second), 5 * second);
        progress.working(1030 * second);
        assert_eq!(progress.check(1031 * second), Ok(()), "it got on");
        progress.waiting(1031 * second);
        assert_eq!((progress.check(9999 * second), progress.age(9999 * second)), (Ok(()), Duration::ZERO));
        progress.ended();
        assert!(progress.check(9999 * second).is_err());
    }
}
