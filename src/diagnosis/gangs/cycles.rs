//! Finds the strongly connected components of a directed graph: who waits for each other.
//!
//! Kosaraju's algorithm, without recursion. Knows nothing of gangs.

use std::collections::{BTreeMap, BTreeSet};

/// Returns the strongly connected components of more than one vertex, each sorted, ordered by first name.
pub(super) fn cycles<'n>(edges: BTreeSet<(&'n str, &'n str)>) -> Vec<Vec<&'n str>> {
    let mut forth: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut back: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges {
        forth.entry(from).or_default().push(to);
        back.entry(to).or_default().push(from);
    }
    let mut seen = BTreeSet::new();
    let mut finished: Vec<&str> = Vec::new();
    let starts: Vec<&str> = forth.keys().copied().collect();
    for start in starts {
        finished.extend(walk(start, &forth, &mut seen));
    }
    let mut seen = BTreeSet::new();
    let mut sets = Vec::new();
    for start in finished.into_iter().rev() {
        let mut set = walk(start, &back, &mut seen);
        if set.len() > 1 {
            set.sort_unstable();
            sets.push(set);
        }
    }
    sets.sort();
    sets
}

/// Returns the vertices first reached from `start`, each after all that are reached from it.
fn walk<'n>(
    start: &'n str,
    edges: &BTreeMap<&'n str, Vec<&'n str>>,
    seen: &mut BTreeSet<&'n str>,
) -> Vec<&'n str> {
    let mut finished = Vec::new();
    if !seen.insert(start) {
        return finished;
    }
    let mut open = vec![(start, 0)];
    while let Some((at, next)) = open.last_mut() {
        let to = edges.get(*at).and_then(|all| all.get(*next)).copied();
        *next += 1;
        match to {
            Some(to) if seen.insert(to) => open.push((to, 0)),
            Some(_) => {}
            None => {
                finished.push(*at);
                open.pop();
            }
        }
    }
    finished
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_that_wait_for_each_other_are_found_and_chains_are_not() {
        let found = |edges: &[(&'static str, &'static str)]| cycles(edges.iter().copied().collect());
        assert!(found(&[("a", "b"), ("b", "c"), ("a", "c")]).is_empty());
        assert_eq!(found(&[("a", "b"), ("b", "a"), ("b", "c")]), [["a", "b"]]);
        let two = [("d", "e"), ("e", "d"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")];
        assert_eq!(found(&two), [vec!["a", "b", "c"], vec!["d", "e"]]);
    }
}
