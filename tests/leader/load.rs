//! Pods that arrive all the time, so that a hand-over finds Bindings in flight, and that leave once there are many.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pellucid::sandbox::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::common::PATIENCE;
use crate::common::running::pod;

/// Pause between two pods, and between two looks at them.
const PAUSE: Duration = Duration::from_millis(5);
/// Most pods at one time.
const ALIVE: usize = 300;

/// Creates pods until it is stopped.
pub(crate) struct Load {
    stopped: Arc<AtomicBool>,
    creating: JoinHandle<usize>,
}

fn name(n: usize) -> String {
    format!("p{n}")
}

async fn until_bound(sandbox: &Handle, n: usize) {
    let end = Instant::now() + PATIENCE;
    while sandbox.node_of("default", &name(n)).is_none() {
        assert!(Instant::now() < end, "{} is not bound", name(n));
        tokio::time::sleep(PAUSE).await;
    }
}

impl Load {
    /// Starts to create pods, `p0`, `p1` and so on. The oldest is deleted when there are many, but not before it is bound.
    pub(crate) fn start(sandbox: &Arc<Handle>) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let (sandbox, stop) = (sandbox.clone(), stopped.clone());
        let creating = tokio::spawn(async move {
            let mut created: usize = 0;
            while !stop.load(Ordering::Relaxed) {
                if let Some(oldest) = created.checked_sub(ALIVE) {
                    until_bound(&sandbox, oldest).await;
                    sandbox.delete("pods", "default", &name(oldest), Some(0)).expect("deleted");
                }
                sandbox.create(pod(&name(created), 10)).expect("a pod");
                created += 1;
                tokio::time::sleep(PAUSE).await;
            }
            created
        });
        Self { stopped, creating }
    }

    /// Stops creating pods and waits until all are bound. Returns their number.
    pub(crate) async fn settle(self, sandbox: &Handle) -> usize {
        self.stopped.store(true, Ordering::Relaxed);
        let created = self.creating.await.expect("created");
        for n in created.saturating_sub(ALIVE)..created {
            until_bound(sandbox, n).await;
        }
        created
    }
}
