//! Switches of the diagnosis, thrown at run time and read by the scheduling thread.
//!
//! Each is one atomic; a cycle reads it once. Verbosity of the log is not here: that is the subscriber's.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The switches. Off at start, but for those that say otherwise.
#[derive(Debug)]
pub struct Switches {
    top_n_scores: AtomicUsize,
    filter_failures: AtomicBool,
    reuse: AtomicBool,
    recorder: AtomicBool,
    recorder_bytes: AtomicUsize,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            top_n_scores: AtomicUsize::new(0),
            filter_failures: AtomicBool::new(false),
            reuse: AtomicBool::new(true),
            recorder: AtomicBool::new(true),
            recorder_bytes: AtomicUsize::new(super::flight::DEFAULT_BYTES),
        }
    }
}

impl Switches {
    /// Flag `s`: how many rows of each score table to record; 0 records none.
    pub fn top_n_scores(&self) -> usize {
        self.top_n_scores.load(Ordering::Relaxed)
    }

    /// Sets flag `s`.
    pub fn set_top_n_scores(&self, n: usize) {
        self.top_n_scores.store(n, Ordering::Relaxed);
    }

    /// Flag `f`: whether refused nodes are recorded one by one.
    pub fn filter_failures(&self) -> bool {
        self.filter_failures.load(Ordering::Relaxed)
    }

    /// Sets flag `f`.
    pub fn set_filter_failures(&self, on: bool) {
        self.filter_failures.store(on, Ordering::Relaxed);
    }

    /// Whether rows are reused between pods of one shape. Decisions do not depend on it.
    pub fn reuse(&self) -> bool {
        self.reuse.load(Ordering::Relaxed)
    }

    /// Turns reuse on or off.
    pub fn set_reuse(&self, on: bool) {
        self.reuse.store(on, Ordering::Relaxed);
    }

    /// Whether the flight recorder records. On at start; decisions do not depend on it.
    pub fn recorder(&self) -> bool {
        self.recorder.load(Ordering::Relaxed)
    }

    /// Turns the flight recorder on or off.
    pub fn set_recorder(&self, on: bool) {
        self.recorder.store(on, Ordering::Relaxed);
    }

    /// How many bytes the flight recorder may take; a scheduler looks at it when it is made.
    pub fn recorder_bytes(&self) -> usize {
        self.recorder_bytes.load(Ordering::Relaxed)
    }

    /// Sets how many bytes the flight recorder of a scheduler made later may take.
    pub fn set_recorder_bytes(&self, bytes: usize) {
        self.recorder_bytes.store(bytes, Ordering::Relaxed);
    }
}
