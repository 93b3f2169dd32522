//! `--watch`: draws a page anew whenever the scheduler has published a newer state, at most once a second.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::client::ClientError;
use super::out;
use super::server::ServerArgs;

/// Time between two drawings.
const PAUSE: Duration = Duration::from_secs(1);
/// A read that costs little; its meta says which state there is.
const STATE: &str = "/apis/v1/quarantine?limit=1";

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct WatchArgs {
    /// Stay, and draw the page anew when something has changed, at most once a second
    #[arg(short, long)]
    pub(crate) watch: bool,
}

/// Prints the page that `page` makes, again and again with `--watch`. Ends with the first error.
pub(crate) fn run(
    args: &WatchArgs,
    server: &ServerArgs,
    page: impl Fn() -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    if !args.watch {
        return server.print(&page()?);
    }
    let mut seen = generation(server, None)?;
    let mut shown = None;
    loop {
        let text = page()?;
        if shown.as_ref() != Some(&text) {
            out::clear()?;
            if out::page(&text, !server.is_for_programs())?.is_break() {
                return Ok(());
            }
        }
        shown = Some(text);
        std::thread::sleep(PAUSE);
        seen = generation(server, seen.map(|seen| seen + 1))?;
    }
}

/// Waits until the published state has at least this generation; returns the one it has. The server gives up after a few
/// seconds and is asked again; where the client gave up before it, the page is read anew.
fn generation(server: &ServerArgs, wanted: Option<u64>) -> anyhow::Result<Option<u64>> {
    let Some(wanted) = wanted else { return Ok(generation_of(&server.body(STATE)?)) };
    loop {
        let error = match server.body(&format!("{STATE}&minGeneration={wanted}")) {
            Ok(body) => return Ok(generation_of(&body)),
            Err(error) => error,
        };
        match error.downcast_ref() {
            Some(ClientError::Refused { code, .. }) if code.contains("GenerationNotReached") => {}
            Some(ClientError::Timeout { .. }) => return Ok(Some(wanted.saturating_sub(1))),
            _ => return Err(error),
        }
    }
}

fn generation_of(body: &Value) -> Option<u64> {
    body.pointer("/meta/snapshotGeneration").and_then(Value::as_u64)
}
