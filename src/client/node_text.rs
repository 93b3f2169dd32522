//! The explanation of a node as text: which pods would fit, which are refused and why, and what is idle.
//!
//! Missing fields count as empty, because the scheduler may be of another version.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use super::explain_text::line;
use super::out::{Paint, Style};
use super::text::{amount, cell, clean, count, one, table};

/// The part of `GET /apis/v1/explain/nodes/:nodeName` that is shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NodeView {
    pending_considered: Option<usize>,
    accepts: Vec<Accepted>,
    refuses: Vec<Refused>,
    stranded: Vec<Stranded>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Accepted {
    pod: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Refused {
    pod: String,
    plugin: String,
    code: String,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Stranded {
    resource: String,
    part: Option<String>,
    amount: Value,
    blocked_by: Option<String>,
}

pub(crate) fn node(name: &str, body: &NodeView, paint: Paint) -> String {
    let mut out = String::new();
    let considered = body.pending_considered.unwrap_or(body.accepts.len() + body.refuses.len());
    let headline = format!(
        "{name}: of {} it would take {} and refuse {}",
        count(considered, "pending pod"),
        body.accepts.len(),
        body.refuses.len()
    );
    line(&mut out, &paint.apply(Style::Bold, &clean(&headline)));
    if !body.accepts.is_empty() {
        let mut table = table(&["WOULD TAKE"], []);
        for accepted in &body.accepts {
            table.add_row([one(&accepted.pod)]);
        }
        let _ = write!(out, "\n{}\n", table.text());
    }
    if !body.refuses.is_empty() {
        let mut table = table(&["REFUSES", "PLUGIN", "CODE", "MESSAGE"], []);
        for refused in &body.refuses {
            table.add_row([&refused.pod, &refused.plugin, &refused.code, &refused.message].map(one));
        }
        let _ = write!(out, "\n{}\n", table.text());
    }
    if !body.stranded.is_empty() {
        let mut table = table(&["IDLE RESOURCE", "AMOUNT", "NOBODY CAN USE IT FOR LACK OF"], [1]);
        for idle in &body.stranded {
            let amount = amount(&idle.resource, &idle.amount);
            let part = idle.part.as_ref().map(|part| format!(" of {part}")).unwrap_or_default();
            table.add_row([one(format!("{}{part}", idle.resource)), one(amount), cell(&idle.blocked_by)]);
        }
        let _ = write!(out, "\n{}\n", table.text());
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_says_whom_it_takes_and_what_is_idle() {
        let body = json!({
            "pendingConsidered": 3,
            "accepts": [{"pod": "a/small"}],
            "refuses": [{"pod": "a/big", "plugin": "NodeResourcesFit", "code": "InsufficientResource",
                         "message": "Insufficient cpu"}, {"pod": "a/\u{1b}[2J"}],
            "stranded": [{"resource": "nvidia.com/gpu", "amount": 4, "blockedBy": "cpu"},
                         {"resource": "koordinator.sh/gpu-core", "part": "gpu 3", "amount": 50, "blockedBy": "gpu-core"}],
        });
        let text = node("n1", &serde_json::from_value(body).unwrap(), Paint::plain());
        for part in ["n1: of 3 pending pods it would take 1 and refuse 2", "a/small", "Insufficient cpu"] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        let gpu = text.lines().find(|line| line.contains("nvidia.com/gpu")).unwrap();
        assert!(gpu.contains('4') && gpu.ends_with("cpu"), "{gpu}");
        assert!(text.contains("koordinator.sh/gpu-core of gpu 3"), "{text}");
        assert!(!text.contains('\u{1b}'));
        let nothing = node("n1", &NodeView::default(), Paint::plain());
        assert_eq!(nothing, "n1: of 0 pending pods it would take 0 and refuse 0\n");
    }
}
