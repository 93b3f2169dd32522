//! `pellucid webhook`: serves the admission rules of quotas to an API server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pellucid_client::out;
use pellucid_http::{Certificate, ClientCa, Tls};
use pellucid_kubernetes::{Connection, stop_requested};
use pellucid_webhook::{Gates, Webhook, WebhookConfig};

use super::block_on;
use pellucid_app::clock;
use pellucid_app::instance::version;
use pellucid_app::log::telemetry;

/// How long to wait for the API server at startup.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// Arguments of `webhook`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid webhook --tls-cert-file tls.crt --tls-private-key-file tls.key")]
pub(super) struct WebhookArgs {
    /// How to reach the API server; without it $KUBECONFIG, ~/.kube/config or the pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Address to serve HTTPS on; port 0 takes any and prints it
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:9443")]
    listen: SocketAddr,
    /// Certificate chain of the server, PEM, for the name of its Service; read again when it changes
    #[arg(long, value_name = "FILE")]
    tls_cert_file: PathBuf,
    /// Private key of the server, PEM; read again when it changes
    #[arg(long, value_name = "FILE")]
    tls_private_key_file: PathBuf,
    /// Allow a quota to have a max for only some of its parent's resources
    #[arg(long)]
    enable_update_resource_key: bool,
    /// Allow pods to name a quota that has children
    #[arg(long)]
    support_parent_quota_submit_pod: bool,
    /// Verbosity of the log: 0 warnings, 1 and 2 info, 3 to 5 debug, 6 and more trace
    #[arg(short = 'v', long = "v", value_name = "N", default_value_t = 2)]
    verbosity: u8,
}

/// Serves until a signal stops it.
pub(super) fn run(args: &WebhookArgs) -> anyhow::Result<()> {
    // This fails only if a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificate = Certificate::Files {
        certificate: args.tls_cert_file.clone(),
        key: args.tls_private_key_file.clone(),
    };
    let tls = Tls::new(certificate, ClientCa::default())?;
    let (_log, _guard) = telemetry::init(args.verbosity)?;
    block_on(serve(args, tls))?
}

async fn serve(args: &WebhookArgs, tls: Tls) -> anyhow::Result<()> {
    let connection = Connection::open(args.kubeconfig.as_deref(), CONNECT_PATIENCE).await?;
    let config = WebhookConfig {
        connection,
        listen: args.listen,
        tls,
        gates: Gates {
            enable_update_resource_key: args.enable_update_resource_key,
            support_parent_quota_submit_pod: args.support_parent_quota_submit_pod,
        },
        clock: clock::system(),
        version: version(crate::GIT_COMMIT),
    };
    let mut webhook = Webhook::start(config).await.map_err(anyhow::Error::from_boxed)?;
    out::line(&format!("webhook: https://{}", webhook.address))?;
    let ended = tokio::select! {
        stop = stop_requested() => stop.map(|()| None)?,
        reason = webhook.ended() => Some(reason),
    };
    webhook.stop().await;
    ended.map_or(Ok(()), |reason| anyhow::bail!("stopped because {reason}"))
}
