//! Pods that arrive all the time, so that a hand-over finds Bindings in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pellucid::sandbox::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::common::PATIENCE;
use crate::common::running::pod;

/// Pause between two batches.
const PAUSE: Duration = Duration::from_millis(10);
/// Pods in a batch.
const BATCH: usize = 2;

/// Creates pods until it is stopped.
pub(crate) struct Load {
    stopped: Arc<AtomicBool>,
    creating: JoinHandle<usize>,
    bound: Arc<AtomicUsize>,
}

impl Load {
    /// Starts to create at most this many pods, `p0`, `p1` and so on.
    pub(crate) fn start(sandbox: &Arc<Handle>, most: usize) -> Self {
        let (stopped, bound) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (sandbox, stop) = (sandbox.clone(), stopped.clone());
        let creating = tokio::spawn(async move {
            let mut created = 0;
            while !stop.load(Ordering::Relaxed) && created < most {
                for _ in 0..BATCH {
                    sandbox.create(pod(&format!("p{created}"), 10)).expect("a pod");
                    created += 1;
                }
                tokio::time::sleep(PAUSE).await;
            }
            created
        });
        Self { stopped, creating, bound }
    }

    /// Stops creating pods and waits until all are bound. Returns their number.
    pub(crate) async fn settle(self, sandbox: &Handle) -> usize {
        self.stopped.store(true, Ordering::Relaxed);
        let created = self.creating.await.expect("created");
        let end = Instant::now() + PATIENCE;
        loop {
            let is_bound = |n: &usize| sandbox.node_of("default", &format!("p{n}")).is_some();
            let first = self.bound.load(Ordering::Relaxed);
            let bound = (first..created).take_while(is_bound).count() + first;
            self.bound.store(bound, Ordering::Relaxed);
            if bound == created {
                return created;
            }
            assert!(Instant::now() < end, "p{bound} of {created} pods is not bound");
            tokio::time::sleep(PAUSE).await;
        }
    }
}
