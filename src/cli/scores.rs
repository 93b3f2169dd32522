//! `pellucid scores`: the recorded score table of a pod.

use anyhow::Context as _;
use clap::Args;
use pellucid_api::rest::scores::{PluginScore, ScoreTable};

use super::out::{Paint, Style};
use super::server::{PodName, ServerArgs};
use super::text::{cell, clean, count, right, table};

/// Arguments of `scores`.
#[derive(Debug, Args)]
pub struct ScoresArgs {
    /// The pod: NAMESPACE/NAME, or NAME in namespace default
    #[arg(value_name = "NAMESPACE/NAME")]
    pub pod: PodName,
    /// The scheduler.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Shows the table.
pub(super) fn run(args: &ScoresArgs) -> anyhow::Result<()> {
    let path = format!("/apis/v1/scores/{}/{}", args.pod.namespace, args.pod.name);
    let paint = Paint::for_stdout();
    args.server
        .show(&path, |body: &ScoreTable| render(body, paint))
        .context("no score table to show (`pellucid flags s 5` records the best 5 nodes of the pods to come)")
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
