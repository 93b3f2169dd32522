//! Probes the API server, so that watches and writers that wait for it notice at once when it is back.
//!
//! Other signals do not suffice: a hanging server with open sockets answers TCP keepalives, a watch on it is as silent
//! as a quiet one, and a request on a connection that a load balancer forgot waits for its time limit. One small
//! request every few seconds replaces these signals for all watches and writers. A failed probe is only reported. When
//! a probe succeeds again, waits end early, requests sent before get a short grace period, and watches that stay
//! silent are reopened at their last version.
//!
//! Does not decide whether this process is healthy; health checks read the report.

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

/// Every authenticated user may read this path, and the server needs no backend to answer it.
const PATH: &str = "/version";
/// Maximum size of a response, in bytes.
const ANSWER_BYTES: usize = 1 << 16;

/// Result of the probes so far.
#[derive(Clone, Debug, Default)]
pub struct ServerReport {
    /// Time of the last successful probe.
    pub last_answer: Option<Now>,
    /// Time of the first failed probe of the current outage, and the error of the last one.
    pub away: Option<(Now, Arc<str>)>,
    /// Outages so far, the current one included.
    pub outages: u64,
    /// Probes that failed.
    pub failed_probes: u64,
}

/// Availability of the API server. The probe writes it; watches and writers wait on it.
#[derive(Debug)]
pub struct ServerStatus {
    report: Mutex<ServerReport>,
    /// Number of recoveries: how often the server answered again after an outage.
    recoveries: watch::Sender<u64>,
    grace: Duration,
    spread: Duration,
}

impl ServerStatus {
    pub(crate) fn new(limits: &WatchLimits) -> Self {
        let (grace, spread) = (limits.grace, limits.spread);
        Self { report: Mutex::default(), recoveries: watch::Sender::new(0), grace, spread }
    }

    /// Returns the result of the probes so far.
    pub fn report(&self) -> ServerReport {
        self.report.lock().clone()
    }

    /// Returns a handle that notices recoveries of the server from now on.
    pub(crate) fn subscribe(&self) -> ServerRecovery {
        ServerRecovery { recoveries: self.recoveries.subscribe(), grace: self.grace, spread: self.spread }
    }

    /// Waits for `time`, or until shortly after the server came back.
    pub(crate) async fn pause(&self, time: Duration) {
        let mut recovery = self.subscribe();
        tokio::select! {
            () = sleep(time) => {}
            () = recovery.next() => sleep(time.min(self.spread.mul_f64(chance()))).await,
        }
    }

    /// Records the outcome of a probe.
    fn record(&self, outcome: Result<(), String>, now: Now) {
        let mut report = self.report.lock();
        match outcome {
            Ok(()) => {
                report.last_answer = Some(now);
                let Some((since, _)) = report.away.take() else { return };
                let after = now.monotonic.saturating_sub(since.monotonic);
                tracing::info!(?after, "API server answers again");
                self.recoveries.send_modify(|n| *n += 1);
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

/// Notices each recovery of the API server.
pub(crate) struct ServerRecovery {
    recoveries: watch::Receiver<u64>,
    grace: Duration,
    spread: Duration,
}

impl ServerRecovery {
    /// Waits until the server comes back.
    pub(crate) async fn next(&mut self) {
        if self.recoveries.changed().await.is_err() {
            // The probe has ended.
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the server came back and had time to answer earlier requests.
    pub(crate) async fn answer_is_lost(&mut self) {
        self.next().await;
        sleep(self.grace).await;
    }

    /// Returns how long a watch may stay silent once the server is back.
    pub(crate) fn silence(&self) -> Duration {
        self.grace + self.spread.mul_f64(chance())
    }
}

/// The task that probes the server.
pub(crate) struct Probe {
    pub(crate) client: Client,
    pub(crate) pools: Pools,
    pub(crate) limits: Arc<WatchLimits>,
    pub(crate) server: Arc<ServerStatus>,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
}

impl Probe {
    /// Probes until `stop` is cancelled.
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
            self.server.record(outcome, (self.clock)());
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }
}

/// Probes once. Any response counts, except those of a server or proxy that turns every request away.
async fn ask(client: &Client) -> Result<(), String> {
    let request = Request::get(PATH).body(Body::empty()).map_err(|e| e.to_string())?;
    let (head, body) = client.send(request).await.map_err(|e| chain(&e))?.into_parts();
    // Read the body to its end, so that the connection can be reused.
    Limited::new(body, ANSWER_BYTES).collect().await.map_err(|e| format!("{PATH}: {e}"))?;
    match head.status {
        status @ (StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT) => Err(format!("{PATH}: {status}")),
        _ => Ok(()),
    }
}
