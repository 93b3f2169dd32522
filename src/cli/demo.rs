//! `pellucid demo`: a sandbox with nodes and pods, and a scheduler on it.

use std::net::SocketAddr;

use clap::Args;
use pellucid_http::ServeError;
use pellucid_sandbox::StartError;

use super::{block_on, sandbox};
use crate::demo::{self, DemoOptions};
use pellucid_app::instance;
use pellucid_app::log::telemetry;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid demo --listen 127.0.0.1:0")]
pub(super) struct DemoArgs {
    /// Address of the scheduler's REST API; port 0 takes any and prints it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10251")]
    pub listen: SocketAddr,
    /// Address of the built-in API server; port 0 takes any and prints it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8001")]
    pub api_listen: SocketAddr,
    /// End with a summary once nothing is left to decide, instead of going on with a job every 10 s
    #[arg(long)]
    pub exit_when_settled: bool,
    /// Create no job every 10 s: nothing happens but what you do
    #[arg(long)]
    pub still: bool,
    /// Orders nodes of equal score; the same seed gives the same decisions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Verbosity of the log: 0 warnings, 1 and 2 info, 3 to 5 debug, 6 and more trace
    #[arg(short = 'v', long = "v", value_name = "N", default_value_t = 1)]
    pub verbosity: u8,
}

/// Runs until stopped, or until every pod has a verdict.
pub(super) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let (log, _guard) = telemetry::init(args.verbosity)?;
    let options = DemoOptions {
        listen: args.listen,
        api_listen: args.api_listen,
        exit_when_settled: args.exit_when_settled,
        still: args.still,
        seed: args.seed,
    };
    block_on(demo::run(options, log, &mut std::io::stdout()))?.map_err(explained)
}

/// Adds which flag changes the port, if one of the two ports is in use.
fn explained(error: anyhow::Error) -> anyhow::Error {
    if error.downcast_ref::<StartError>().is_some_and(sandbox::is_taken) {
        return sandbox::other_port(&error, "--api-listen");
    }
    match error.downcast_ref() {
        Some(instance::StartError::Serve(ServeError::InUse { .. })) => {
            sandbox::other_port(&error, "--listen")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_taken_port_is_explained_by_its_own_flag() {
        let address = SocketAddr::from(([127, 0, 0, 1], 8001));
        let sandbox = |kind| StartError::Listen { address, source: io::Error::from(kind) };
        let rest = || instance::StartError::Serve(ServeError::InUse { address });
        let said = |error: anyhow::Error| format!("{:#}", explained(error));
        let taken = said(sandbox(io::ErrorKind::AddrInUse).into());
        assert!(taken.starts_with("cannot listen on 127.0.0.1:8001: "), "{taken}");
        assert!(taken.ends_with("\n--api-listen 127.0.0.1:0 takes any free port and prints it"), "{taken}");
        let taken = said(rest().into());
        assert!(taken.contains("in use"), "{taken}");
        assert!(taken.ends_with("\n--listen 127.0.0.1:0 takes any free port and prints it"), "{taken}");
        let other = said(sandbox(io::ErrorKind::PermissionDenied).into());
        assert!(!other.contains('\n'), "{other}");
    }
}
