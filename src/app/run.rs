//! `pellucid run`: schedules a cluster until a signal stops it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pellucid_config::Configuration;
use pellucid_cycle::Registry;
use pellucid_kubernetes::{Connection, stop_requested};

use crate::access::SecureServing;
use crate::clock;
use crate::consistency::ConsistencyConfig;
use crate::instance::{Instance, InstanceConfig};
use crate::log::telemetry::LogControl;
use crate::traces::Exporter;

/// How long to wait for the API server at startup.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Seed of the order among nodes of equal score, when none is given.
pub const DEFAULT_SEED: u64 = 0;

/// Options of `pellucid run`.
pub struct RunOptions {
    /// Factories of the available plugins.
    pub registry: Registry,
    /// Profiles, limits, and how to reach the cluster.
    pub configuration: Configuration,
    /// Shadow mode for the pods of this scheduler name: decide and write nothing.
    pub shadow_of: Option<String>,
    /// Shadow mode for this scheduler's own pods: decide and write nothing.
    pub shadow: bool,
    /// Loopback address of the REST server.
    pub listen: SocketAddr,
    /// Serves HTTPS to users of the cluster instead.
    pub secure: Option<SecureServing>,
    /// When the state is compared with the API server's lists.
    pub consistency: ConsistencyConfig,
    /// The commit that the program is built from.
    pub git_commit: &'static str,
    /// URL of the OTLP collector, if traces are exported.
    pub otlp_endpoint: Option<String>,
}

/// Runs until SIGTERM, SIGINT or a failure of a part, which it returns as an error.
pub async fn run(options: RunOptions, log: Arc<LogControl>) -> anyhow::Result<()> {
    let RunOptions {
        registry,
        configuration,
        shadow_of,
        shadow,
        listen,
        secure,
        consistency,
        git_commit,
        otlp_endpoint,
    } = options;
    let (traces, exporter) = otlp_endpoint.map(|url| Exporter::start(&url)).transpose()?.unzip();
    for note in &configuration.notes {
        tracing::warn!(note = %note, "configuration");
    }
    // Without a scheduler name to shadow, `--shadow` covers the pods of our own first profile.
    let own = configuration.profiles.first().map(|p| p.scheduler_name.to_string());
    let shadow_of = shadow_of.or(own.filter(|_| shadow));
    let connection = Connection::open(configuration.client.kubeconfig.as_deref(), CONNECT_PATIENCE).await?;
    let config = InstanceConfig {
        connection,
        configuration,
        registry,
        listen,
        secure,
        seed: DEFAULT_SEED,
        shadow_of,
        log: Some(log),
        clock: clock::system(),
        consistency,
        watches: Default::default(),
        git_commit,
        decisions: None,
    };
    let mut instance = Instance::start_traced(config, traces).await?;
    if let Some(fingerprint) = &instance.fingerprint {
        tracing::info!(sha256 = fingerprint, "certificate of the REST server");
    }
    tracing::info!(rest = %instance.url(), "scheduling");
    let ended = tokio::select! {
        stop = stop_requested() => stop.map(|()| None)?,
        reason = instance.ended() => Some(reason),
    };
    if let Some(shadow) = &instance.snapshot().shadow {
        let compared = shadow.agreed + shadow.disagreed + shadow.refused_by_us;
        tracing::info!(
            of = %shadow.of,
            compared,
            agreed = shadow.agreed,
            disagreed = shadow.disagreed,
            refused_by_us = shadow.refused_by_us,
            not_compared = shadow.not_compared,
            "shadow"
        );
    }
    instance.stop().await;
    if let Some(exporter) = exporter {
        exporter.stop().await;
    }
    if let Some(reason) = ended {
        anyhow::bail!("stopped because {reason}");
    }
    tracing::info!("stopped");
    Ok(())
}
