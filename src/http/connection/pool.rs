//! Runs CPU-bound work away from the threads that serve connections.
//!
//! Uses tokio's blocking threads behind two semaphores: a number of jobs run, a number wait, and further ones are
//! refused, as are those that wait too long for their turn. A job is given up when its time is up, or when its caller
//! has gone away (`model::cancellation`). Own threads would need more code for the same: tokio reuses its blocking
//! threads, ends idle ones, and returns a panic as a value. The permits belong to the job, so a job whose caller has
//! gone away counts until it ends. The threads step back behind the one that schedules (`background`).

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{StatusCode, header};
use pellucid_model::cancellation::{Cancellation, Cancelled, run_cancellable};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout};

use super::background::step_back;
use crate::error::Failure;

/// Time limits of a job: waiting for its turn, and running.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) turn: Duration,
    pub(crate) run: Duration,
}

pub(crate) struct Pool {
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
    times: Option<Times>,
}

/// Cancellation of a job: ends when the caller has left or the time is up.
struct Waiting {
    has_left: Arc<AtomicBool>,
    until: Instant,
}

impl Cancellation for Waiting {
    fn is_over(&self) -> bool {
        self.has_left.load(Ordering::Relaxed) || Instant::now() >= self.until
    }
}

/// Sets the flag on drop, which is when the caller leaves.
struct Leaves(Arc<AtomicBool>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Pool {
    pub(crate) fn new(running: usize, waiting: usize) -> Self {
        let running = running.max(1);
        Self {
            admitted: Arc::new(Semaphore::new(running + waiting)),
            running: Arc::new(Semaphore::new(running)),
            times: None,
        }
    }

    /// Sets time limits, and gives up jobs whose callers have left.
    pub(crate) fn within(self, times: Times) -> Self {
        Self { times: Some(times), ..self }
    }

    /// Runs a job and returns its value. Fails with 429 when too many jobs wait or its turn does not come, with 503
    /// when its time is up, and with 500 when it panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let (done, mut value) = oneshot::channel();
        self.run_to_end(Box::new(move || drop(done.send(job())))).await?;
        value.try_recv().map_err(|_| shutting_down())
    }

    /// Runs a job that says nothing. It is boxed because each kind of job would be compiled with all of this.
    fn run_to_end(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let Ok(place) = Arc::clone(&self.admitted).try_acquire_owned() else {
                return Err(crowded("too many requests wait for their turn; ask again in a second"));
            };
            let turn = self.turn().await?;
            let times = self.times;
            let leaves = Leaves(Arc::default());
            let has_left = Arc::clone(&leaves.0);
            let span = tracing::Span::current();
            let job = tokio::task::spawn_blocking(move || {
                let _held = (place, turn);
                step_back();
                let job = || span.in_scope(job);
                match times {
                    None => {
                        job();
                        Ok(())
                    }
                    Some(times) => {
                        let until = Instant::now() + times.run;
                        run_cancellable(Rc::new(Waiting { has_left, until }), job)
                    }
                }
            });
            match job.await {
                Ok(done) => done.map_err(|Cancelled| overdue(times)),
                Err(error) => Err(match error.try_into_panic() {
                    Ok(payload) => Failure::panic(&*payload),
                    Err(_) => shutting_down(),
                }),
            }
        })
    }

    /// Waits until a job may run. Fails with 429 when that takes too long.
    async fn turn(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let turn = Arc::clone(&self.running).acquire_owned();
        let turn = match self.times {
            None => turn.await,
            Some(times) => timeout(times.turn, turn).await.map_err(|_| {
                let waited = times.turn.as_secs_f64();
                crowded(&format!("other requests took all of {waited} s; ask again in a second"))
            })?,
        };
        turn.map_err(|_| shutting_down())
    }
}

fn shutting_down() -> Failure {
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "ShuttingDown", "the server is shutting down")
}

fn crowded(message: &str) -> Failure {
    Failure::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message).with(header::RETRY_AFTER, "1")
}

fn overdue(times: Option<Times>) -> Failure {
    let message = overdue_message(times.map_or(Duration::MAX, |times| times.run));
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "DeadlineExceeded", message)
}

/// Returns the message for a job that exceeded its time.
pub(crate) fn overdue_message(time: Duration) -> String {
    format!("this took longer than {} s and was given up; ask for less", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn refuses_what_would_wait_too_long_and_recovers() {
        let pool = Arc::new(Pool::new(1, 0));
        let (started, has_started) = std::sync::mpsc::channel();
        let (finish, may_finish) = std::sync::mpsc::channel::<()>();
        let first = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move {
                pool.run(move || {
                    started.send(()).unwrap();
                    may_finish.recv().unwrap();
                })
                .await
            }
        });
        tokio::task::spawn_blocking(move || has_started.recv().unwrap()).await.unwrap();
        let refused = pool.run(|| ()).await.unwrap_err().respond("r");
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        finish.send(()).unwrap();
        first.await.unwrap().unwrap();
        assert_eq!(pool.run(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_panic_gives_its_place_back() {
        let pool = Pool::new(1, 0);
        for _ in 0..2 {
            let failed = pool.run(|| panic!("on purpose")).await.unwrap_err().respond("r");
            assert_eq!(failed.status(), StatusCode::INTERNAL_SERVER_ERROR);
        }
    }
}
