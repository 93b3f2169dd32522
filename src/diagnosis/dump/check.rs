//! Checks that a document does not contradict itself, as far as a decision depends on it. Otherwise
//! [`restore`](super::restore) would silently drop parts of it or apply them twice.
//!
//! It does not check whether the document is plausible. A pod on an unknown node is no contradiction: nodes
//! disappear, and become unreadable, under their pods.

use std::fmt;

use pellucid_cluster::Stage;
use pellucid_model::PodKey;
use pellucid_model::collections::HashSet;

use super::Dump;
use super::record::{PastVerdict, Record};
use super::state::{PlacedPod, PluginObject, State};

const OUTCOMES: [&str; 3] = ["Placed", "Refused", "Gated"];

/// Checks a dump. The error names the field and its value.
pub(super) fn check(dump: &Dump) -> Result<(), String> {
    let Dump { state, record, .. } = dump;
    check_state(state)?;
    let pods: HashSet<&PodKey> = state.pods.iter().map(|pod| &pod.pod.key).collect();
    known_once("state.nominations", state.nominations.iter().map(|n| &n.pod), &pods)?;
    check_record(record, &pods)
}

fn check_state(state: &State) -> Result<(), String> {
    once("state.nodes", state.nodes.iter().map(|node| &node.name))?;
    once("state.objects", state.objects.iter().map(|o| Named(o.kind().as_str(), o.key())))?;
    let key = |o: &PluginObject| (o.namespace.clone(), o.name.clone());
    once("state.pluginObjects", state.plugin_objects.iter().map(|o| Named(o.kind.as_str(), key(o))))?;
    let ended = state.ended.iter().map(|pod| &pod.key);
    once("state.pods and state.ended", state.pods.iter().map(|pod| &pod.pod.key).chain(ended))?;
    once("state.gangs", state.gangs.iter().map(|gang| &gang.key))?;
    state.pods.iter().enumerate().try_for_each(|(i, pod)| {
        let of = |problem: String| format!("state.pods[{i}], pod {}: {problem}", pod.pod.key);
        check_place(pod).map_err(of)
    })?;
    state.ended.iter().enumerate().try_for_each(|(i, pod)| match pod.phase.is_terminal() {
        true => Ok(()),
        false => Err(format!("state.ended[{i}], pod {}: phase is {:?}, which is no end", pod.key, pod.phase)),
    })
}

/// Checks that the node of a pod agrees with its stage and its object.
fn check_place(placed: &PlacedPod) -> Result<(), String> {
    let PlacedPod { pod, node, stage: word, since, marks } = placed;
    let stage = stage(word).ok_or_else(|| format!("stage {word:?} is not known"))?;
    match (node, &pod.node_name) {
        (None, _) if stage.is_placed() => Err(format!("stage is {word:?}, and node is null")),
        (Some(node), _) if !stage.is_placed() => Err(format!("stage is {word:?}, and node is {node:?}")),
        (node, Some(own)) if node.as_ref() != Some(own) => {
            let node = node.as_ref().map_or("null".to_owned(), |node| format!("{node:?}"));
            Err(format!("node is {node}, and nodeName of its object is {own:?}"))
        }
        _ if pod.phase.is_terminal() => Err(format!("phase is {:?}, and it takes room or waits", pod.phase)),
        (None, _) if marks.is_some() => Err("marks are given, and node is null".to_owned()),
        (None, _) if since.is_some() => Err("since is given, and node is null".to_owned()),
        (Some(node), _) if since.is_none() => Err(format!("since is null, and node is {node:?}")),
        (None, None) if pod.deleting => Err("deleting is true, and it waits to be placed".to_owned()),
        _ => Ok(()),
    }
}

fn check_record(record: &Record, pods: &HashSet<&PodKey>) -> Result<(), String> {
    known_once("record.verdicts", record.verdicts.iter().map(|v| &v.pod), pods)?;
    record.verdicts.iter().enumerate().try_for_each(|(i, verdict)| {
        let of = |problem: String| format!("record.verdicts[{i}], pod {}: {problem}", verdict.pod);
        check_verdict(verdict, record.cycle).map_err(of)
    })?;
    known_once("record.queue", record.queue.iter().flat_map(|unit| &unit.pods), pods)
}

fn check_verdict(verdict: &PastVerdict, last: u64) -> Result<(), String> {
    let PastVerdict { outcome, node, cycle, decision_hash, .. } = verdict;
    if !OUTCOMES.contains(&outcome.as_str()) {
        return Err(format!("outcome {outcome:?} is none of {}", OUTCOMES.join(", ")));
    }
    match node {
        None if outcome == "Placed" => return Err("outcome is \"Placed\", and node is null".to_owned()),
        Some(node) if outcome != "Placed" => {
            return Err(format!("outcome is {outcome:?}, and node is {node:?}"));
        }
        _ => {}
    }
    if *cycle > last {
        return Err(format!("cycle is {cycle}, and record.cycle, that of the last attempt, is {last}"));
    }
    let is_hash = decision_hash.len() == 16 && decision_hash.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hash { Ok(()) } else { Err(format!("decisionHash {decision_hash:?} is not 16 hexadecimal digits")) }
}

/// Checks that nothing occurs twice.
fn once<T: fmt::Display + Eq + std::hash::Hash>(
    field: &str,
    all: impl Iterator<Item = T>,
) -> Result<(), String> {
    let mut seen = HashSet::default();
    for one in all {
        if let Some(twice) = seen.replace(one) {
            return Err(format!("{field}: {twice} is there twice"));
        }
    }
    Ok(())
}

/// Checks that every pod that is referred to exists, and occurs once.
fn known_once<'a>(
    field: &str,
    told: impl Iterator<Item = &'a PodKey> + Clone,
    pods: &HashSet<&PodKey>,
) -> Result<(), String> {
    match told.clone().find(|key| !pods.contains(key)) {
        Some(key) => Err(format!("{field}: there is no pod {key} in state.pods")),
        None => once(field, told),
    }
}

/// Returns the stage that `Stage::as_str` writes as `word`.
pub(super) fn stage(word: &str) -> Option<Stage> {
    let all = [
        Stage::Pending,
        Stage::Reserved,
        Stage::Waiting,
        Stage::Permitted,
        Stage::PreBinding,
        Stage::Binding,
        Stage::Bound,
    ];
    all.into_iter().find(|stage| stage.as_str() == word)
}

/// Kind and key of an object.
#[derive(PartialEq, Eq, Hash)]
struct Named<'a, K>(&'a str, K);

impl fmt::Display for Named<'_, (pellucid_model::Name, pellucid_model::Name)> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(kind, (namespace, name)) = self;
        let slash = if namespace.is_empty() { "" } else { "/" };
        write!(f, "{kind} {namespace}{slash}{name}")
    }
}
