//! Helpers of plugins that describe what nodes do not fulfil: what is there with its numbers, did you mean, pods in the
//! way. Every list is bounded.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::{DidYouMean, FoundValue, PodOnNode, RequirementDetail};
use pellucid_framework::View;
use pellucid_model::similar::similar;
use pellucid_model::{Name, Node, NodeIdx, Pod};

/// Maximum number of values or domains in a list.
pub const MAX_FOUND: usize = 10;
/// Maximum number of requirements that a plugin describes.
pub const MAX_REQUIREMENTS: usize = 16;
/// Maximum number of nodes whose pods in the way are named.
pub const MAX_NODES: usize = 3;
/// Maximum number of pods in the way that are named per node.
pub const MAX_PODS: usize = 3;

/// Starts a detail of a plugin.
pub fn detail(
    view: View<'_>,
    plugin: &str,
    code: ReasonCode,
    requirement: impl Into<String>,
) -> RequirementDetail {
    RequirementDetail {
        plugin: plugin.into(),
        code: code.as_str().into(),
        requirement: requirement.into(),
        total_nodes: view.nodes().len(),
        ..RequirementDetail::default()
    }
}

/// Iterates over the node objects.
pub fn objects<'a>(view: View<'a>) -> impl Iterator<Item = (NodeIdx, &'a Node)> {
    view.nodes().iter().filter_map(move |n| Some((*n, &**view.cluster().node(*n)?)))
}

/// Sorts values by frequency, then by text, and returns the first with whether there were more.
pub fn most_frequent<T: AsRef<str>>(counts: impl IntoIterator<Item = (T, usize)>) -> (Vec<FoundValue>, bool) {
    let mut all: Vec<(T, usize)> = counts.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.as_ref().cmp(b.0.as_ref())));
    let truncated = all.len() > MAX_FOUND;
    let value = |(value, count): (T, usize)| FoundValue { value: value.as_ref().into(), count };
    (all.into_iter().take(MAX_FOUND).map(value).collect(), truncated)
}

/// Counts equal names.
pub fn tally<'a>(names: impl Iterator<Item = &'a Name>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.as_str()).or_default() += 1;
    }
    counts
}

/// Returns the known name that a given one most likely stands for, the most frequent at equal similarity. `None` when
/// the name is known itself.
pub fn meant(given: &str, known: &BTreeMap<&str, usize>) -> Option<DidYouMean> {
    if known.contains_key(given) {
        return None;
    }
    let mut by_count: Vec<(&str, usize)> = known.iter().map(|(name, count)| (*name, *count)).collect();
    by_count.sort_by_key(|(name, count)| (Reverse(*count), *name));
    let names = || by_count.iter().map(|(name, _)| *name);
    // A label key is often written without its prefix.
    let last = |name: &str| name.rsplit('/').next().map(str::to_owned);
    let meant = similar(given, names()).or_else(|| {
        let is_prefixed = given.contains('/');
        names().find(|name| name.contains('/') != is_prefixed && last(name) == last(given))
    })?;
    Some(DidYouMean { given: given.into(), meant: meant.into() })
}

/// Formats a list of values with their numbers: `ssd (3), hdd (2)`.
pub fn values_text(found: &[FoundValue], truncated: bool) -> String {
    let all: Vec<String> = found.iter().map(|f| format!("{} ({})", shown(&f.value), f.count)).collect();
    format!("{}{}", all.join(", "), if truncated { ", …" } else { "" })
}

/// Returns a value as it is shown: an empty one in quotes.
pub fn shown(value: &str) -> &str {
    if value.is_empty() { "\"\"" } else { value }
}

/// Appends the questions to a text: `; did you mean ssd?`.
pub fn ask_meant(text: &mut String, all: &[DidYouMean]) {
    for (at, of) in all.iter().enumerate() {
        // With one question it is clear which name is meant.
        let given = if all.len() > 1 { format!(" by {}", of.given) } else { String::new() };
        let _ = write!(text, "{} did you mean {}{given}?", if at == 0 { ";" } else { "" }, of.meant);
    }
}

/// Returns the keys of pods on a node that satisfy a condition: the first [`MAX_PODS`] by name, and how many there are.
pub fn pods_on(view: View<'_>, node: NodeIdx, is_meant: impl Fn(&Pod) -> bool) -> (Vec<String>, usize) {
    let cluster = view.cluster();
    let records = cluster.slot(node).pods.iter().filter_map(|id| cluster.pod(*id));
    let mut all: Vec<_> = records.filter(|r| is_meant(&r.pod)).map(|r| &r.pod.key).collect();
    all.sort();
    let count = all.len();
    all.truncate(MAX_PODS);
    (all.into_iter().map(ToString::to_string).collect(), count)
}

/// Adds the pods on one node to the pods in the way.
pub fn add_pods(to: &mut RequirementDetail, view: View<'_>, node: NodeIdx, is_meant: impl Fn(&Pod) -> bool) {
    let (pods, count) = pods_on(view, node, is_meant);
    to.truncated |= count > pods.len();
    let node = view.name(node).to_string();
    to.pods.extend(pods.into_iter().map(|pod| PodOnNode { node: node.clone(), pod }));
}

/// Formats pods in the way: `on n1 d/a, d/b; on n2 d/c`. Empty when there are none.
pub fn pods_text(pods: &[PodOnNode]) -> String {
    let on_node = |pods: &[PodOnNode]| {
        let names: Vec<&str> = pods.iter().map(|p| p.pod.as_str()).collect();
        format!("on {} {}", pods[0].node, names.join(", "))
    };
    let nodes: Vec<String> = pods.chunk_by(|a, b| a.node == b.node).map(on_node).collect();
    nodes.join("; ")
}

/// Returns the first nodes by name.
pub fn first_by_name(view: View<'_>, nodes: impl Iterator<Item = NodeIdx>) -> Vec<NodeIdx> {
    let mut all: Vec<NodeIdx> = nodes.collect();
    all.sort_by(|a, b| view.name(*a).cmp(view.name(*b)));
    all.truncate(MAX_NODES);
    all
}

/// Returns a number of things with the right form of the noun: `1 pod`, `2 pods`.
pub fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_the_most_frequent_name_and_a_missing_prefix_the_full_key() {
        let known = BTreeMap::from([("hdd", 1), ("ssd", 3), ("topology.kubernetes.io/zone", 4)]);
        let meant = |given: &str| meant(given, &known).map(|m| m.meant);
        assert_eq!(meant("sdd"), Some("ssd".into()));
        assert_eq!(meant("ssd"), None, "known");
        assert_eq!(meant("zone"), Some("topology.kubernetes.io/zone".into()));
        assert_eq!(meant("nvme"), None);
    }

    #[test]
    fn lists_are_cut_after_the_most_frequent() {
        let names: Vec<String> = (0..12).map(|i| format!("v{i:02}")).collect();
        let (found, truncated) = most_frequent(names.iter().map(|n| (n, 1)).chain([(&names[11], 5)]));
        assert!(truncated && found.len() == MAX_FOUND);
        assert_eq!(values_text(&found[..2], true), "v11 (5), v00 (1), …");
    }
}
