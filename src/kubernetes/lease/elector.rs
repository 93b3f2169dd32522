//! The task that takes part in the election: carries out what [`Election`] says, extends the right to write, and tells
//! the scheduling thread when it leads.

use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::input::Input;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::connection::limits::chance;
use crate::lease::election::{Act, Claim, Election, Terms};
use crate::lease::leadership::{Leadership, Role};
use crate::lease::record::{Record, micro_time, whole_seconds};
use crate::lease::requests::{LeaseName, LeaseRequests};
use crate::watches::inputs::Watches;
use crate::writes::api_writer::WriteError;
use crate::{Clock, timestamp};

/// Time limit of the request that releases the Lease: a stop must not wait long for it.
const RELEASE: Duration = Duration::from_secs(1);

/// How an instance takes part in leader election.
#[derive(Clone, Debug)]
pub struct ElectionConfig {
    /// The Lease.
    pub lease: LeaseName,
    /// Who takes part, and the three times.
    pub terms: Terms,
}

/// The task. [`Elector::run`] ends when the Lease is lost or released.
pub(crate) struct Elector {
    requests: LeaseRequests,
    election: Election,
    leadership: Arc<Leadership>,
    watches: Watches,
    inputs: Sender<Input>,
    clock: Clock,
    /// Gives the Lease up, once nothing is written any more.
    release: CancellationToken,
    /// When the Lease was acquired, and when the former holder's last change was seen.
    acquired: Option<(Duration, Duration)>,
    /// Waits for the watches, while the Lease is renewed.
    catching_up: JoinSet<()>,
}

impl Elector {
    pub(crate) fn new(
        config: ElectionConfig,
        client: kube::Client,
        leadership: Arc<Leadership>,
        (watches, inputs): (Watches, Sender<Input>),
        (clock, release): (Clock, CancellationToken),
    ) -> Self {
        Self {
            requests: LeaseRequests::new(client, config.lease),
            election: Election::new(config.terms),
            leadership,
            watches,
            inputs,
            clock,
            release,
            acquired: None,
            catching_up: JoinSet::new(),
        }
    }

    /// Takes part until the Lease is lost or released. Returns what happened.
    pub(crate) async fn run(mut self) -> String {
        let release = self.release.clone();
        loop {
            match self.election.next(self.now()) {
                Act::Wait(until) => {
                    let time = until.saturating_sub(self.now());
                    tokio::select! {
                        biased;
                        () = release.cancelled() => return self.give_up().await,
                        Some(_) = self.catching_up.join_next() => self.lead(),
                        () = tokio::time::sleep(time) => {}
                    }
                }
                _ if release.is_cancelled() => return self.give_up().await,
                Act::Read => self.read().await,
                Act::Claim(claim) => self.claim(claim).await,
                Act::Lost => return self.lose(),
            }
        }
    }

    /// Returns the time on the clock of the right to write.
    fn now(&self) -> Duration {
        self.leadership.right.elapsed()
    }

    /// Returns the time limit of a request: half the renew deadline, as of kube-scheduler's client, and never longer than
    /// the Lease is held, so that its loss is noticed at once.
    fn limit(&self) -> Duration {
        let limit = self.election.terms().renew_deadline / 2;
        self.election.may_write_until().map_or(limit, |until| limit.min(until.saturating_sub(self.now())))
    }

    async fn read(&mut self) {
        match self.requests.read(self.limit()).await {
            Ok(found) => {
                let holder = found.as_ref().map_or("", |(record, _)| &record.holder);
                self.leadership.saw(holder);
                self.election.read(self.now(), found, chance());
            }
            Err(error) => self.failed(&error),
        }
    }

    async fn claim(&mut self, claim: Claim) {
        let (sent, at) = (self.now(), (self.clock)());
        let former = self.election.seen().map_or(sent, |(_, since)| since);
        let was_holding = self.election.may_write_until().is_some();
        let terms = self.election.terms();
        let duration = Duration::from_secs(whole_seconds(terms.lease_duration));
        let record = self.record(&claim, &terms.identity, duration);
        match self.requests.write(&record, claim.version.as_deref(), self.limit()).await {
            Ok((record, version)) => {
                self.election.claimed((sent, self.now()), record, version);
                let Some(until) = self.election.may_write_until() else { return };
                self.leadership.right.extend(until);
                self.leadership.saw(&self.leadership.identity);
                self.leadership.report.lock().renewed = Some(at);
                if !was_holding {
                    self.acquired = Some((sent, former));
                    self.catch_up();
                }
            }
            Err(error) if error.is_not_found() || matches!(error, WriteError::Status { code: 409, .. }) => {
                self.election.conflicted(self.now());
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Makes the record of a claim, with the current time.
    fn record(&self, claim: &Claim, holder: &str, duration: Duration) -> Record {
        let now = micro_time(timestamp((self.clock)()));
        Record {
            holder: holder.to_owned(),
            duration: Some(duration),
            transitions: claim.transitions,
            acquired: claim.acquired.clone().unwrap_or_else(|| now.clone()),
            renewed: now,
        }
    }

    fn failed(&mut self, error: &WriteError) {
        let right = match error {
            WriteError::Status { code: 403, .. } => "; the missing right: get, create and update leases",
            _ => "",
        };
        self.leadership.failed(&format!("{error}{right}"));
        self.election.failed(self.now(), chance());
    }

    /// Begins to wait until the watches have passed what the former holder wrote. The input that lets the scheduling
    /// thread begin goes through the channel of what they passed, behind it.
    fn catch_up(&mut self) {
        tracing::info!(lease = self.leadership.lease, "leader election: acquired, catching up");
        self.leadership.report.lock().role = Role::CatchingUp;
        let (watches, inputs) = (self.watches.clone(), self.inputs.clone());
        self.catching_up.spawn(async move {
            watches.catch_up().await;
            // Fails when the scheduling thread has ended, and then nothing is left to do.
            let _ = inputs.send(Input::Leading(true)).await;
        });
    }

    /// Takes note that this instance schedules.
    fn lead(&mut self) {
        let now = self.now();
        let (acquired, former) = self.acquired.unwrap_or((now, now));
        let (caught_up_in, hand_over) = (now.saturating_sub(acquired), now.saturating_sub(former));
        tracing::info!(lease = self.leadership.lease, ?caught_up_in, ?hand_over, "leader election: leading");
        let mut report = self.leadership.report.lock();
        report.role = Role::Leading;
        (report.caught_up_in, report.hand_over) = (Some(caught_up_in), Some(hand_over));
    }

    /// Ends after the Lease was lost.
    fn lose(mut self) -> String {
        self.leadership.right.end();
        self.catching_up.abort_all();
        // When the channel is full, the thread goes on planning, and no order of it is sent.
        let _ = self.inputs.try_send(Input::Leading(false));
        let Leadership { lease, identity, report, .. } = &*self.leadership;
        let mut report = report.lock();
        report.role = Role::Over;
        if *report.holder != **identity {
            return format!("the lease {lease} was lost: its holder is {:?}", report.holder);
        }
        let deadline = self.election.terms().renew_deadline;
        let cause = report.last_error.as_deref().unwrap_or("no request was answered in time");
        format!("the lease {lease} was lost: it could not be renewed within {deadline:?}: {cause}")
    }

    /// Gives up the right to write, and releases the Lease if this instance holds it, so that another one can take it at
    /// once. If that fails, the Lease expires.
    async fn give_up(mut self) -> String {
        self.leadership.right.end();
        self.leadership.report.lock().role = Role::Over;
        let lease = self.leadership.lease.clone();
        let Some(claim) = self.election.release() else {
            return format!("the election for the lease {lease} was left");
        };
        let record = self.record(&claim, "", Duration::from_secs(1));
        match self.requests.write(&record, claim.version.as_deref(), RELEASE).await {
            Ok(_) => tracing::info!(lease, "leader election: released"),
            Err(error) => tracing::warn!(lease, %error, "leader election: not released, it will expire"),
        }
        format!("the lease {lease} was released")
    }
}
