//! `pellucid scores`: shows the recorded score table of a pod, or the list of recorded tables.

use anyhow::Context as _;
use clap::Args;
use pellucid_api::rest::scores::{PluginScore, ScoreTable, ScoreTables};
use serde_json::Value;

use super::out::{Paint, Style};
use super::program;
use super::server::{ObjectName, ServerArgs};
use super::text::{cell, clean, count, right, table};

/// Arguments of `scores`.
#[derive(Debug, Args)]
pub struct ScoresArgs {
    /// The pod: NAMESPACE/NAME, or NAME; the recorded pods when absent
    #[arg(value_name = "NAMESPACE/NAME")]
    pub pod: Option<ObjectName>,
    /// The scheduler.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Shows the table of a pod, or the list.
pub(super) fn run(args: &ScoresArgs) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let Some(pod) = &args.pod else {
        return args.server.show_narrowed(
            "/apis/v1/scores",
            |body| narrow(body, &args.server),
            |body: &ScoreTables| list(body, paint),
        );
    };
    let path = format!("/apis/v1/scores/{}", args.server.full(pod)?);
    args.server.show(&path, |body: &ScoreTable| render(body, paint)).with_context(|| {
        let program = program();
        format!("no score table to show (`{program} flags s 5` records the best 5 nodes of the pods to come)")
    })
}

/// Removes the tables of pods outside the requested namespace.
fn narrow(body: &mut Value, server: &ServerArgs) {
    let Some(tables) = body.get_mut("tables").and_then(Value::as_array_mut) else { return };
    tables.retain(|table| {
        let namespace = table.get("namespace").and_then(Value::as_str).unwrap_or_default();
        server.wants(&format!("{namespace}/"))
    });
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
    let mut table = table(&["POD", "NODE", "TOTAL", "FEASIBLE", "DECIDED"]);
    right(&mut table, &[2, 3]);
    for one in &body.tables {
        let total = one.rows.first().map_or_else(|| "-".to_owned(), |row| row.total.to_string());
        table.add_row([
            cell([format!("{}/{}", one.namespace, one.name).as_str()]),
            cell([one.chosen.as_str()]),
            cell([total.as_str()]),
            cell([one.feasible_nodes.to_string().as_str()]),
            cell(one.meta.decided_at.as_deref()),
        ]);
    }
    let many = paint.apply(Style::Bold, &format!("{}.", count(body.tables.len(), "table")));
    format!("{}\n\n{many} Ask for one: {program} scores NAMESPACE/NAME", table.trim_fmt())
}

fn render(body: &ScoreTable, paint: Paint) -> String {
    let plugins: Vec<&str> = body
        .rows
        .first()
        .map(|row| row.plugins.iter().map(|p| p.plugin.as_str()).collect())
        .unwrap_or_default();
    let mut header = vec!["#", "NODE", "TOTAL"];
    header.extend(&plugins);
    let mut table = table(&header);
    right(&mut table, &[0, 2]);
    right(&mut table, &(3..header.len()).collect::<Vec<_>>());
    for row in &body.rows {
        let mut cells = vec![
            cell([row.rank.to_string().as_str()]),
            cell([row.node.as_str()]),
            cell([row.total.to_string().as_str()]),
        ];
        cells.extend(plugins.iter().map(|plugin| {
            let score = row.plugins.iter().find(|score| score.plugin == *plugin);
            cell([score.map_or_else(|| "-".to_owned(), share).as_str()])
        }));
        table.add_row(cells);
    }
    let chosen = format!("{}/{} went to {}", body.namespace, body.name, body.chosen);
    format!(
        "{}\n{} could take it; ties: {}\n\n{}\n\n{}",
        paint.apply(Style::Bold, &clean(&chosen)),
        count(body.feasible_nodes, "node"),
        clean(&body.tie_rule),
        table.trim_fmt(),
        paint.apply(Style::Dim, "Under a plugin: normalised score x weight; - where it had nothing to say.")
    )
}

fn share(score: &PluginScore) -> String {
    match score.skipped {
        true => "-".to_owned(),
        false => format!("{}x{}", score.normalized, score.weight),
    }
}

#[cfg(test)]
mod tests {
    use pellucid_api::rest::scores::ScoreRow;

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
