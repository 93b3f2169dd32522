//! Replicas of a scheduler that take part in leader election, and how they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use pellucid::app::consistency::ConsistencyConfig;
use pellucid::app::instance::{Instance, InstanceConfig};
use pellucid::config;
use pellucid::cycle::Snapshot;
use pellucid::kubernetes::WatchLimits;
use pellucid::kubernetes::lease::leadership::{LeadershipReport, Role};
use pellucid::sandbox::{Config, Handle, Sandbox};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::common::running::parts;
use crate::common::{PATIENCE, client};

/// Short times, so that a crash costs a test two seconds and not fifteen.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
const ELECTION: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  leaseDuration: 2s
  renewDeadline: 1500ms
  retryPeriod: 100ms
podMaxBackoffSeconds: 1
";
/// Pause between two looks at what tells no one that it changed.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How many writes the sandbox keeps: more than any test here makes.
const WRITES: usize = 1_000_000;

/// Compares often, with a grace that a busy machine keeps.
const SWEEPS: ConsistencyConfig =
    ConsistencyConfig { interval: Duration::from_secs(1), grace: Duration::from_secs(5) };

/// Waits no longer than a second after a watch failed: faults strike more often than that.
fn watches() -> WatchLimits {
    WatchLimits { longest_backoff: Duration::from_secs(1), ..WatchLimits::default() }
}

/// Starts a sandbox that logs writes.
pub(crate) async fn sandbox(objects: Vec<Value>) -> Handle {
    let config = Config { objects, kubelet: None, write_log: WRITES, ..Config::default() };
    Sandbox::start(config).await.expect("a sandbox")
}

/// One scheduler on its own runtime.
pub(crate) struct Replica {
    /// `User-Agent` of its requests, by which the sandbox knows it.
    pub(crate) agent: String,
    pub(crate) instance: Instance,
    runtime: Runtime,
}

impl Replica {
    /// Starts a replica, which is a standby at first.
    pub(crate) async fn start(sandbox: &Handle) -> Self {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let agent = format!("replica-{}", STARTED.fetch_add(1, Ordering::Relaxed));
        let mut settings = sandbox.kube_config();
        settings.headers.push((USER_AGENT, HeaderValue::from_str(&agent).expect("a header")));
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let starting = runtime.spawn(async move {
            let parts = parts(settings).await;
            let configuration = config::parse(ELECTION, "the test's", &parts.registry);
            let configuration = configuration.unwrap_or_else(|wrong| panic!("{wrong}"));
            let parts = InstanceConfig { configuration, consistency: SWEEPS, watches: watches(), ..parts };
            Instance::start(parts).await.expect("an instance")
        });
        Self { agent, instance: starting.await.expect("started"), runtime }
    }

    /// Returns what its comparisons with the API server found so far.
    pub(crate) fn consistency(&self) -> Value {
        client::get(self.instance.address, "/apis/v1/consistency").json()
    }

    pub(crate) fn election(&self) -> LeadershipReport {
        self.instance.io.leadership.as_ref().expect("it takes part").report()
    }

    pub(crate) fn leads(&self) -> bool {
        self.instance.snapshot().is_leading
    }

    /// Waits for a snapshot that satisfies a condition.
    pub(crate) async fn until(&mut self, what: &str, wanted: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let waiting = async {
            let mut snapshot = self.instance.snapshot();
            while !wanted(&snapshot) {
                snapshot = self.instance.next_snapshot().await;
            }
            snapshot
        };
        let agent = self.agent.clone();
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{agent}: {what}: not so"))
    }

    /// Waits until this replica makes decisions.
    pub(crate) async fn until_it_leads(&mut self) {
        self.until("it leads", |snapshot| snapshot.is_leading).await;
    }

    /// Waits until this replica makes decisions. Returns false when it took the Lease and lost it before, as may happen on
    /// a machine that is too busy.
    pub(crate) async fn takes_over(&mut self) -> bool {
        let leadership = self.instance.io.leadership.clone().expect("it takes part");
        let is_over = || leadership.report().role == Role::Over;
        self.until("it leads or is over", |snapshot| snapshot.is_leading || is_over()).await.is_leading
    }

    /// Waits until the state holds the complete lists of all kinds.
    pub(crate) async fn until_it_is_warm(&mut self) {
        let end = Instant::now() + PATIENCE;
        while !self.instance.io.watches.are_synced() {
            assert!(Instant::now() < end, "{}: the lists did not arrive", self.agent);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Stops it as SIGTERM does, and waits until it has ended.
    pub(crate) async fn stop(self) {
        let Self { instance, runtime, .. } = self;
        runtime.spawn(instance.stop()).await.expect("stopped");
        runtime.shutdown_background();
    }

    /// Ends it as a crash does: nothing is finished and nothing released.
    pub(crate) fn kill(self) {
        let Self { instance, runtime, .. } = self;
        // First the runtime, so that nothing of the instance runs while it is taken apart.
        runtime.shutdown_background();
        drop(instance);
    }
}
