//! Why one node rather than another, as text.

use std::fmt::Write as _;

use pellucid_api::rest::contrast::{Contrast, NodeRefusal};

use super::explain_text::line;
use super::out::{Paint, Style};
use super::text::{clean, one, table};

pub(crate) fn contrast(body: &Contrast, paint: Paint) -> String {
    let mut out = String::new();
    let headline = format!("Why not {}: {}", body.versus, body.outcome);
    line(&mut out, &paint.apply(Style::Bold, &clean(&headline)));
    line(&mut out, &clean(&body.summary));
    let refusals =
        [(&body.versus, &body.reason), (body.chosen.as_ref().unwrap_or(&body.versus), &body.chosen_reason)];
    for (node, refusal) in refusals {
        if let Some(refusal) = refusal {
            line(&mut out, &clean(&format!("{node}: {}", refused(refusal))));
        }
    }
    let chosen = body.chosen.as_deref().unwrap_or("-");
    if !body.plugins.is_empty() {
        let mut table = table(&["PLUGIN", "WEIGHT", chosen, &body.versus, "GAP", "DECISIVE"], [1, 2, 3, 4]);
        for plugin in body.plugins.iter().filter(|plugin| !plugin.skipped) {
            table.add_row([
                one(&plugin.plugin),
                one(plugin.weight),
                one(plugin.weighted.chosen),
                one(plugin.weighted.versus),
                one(plugin.gap),
                one(if plugin.decisive { "yes" } else { "-" }),
            ]);
        }
        if let Some(total) = body.total {
            let gap = body.total_gap.unwrap_or_default();
            table.add_row([one("total"), one("-"), one(total.chosen), one(total.versus), one(gap), one("-")]);
        }
        let _ = writeln!(out, "{}", table.text());
    }
    out
}

/// Returns why a node does not take the pod, with the plugin's numbers where it gives some.
fn refused(refusal: &NodeRefusal) -> String {
    let detail = refusal.detail.as_ref().map(|detail| format!("; {detail}")).unwrap_or_default();
    let remedy = refusal.reasons.first().map(|reason| reason.remedy.as_str()).filter(|text| !text.is_empty());
    let remedy = remedy.map(|remedy| format!(". {remedy}")).unwrap_or_default();
    format!("{} ({}){detail}{remedy}", refusal.message, refusal.plugin)
}

#[cfg(test)]
mod tests {
    use pellucid_api::rest::contrast::{PluginGap, ScorePair};

    use super::super::text::testing::assert_in_order;
    use super::*;

    #[test]
    fn another_node_is_refused_or_scores_less() {
        let refusal = NodeRefusal {
            plugin: "NodePorts".into(),
            message: "port 443 is taken".into(),
            ..NodeRefusal::default()
        };
        let body = Contrast {
            versus: "n2".into(),
            outcome: "FilteredOut".into(),
            summary: "n2 does not take it.".into(),
            reason: Some(refusal),
            ..Contrast::default()
        };
        let text = contrast(&body, Paint::plain());
        let expected = "Why not n2: FilteredOut\nn2 does not take it.\nn2: port 443 is taken (NodePorts)\n";
        assert_eq!(text, expected);
        let gap = PluginGap {
            plugin: "NodeResourcesFit".into(),
            weighted: ScorePair { chosen: 80, versus: 50 },
            gap: 30,
            decisive: true,
            ..PluginGap::default()
        };
        let total = Some(ScorePair { chosen: 80, versus: 50 });
        let body = Contrast { chosen: Some("n1".into()), plugins: vec![gap], total, reason: None, ..body };
        let order = ["n1", "n2", "NodeResourcesFit", "80", "50", "30", "yes", "total"];
        assert_in_order(&contrast(&body, Paint::plain()), &order);
    }
}
