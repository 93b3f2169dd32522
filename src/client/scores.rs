//! `pellucid scores`: shows the recorded score table of a pod, or the list of recorded tables.

use anyhow::Context as _;
use clap::Args;
use pellucid_api::rest::scores::{ScoreTable, ScoreTables};

use super::out::{Paint, Style};
use super::program;
use super::server::{ObjectName, ServerArgs};
use super::text::{cell, clean, count, next, one, table};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid scores shop/web-0")]
pub struct ScoresArgs {
    /// The pod: NAMESPACE/NAME, or NAME; the recorded pods when absent
    #[arg(value_name = "NAMESPACE/NAME")]
    pub(crate) pod: Option<ObjectName>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &ScoresArgs) -> anyhow::Result<String> {
    let paint = Paint::for_stdout();
    let Some(pod) = &args.pod else {
        let path = "/apis/v1/scores";
        let mut body = args.server.body(path)?;
        args.server.narrow(&mut body, "tables");
        return args.server.shown(path, body, |body: &ScoreTables| list(body, paint));
    };
    let path = format!("/apis/v1/scores/{}", args.server.full(pod)?);
    args.server.show(&path, |body: &ScoreTable| render(body, paint)).with_context(|| {
        let program = program();
        format!("no score table to show (`{program} flags s 5` records the best 5 nodes of the pods to come)")
    })
}

fn list(body: &ScoreTables, paint: Paint) -> String {
    let program = program();
    if body.tables.is_empty() {
        return match body.top_n {
            0 => format!(
                "No score table is recorded. `{program} flags s 5` records those of the pods to come."
            ),
            _ => "No score table is recorded yet; the next pod's will be.".to_owned(),
        };
    }
    let mut table = table(&["POD", "NODE", "TOTAL", "FEASIBLE", "DECIDED"], [2, 3]);
    for of in &body.tables {
        let pod = format!("{}/{}", of.namespace, of.name);
        let total = cell(of.rows.first().map(|row| row.total.to_string()));
        table.add_row([one(pod), one(&of.chosen), total, one(of.feasible_nodes), cell(&of.meta.decided_at)]);
    }
    let many = paint.apply(Style::Bold, &format!("{}.", count(body.tables.len(), "table")));
    let example = body.tables.first().map(|of| format!("{}/{}", of.namespace, of.name)).unwrap_or_default();
    format!("{}\n\n{many}\n{}", table.text(), next(&format!("scores {example}")))
}

fn render(body: &ScoreTable, paint: Paint) -> String {
    let plugins: Vec<&str> = body
        .rows
        .first()
        .into_iter()
        .flat_map(|row| &row.plugins)
        .map(|score| score.plugin.as_str())
        .collect();
    let mut header = vec!["#", "NODE", "TOTAL"];
    header.extend(&plugins);
    let mut table = table(&header, (0..header.len()).filter(|column| *column != 1));
    for row in &body.rows {
        let mut cells = vec![one(row.rank), one(&row.node), one(row.total)];
        cells.extend(plugins.iter().map(|plugin| {
            let score = row.plugins.iter().find(|score| score.plugin == *plugin && !score.skipped);
            cell(score.map(|score| format!("{}x{}", score.normalized, score.weight)))
        }));
        table.add_row(cells);
    }
    let chosen = format!("{}/{} went to {}", body.namespace, body.name, body.chosen);
    format!(
        "{}\n{} could take it; ties: {}\n\n{}\n\n{}",
        paint.apply(Style::Bold, &clean(&chosen)),
        count(body.feasible_nodes, "node"),
        clean(&body.tie_rule),
        table.text(),
        paint.apply(Style::Dim, "Under a plugin: normalised score x weight; - where it had nothing to say.")
    )
}

#[cfg(test)]
mod tests {
    use pellucid_api::rest::scores::{PluginScore, ScoreRow};

    use super::*;

    #[test]
    fn the_list_says_how_to_get_more() {
        let mut body = ScoreTables::default();
        assert!(list(&body, Paint::plain()).contains("flags s 5"));
        body.top_n = 5;
        assert!(list(&body, Paint::plain()).contains("the next pod's"));
        body.tables.push(ScoreTable { namespace: "a".into(), name: "web".into(), ..ScoreTable::default() });
        let text = list(&body, Paint::plain());
        assert!(text.contains("a/web") && text.contains("1 table."), "{text}");
    }

    #[test]
    fn a_table_shows_shares_and_the_chosen_node() {
        let score = |plugin: &str, normalized, weight, skipped| PluginScore {
            plugin: plugin.into(),
            normalized,
            weight,
            skipped,
            ..PluginScore::default()
        };
        let plugins = vec![score("NodeAffinity", 0, 2, true), score("NodeResourcesFit", 87, 1, false)];
        let row = ScoreRow { rank: 0, node: "n-1".into(), total: 87, plugins };
        let body = ScoreTable {
            namespace: "default".into(),
            name: "web".into(),
            chosen: "n-1".into(),
            feasible_nodes: 12,
            tie_rule: "hash of the node's name".into(),
            rows: vec![row],
            ..ScoreTable::default()
        };
        let text = render(&body, Paint::plain());
        assert!(text.starts_with("default/web went to n-1\n12 nodes could take it"), "{text}");
        assert!(text.contains("87x1"), "{text}");
        assert!(text.contains("NodeResourcesFit"), "{text}");
    }
}
