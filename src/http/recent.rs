//! The snapshot that costly lists are read from for a while.
//!
//! Some reads work out a lot about a snapshot that all readers of it share. With a new snapshot every few milliseconds
//! each of them would work it out anew. So these reads stay at the last snapshot that took long: for ten times as long as
//! it took, so that no more than about a tenth of a core goes into it, and then while a newer one is worked out, but never
//! longer than a second. What is worked out quickly, as in a small cluster, is always read from the newest snapshot.
//!
//! Not here: what is shared, which lies in the snapshot, and the snapshots of lists that go on (`walks`).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pellucid_model::Published;
use tokio::time::Instant;

/// Shortest read for which its snapshot is kept.
const LONG: Duration = Duration::from_millis(20);
/// How many times as long as the read took its snapshot is kept before a newer one is read.
const REUSE: u32 = 10;
/// How old the kept snapshot may be.
const OLDEST: Duration = Duration::from_secs(1);

/// The kept snapshot.
pub(crate) struct Recent<S>(Mutex<Option<Kept<S>>>);

struct Kept<S> {
    snapshot: Arc<S>,
    /// When its first read began.
    since: Instant,
    /// How long its first read took.
    took: Duration,
    /// Whether a newer snapshot is being read to take its place.
    is_renewed: bool,
}

/// The snapshot to read.
#[derive(Debug)]
pub(crate) enum Choice<S> {
    /// The newest one.
    Newest,
    /// The kept one.
    Kept(Arc<S>),
    /// The kept one, and the caller has to read the newest one too, beside the answer, and then call `keep` or `give_up`.
    Renew(Arc<S>),
}

impl<S> Default for Recent<S> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<S: Published + Send + Sync + 'static> Recent<S> {
    /// Chooses the snapshot for a request that wants at least this generation.
    pub(crate) fn choose(&self, wanted: Option<u64>) -> Choice<S> {
        let mut kept = self.0.lock();
        let Some(kept) = kept.as_mut() else { return Choice::Newest };
        let age = kept.since.elapsed();
        if age >= OLDEST || wanted.is_some_and(|wanted| kept.snapshot.generation() < wanted) {
            return Choice::Newest;
        }
        let snapshot = Arc::clone(&kept.snapshot);
        if kept.is_renewed || age < kept.took * REUSE {
            return Choice::Kept(snapshot);
        }
        kept.is_renewed = true;
        Choice::Renew(snapshot)
    }

    /// Keeps a snapshot that took so long to read, in place of an older one. Must be called within a tokio runtime.
    pub(crate) fn keep(self: &Arc<Self>, snapshot: &Arc<S>, since: Instant) {
        let took = since.elapsed();
        let mut kept = self.0.lock();
        let generation = snapshot.generation();
        if kept.as_ref().is_some_and(|kept| kept.snapshot.generation() >= generation) {
            return;
        }
        *kept = None;
        if took >= LONG {
            *kept = Some(Kept { snapshot: Arc::clone(snapshot), since, took, is_renewed: false });
            tokio::spawn(Arc::clone(self).expire(generation, since + OLDEST));
        }
    }

    /// Lets another request renew the kept snapshot.
    pub(crate) fn give_up(&self) {
        if let Some(kept) = self.0.lock().as_mut() {
            kept.is_renewed = false;
        }
    }

    /// Lets the snapshot go when nobody may read it any more, because a snapshot that is held costs what changed since.
    async fn expire(self: Arc<Self>, generation: u64, at: Instant) {
        tokio::time::sleep_until(at).await;
        let mut kept = self.0.lock();
        if kept.as_ref().is_some_and(|kept| kept.snapshot.generation() == generation) {
            *kept = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    struct State(u64);

    impl Published for State {
        fn generation(&self) -> u64 {
            self.0
        }
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    async fn read(recent: &Arc<Recent<State>>, generation: u64, took: Duration) -> Arc<State> {
        let (snapshot, since) = (Arc::new(State(generation)), Instant::now());
        advance(took).await;
        recent.keep(&snapshot, since);
        snapshot
    }

    fn chosen(recent: &Recent<State>, wanted: Option<u64>) -> (&'static str, u64) {
        match recent.choose(wanted) {
            Choice::Newest => ("newest", 0),
            Choice::Kept(snapshot) => ("kept", snapshot.0),
            Choice::Renew(snapshot) => ("renew", snapshot.0),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn quick_reads_are_of_the_newest_state() {
        let recent = Arc::default();
        read(&recent, 1, ms(19)).await;
        assert_eq!(chosen(&recent, None), ("newest", 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_costly_state_is_read_for_ten_times_its_cost_and_then_renewed_once() {
        let recent = Arc::default();
        read(&recent, 1, ms(40)).await;
        assert_eq!(chosen(&recent, None), ("kept", 1));
        advance(ms(359)).await;
        assert_eq!(chosen(&recent, None), ("kept", 1));
        advance(ms(1)).await;
        assert_eq!(chosen(&recent, None), ("renew", 1));
        assert_eq!(chosen(&recent, None), ("kept", 1), "somebody else renews it");
        recent.give_up();
        assert_eq!(chosen(&recent, None), ("renew", 1));
        read(&recent, 2, ms(40)).await;
        assert_eq!(chosen(&recent, None), ("kept", 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_newer_generation_is_had_by_asking_for_it() {
        let recent = Arc::default();
        read(&recent, 7, ms(40)).await;
        assert_eq!(chosen(&recent, Some(7)), ("kept", 7));
        assert_eq!(chosen(&recent, Some(8)), ("newest", 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_older_state_does_not_come_back() {
        let recent = Arc::default();
        read(&recent, 2, ms(40)).await;
        read(&recent, 1, ms(40)).await;
        assert_eq!(chosen(&recent, None), ("kept", 2));
        read(&recent, 3, ms(1)).await;
        assert_eq!(chosen(&recent, None), ("newest", 0), "it is cheap again");
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_second_it_is_let_go_whoever_asks() {
        let recent = Arc::default();
        let snapshot = read(&recent, 1, ms(400)).await;
        advance(ms(599)).await;
        assert_eq!(chosen(&recent, None), ("kept", 1));
        tokio::time::sleep(ms(2)).await;
        assert_eq!(chosen(&recent, None), ("newest", 0));
        assert_eq!(Arc::strong_count(&snapshot), 1);
    }
}
