//! Recorded score tables and refused nodes, as bodies and in the Markdown form of the log.

use pellucid_api::rest::scores::{
    FilterFailure, FilterFailures, PluginScore, ScoreRow, ScoreTable, ScoreTables,
};
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::escape::escaped;
use pellucid_model::{Now, PodKey};
use pellucid_recording::recorder::{RecordedRow, RecordedTable};
use pellucid_recording::rfc3339;
use pellucid_recording::switches::Flag;

use crate::explain::TIE_RULE;
use crate::meta::of_snapshot;

pub(crate) fn tables(snapshot: &Snapshot, now: Now) -> ScoreTables {
    let tables: Vec<ScoreTable> = snapshot.recorder.tables().map(|t| body(snapshot, t, now)).collect();
    let why = || snapshot.switches.why_nothing(Flag::Scores, "a placement of a matching pod", now);
    ScoreTables {
        meta: of_snapshot(snapshot, now),
        top_n: snapshot.switches.top_n_scores(),
        active: snapshot.switches.is_on(Flag::Scores, now),
        dropped: snapshot.recorder.tables_dropped(),
        note: tables.is_empty().then(why),
        tables,
    }
}

/// Returns the newest score table of a pod. Fails when none is recorded.
pub(crate) fn table(snapshot: &Snapshot, key: &PodKey, now: Now) -> Result<ScoreTable, ReadError> {
    let found = snapshot.recorder.tables().find(|t| t.pod == *key);
    found.map(|t| body(snapshot, t, now)).ok_or_else(|| ReadError::NotFound {
        code: "ScoresNotRecorded",
        message: format!(
            "no score table of {key} is recorded; flag s is {}, GET /apis/v1/debug shows scopes: PUT a number to \
             /debug/flags/s, and the pods placed from then on are recorded",
            snapshot.switches.top_n_scores()
        ),
    })
}

pub(crate) fn body(snapshot: &Snapshot, table: &RecordedTable, now: Now) -> ScoreTable {
    let mut meta = of_snapshot(snapshot, now);
    meta.decided_at = Some(rfc3339(table.at.wall));
    meta.cycle_id = Some(table.cycle);
    ScoreTable {
        meta,
        namespace: table.pod.namespace.to_string(),
        name: table.pod.name.to_string(),
        chosen: table.chosen.to_string(),
        winner: table.chosen.to_string(),
        choice: table.choice.as_str().into(),
        feasible_nodes: table.feasible,
        tie_rule: TIE_RULE.into(),
        rows: table.rows.iter().enumerate().map(|(rank, row)| row_body(table, rank, row)).collect(),
    }
}

fn row_body(table: &RecordedTable, rank: usize, row: &RecordedRow) -> ScoreRow {
    let plugins = table.plugins.iter().zip(&row.shares).map(|((plugin, weight), share)| {
        let (raw, normalized, weighted) = share.unwrap_or_default();
        let (plugin, skipped) = ((*plugin).to_string(), share.is_none());
        PluginScore { plugin, raw, normalized, weight: *weight, weighted, skipped }
    });
    let mut plugins: Vec<PluginScore> = plugins.collect();
    plugins.sort_by(|a, b| a.plugin.cmp(&b.plugin));
    ScoreRow { rank, node: row.node.to_string(), total: row.total, plugins }
}

/// Renders a table for the log in Koordinator's form: plugins sorted by name, weighted scores, and 0 for a plugin
/// that skipped.
pub fn markdown(table: &RecordedTable) -> String {
    let mut order: Vec<usize> = (0..table.plugins.len()).collect();
    order.sort_by_key(|i| table.plugins[*i].0);
    let mut header: Vec<String> = ["#", "Pod", "Node", "Score"].map(String::from).to_vec();
    header.extend(order.iter().map(|i| table.plugins[*i].0.to_string()));
    let mut lines = vec![markdown_line(&header)];
    let numbers = "| ---:".repeat(header.len() - 3);
    lines.push(format!("| --- | --- | --- {numbers}|"));
    for (rank, row) in table.rows.iter().enumerate() {
        let mut cells =
            vec![rank.to_string(), table.pod.to_string(), row.node.to_string(), row.total.to_string()];
        cells.extend(order.iter().map(|i| row.shares[*i].map_or(0, |s| s.2).to_string()));
        lines.push(markdown_line(&cells));
    }
    lines.join("\n")
}

fn markdown_line(cells: &[String]) -> String {
    let cells: Vec<_> = cells.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |", cells.join(" | "))
}

/// Lists the recorded refused nodes.
pub(crate) fn failures(snapshot: &Snapshot, now: Now) -> FilterFailures {
    let failures = snapshot.recorder.failures().flat_map(|f| {
        f.nodes.iter().map(|(node, cause)| FilterFailure {
            namespace: f.pod.namespace.to_string(),
            name: f.pod.name.to_string(),
            cycle_id: f.cycle,
            decided_at: rfc3339(f.at.wall),
            node: node.to_string(),
            plugin: cause.plugin.into(),
            code: cause.code.as_str().into(),
            message: cause.message(),
        })
    });
    let failures: Vec<FilterFailure> = failures.collect();
    let why = || {
        snapshot.switches.why_nothing(Flag::Failures, "an attempt at a matching pod that a node refused", now)
    };
    FilterFailures {
        meta: of_snapshot(snapshot, now),
        note: failures.is_empty().then(why),
        recording: snapshot.switches.filter_failures(),
        active: snapshot.switches.is_on(Flag::Failures, now),
        dropped: snapshot.recorder.failures_dropped(),
        failures,
    }
}

#[cfg(test)]
mod tests {
    use pellucid_model::Name;

    use super::*;

    /// The header of article 001, with its ten plugins given in another order.
    #[test]
    fn the_log_form_is_koordinators() {
        let names = "TaintToleration Reservation PodTopologySpread NodeResourcesFit \
                     NodeResourcesBalancedAllocation NodeNUMAResource NodeAffinity LoadAwareScheduling \
                     InterPodAffinity ImageLocality";
        let values = [100, 0, 200, 94, 96, 0, 0, 87, 0, 0];
        let share = |(i, v): (usize, &i64)| (i != 1).then_some((*v, *v, *v));
        let row = RecordedRow {
            node: Name::new("cn-hangzhou.10.0.4.51"),
            total: 577,
            shares: values.iter().enumerate().map(share).collect(),
        };
        let table = RecordedTable {
            pod: PodKey::new("default", "curlimage-545745d8f8-rngp7"),
            cycle: 1,
            at: Now::default(),
            chosen: row.node.clone(),
            choice: pellucid_recording::recorder::Choice::Best,
            feasible: 4,
            plugins: names.split(' ').map(|n| (n, 1)).collect(),
            rows: vec![row],
        };
        assert_eq!(
            markdown(&table),
            "| # | Pod | Node | Score | ImageLocality | InterPodAffinity | LoadAwareScheduling | NodeAffinity | \
             NodeNUMAResource | NodeResourcesBalancedAllocation | NodeResourcesFit | PodTopologySpread | \
             Reservation | TaintToleration |\n\
             | --- | --- | --- | ---:| ---:| ---:| ---:| ---:| ---:| ---:| ---:| ---:| ---:| ---:|\n\
             | 0 | default/curlimage-545745d8f8-rngp7 | cn-hangzhou.10.0.4.51 | 577 | 0 | 0 | 87 | 0 | 0 | 96 | \
             94 | 200 | 0 | 100 |"
        );
    }
}
