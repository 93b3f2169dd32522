//! `pellucid run`: schedules a cluster until told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use super::clock;
use super::instance::{Instance, InstanceConfig};
use super::telemetry::LogControl;
use crate::config::{self, Configuration};
use crate::diagnosis::root::Registry;
use crate::kubernetes::{Connection, stop_requested};
use crate::plugins;

/// How long the API server may take to answer at the start.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Seed of the tie order when none is given.
pub const DEFAULT_SEED: u64 = 0;

/// What the command was told.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Kubeconfig file.
    pub kubeconfig: Option<PathBuf>,
    /// KubeSchedulerConfiguration file.
    pub config: Option<PathBuf>,
    /// Decide for the pods of this scheduler and write nothing.
    pub shadow_of: Option<String>,
    /// Decide but write nothing.
    pub shadow: bool,
    /// Where the REST server listens.
    pub listen: SocketAddr,
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(options: RunOptions, log: Arc<LogControl>) -> anyhow::Result<()> {
    let registry: Registry = Arc::new(plugins::registry());
    let configuration = read_configuration(options.config.as_deref(), &registry)?;
    for note in &configuration.notes {
        tracing::warn!(note = %note, "configuration");
    }
    // Without a scheduler to shadow, its own pods are decided on and left alone.
    let own = configuration.profiles.first().map(|p| p.scheduler_name.to_string());
    let shadow_of = options.shadow_of.clone().or(own.filter(|_| options.shadow));
    let kubeconfig = options.kubeconfig.or_else(|| configuration.kubeconfig.clone());
    let connection = Connection::open(kubeconfig.as_deref(), CONNECT_PATIENCE).await?;
    let mut instance = Instance::start(InstanceConfig {
        connection,
        configuration,
        registry,
        listen: options.listen,
        seed: DEFAULT_SEED,
        shadow_of,
        log: Some(log),
        clock: clock::system(),
    })
    .await?;
    tracing::info!(rest = %instance.url(), "scheduling");
    let ended = tokio::select! {
        stop = stop_requested() => stop.map(|()| None)?,
        reason = instance.ended() => Some(reason),
    };
    if let Some(shadow) = &instance.root().shadow {
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
    match ended {
        None => {
            tracing::info!("stopped");
            Ok(())
        }
        Some(reason) => Err(anyhow::anyhow!("stopped because {reason}")),
    }
}

/// Reads a configuration file, or takes the defaults.
pub fn read_configuration(
    file: Option<&std::path::Path>,
    registry: &Registry,
) -> anyhow::Result<Configuration> {
    let Some(file) = file else { return Ok(config::default(registry)?) };
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(config::parse(&text, &file.display().to_string(), registry)?)
}
