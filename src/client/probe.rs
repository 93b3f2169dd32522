//! `pellucid probe`: requests a health endpoint, for exec probes: the image has no shell and no curl.

use std::time::Duration;

use clap::Args;

use super::client::{self, Method, Target};
use super::out;
use super::trust::Trust;

/// What is asked, and how long.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid probe --url http://127.0.0.1:10251/livez")]
pub struct ProbeArgs {
    /// What to ask
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:10251/readyz")]
    pub(crate) url: String,
    /// Seconds to wait for an answer
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub(crate) timeout: u64,
}

/// Fails unless the endpoint answers with a success.
///
/// # Errors
/// No answer in time, or one that is no success.
pub fn run(args: &ProbeArgs) -> anyhow::Result<()> {
    // Health is open to everybody, so nothing is said to whoever answers.
    let target = Target { trust: Some(Trust::Anyone), ..Target::at(&args.url) };
    let answered = client::request(Method::Get, target, "", Duration::from_secs(args.timeout))?;
    out::line(answered.accepted()?.trim_end())
}
