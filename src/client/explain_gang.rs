//! `pellucid explain gang`: one gang, from its verdict to what would help.

use clap::Args;
use pellucid_api::rest::gang_explain::GangExplanation;

use super::out::Paint;
use super::server::{ObjectName, ServerArgs};
use super::watch::{self, WatchArgs};
use super::{brief, fix_text, gang_text};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pellucid explain gang training/mnist\n  pellucid gang mnist -n training --brief"
)]
pub struct GangArgs {
    /// The gang: NAMESPACE/NAME, or NAME
    #[arg(value_name = "NAMESPACE/NAME")]
    pub(crate) gang: ObjectName,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    /// Three lines: the verdict, never or not now, and the best fix
    #[arg(long)]
    pub(crate) brief: bool,
}

pub(crate) fn run(args: &GangArgs) -> anyhow::Result<()> {
    let (server, paint) = (&args.server, Paint::for_stdout());
    let path = format!("/apis/v1/explain/gangs/{}", server.full(&args.gang)?);
    watch::run(&args.watch, server, || {
        server.show(&path, |body: &GangExplanation| {
            let is_good = gang_text::is_good(body);
            if args.brief {
                return brief::gang(body, (!is_good).then(|| fix_text::ask(server, &path, 1)));
            }
            let help = if is_good { String::new() } else { fix_text::of(server, &path, paint) };
            format!("{}\n{help}", gang_text::gang(body, paint))
        })
    })
}
