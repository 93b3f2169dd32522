//! How many Bindings may be in flight at once: as many as the API server takes.
//!
//! Additive increase, multiplicative decrease, as TCP's congestion avoidance (RFC 5681): the bound grows by one for each
//! bound's worth of answers while it is used up and answers do not take longer than they did; it falls when the server
//! refuses for load (429, 503, 504), does not answer in time, or takes several times as long. [`InFlightBound`] is pure;
//! [`InFlight`] has the workers wait for it. Not here: the pause before a refused write is tried again (`Backoff`).

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::writes::api_writer::WriteError;

/// Bound at the start, and the least one. The most is the number of workers.
const START: usize = 32;
const LEAST: usize = 4;
/// Share of a new answer in the mean time of answers.
const WEIGHT: f64 = 0.1;
/// The bound grows while answers take at most this many times as long as they did at best, and falls beyond the second.
const GROWS_BELOW: f64 = 2.0;
const FALLS_ABOVE: f64 = 4.0;
/// Seconds that no answer is slow within, however quick the best were: their times tell of the machines between more
/// than of the server's load.
const QUICK: f64 = 0.01;
/// What remains of the bound after a refusal, and after answers became slow.
const AFTER_REFUSAL: f64 = 0.5;
const AFTER_SLOWNESS: f64 = 0.8;
/// How much the best time rises with each answer, so that what a server could do long ago is forgotten: twofold after
/// about 7,000 answers.
const FORGETS: f64 = 1.0001;

/// How a write went, as far as the load of the server is concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The server answered after this time, with whatever it said of the object.
    Answered(Duration),
    /// The server refused for load, or did not answer in time.
    Overloaded,
    /// The write says nothing about load: it was not sent, or its connection broke.
    Unclear,
}

impl Outcome {
    /// Returns what the result of a write says.
    pub(crate) fn of<T>(result: &Result<T, WriteError>, took: Duration) -> Self {
        match result {
            Ok(_) => Self::Answered(took),
            Err(WriteError::Status { code: 429 | 503 | 504, .. } | WriteError::TimedOut(_)) => {
                Self::Overloaded
            }
            Err(WriteError::Status { .. }) => Self::Answered(took),
            Err(_) => Self::Unclear,
        }
    }
}

/// The bound, and what it follows.
#[derive(Clone, Debug)]
pub(crate) struct InFlightBound {
    bound: f64,
    most: f64,
    /// Mean time of answers, in seconds; `None` before the first.
    mean: Option<f64>,
    /// Least mean so far, in seconds, slowly forgotten.
    best: f64,
    /// Answers until the bound may fall again: writes that were sent before it fell say nothing new.
    settles: usize,
}

impl InFlightBound {
    /// Makes a bound of at most `most`.
    pub(crate) fn new(most: usize) -> Self {
        let most = most.max(1);
        let bound = START.min(most) as f64;
        Self { bound, most: most as f64, mean: None, best: f64::INFINITY, settles: 0 }
    }

    /// Returns the bound, at least 1.
    pub(crate) fn get(&self) -> usize {
        self.bound as usize
    }

    /// Takes note of how one of `in_flight` writes went.
    pub(crate) fn note(&mut self, outcome: Outcome, in_flight: usize) {
        self.settles = self.settles.saturating_sub(1);
        match outcome {
            Outcome::Unclear => {}
            Outcome::Overloaded => self.fall(AFTER_REFUSAL),
            Outcome::Answered(took) => {
                let took = took.as_secs_f64();
                let mean = self.mean.map_or(took, |mean| mean + WEIGHT * (took - mean));
                self.mean = Some(mean);
                self.best = (self.best * FORGETS).min(mean);
                let times = mean / self.best.max(QUICK);
                if times > FALLS_ABOVE {
                    self.fall(AFTER_SLOWNESS);
                } else if times <= GROWS_BELOW && in_flight >= self.get() {
                    self.bound = (self.bound + 1.0 / self.bound).min(self.most);
                }
            }
        }
    }

    fn fall(&mut self, share: f64) {
        if self.settles > 0 {
            return;
        }
        self.settles = self.get();
        self.bound = (self.bound * share).max(LEAST as f64).min(self.most);
    }
}

/// Lets as many workers write as the bound allows.
pub struct InFlight {
    state: Mutex<State>,
    /// Permits one waiter to look again.
    room: Notify,
}

struct State {
    bound: InFlightBound,
    /// Workers that may write, with or without an order.
    entered: usize,
    /// Workers that are writing.
    writing: usize,
}

impl InFlight {
    /// Makes the bound for `workers` workers.
    pub(crate) fn new(workers: usize) -> Self {
        let state = State { bound: InFlightBound::new(workers), entered: 0, writing: 0 };
        Self { state: Mutex::new(state), room: Notify::new() }
    }

    /// Returns the bound now.
    pub fn bound(&self) -> usize {
        self.state.lock().bound.get()
    }

    /// Waits until one more may write.
    pub(crate) async fn enter(&self) -> Entered<'_> {
        loop {
            {
                let mut state = self.state.lock();
                if state.entered < state.bound.get() {
                    state.entered += 1;
                    if state.entered < state.bound.get() {
                        self.room.notify_one();
                    }
                    return Entered(self);
                }
            }
            self.room.notified().await;
        }
    }
}

/// The right to write, until it is dropped.
pub(crate) struct Entered<'a>(&'a InFlight);

impl Entered<'_> {
    /// Carries out a write and takes note of how it went.
    pub(crate) async fn write<T>(
        &self,
        write: impl Future<Output = Result<T, WriteError>>,
    ) -> Result<T, WriteError> {
        self.0.state.lock().writing += 1;
        let begun = tokio::time::Instant::now();
        let writing = Writing(self.0);
        let result = write.await;
        let outcome = Outcome::of(&result, begun.elapsed());
        let mut state = self.0.state.lock();
        let (writes, before) = (state.writing, state.bound.get());
        state.bound.note(outcome, writes);
        if state.bound.get() > before {
            self.0.room.notify_one();
        }
        drop(state);
        drop(writing);
        result
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.state.lock().entered -= 1;
        self.0.room.notify_one();
    }
}

/// A write in flight, also when its task is cancelled.
struct Writing<'a>(&'a InFlight);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.state.lock().writing -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Notes `n` answers that each took so many milliseconds, with all places taken.
    fn answers(bound: &mut InFlightBound, n: usize, ms: u32) -> usize {
        for _ in 0..n {
            bound.note(Outcome::Answered(MS * ms), bound.get());
        }
        bound.get()
    }

    #[test]
    fn it_grows_while_answers_stay_quick_and_all_places_are_taken() {
        let mut bound = InFlightBound::new(128);
        assert_eq!(answers(&mut bound, 33, 5), START + 1);
        assert_eq!(answers(&mut bound, 100_000, 5), 128);
        let mut idle = InFlightBound::new(128);
        (0..10_000).for_each(|_| idle.note(Outcome::Answered(5 * MS), 3));
        assert_eq!(idle.get(), START, "nobody needs more");
    }

    #[test]
    fn a_burst_of_refusals_halves_it_once_and_more_to_the_least() {
        let mut bound = InFlightBound::new(128);
        (0..32).for_each(|_| bound.note(Outcome::Overloaded, 32));
        assert_eq!(bound.get(), 16);
        bound.note(Outcome::Overloaded, 16);
        assert_eq!(bound.get(), 8);
        (0..1_000).for_each(|_| bound.note(Outcome::Overloaded, 8));
        assert_eq!(bound.get(), LEAST);
        assert!(answers(&mut bound, 200, 5) > 2 * LEAST, "it comes back");
    }

    #[test]
    fn slow_answers_stop_it_and_very_slow_ones_lower_it() {
        let mut bound = InFlightBound::new(128);
        let before = answers(&mut bound, 100, 15);
        let slower = answers(&mut bound, 100, 42);
        assert!(slower <= before + 1, "{before}, {slower}");
        assert!(answers(&mut bound, 300, 120) < slower / 2);
    }

    #[test]
    fn answers_within_milliseconds_are_not_slow_because_the_first_were_quicker() {
        let mut bound = InFlightBound::new(128);
        (0..10).for_each(|_| bound.note(Outcome::Answered(MS / 10), 1));
        assert!(answers(&mut bound, 10_000, 5) > 2 * START);
    }

    #[test]
    fn it_never_exceeds_the_workers_and_what_is_unclear_changes_nothing() {
        let mut bound = InFlightBound::new(2);
        assert_eq!(answers(&mut bound, 1_000, 5), 2);
        (0..100).for_each(|_| bound.note(Outcome::Overloaded, 2));
        assert_eq!(bound.get(), 2, "the least is as many as there are");
        bound.note(Outcome::Unclear, 2);
        assert_eq!(bound.get(), 2);
    }

    #[test]
    fn results_say_what_they_mean_for_load() {
        let status = |code| {
            Err::<(), _>(WriteError::Status {
                code,
                reason: String::new(),
                message: String::new(),
                retry_after: None,
            })
        };
        assert_eq!(Outcome::of(&status(429), MS), Outcome::Overloaded);
        assert_eq!(Outcome::of(&status(409), MS), Outcome::Answered(MS));
        assert_eq!(Outcome::of(&Err::<(), _>(WriteError::TimedOut(MS)), MS), Outcome::Overloaded);
        assert_eq!(Outcome::of(&Err::<(), _>(WriteError::Lost), MS), Outcome::Unclear);
    }

    #[tokio::test]
    async fn as_many_enter_as_the_bound_allows_and_one_follows_each_that_leaves() {
        use futures_util::FutureExt;
        let in_flight = InFlight::new(2);
        let first = in_flight.enter().await;
        let _second = in_flight.enter().await;
        let mut third = Box::pin(in_flight.enter());
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        assert!(third.now_or_never().is_some());
    }
}
