//! The snapshots that clients walk through page by page.
//!
//! A list that goes on names its snapshot in the token of the next page, and the snapshot is held for as long as the
//! client may take. Held snapshots cost what changed since, so there are few of them: when there are too many, one that
//! nobody has gone on with goes first. What is not held any more is answered with 410.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use pellucid_model::Published;
use tokio::time::{Instant, sleep_until};

/// Largest number of snapshots that are held.
const MOST: usize = 4;
/// How long a snapshot is held after the last page of it.
pub(crate) const IDLE: Duration = Duration::from_secs(60);

/// The held snapshots.
pub(crate) struct Walks<S>(Mutex<Vec<Walk<S>>>);

struct Walk<S> {
    snapshot: Arc<S>,
    used: Instant,
    /// Whether a client has come back for a second page.
    is_followed: bool,
}

impl<S> Default for Walks<S> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<S: Published + Send + Sync + 'static> Walks<S> {
    /// Returns the held snapshot of a generation, and holds it anew.
    pub(crate) fn find(&self, generation: u64) -> Option<Arc<S>> {
        let mut held = self.held();
        expire(&mut held);
        let walk = held.iter_mut().find(|walk| walk.snapshot.generation() == generation)?;
        (walk.used, walk.is_followed) = (Instant::now(), true);
        Some(walk.snapshot.clone())
    }

    /// Holds a snapshot for the client that got a page of it. Must be called within a tokio runtime.
    pub(crate) fn hold(self: &Arc<Self>, snapshot: Arc<S>) {
        let mut held = self.held();
        expire(&mut held);
        let generation = snapshot.generation();
        if let Some(walk) = held.iter_mut().find(|walk| walk.snapshot.generation() == generation) {
            walk.used = Instant::now();
            return;
        }
        if held.len() == MOST
            && let Some((at, _)) =
                held.iter().enumerate().min_by_key(|(_, walk)| (walk.is_followed, walk.used))
        {
            held.swap_remove(at);
        }
        if held.is_empty() {
            tokio::spawn(Arc::clone(self).sweep());
        }
        held.push(Walk { snapshot, used: Instant::now(), is_followed: false });
    }

    /// Lets snapshots go when their time is up, until none is held.
    async fn sweep(self: Arc<Self>) {
        loop {
            let next = self.held().iter().map(|walk| walk.used + IDLE).min();
            let Some(next) = next else { return };
            sleep_until(next).await;
            expire(&mut self.held());
        }
    }

    /// Returns the list. A panic elsewhere leaves it whole, because every change is one call.
    fn held(&self) -> MutexGuard<'_, Vec<Walk<S>>> {
        self.0.lock()
    }
}

fn expire<S>(held: &mut Vec<Walk<S>>) {
    held.retain(|walk| walk.used.elapsed() < IDLE);
}

#[cfg(test)]
mod tests {
    use super::*;

    struct State(u64);

    impl Published for State {
        fn generation(&self) -> u64 {
            self.0
        }
    }

    fn held(walks: &Walks<State>) -> Vec<u64> {
        let mut all: Vec<u64> = walks.held().iter().map(|walk| walk.snapshot.0).collect();
        all.sort_unstable();
        all
    }

    #[tokio::test(start_paused = true)]
    async fn a_walk_outlives_those_that_nobody_goes_on_with() {
        let walks = Arc::new(Walks::default());
        walks.hold(Arc::new(State(0)));
        assert!(walks.find(0).is_some());
        for generation in 1..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            walks.hold(Arc::new(State(generation)));
        }
        assert_eq!(held(&walks), [0, 17, 18, 19]);
        assert!(walks.find(5).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn snapshots_go_when_their_time_is_up_without_another_request() {
        let walks = Arc::new(Walks::default());
        walks.hold(Arc::new(State(1)));
        tokio::time::sleep(Duration::from_secs(40)).await;
        walks.hold(Arc::new(State(2)));
        assert!(walks.find(1).is_some());
        tokio::time::sleep(Duration::from_secs(59)).await;
        assert_eq!(held(&walks), [1, 2]);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(held(&walks), [0_u64; 0]);
        // The sweep has ended, and begins again with the next one.
        walks.hold(Arc::new(State(3)));
        tokio::time::sleep(IDLE + Duration::from_secs(1)).await;
        assert_eq!(held(&walks), [0_u64; 0]);
    }
}
