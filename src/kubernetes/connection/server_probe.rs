//! Probes the API server, so that everything that waits for it learns at once when it is back.
//!
//! Why this exists: a server that hangs with open sockets answers TCP keepalives, an established watch on it is
//! silent as a quiet one is, and a request on a connection that a load balancer forgot waits for its time limit.
//! One small request every few seconds tells these apart for all watches and writers together. Its failure does
//! nothing but show. When it succeeds again, waits are cut short, requests that were sent before get a short grace,
//! and watches that stay silent are opened anew from where they were.
//!
//! Not here: whether this process is healthy; the report is read by those who judge that.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use pellucid_model::Now;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::Clock;
use crate::connection::client::chain;
use crate::connection::limits::{WatchLimits, chance};
use crate::connection::transport::Pools;

/// What everybody who is authenticated may read, and what needs nothing behind the server.
const PATH: &str = "/version";
/// Bytes of an answer, at most.
const ANSWER_BYTES: usize = 1 << 16;

/// What the probes found.
#[derive(Clone, Debug, Default)]
pub struct ServerReport {
    /// When the server last answered a probe.
    pub last_answer: Option<Now>,
    /// Since when it does not answer, and how the last probe failed.
    pub away: Option<(Now, Arc<str>)>,
    /// How often it was away, counting the present time.
    pub outages: u64,
    /// Probes that failed.
    pub failed_probes: u64,
}

/// How the API server is doing.
#[derive(Debug)]
pub struct ServerStatus {
    report: Mutex<ServerReport>,
    /// How often the server came back.
    returns: watch::Sender<u64>,
    grace: Duration,
    spread: Duration,
}

impl ServerStatus {
    pub(crate) fn new(limits: &WatchLimits) -> Self {
        let (grace, spread) = (limits.grace, limits.spread);
        Self { report: Mutex::default(), returns: watch::Sender::new(0), grace, spread }
    }

    /// Returns what the probes found.
    pub fn report(&self) -> ServerReport {
        self.report.lock().clone()
    }

    /// Returns a handle that sees the server come back from now on.
    pub(crate) fn returns(&self) -> Returns {
        Returns { seen: self.returns.subscribe(), grace: self.grace, spread: self.spread }
    }

    /// Waits so long, or until shortly after the server has come back.
    pub(crate) async fn pause(&self, time: Duration) {
        let mut returns = self.returns();
        tokio::select! {
            () = sleep(time) => {}
            () = returns.next() => sleep(time.min(self.spread.mul_f64(chance()))).await,
        }
    }

    /// Notes what came of a probe.
    fn note(&self, outcome: Result<(), String>, now: Now) {
        let mut report = self.report.lock();
        match outcome {
            Ok(()) => {
                report.last_answer = Some(now);
                let Some((since, _)) = report.away.take() else { return };
                let after = now.monotonic.saturating_sub(since.monotonic);
                tracing::info!(?after, "API server answers again");
                self.returns.send_modify(|n| *n += 1);
            }
            Err(error) => {
                report.failed_probes += 1;
                let error: Arc<str> = error.into();
                if let Some((_, last)) = &mut report.away {
                    *last = error;
                    return;
                }
                tracing::warn!(%error, "API server does not answer");
                report.outages += 1;
                report.away = Some((now, error));
            }
        }
    }
}

/// Sees the server come back.
pub(crate) struct Returns {
    seen: watch::Receiver<u64>,
    grace: Duration,
    spread: Duration,
}

impl Returns {
    /// Waits until the server has come back.
    pub(crate) async fn next(&mut self) {
        if self.seen.changed().await.is_err() {
            // Nobody probes any more.
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the server has come back and could have answered what it was asked before.
    pub(crate) async fn answer_is_lost(&mut self) {
        self.next().await;
        sleep(self.grace).await;
    }

    /// Returns how long a watch may stay silent once the server is back.
    pub(crate) fn silence(&self) -> Duration {
        self.grace + self.spread.mul_f64(chance())
    }
}

/// Asks the server again and again whether it is there.
pub(crate) struct Probe {
    pub(crate) client: Client,
    pub(crate) pools: Pools,
    pub(crate) limits: Arc<WatchLimits>,
    pub(crate) server: Arc<ServerStatus>,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
}

impl Probe {
    /// Probes until told to stop.
    pub(crate) async fn work(self) {
        let limits = &self.limits;
        loop {
            let outcome = match tokio::time::timeout(limits.probe_answer, ask(&self.client)).await {
                Ok(outcome) => outcome,
                Err(_) => Err(format!("no answer to {PATH} within {:?}", limits.probe_answer)),
            };
            let pause = if outcome.is_ok() {
                limits.probe
            } else {
                self.pools.renew();
                limits.probe_away
            };
            self.server.note(outcome, (self.clock)());
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }
}

/// Asks once. Any answer will do, but for those of a server, or of what stands before it, that turns everybody away.
async fn ask(client: &Client) -> Result<(), String> {
    let request = Request::get(PATH).body(Body::empty()).map_err(|e| e.to_string())?;
    let (head, body) = client.send(request).await.map_err(|e| chain(&e))?.into_parts();
    // Read to its end, so that the connection can be used again.
    Limited::new(body, ANSWER_BYTES).collect().await.map_err(|e| format!("{PATH}: {e}"))?;
    match head.status {
        status @ (StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT) => Err(format!("{PATH}: {status}")),
        _ => Ok(()),
    }
}
