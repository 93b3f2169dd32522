//! Koordinator's merge of hints about NUMA nodes: all combinations, one after the other.

use std::cmp::Reverse;

/// A way to give a pod a resource: NUMA nodes, or any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hint {
    pub(super) mask: Option<u64>,
    pub(super) preferred: bool,
    pub(super) score: i64,
}

/// Returns whether a hint names so many NUMA nodes.
pub(super) fn of_size(hint: &Hint, n: Option<u32>) -> bool {
    hint.mask.map(u64::count_ones) == n
}

/// Returns the sets of NUMA nodes: small ones first, and those of a size as one counts through sets.
pub(super) fn sets(nodes: &[u32]) -> Vec<u64> {
    let pick = |set: u32| {
        let members = nodes.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
        members.fold(0u64, |mask, (_, node)| mask | 1 << node)
    };
    let mut all: Vec<u64> = (1..1u32 << nodes.len()).map(pick).collect();
    all.sort_by_key(|mask| (mask.count_ones(), Reverse(mask.reverse_bits())));
    all
}

/// What a combination comes to.
#[derive(Clone, Copy)]
struct Found {
    mask: u64,
    preferred: bool,
    score: i64,
    /// Whether each hint alone names as many NUMA nodes.
    is_whole: bool,
}

struct Walk<'a> {
    lists: &'a [Vec<Hint>],
    all: u64,
    allows: &'a dyn Fn(u64) -> bool,
    /// Whether hints that are not preferred may name different NUMA nodes.
    narrows: bool,
    best: Found,
}

impl Walk<'_> {
    fn run(&mut self, chosen: &mut Vec<Hint>) {
        let Some(list) = self.lists.get(chosen.len()) else { return self.take(chosen) };
        for hint in list {
            chosen.push(*hint);
            self.run(chosen);
            chosen.pop();
        }
    }

    fn take(&mut self, chosen: &[Hint]) {
        let masks: Vec<u64> = chosen.iter().filter_map(|hint| hint.mask).collect();
        let mask = masks.iter().fold(self.all, |mask, other| mask & other);
        let is_same = masks.iter().all(|other| *other == masks[0]);
        if mask == 0 || !self.narrows && !is_same {
            return;
        }
        let preferred = is_same && chosen.iter().all(|hint| hint.preferred) && (self.allows)(mask);
        let score = chosen.iter().filter(|hint| hint.mask == Some(mask)).map(|hint| hint.score).sum();
        let widest = masks.iter().map(|mask| mask.count_ones()).max();
        let is_whole = widest.is_none_or(|widest| widest == mask.count_ones());
        let found = Found { mask, preferred, score, is_whole };
        let width = |of: &Found| of.mask.count_ones();
        let (new, old) = (width(&found), width(&self.best));
        let is_better = match (found.preferred, self.best.preferred) {
            (true, false) => true,
            (false, true) => false,
            _ => (new, mask) < (old, self.best.mask) || new == old && score > self.best.score,
        };
        if is_better {
            self.best = found;
        }
    }
}

/// Returns the NUMA nodes that a policy takes of all, `None` when it takes none. A list that is not there takes any NUMA nodes,
/// and an empty one has no way that is aligned.
pub(super) fn merged(
    policy: &str,
    (all, allows): (u64, &dyn Fn(u64) -> bool),
    lists: &[Option<Vec<Hint>>],
    narrows: bool,
) -> Option<u64> {
    let any = |preferred| Hint { mask: None, preferred, score: 0 };
    let is_empty = |list: &Option<Vec<Hint>>| list.as_ref().is_some_and(Vec::is_empty);
    if policy == "BestEffort" && lists.iter().any(is_empty) {
        return Some(all);
    }
    let of = |list: &Option<Vec<Hint>>| list.clone().unwrap_or_else(|| vec![any(true)]);
    let mut lists: Vec<Vec<Hint>> = lists.iter().map(of).collect();
    if policy == "SingleNUMANode" {
        let is_single = |hint: &Hint| hint.preferred && (hint.mask.is_none() || of_size(hint, Some(1)));
        lists.iter_mut().for_each(|list| list.retain(is_single));
    }
    let best = Found { mask: all, preferred: false, score: 0, is_whole: true };
    let mut walk = Walk { lists: &lists, all, allows, narrows, best };
    walk.run(&mut Vec::new());
    let Found { mask, preferred, is_whole, .. } = walk.best;
    match policy {
        "BestEffort" => Some(if is_whole { mask } else { all }),
        _ => preferred.then_some(mask),
    }
}
