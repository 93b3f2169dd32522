//! Where work that costs CPU runs, so that it cannot stall the threads that serve connections.
//!
//! Blocking threads of tokio behind two semaphores: so many jobs run, so many more wait, the rest are
//! told to come back. A pool of our own threads would do the same with more code: tokio keeps its blocking
//! threads, lets them go when idle, and hands back a panic as a value. The permits travel with the job,
//! so a job whose caller has gone away still counts until it ends.

use std::sync::Arc;

use http::{StatusCode, header};
use tokio::sync::Semaphore;

use super::error::Failure;

pub(super) struct Pool {
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

impl Pool {
    pub(super) fn new(running: usize, waiting: usize) -> Self {
        let running = running.max(1);
        Self {
            admitted: Arc::new(Semaphore::new(running + waiting)),
            running: Arc::new(Semaphore::new(running)),
        }
    }

    /// Runs a job and returns its value; 429 when too many wait already, 500 when it panicked.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let Ok(place) = Arc::clone(&self.admitted).try_acquire_owned() else {
            let message = "too many requests wait for their turn; ask again in a second";
            return Err(Failure::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
                .with(header::RETRY_AFTER, "1"));
        };
        let turn = Arc::clone(&self.running).acquire_owned().await;
        let span = tracing::Span::current();
        let job = tokio::task::spawn_blocking(move || {
            let _held = (place, turn);
            span.in_scope(job)
        });
        job.await.map_err(|error| match error.try_into_panic() {
            Ok(payload) => Failure::panic(&*payload),
            Err(_) => {
                Failure::new(StatusCode::SERVICE_UNAVAILABLE, "ShuttingDown", "the server is shutting down")
            }
        })
    }
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
