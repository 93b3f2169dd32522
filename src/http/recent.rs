//! The snapshot that costly lists are read from for a while.
//!
//! Some reads work out a lot about a snapshot that all readers of it share. With a new snapshot every few milliseconds
//! each of them would work it out anew. So these reads stay at the last snapshot that took long. While somebody asks now
//! and then, a newer one is worked out every half second beside the answers, so that nobody waits for it, and nobody gets
//! one that is older than a second. Where that takes long, it comes as much later as keeps it to an eighth of the time, and
//! answers are as much older. What is worked out quickly, as in a small cluster, is always read from the newest snapshot.
//!
//! Not here: what is shared, which lies in the snapshot, and the snapshots of lists that go on (`walks`).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pellucid_model::Published;
use tokio::time::Instant;

/// Shortest read for which its snapshot is kept.
const LONG: Duration = Duration::from_millis(20);
/// How long after the next one is due the kept snapshot may be read.
const GRACE: Duration = Duration::from_millis(500);
/// Working out may take one part in this many of the time.
const SHARE: u32 = 8;
/// How long after the last request it is still renewed.
const WATCHED: Duration = Duration::from_secs(10);

/// The kept snapshot.
pub(crate) struct Recent<S> {
    /// Shortest time after which a newer one is worked out.
    every: Duration,
    state: Mutex<State<S>>,
}

struct State<S> {
    kept: Option<Kept<S>>,
    /// When somebody asked for the last time.
    asked: Option<Instant>,
    /// Whether somebody sees to it that the kept snapshot is renewed or let go.
    is_tended: bool,
}

struct Kept<S> {
    snapshot: Arc<S>,
    /// When it was the newest one.
    since: Instant,
    /// Time after which a newer one is worked out.
    every: Duration,
}

impl<S> Kept<S> {
    /// Returns when a newer one has to be worked out.
    fn due(&self) -> Instant {
        self.since + self.every
    }

    /// Returns when it may not be read any more.
    fn end(&self) -> Instant {
        self.due() + GRACE
    }
}

impl<S> State<S> {
    fn is_watched(&self) -> bool {
        self.asked.is_some_and(|asked| asked.elapsed() < WATCHED)
    }
}

/// What has to be done about the kept snapshot, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A newer one has to be read.
    Renew(Instant),
    /// It has to be let go, unless somebody has asked by then.
    LetGo(Instant),
}

impl<S: Published> Recent<S> {
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, state: Mutex::new(State { kept: None, asked: None, is_tended: false }) }
    }

    /// Returns the snapshot to read for a request that wants at least this generation; `None` for the newest one.
    pub(crate) fn choose(&self, wanted: Option<u64>) -> Option<Arc<S>> {
        let mut state = self.state.lock();
        state.asked = Some(Instant::now());
        let kept = state.kept.as_ref()?;
        let is_old = Instant::now() >= kept.end();
        let is_wanted = wanted.is_none_or(|wanted| kept.snapshot.generation() >= wanted);
        (!is_old && is_wanted).then(|| Arc::clone(&kept.snapshot))
    }

    /// Keeps a snapshot whose read began at `since` and took until now, in place of an older one. Returns whether the
    /// caller has to do what `next` says.
    pub(crate) fn keep(&self, snapshot: &Arc<S>, since: Instant) -> bool {
        let mut state = self.state.lock();
        let generation = snapshot.generation();
        if state.kept.as_ref().is_some_and(|kept| kept.snapshot.generation() >= generation) {
            return false;
        }
        let took = since.elapsed();
        let is_long = took >= LONG;
        let every = self.every.max(took * SHARE);
        state.kept = is_long.then(|| Kept { snapshot: Arc::clone(snapshot), since, every });
        is_long && !std::mem::replace(&mut state.is_tended, true)
    }

    /// Returns whether the kept snapshot is this one, which is the newest now.
    pub(crate) fn is_still(&self, newest: &S) -> bool {
        let mut state = self.state.lock();
        let kept = state.kept.as_mut().filter(|kept| kept.snapshot.generation() == newest.generation());
        kept.map(|kept| kept.since = Instant::now()).is_some()
    }

    /// Returns what has to be done next about the kept snapshot; `None` if nothing is kept, and then the next one that is
    /// kept needs somebody to tend it.
    pub(crate) fn next(&self) -> Option<Next> {
        let mut state = self.state.lock();
        let times = state.kept.as_ref().map(|kept| (kept.due(), kept.end()));
        state.is_tended = times.is_some();
        let (due, end) = times?;
        Some(if state.is_watched() { Next::Renew(due) } else { Next::LetGo(end) })
    }

    /// Lets the snapshot go when nobody has asked for a while, because a snapshot that is held costs what changed since.
    pub(crate) fn let_go(&self) {
        let mut state = self.state.lock();
        if !state.is_watched() {
            state.kept = None;
        }
    }

    /// Lets the snapshot go because no newer one could be read.
    pub(crate) fn give_up(&self) {
        self.state.lock().kept = None;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[derive(Debug)]
    struct State(u64);

    impl Published for State {
        fn generation(&self) -> u64 {
            self.0
        }
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn recent() -> Recent<State> {
        Recent::new(ms(500))
    }

    /// Reads a snapshot that takes so long. Returns it, and whether somebody has to tend it.
    async fn read(recent: &Recent<State>, generation: u64, took: Duration) -> (Arc<State>, bool) {
        let (snapshot, since) = (Arc::new(State(generation)), Instant::now());
        advance(took).await;
        let is_new = recent.keep(&snapshot, since);
        (snapshot, is_new)
    }

    fn chosen(recent: &Recent<State>, wanted: Option<u64>) -> Option<u64> {
        recent.choose(wanted).map(|snapshot| snapshot.0)
    }

    #[tokio::test(start_paused = true)]
    async fn quick_reads_are_of_the_newest_state() {
        let recent = recent();
        assert!(!read(&recent, 1, ms(19)).await.1);
        assert_eq!((chosen(&recent, None), recent.next()), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_costly_state_is_renewed_every_half_second_while_somebody_asks() {
        let recent = recent();
        assert_eq!(chosen(&recent, None), None);
        let start = Instant::now();
        assert!(read(&recent, 1, ms(40)).await.1);
        assert_eq!((chosen(&recent, None), recent.next()), (Some(1), Some(Next::Renew(start + ms(500)))));
        advance(ms(460)).await;
        assert!(!read(&recent, 2, ms(40)).await.1, "it is tended already");
        assert_eq!(recent.next(), Some(Next::Renew(start + ms(1000))), "nobody has to ask for that");
        assert_eq!(chosen(&recent, None), Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_is_worked_out_in_an_eighth_of_the_time() {
        let recent = recent();
        chosen(&recent, None);
        let start = Instant::now();
        read(&recent, 1, ms(200)).await;
        assert_eq!(recent.next(), Some(Next::Renew(start + ms(1600))));
        advance(ms(1800)).await;
        assert_eq!(chosen(&recent, None), Some(1), "it is read while the next one is worked out");
        advance(ms(100)).await;
        assert_eq!(chosen(&recent, None), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_that_is_still_the_newest_needs_no_other() {
        let recent = recent();
        chosen(&recent, None);
        read(&recent, 1, ms(40)).await;
        advance(ms(900)).await;
        assert!(recent.is_still(&State(1)) && !recent.is_still(&State(2)));
        advance(ms(900)).await;
        assert_eq!(chosen(&recent, None), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_newer_generation_is_had_by_asking_for_it() {
        let recent = recent();
        read(&recent, 7, ms(40)).await;
        assert_eq!((chosen(&recent, Some(7)), chosen(&recent, Some(8))), (Some(7), None));
        advance(ms(1000)).await;
        assert_eq!(chosen(&recent, None), None, "it is too old for everybody");
    }

    #[tokio::test(start_paused = true)]
    async fn an_older_state_does_not_come_back() {
        let recent = recent();
        read(&recent, 2, ms(40)).await;
        read(&recent, 1, ms(40)).await;
        assert_eq!(chosen(&recent, None), Some(2));
        read(&recent, 3, ms(1)).await;
        assert_eq!(chosen(&recent, None), None, "it is cheap again");
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_let_go_when_nobody_has_asked_for_a_while() {
        let recent = recent();
        chosen(&recent, None);
        let (snapshot, _) = read(&recent, 1, ms(40)).await;
        recent.let_go();
        assert_eq!(chosen(&recent, None), Some(1), "somebody had asked");
        advance(WATCHED).await;
        assert!(matches!(recent.next(), Some(Next::LetGo(_))));
        recent.let_go();
        assert_eq!((recent.next(), Arc::strong_count(&snapshot)), (None, 1));
        assert!(read(&recent, 2, ms(40)).await.1, "the next one needs somebody again");
    }
}
