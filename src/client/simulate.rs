//! `pellucid simulate`: plans hypothetical pods, gangs and changes of the cluster. Nothing changes.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::manifests;
use super::out::Paint;
use super::server::ServerArgs;
use super::simulate_text::{self, Outcome};

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 3 says that something would not fit.\n\nExample:\n  pellucid simulate -n shop -f deployment.yaml"
)]
pub struct SimulateArgs {
    /// Manifests (Pods, PodGroups, Nodes, workloads) or a question as POST /apis/v1/simulate takes it, in YAML or
    /// JSON; - for stdin
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Returns the outcome for people or programs, and whether all that was asked about would fit.
pub(crate) fn run(args: &SimulateArgs) -> anyhow::Result<(String, bool)> {
    let (text, name) = read(&args.file)?;
    let documents = manifests::documents(&text, &name)?;
    let question = manifests::question(documents, &name, args.server.namespace.as_deref())?;
    let path = "/apis/v1/simulate";
    let body = args.server.ask(path, &question)?;
    let outcome: Outcome = args.server.understood(path, body.clone())?;
    let text = args.server.shown(path, body, |body| simulate_text::simulation(body, Paint::for_stdout()))?;
    Ok((text, outcome.fits()))
}

/// Returns the text of a file or of stdin, and its name for errors.
fn read(file: &Path) -> anyhow::Result<(String, String)> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read stdin")?;
        return Ok((text, "stdin".to_owned()));
    }
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    Ok((text, name))
}
