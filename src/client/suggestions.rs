//! `pellucid suggestions`: what would make a pod fit, or give a gang its quorum.

use clap::{Args, Subcommand};
use pellucid_api::rest::suggestions::Suggestions;

use super::fix_text::fixes;
use super::out::Paint;
use super::server::{ObjectName, ServerArgs};
use super::text::{clean, next};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid suggestions gang training/mnist --max 5")]
pub struct SuggestionsArgs {
    #[command(subcommand)]
    pub(crate) what: Whom,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Whom {
    /// What would make a pod fit
    #[command(after_help = "Example:\n  pellucid suggestions pod shop/web-0")]
    Pod(OneArgs),
    /// What would give a gang its quorum
    #[command(after_help = "Example:\n  pellucid suggestions gang training/mnist")]
    Gang(OneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "NAMESPACE/NAME")]
    pub(crate) name: ObjectName,
    /// Fixes at most
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max: u64,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

impl SuggestionsArgs {
    pub(crate) fn server(&self) -> &ServerArgs {
        &self.whom().1.server
    }

    fn whom(&self) -> (&str, &OneArgs) {
        match &self.what {
            Whom::Pod(one) => ("pod", one),
            Whom::Gang(one) => ("gang", one),
        }
    }
}

pub(crate) fn run(args: &SuggestionsArgs) -> anyhow::Result<String> {
    let (kind, one) = args.whom();
    let name = one.server.full(&one.name)?;
    let path = format!("/apis/v1/explain/{kind}s/{name}/suggestions?max={}", one.max);
    one.server.show(&path, |body: &Suggestions| text(body, kind, &name, Paint::for_stdout()))
}

fn text(body: &Suggestions, kind: &str, name: &str, paint: Paint) -> String {
    let said = match &body.not_pending {
        Some(standing) => clean(&standing.message),
        None if body.fits_now => format!("{name} fits as things are: nothing is to be mended."),
        None => fixes(body, paint).trim().to_owned(),
    };
    let said = if said.is_empty() { "No fix was found.".to_owned() } else { said };
    format!("{said}\n\n{}", next(&format!("explain {kind} {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_and_what_nothing_helps_are_said() {
        let fits = Suggestions { fits_now: true, ..Suggestions::default() };
        let expected = "a/p fits as things are: nothing is to be mended.\n\npellucid explain pod a/p";
        assert_eq!(text(&fits, "pod", "a/p", Paint::plain()), expected);
        let none = Suggestions { note: Some("Nothing helps.".into()), ..Suggestions::default() };
        let expected = "Nothing helps.\n\npellucid explain gang a/g";
        assert_eq!(text(&none, "gang", "a/g", Paint::plain()), expected);
    }
}
