//! A tournament over nodes: the best one is known at once, a changed one costs a path to the root.

use crate::model::NodeIdx;

/// A complete binary tree of winners over node slots. Slots that do not compete hold no key.
#[derive(Clone, Debug, Default)]
pub(super) struct Tournament {
    /// Number of leaves, a power of two.
    width: usize,
    /// `winner[1]` is the root, `winner[width + i]` leaf `i`; `NOBODY` where nobody competes.
    winner: Vec<u32>,
}

const NOBODY: u32 = u32::MAX;

impl Tournament {
    /// Plays all matches anew. `competes` says which of the `n` slots take part, `better(a, b)` whether
    /// `a` beats `b`.
    pub(super) fn rebuild(
        &mut self,
        n: usize,
        competes: impl Fn(usize) -> bool,
        better: impl Fn(u32, u32) -> bool,
    ) {
        self.width = n.next_power_of_two().max(1);
        self.winner.clear();
        self.winner.resize(2 * self.width, NOBODY);
        for i in 0..n {
            if competes(i) {
                self.winner[self.width + i] = i as u32;
            }
        }
        for at in (1..self.width).rev() {
            self.winner[at] = play(self.winner[2 * at], self.winner[2 * at + 1], &better);
        }
    }

    /// Replays the matches of one slot.
    pub(super) fn update(&mut self, slot: usize, competes: bool, better: impl Fn(u32, u32) -> bool) {
        let mut at = self.width + slot;
        self.winner[at] = if competes { slot as u32 } else { NOBODY };
        while at > 1 {
            at /= 2;
            self.winner[at] = play(self.winner[2 * at], self.winner[2 * at + 1], &better);
        }
    }

    /// Returns the winner of all.
    pub(super) fn best(&self) -> Option<NodeIdx> {
        self.winner.get(1).filter(|w| **w != NOBODY).map(|w| NodeIdx(*w))
    }
}

fn play(a: u32, b: u32, better: impl Fn(u32, u32) -> bool) -> u32 {
    match (a, b) {
        (NOBODY, b) => b,
        (a, NOBODY) => a,
        (a, b) if better(b, a) => b,
        (a, _) => a,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_wins_and_updates_agree_with_a_rebuild() {
        type Key = (i32, u64);
        let mut keys: Vec<Key> =
            (0..37).map(|i| ((i * 7919) % 23, (i * 31) as u64 % 11 * 100 + i as u64)).collect();
        let mut tree = Tournament::default();
        let rebuild = |tree: &mut Tournament, keys: &[Key]| {
            tree.rebuild(keys.len(), |i| keys[i].0 >= 0, |a, b| keys[a as usize] > keys[b as usize]);
        };
        rebuild(&mut tree, &keys);
        for round in 0..200 {
            let at = (round * 13) % keys.len();
            keys[at].0 = (round as i32 * 37) % 41 - 10;
            tree.update(at, keys[at].0 >= 0, |a, b| keys[a as usize] > keys[b as usize]);
            let want = (0..keys.len()).filter(|i| keys[*i].0 >= 0).max_by_key(|i| keys[*i]);
            assert_eq!(tree.best().map(|n| n.index()), want);
            let mut fresh = Tournament::default();
            rebuild(&mut fresh, &keys);
            assert_eq!(fresh.winner, tree.winner);
        }
    }

    #[test]
    fn nobody_wins_an_empty_one() {
        let mut tree = Tournament::default();
        assert_eq!(tree.best(), None);
        tree.rebuild(3, |_| false, |_, _| false);
        assert_eq!(tree.best(), None);
    }
}
