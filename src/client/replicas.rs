//! Equal replicas as one: pods whose names differ in their last number alone, and of which the same is said.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Nodes that are named; the others are counted.
const NODES: usize = 3;

/// Returns the items in groups of equal replicas, in the order of the first of each. `facts` gives the name of an
/// item's pod and what is said of it.
pub(crate) fn folded<'a, T>(items: &'a [T], facts: impl Fn(&'a T) -> (&'a str, &'a str)) -> Vec<Vec<&'a T>> {
    let mut known: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&T>> = Vec::new();
    for item in items {
        let (name, said) = facts(item);
        let at = *known.entry((stem(name), said)).or_insert(groups.len());
        if at == groups.len() {
            groups.push(Vec::new());
        }
        groups[at].push(item);
    }
    groups
}

/// Returns the name of a pod without its ordinal: `a/web-` of `a/web-3`, the whole name where it ends otherwise.
fn stem(name: &str) -> &str {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.ends_with('-') { stem } else { name }
}

/// Returns the name of a single pod, or the first and the last one of several.
pub(crate) fn names(names: &[&str]) -> String {
    let ordinal = |name: &&str| name[stem(name).len()..].parse::<u64>().unwrap_or_default();
    let mut names = names.to_vec();
    names.sort_by_key(ordinal);
    match names.as_slice() {
        [first, .., last] => format!("{first} … {last}"),
        [one] => (*one).to_owned(),
        [] => String::new(),
    }
}

/// Returns the nodes with how many pods each would take, those that take most first.
pub(crate) fn nodes<'a>(nodes: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for node in nodes {
        *counts.entry(node).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, pods)| Reverse(*pods));
    let named = |(node, pods): &(&str, usize)| match pods {
        1 => (*node).to_owned(),
        _ => format!("{node} ({pods})"),
    };
    let mut named: Vec<String> = counts.iter().take(NODES).map(named).collect();
    if counts.len() > NODES {
        named.push(format!("and {} more", counts.len() - NODES));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_of_which_the_same_is_said_are_one() {
        let pods = [("a/web-2", "x"), ("a/web-10", "x"), ("a/one", "x"), ("a/web-3", "y"), ("b/web-1", "x")];
        let groups = folded(&pods, |(name, said)| (name, said));
        let names_of = |group: &Vec<&(&str, &str)>| names(&group.iter().map(|pod| pod.0).collect::<Vec<_>>());
        let named: Vec<String> = groups.iter().map(names_of).collect();
        assert_eq!(named, ["a/web-2 … a/web-10", "a/one", "a/web-3", "b/web-1"]);
        assert_eq!(stem("a/2"), "a/2");
    }

    #[test]
    fn nodes_that_take_most_are_named() {
        assert_eq!(nodes(["n1", "n2", "n2", "n3", "n4"].into_iter()), "n2 (2), n1, n3, and 1 more");
    }
}
