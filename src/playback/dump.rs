//! Repeats the decision about a pod of a dump and compares it with the recorded one.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use pellucid_diagnosis::dump::restore::{self, Rewind};
use pellucid_diagnosis::dump::{Dump, PastVerdict, PlacedPod};
use pellucid_model::PodKey;
use serde::Serialize;

/// Result of a repeated decision.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    /// The pod, as `namespace/name`.
    pub pod: String,
    /// `Placed`, `Refused` or `Gated`.
    pub outcome: String,
    /// The node of a placed pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The new decision in words.
    pub message: String,
    /// Hash of the new decision.
    pub decision_hash: String,
    /// Hash of the recorded decision.
    pub recorded_hash: String,
    /// Outcome of the recorded decision.
    pub recorded_outcome: String,
    /// The node of the recorded decision, if it placed the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_node: Option<String>,
    /// Whether both hashes are equal.
    pub equal: bool,
    /// Whether nodes, pods on nodes, the pod itself or the pods of its gang changed between the recorded decision and
    /// the dump.
    pub stale: bool,
    /// Number of placements, of this attempt and later ones, that were undone before deciding.
    pub rewound: usize,
    /// Possible reasons for a difference.
    pub caveats: Vec<String>,
}

/// Repeats the decision about the pod `namespace/name`. Fails when the dump has no decision about it.
pub fn replay(dump: &Dump, pod: &str) -> anyhow::Result<Replayed> {
    let (namespace, name) =
        pod.split_once('/').ok_or_else(|| anyhow::anyhow!("--pod {pod}: want NAMESPACE/NAME"))?;
    let key = PodKey::new(namespace, name);
    let recorded = dump.record.verdicts.iter().find(|v| v.pod == key);
    let held = dump.state.pods.iter().find(|p| p.pod.key == key);
    let (Some(recorded), Some(held)) = (recorded, held) else {
        anyhow::bail!("{}", why_not(dump, &key, held.is_some()));
    };
    let is_placed = held.node.is_some();
    let rewind = if is_placed { Rewind::before(dump, recorded) } else { Rewind::default() };
    let registry = Arc::new(pellucid_plugins::registry());
    let text = dump.configuration.to_string();
    let configuration = pellucid_config::parse(&text, "the snapshot's configuration", &registry)
        .map_err(|problems| anyhow::anyhow!("{problems}"))?;
    let broken = |why: String| anyhow::anyhow!("the snapshot contradicts itself: {why}");
    let mut scheduler = restore::restore(dump, configuration.profiles, registry, &rewind).map_err(broken)?;
    let now = restore::decide(&mut scheduler, dump, &key).map_err(|why| anyhow::anyhow!(why))?;
    Ok(Replayed {
        pod: key.to_string(),
        equal: now.decision_hash == recorded.decision_hash,
        outcome: now.outcome.into(),
        node: now.node,
        message: now.message,
        decision_hash: now.decision_hash,
        recorded_hash: recorded.decision_hash.clone(),
        recorded_outcome: recorded.outcome.clone(),
        recorded_node: recorded.node.as_ref().map(ToString::to_string),
        stale: recorded.stale,
        rewound: rewind.len(),
        caveats: caveats(dump, recorded, is_placed),
    })
}

fn why_not(dump: &Dump, key: &PodKey, is_there: bool) -> String {
    let n = dump.state.pods.len();
    match is_there {
        true => format!(
            "pod {key} is in the snapshot, but nothing was decided about it by then, or the flight recorder has pushed \
             the decision out"
        ),
        false => format!("pod {key} is not in the snapshot, which has {n} pods"),
    }
}

/// Lists what differed at the time of the decision and is not in the dump.
fn caveats(dump: &Dump, recorded: &PastVerdict, is_placed: bool) -> Vec<String> {
    let mut all = Vec::new();
    if is_placed {
        all.push(
            "it is placed: own placements since were taken back, but what nodes, other schedulers and deleted pods did \
             since was not"
                .to_owned(),
        );
    } else if recorded.stale {
        all.push("nodes, pods on them, the pod itself, or the pods of its gang changed since the recorded decision".to_owned());
    }
    if let Some(ghost) = ghosts(dump) {
        all.push(ghost);
    }
    let later = dump.state.nominations.iter().filter(|n| n.since > recorded.at && n.pod != recorded.pod);
    if later.count() > 0 {
        all.push("other pods were nominated to nodes since the recorded decision".to_owned());
    }
    let profiles = dump.configuration["profiles"].as_array().into_iter().flatten();
    let mut percentages = profiles.filter_map(|p| p["percentageOfNodesToScore"].as_u64());
    if percentages.any(|percentage| percentage > 0) {
        all.push(
            "percentageOfNodesToScore is set: a search begins where the one before it ended, and there were others since"
                .to_owned(),
        );
    }
    match recorded.codes.first().map(String::as_str) {
        Some("BindRefused" | "PreBindFailed") => {
            all.push("the recorded verdict is what the API server said, which is not asked here".to_owned());
        }
        Some("PermitTimedOut") => {
            all.push("the recorded verdict is the end of a wait, and nothing waits here".to_owned());
        }
        _ => {}
    }
    all
}

/// Describes pods on nodes that are missing from the dump: the node was deleted or unreadable, or the file was edited.
fn ghosts(dump: &Dump) -> Option<String> {
    let state = &dump.state;
    let known: BTreeSet<&str> = state.nodes.iter().map(|node| &*node.name).collect();
    let on =
        |pod: &PlacedPod| pod.node.as_ref().filter(|node| !known.contains(&***node)).map(|n| n.to_string());
    let mut lost = state.pods.iter().filter_map(|pod| Some((&pod.pod.key, on(pod)?)));
    let (key, node) = lost.next()?;
    let n = lost.count() + 1;
    Some(format!(
        "pods on nodes that are not in the file (gone or unreadable by then): {n}, the first is {key} on {node}"
    ))
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pod       {}", self.pod)?;
        writeln!(f, "decided   {}: {}", self.outcome, self.message)?;
        let then = self.recorded_node.as_ref().map_or(String::new(), |node| format!(" on {node}"));
        writeln!(f, "recorded  {}{then}", self.recorded_outcome)?;
        if self.rewound > 0 {
            writeln!(f, "rewound   {} placements of this attempt and later ones", self.rewound)?;
        }
        let word = if self.equal { "equal" } else { "NOT EQUAL" };
        write!(f, "hash      {}, recorded {}: {word}", self.decision_hash, self.recorded_hash)?;
        if !self.equal {
            for caveat in &self.caveats {
                write!(f, "\nnote      {caveat}")?;
            }
        }
        Ok(())
    }
}
