//! The last hour in numbers, in memory: a ring of samples, and the task that takes them. `rest::trends` serves them.
//!
//! The task reads what there is anyway, the published snapshot and the counters of the metrics, on a thread of its own.
//! The scheduling thread does nothing for it. Nothing is kept beyond the process; a history of days is for a system that
//! scrapes `/metrics`.
//!
//! - `ring`: the samples and their bound; [`sampler`]: when and how they are taken

mod ring;
pub mod sampler;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pellucid_api::rest::trends::TrendSample;

use ring::Ring;
pub use ring::SAMPLES;

/// Time between two samples.
pub const EVERY: Duration = Duration::from_secs(10);

/// The ring that the sampler writes and readers share.
#[derive(Clone, Default)]
pub struct SharedRing(Arc<Mutex<Ring>>);

impl SharedRing {
    /// Returns the samples, the oldest first.
    pub fn samples(&self) -> Vec<TrendSample> {
        self.0.lock().bodies()
    }
}
