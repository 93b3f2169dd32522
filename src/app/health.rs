//! The health checks behind `/livez` and `/readyz`.
//!
//! Each check reads a flag or a clock. Checks run on every request and once a second, so that the log reports once when
//! a check starts to fail and once when it recovers. `/metrics` exports them under Kubernetes' name for health checks.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use pellucid_http::HealthCheck;
use pellucid_kubernetes::lease::leadership::{Leadership, LeadershipReport, Role};
use pellucid_kubernetes::watches::inputs::Watches;
use pellucid_kubernetes::watches::status::WatchReport;
use pellucid_model::{CustomKindRef, Now};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::metrics::ClusterIoViews;
use crate::progress::Progress;

/// How long a watch may fail before the scheduler is not ready, because its state is older than that.
const FAILS_FOR: Duration = Duration::from_secs(15);
/// How long a watch may be silent. A server sends a bookmark about once a minute, and a silent watch is reopened before
/// this time is up.
const SILENT_FOR: Duration = Duration::from_secs(100);
/// How long a check must fail before the log reports it: checks fail briefly at startup.
const LOG_AFTER: Duration = Duration::from_secs(3);
/// Interval of the checks that no request asked for.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// How long after its lease has expired a holder that does not renew it is well. It ends itself long before, so this
/// finds a holder that stands still. As in kube-scheduler.
const RENEWS_WITHIN: Duration = Duration::from_secs(20);

type Probe = Box<dyn Fn(Now) -> Result<(), String> + Send + Sync>;

/// A named check and since when it fails.
struct Check {
    name: String,
    is_live: bool,
    probe: Probe,
    failing: Mutex<Option<Failing>>,
}

struct Failing {
    since: Now,
    is_logged: bool,
}

/// All checks of an instance.
pub struct Health {
    checks: Vec<Arc<Check>>,
    clock: Clock,
}

impl Health {
    /// Creates the checks: one for the scheduling thread, one for the watch of each kind, `custom` being those that
    /// plugins bring, and one for the lease if leaders are elected.
    pub fn new(
        progress: Arc<Progress>,
        io: Arc<OnceLock<ClusterIoViews>>,
        custom: &[CustomKindRef],
        elects: bool,
        clock: Clock,
    ) -> Self {
        let thread = Check::new("scheduling-thread", true, move |now| progress.check(now.monotonic));
        let watch = |(number, (kind, _)): (usize, (&'static str, _))| {
            let io = io.clone();
            Check::new(&format!("{}-watch", kind.to_lowercase()), false, move |now| {
                let status = io.get().and_then(|e| e.watches.iter().nth(number));
                watch_check(&status.map(|(_, status)| status.report()).unwrap_or_default(), now)
            })
        };
        let kinds = Watches::new(custom);
        let views = io.clone();
        let lease = elects.then(|| {
            Check::new("leaderElection", true, move |now| {
                let leadership = views.get().and_then(|io| io.leadership.as_deref());
                leadership.map_or(Ok(()), |leadership| lease_check(leadership, &leadership.report(), now))
            })
        });
        let checks = std::iter::once(thread).chain(kinds.iter().enumerate().map(watch)).chain(lease);
        let checks = checks.map(Arc::new);
        Self { checks: checks.collect(), clock }
    }

    /// Returns the checks for the REST server.
    pub fn checks(&self) -> Vec<HealthCheck> {
        let of = |check: &Arc<Check>| {
            let (known, clock) = (check.clone(), self.clock.clone());
            let run = move || known.run(clock());
            match check.is_live {
                true => HealthCheck::live(&check.name, run),
                false => HealthCheck::ready(&check.name, run),
            }
        };
        self.checks.iter().map(of).collect()
    }

    /// Runs all checks once a second, for the log, until stopped.
    pub async fn run(&self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(CHECK_EVERY) => {}
            }
            let now = (self.clock)();
            self.checks.iter().for_each(|check| drop(check.run(now)));
        }
    }

    /// Registers a gauge per check and endpoint that is 1 while the check passes.
    pub fn register(&self, registry: &mut Registry) {
        let family: Family<[(&'static str, String); 2], Gauge> = Family::default();
        let now = (self.clock)();
        for check in &self.checks {
            let is_well = i64::from(check.run(now).is_ok());
            let endpoints: &[_] = if check.is_live { &["livez", "readyz"] } else { &["readyz"] };
            for endpoint in endpoints {
                let labels = [("name", check.name.clone()), ("type", (*endpoint).to_owned())];
                family.get_or_create_owned(&labels).set(is_well);
            }
        }
        registry.register("kubernetes_healthcheck", "Result of each health check: 1 is well", family);
    }
}

impl Check {
    fn new(
        name: &str,
        is_live: bool,
        probe: impl Fn(Now) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), is_live, probe: Box::new(probe), failing: Mutex::new(None) }
    }

    /// Runs the check, remembers since when it fails, and logs changes.
    fn run(&self, now: Now) -> Result<(), String> {
        let outcome = (self.probe)(now);
        let mut failing = self.failing.lock();
        let Err(why) = outcome else {
            if let Some(was) = failing.take().filter(|was| was.is_logged) {
                let after = now.monotonic.saturating_sub(was.since.monotonic);
                tracing::info!(check = self.name, ?after, "health check is well again");
            }
            return Ok(());
        };
        let known = failing.get_or_insert(Failing { since: now, is_logged: false });
        let lasts = now.monotonic.saturating_sub(known.since.monotonic);
        if !known.is_logged && lasts >= LOG_AFTER {
            known.is_logged = true;
            tracing::warn!(check = self.name, live = self.is_live, error = why, "health check fails");
        }
        Err(format!("{why} (failing for {} s)", lasts.as_secs()))
    }
}

/// Returns that a holder does not renew its lease as an error. A standby has nothing to renew.
fn lease_check(leadership: &Leadership, report: &LeadershipReport, now: Now) -> Result<(), String> {
    if !matches!(report.role, Role::CatchingUp | Role::Leading) {
        return Ok(());
    }
    let age = report.renewed.map_or(Duration::ZERO, |at| now.monotonic.saturating_sub(at.monotonic));
    if age <= leadership.lease_duration + RENEWS_WITHIN {
        return Ok(());
    }
    Err(format!("the lease {} was not renewed for {} s", leadership.lease, age.as_secs()))
}

/// Returns what is wrong with a watch as an error.
fn watch_check(report: &WatchReport, now: Now) -> Result<(), String> {
    let age = |at: Now| now.monotonic.saturating_sub(at.monotonic);
    if !report.synced {
        return Err(match &report.last_error {
            Some((error, _)) => format!("no complete list yet: {error}"),
            None => "no complete list yet".into(),
        });
    }
    if let Some(failing) = report.failing.as_ref().filter(|failing| age(failing.since) > FAILS_FOR) {
        let (since, retries) = (age(failing.since).as_secs(), failing.retries);
        return Err(format!("it has failed for {since} s, {retries} tries: {}", failing.error));
    }
    match report.last_contact.map(age) {
        Some(silent) if !report.unserved && silent > SILENT_FOR => {
            Err(format!("nothing was heard for {} s", silent.as_secs()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Now {
        Now { monotonic: Duration::from_secs(seconds), ..Now::default() }
    }

    #[test]
    fn a_watch_is_well_while_it_is_heard_of() {
        let mut report = WatchReport::default();
        assert_eq!(watch_check(&report, at(0)), Err("no complete list yet".into()));
        (report.synced, report.last_contact) = (true, Some(at(10)));
        assert_eq!(watch_check(&report, at(110)), Ok(()));
        let silent = watch_check(&report, at(111));
        assert_eq!(silent, Err("nothing was heard for 101 s".into()));
        report.unserved = true;
        assert_eq!(watch_check(&report, at(111)), Ok(()), "nothing is expected of it");
    }

    #[test]
    fn a_check_says_since_when_it_fails() {
        let check = Check::new("x", false, |now| match now.monotonic.as_secs() {
            5..=30 => Err("broken".into()),
            _ => Ok(()),
        });
        assert_eq!(check.run(at(1)), Ok(()));
        assert_eq!(check.run(at(5)), Err("broken (failing for 0 s)".into()));
        assert_eq!(check.run(at(9)), Err("broken (failing for 4 s)".into()));
        assert!(check.failing.lock().as_ref().is_some_and(|f| f.is_logged));
        assert_eq!(check.run(at(31)), Ok(()));
        assert!(check.failing.lock().is_none());
    }
}
