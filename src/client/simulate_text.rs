//! The outcome of a simulation as text: which pods would be placed, which not and why, and which would be evicted.
//!
//! Missing fields count as empty, because the scheduler may be of another version.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use pellucid_api::rest::explain::NodeGroup;
use serde::Deserialize;
use serde_json::Value;

use super::explain_text::{line, node_groups};
use super::out::{Paint, Style};
use super::replicas::{folded, names, nodes};
use super::text::{cell, clean, count, one, section, table};

/// The part of the answer of `POST /apis/v1/simulate` that is shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Outcome {
    placements: Vec<Placement>,
    refused: Vec<Refusal>,
    gangs: Vec<Gang>,
    victims: Vec<Victim>,
    state_hash: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Placement {
    pod: String,
    node: String,
    stage: String,
    score: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Refusal {
    pod: String,
    summary: String,
    message: String,
    not_evaluated: usize,
    node_groups: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Gang {
    gang: String,
    min: u64,
    placed: u64,
    has_quorum: bool,
    verdict: Option<Verdict>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Verdict {
    code: String,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Victim {
    pod: String,
    node: String,
    preemptor: String,
}

pub(crate) fn simulation(body: &Outcome, paint: Paint) -> String {
    let mut out = String::new();
    let style = if body.refused.is_empty() { Style::Green } else { Style::Yellow };
    let mut headline = format!(
        "{} would get a place, {} would not",
        count(body.placements.len(), "pod"),
        body.refused.len()
    );
    if !body.victims.is_empty() {
        let _ = write!(headline, ", {} would have to go", body.victims.len());
    }
    line(&mut out, &paint.apply(style, &headline));
    section(&mut out, &body.placements, placements);
    section(&mut out, &body.gangs, gangs);
    section(&mut out, &body.victims, victims);
    for replicas in folded(&body.refused, |one| (&one.pod, one.why())) {
        let _ = write!(out, "\n{}", refused(&replicas, paint));
    }
    if !body.state_hash.is_empty() {
        let text = format!("Nothing was changed. State {}", body.state_hash);
        let _ = write!(out, "\n{}", paint.apply(Style::Dim, &clean(&text)));
    }
    out
}

impl Outcome {
    /// Returns whether every pod would get a place and every gang has its quorum.
    pub(crate) fn fits(&self) -> bool {
        self.refused.is_empty() && self.gangs.iter().all(|gang| gang.has_quorum)
    }
}

/// Formats who would be where: equal replicas in one row, with the nodes that take most of them.
fn placements(placements: &[Placement]) -> String {
    let mut table = table(&["PODS", "POD", "NODE", "STAGE", "SCORE"], [0, 4]);
    for replicas in folded(placements, |one| (&one.pod, &one.stage)) {
        let stage = Some(&replicas[0].stage).filter(|stage| !stage.is_empty());
        let scores: BTreeSet<_> = replicas.iter().filter_map(|one| one.score).collect();
        let score = match (scores.first(), scores.last()) {
            (Some(least), Some(most)) if least != most => Some(format!("{least} to {most}")),
            (least, _) => least.map(i64::to_string),
        };
        table.add_row([
            one(replicas.len()),
            one(names(&replicas.iter().map(|one| one.pod.as_str()).collect::<Vec<_>>())),
            one(nodes(replicas.iter().map(|one| one.node.as_str()))),
            cell(stage),
            cell(score),
        ]);
    }
    table.text()
}

fn gangs(gangs: &[Gang]) -> String {
    let mut table = table(&["GANG", "PLACED", "MIN", "QUORUM", "WHY"], [1, 2]);
    for gang in gangs {
        let why = gang.verdict.as_ref().map(|verdict| format!("{}: {}", verdict.code, verdict.message));
        let quorum = if gang.has_quorum { "yes" } else { "no" };
        table.add_row([one(&gang.gang), one(gang.placed), one(gang.min), one(quorum), cell(why)]);
    }
    table.text()
}

fn victims(victims: &[Victim]) -> String {
    let mut table = table(&["WOULD HAVE TO GO", "FROM", "FOR"], []);
    for victim in victims {
        table.add_row([&victim.pod, &victim.node, &victim.preemptor].map(one));
    }
    table.text()
}

impl Refusal {
    fn why(&self) -> &str {
        if self.summary.is_empty() { &self.message } else { &self.summary }
    }
}

/// Formats why a pod, or equal replicas, would not be placed. Node groups in an unknown form are omitted.
fn refused(replicas: &[&Refusal], paint: Paint) -> String {
    let (mut out, refusal) = (String::new(), replicas[0]);
    let names = names(&replicas.iter().map(|one| one.pod.as_str()).collect::<Vec<_>>());
    let many =
        if replicas.len() > 1 { format!(" ({})", count(replicas.len(), "pod")) } else { String::new() };
    let name = paint.apply(Style::Yellow, &clean(&format!("{names}{many}")));
    line(&mut out, &format!("{name}: {}", clean(refusal.why())));
    let known = |group: &Value| serde_json::from_value(group.clone()).ok();
    let groups: Vec<NodeGroup> = refusal.node_groups.iter().filter_map(known).collect();
    if !groups.is_empty() {
        line(&mut out, &node_groups(&groups, refusal.not_evaluated));
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_outcome_says_who_gets_a_place_and_why_others_do_not() {
        let group = json!({"plugin": "NodeResourcesFit", "code": "Unschedulable", "count": 3, "exampleNodes": ["n1"],
            "reasons": [{"code": "InsufficientResource", "message": "Insufficient cpu", "remedy": "", "resolver": ""}],
            "shortfalls": []});
        let body = json!({
            "placements": [{"pod": "a/one", "node": "n1", "stage": "reserved", "score": 42}],
            "refused": [{"pod": "a/two", "summary": "None of 3 nodes fits.", "nodeGroups": [group, {"new": true}]},
                        {"pod": "a/three", "message": "0/3 nodes\u{1b}"}],
            "gangs": [{"gang": "a/g", "min": 4, "placed": 3, "hasQuorum": false,
                       "verdict": {"code": "GangInsufficientCapacity", "message": "3 of 4"}}],
            "victims": [{"pod": "a/low", "node": "n1", "preemptor": "a/one"}],
            "stateHash": "00ff",
        });
        let text = simulation(&serde_json::from_value(body).unwrap(), Paint::plain());
        for part in [
            "1 pod would get a place, 2 would not, 1 would have to go\n",
            "a/two: None of 3 nodes fits.\n",
            "NodeResourcesFit",
            "GangInsufficientCapacity: 3 of 4",
            "a/low",
            "a/three: 0/3 nodes",
            "Nothing was changed. State 00ff",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        let row = text.lines().find(|line| line.contains("a/one")).unwrap();
        assert!(row.contains("n1") && row.ends_with("42"), "{row}");
        assert!(!text.contains('\u{1b}'));
        let nothing = simulation(&Outcome::default(), Paint::plain());
        assert_eq!(nothing, "0 pods would get a place, 0 would not\n");
    }
}
