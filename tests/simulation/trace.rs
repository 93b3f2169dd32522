//! The trace of a run as lines: always hashed, stored on request.

use std::time::Duration;

/// The trace of one run.
pub(crate) struct Trace {
    hash: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn new(is_kept: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, lines: is_kept.then(Vec::new) }
    }

    pub(crate) fn add(&mut self, at: Duration, what: &str) {
        for byte in at.as_micros().to_le_bytes().iter().chain(what.as_bytes()) {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>10.3} {what}", at.as_secs_f64()));
        }
    }

    /// Returns the FNV-1a hash of all lines and their times.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
