//! `pellucid run`: schedules the pods of a cluster.
//!
//! This file handles the command line and the configuration; `app::run` does the rest.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{ArgAction, Args};
use pellucid_client::out;
use pellucid_config::{Configuration, LeaderElection};
use pellucid_framework::{PluginFactory, controllers};
use pellucid_http::Certificate;

use super::block_on;
use pellucid_app::access::SecureServing;
use pellucid_app::consistency::ConsistencyConfig;
use pellucid_app::log::telemetry;
use pellucid_app::run::{self, RunOptions};

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid run --kubeconfig ~/.kube/config --shadow")]
pub struct RunArgs {
    /// How to reach the API server; without it $KUBECONFIG, ~/.kube/config or the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// A KubeSchedulerConfiguration file (v1, v1beta3 or v1beta2); without it one profile, pellucid
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Write the configuration that would be in force to FILE (- for stdout) and exit; needs no cluster
    #[arg(long, value_name = "FILE")]
    pub write_config_to: Option<PathBuf>,
    /// Decide for the pods of this scheduler, write nothing, and report how often it agrees
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub shadow_of: Option<String>,
    /// Decide for the own pods, but write nothing
    #[arg(long, conflicts_with = "shadow_of")]
    pub shadow: bool,
    /// Write objects as these controllers do; noderesource publishes the devices of nodes as their allocatable
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub controllers: Vec<String>,
    /// Address of the REST API; port 0 takes any and prints it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10251")]
    pub listen: SocketAddr,
    /// How to serve users of the cluster
    #[command(flatten)]
    pub secure: SecureArgs,
    /// Time between two comparisons of the state with the API server's lists, such as 10m; 0s for none
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub consistency_interval: Duration,
    /// Send traces of attempts, bindings and requests to an OpenTelemetry collector, such as
    /// http://127.0.0.1:4318; needs a binary built with the cargo feature otel
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Bytes that the flight recorder may take: what /apis/v1/history and /apis/v1/events reach back
    #[arg(long, value_name = "N", default_value_t = pellucid_config::DEFAULT_RECORDER_BYTES)]
    pub recorder_bytes: usize,
    /// Verbosity of the log: 0 warnings, 1 and 2 info, 3 to 5 debug, 6 and more trace
    #[arg(short = 'v', long = "v", value_name = "N", default_value_t = 2)]
    pub verbosity: u8,
    /// Schedule only while holding a lease; by default when it runs in a cluster. This flag and those below override
    /// leaderElection of the file
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = ArgAction::Set)]
    pub leader_elect: Option<bool>,
    #[command(flatten)]
    lease: LeaseArgs,
}

/// Flags that override single fields of `leaderElection`.
#[derive(Debug, Args)]
struct LeaseArgs {
    /// How long the lease is left alone after its last renewal (15s)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    leader_elect_lease_duration: Option<Duration>,
    /// How long the holder tries to renew the lease before it stops (10s)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    leader_elect_renew_deadline: Option<Duration>,
    /// Time between two renewals (2s)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    leader_elect_retry_period: Option<Duration>,
    /// Kind of the lock object; only leases
    #[arg(long, value_name = "KIND")]
    leader_elect_resource_lock: Option<String>,
    /// Name of the lease (pellucid)
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_name: Option<String>,
    /// Namespace of the lease (kube-system)
    #[arg(long, value_name = "NAMESPACE")]
    leader_elect_resource_namespace: Option<String>,
}

impl LeaseArgs {
    /// Replaces the fields that were given.
    fn replace(&self, config: &mut LeaderElection) {
        fn set<T: Clone>(given: Option<&T>, field: &mut T) {
            if let Some(given) = given {
                field.clone_from(given);
            }
        }
        set(self.leader_elect_lease_duration.as_ref(), &mut config.lease_duration);
        set(self.leader_elect_renew_deadline.as_ref(), &mut config.renew_deadline);
        set(self.leader_elect_retry_period.as_ref(), &mut config.retry_period);
        set(self.leader_elect_resource_lock.as_ref(), &mut config.resource_lock);
        set(self.leader_elect_resource_name.as_ref(), &mut config.resource_name);
        set(self.leader_elect_resource_namespace.as_ref(), &mut config.resource_namespace);
    }
}

/// Parses a duration as in the file, such as `1m30s`.
fn duration(text: &str) -> Result<Duration, String> {
    pellucid_model::duration::parse(text).ok_or_else(|| "a duration such as 15s or 1m30s".into())
}

/// Arguments of serving HTTPS, named as kube-scheduler's.
#[derive(Debug, Args)]
pub struct SecureArgs {
    /// Serve the REST API as HTTPS on this port instead of --listen, to users of the cluster (TokenReview,
    /// SubjectAccessReview); port 0 takes any and prints it
    #[arg(long, value_name = "PORT", conflicts_with = "listen")]
    pub secure_port: Option<u16>,
    /// Address for --secure-port; :: is every address, of IPv4 too
    #[arg(long, value_name = "IP", default_value = "::", requires = "secure_port")]
    pub bind_address: IpAddr,
    /// Certificate chain of the server, PEM; read again when it changes. Without it one is made and its fingerprint printed
    #[arg(long, value_name = "FILE", requires_all = ["tls_private_key_file", "secure_port"])]
    pub tls_cert_file: Option<PathBuf>,
    /// Private key of the server, PEM; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Authority of client certificates, PEM, beside the one that the cluster publishes
    #[arg(long, value_name = "FILE", requires = "secure_port")]
    pub client_ca_file: Option<PathBuf>,
}

impl SecureArgs {
    fn serving(&self) -> anyhow::Result<Option<SecureServing>> {
        let Some(port) = self.secure_port else { return Ok(None) };
        let certificate = match (&self.tls_cert_file, &self.tls_private_key_file) {
            (Some(certificate), Some(key)) => {
                Certificate::Files { certificate: certificate.clone(), key: key.clone() }
            }
            _ => Certificate::SelfSigned { names: own_names(self.bind_address) },
        };
        let address = SocketAddr::new(self.bind_address, port);
        Ok(Some(SecureServing { address, certificate, client_ca_file: self.client_ca_file.clone() }))
    }
}

/// Returns the names for a self-signed certificate: of this host, of loopback and of the address.
fn own_names(address: IpAddr) -> Vec<String> {
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    names.extend(host);
    if !address.is_unspecified() && !address.is_loopback() {
        names.push(address.to_string());
    }
    names
}

impl RunArgs {
    /// Returns the effective configuration: that of the file or the default, with the overrides of the command line,
    /// and notes on settings without effect.
    pub fn configuration(&self, registry: &[Box<dyn PluginFactory>]) -> anyhow::Result<Configuration> {
        let mut configuration = match &self.config {
            Some(file) => read_config(file, registry)?,
            None => pellucid_config::default(registry)?,
        };
        if let Some(kubeconfig) = &self.kubeconfig {
            configuration.set_kubeconfig(kubeconfig);
        }
        configuration.recorder_bytes = self.recorder_bytes;
        configuration.controllers = controllers::named(registry, &self.controllers)
            .map_err(|problem| anyhow::anyhow!("--controllers: {problem}"))?;
        let mut election = configuration.leader_election.clone();
        election.leader_elect = self.leader_elect.or(election.leader_elect);
        self.lease.replace(&mut election);
        configuration.set_leader_election(election).map_err(anyhow::Error::msg)?;
        let is_in_cluster = pellucid_kubernetes::is_in_cluster(configuration.client.kubeconfig.as_deref());
        configuration.settle_leader_election(is_in_cluster, !self.shadow && self.shadow_of.is_none());
        Ok(configuration)
    }
}

/// Writes the effective configuration to a file, or to stdout for `-`.
fn write_config(configuration: &Configuration, file: &Path) -> anyhow::Result<()> {
    let name = file.display();
    let text = configuration.to_yaml().map_err(|e| anyhow::anyhow!("cannot write {name}: {e}"))?;
    if file == Path::new("-") {
        return out::line(text.trim_end());
    }
    std::fs::write(file, text).with_context(|| format!("cannot write {name}"))
}

fn read_config(file: &Path, registry: &[Box<dyn PluginFactory>]) -> anyhow::Result<Configuration> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    pellucid_config::parse(&text, &name, registry)
        .map_err(|problems| anyhow::anyhow!("the configuration is not usable:\n{problems}"))
}

/// Runs with the built-in plugins until a signal stops it.
pub(super) fn run(args: &RunArgs) -> anyhow::Result<()> {
    run_with(args, pellucid_plugins::registry())
}

/// Runs with the given plugins until a signal stops it. This is the entry point for a binary with its own plugins
/// (`docs/writing-a-plugin.md`). All plugins of the registry are enabled by default, in its order. Fails when two of
/// them share a name or a reason code.
pub fn run_with(args: &RunArgs, registry: Vec<Box<dyn PluginFactory>>) -> anyhow::Result<()> {
    // This fails only if a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    pellucid_framework::registry::check(&registry)
        .map_err(|problems| anyhow::anyhow!("the plugins cannot be registered:\n{problems}"))?;
    let registry = Arc::new(registry);
    let configuration = args.configuration(&registry)?;
    if let Some(file) = &args.write_config_to {
        return write_config(&configuration, file);
    }
    let (log, _guard) = telemetry::init(args.verbosity)?;
    let options = RunOptions {
        registry,
        configuration,
        shadow_of: args.shadow_of.clone(),
        shadow: args.shadow,
        listen: args.listen,
        secure: args.secure.serving()?,
        consistency: ConsistencyConfig {
            interval: args.consistency_interval,
            ..ConsistencyConfig::default()
        },
        git_commit: crate::GIT_COMMIT,
        otlp_endpoint: args.otlp_endpoint.clone(),
    };
    block_on(run::run(options, log))?
}
