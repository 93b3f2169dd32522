//! Shared by the writers: access to the API server and the queues, and the wait between two tries.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::Clock;
use crate::connection::client::ErrorClass;
use crate::writes::api_writer::{ApiWriter, Backoff, WriteError};
use crate::writes::effect_queues::EffectQueues;

/// Dependencies that all writers share.
#[derive(Clone)]
pub(crate) struct Writing {
    pub(crate) writer: Arc<ApiWriter>,
    pub(crate) queues: Arc<EffectQueues>,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
}

impl Writing {
    /// Waits before the next try; `None` when `stop` is cancelled.
    pub(crate) async fn pause(&self, backoff: &mut Backoff, error: &WriteError) -> Option<()> {
        tokio::select! {
            () = self.stop.cancelled() => None,
            () = backoff.wait(error.retry_after()) => Some(()),
        }
    }
}

/// Counts the remaining tries of an order that may be given up.
pub(crate) struct Tries<'a> {
    left: u32,
    backoff: Backoff,
    with: &'a Writing,
}

impl<'a> Tries<'a> {
    /// Allows `n` tries in total, until `stop` is cancelled.
    pub(crate) fn new(n: u32, with: &'a Writing) -> Self {
        Self { left: n, backoff: with.writer.backoff(), with }
    }

    /// Waits after an error and returns true, or returns false when the order must be given up: no tries are left, the
    /// error is permanent, or `stop` is cancelled.
    pub(crate) async fn again(&mut self, error: &WriteError) -> bool {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || matches!(error.class(), ErrorClass::Refused | ErrorClass::Bug) {
            return false;
        }
        self.with.pause(&mut self.backoff, error).await.is_some()
    }
}

/// Declares the counters of a writer, and the struct of their values.
macro_rules! counters {
    (
        $(#[$about:meta])* struct $counters:ident;
        $(#[$about_counts:meta])* struct $counts:ident { $($(#[$doc:meta])* $name:ident,)* }
    ) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub struct $counters { $(pub(crate) $name: std::sync::atomic::AtomicU64,)* }

        $(#[$about_counts])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $counts { $($(#[$doc])* pub $name: u64,)* }

        impl $counters {
            /// Returns the counts.
            pub fn counts(&self) -> $counts {
                $counts { $($name: self.$name.load(std::sync::atomic::Ordering::Relaxed),)* }
            }
        }
    };
}
pub(super) use counters;
