//! `pellucid evictions`: who was evicted for whom, for what, and what became of it.

use clap::Args;
use pellucid_api::rest::evictions::{Eviction, Evictions};

use super::age::age;
use super::filters::{ListArgs, left_out, walk};
use super::out::{Paint, Style};
use super::server::ServerArgs;
use super::table::Table;
use super::text::{cell, count, next, one};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid evictions -n shop --younger-than 1h")]
pub struct EvictionsArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

pub(crate) fn run(args: &EvictionsArgs) -> anyhow::Result<String> {
    let (server, path) = (&args.server, "/apis/v1/evictions");
    let body = walk(server, path, &args.list.query(server, &[]), "evictions", args.list.rows(server))?;
    let text = server.shown(path, body, |body: &Evictions| text(body, Paint::for_stdout()))?;
    Ok(args.list.said(server, text))
}

fn text(body: &Evictions, paint: Paint) -> String {
    let Some(first) = body.evictions.first() else { return "No eviction is remembered.".to_owned() };
    let header = ["AGE", "VICTIM", "NODE", "FOR", "STATE", "END", "LACKED"];
    let mut table = Table::new(&header, []).elided(0..5).sparing([6, 5]);
    for eviction in &body.evictions {
        let lacked = eviction.lacked.as_ref().map(|lacked| &lacked.text);
        table.add_row([
            one(age(&eviction.at, &body.meta.generated_at)),
            one(&eviction.victim),
            one(&eviction.node),
            one(&eviction.preemptor),
            one(&eviction.state),
            cell(&eviction.end),
            cell(lacked),
        ]);
    }
    let many = paint.apply(Style::Bold, &format!("{}.", count(body.count, "eviction")));
    let more = left_out(body.evictions.len(), body.count, "eviction");
    format!("{}\n\n{many}\n{more}{}", table.text(), next_of(first))
}

fn next_of(eviction: &Eviction) -> String {
    // An object has no history of its own.
    let is_object = eviction.victim.contains(' ');
    next(&format!("history {}", if is_object { &eviction.preemptor } else { &eviction.victim }))
}

#[cfg(test)]
mod tests {
    use super::super::text::testing::assert_in_order;
    use super::*;

    #[test]
    fn an_eviction_says_who_went_for_whom() {
        assert_eq!(text(&Evictions::default(), Paint::plain()), "No eviction is remembered.");
        let eviction = Eviction {
            at: "2026-01-02T03:04:00Z".into(),
            victim: "a/low".into(),
            node: "n1".into(),
            preemptor: "a/high".into(),
            state: "gone".into(),
            end: Some("bound".into()),
            ..Eviction::default()
        };
        let mut body = Evictions { count: 1, evictions: vec![eviction], ..Evictions::default() };
        body.meta.generated_at = "2026-01-02T03:04:30Z".into();
        let text = text(&body, Paint::plain());
        let order = ["30s", "a/low", "n1", "a/high", "gone", "bound", "1 eviction.\npellucid history a/low"];
        assert_in_order(&text, &order);
    }
}
