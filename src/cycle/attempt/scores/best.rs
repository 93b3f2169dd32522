//! The totals of all slots, and the best of them: a tournament. Eight slots are a pool and 32 pools a bracket, of each of which the
//! greatest rank is known.
//!
//! A rank is a total and a tie hash in one number, so a walk over ranks does not branch, and a slot whose total changes costs one
//! line of memory and a walk over that. With many shapes a decision waits for memory more than for anything else. Where ranks do
//! not tell two slots apart, whole tie hashes and names do.

use pellucid_framework::View;
use pellucid_model::{NodeIdx, prefetch_index};

/// Slots per pool: what a line of the cache holds.
const POOL: usize = 8;
/// Pools per bracket.
const BRACKET: usize = 32;

/// One more than the total, and below it the upper bits of the tie hash; 0 for a slot that does not compete.
type Rank = u64;

/// Totals and tie hashes by slot, and the greatest of all pools and brackets.
#[derive(Clone, Debug)]
pub(crate) struct Tournament {
    /// Bits of a rank that are left for the tie hash, 1 to 63.
    tie_bits: u32,
    /// By pool. The last one is filled up with slots that do not compete, and so is the last bracket with pools.
    slots: Vec<[Rank; POOL]>,
    /// The greatest of each pool, by bracket.
    pools: Vec<[Rank; BRACKET]>,
    brackets: Vec<Rank>,
    /// The brackets with a pool that changed, one bit each.
    stale: Vec<u64>,
}

impl Tournament {
    /// Makes one in which no slot competes. No total may be negative, or greater than `most`.
    pub(crate) fn new(n_slots: usize, most: i64) -> Self {
        let n_pools = n_slots.div_ceil(POOL);
        let n_brackets = n_pools.div_ceil(BRACKET);
        Self {
            tie_bits: (most.unsigned_abs().saturating_add(1)).leading_zeros().clamp(1, 63),
            slots: vec![[0; POOL]; n_pools],
            pools: vec![[0; BRACKET]; n_brackets],
            brackets: vec![0; n_brackets],
            stale: vec![0; n_brackets.div_ceil(64)],
        }
    }

    /// Has the processor fetch the rank of a slot.
    #[inline]
    pub(crate) fn prefetch(&self, node: NodeIdx) {
        prefetch_index(&self.slots[..], node.index() / POOL);
    }

    /// Returns the total of a slot that competes.
    #[inline]
    pub(crate) fn total(&self, node: NodeIdx) -> Option<i64> {
        let own = self.slots[node.index() / POOL][node.index() % POOL] >> self.tie_bits;
        own.checked_sub(1).map(|total| total as i64)
    }

    /// Sets the total of a slot, `None` if it does not compete.
    #[inline]
    pub(crate) fn set(&mut self, view: View<'_>, node: NodeIdx, total: Option<i64>) {
        self.set_unranked(view, node, total);
        self.rank_pool(node.index() / POOL);
    }

    /// Adds to the total of a slot that competes.
    #[inline]
    pub(crate) fn add(&mut self, node: NodeIdx, delta: i64) {
        self.add_unranked(node, delta);
        self.rank_pool(node.index() / POOL);
    }

    /// Does the same. Before the next question all must be ranked.
    #[inline]
    pub(crate) fn add_unranked(&mut self, node: NodeIdx, delta: i64) {
        let rank = &mut self.slots[node.index() / POOL][node.index() % POOL];
        *rank = rank.wrapping_add((delta as u64) << self.tie_bits);
    }

    /// Sets the total of a slot. Before the next question [`Self::rank_all`] must be called.
    #[inline]
    pub(crate) fn set_unranked(&mut self, view: View<'_>, node: NodeIdx, total: Option<i64>) {
        let tie = view.cluster().ties()[node.index()];
        self.slots[node.index() / POOL][node.index() % POOL] = total.map_or(0, |total| self.rank(total, tie));
    }

    /// Adds to the totals of all slots that compete what a function gives for a slot's raw score. `raw` are the raw scores by slot,
    /// `width` per slot, of which the one at this place counts.
    pub(crate) fn add_to_all(&mut self, raw: (&[i32], usize, usize), delta_of: impl Fn(i32) -> i64) {
        let tie_bits = self.tie_bits;
        self.add_ranks(raw, |raw| (delta_of(raw) as u64) << tie_bits);
    }

    /// Does the same with what a table has for a raw score, none of which is beyond it.
    pub(crate) fn add_from<const N: usize>(&mut self, raw: (&[i32], usize, usize), table: &[i64; N]) {
        let ranks = table.map(|delta| (delta as u64) << self.tie_bits);
        self.add_ranks(raw, |raw| ranks[raw as usize % N]);
    }

    /// Adds ranks. A stride that is a constant costs nothing.
    #[inline(always)]
    fn add_ranks(&mut self, (raw, width, at): (&[i32], usize, usize), of: impl Fn(i32) -> Rank) {
        match width {
            1 => self.add_strided::<1>(raw, at, of),
            2 => self.add_strided::<2>(raw, at, of),
            3 => self.add_strided::<3>(raw, at, of),
            4 => self.add_strided::<4>(raw, at, of),
            5 => self.add_strided::<5>(raw, at, of),
            6 => self.add_strided::<6>(raw, at, of),
            _ => {
                let column: Vec<i32> = raw.iter().skip(at).step_by(width).copied().collect();
                self.add_strided::<1>(&column, 0, of);
            }
        }
        self.rank_brackets();
    }

    #[inline(always)]
    fn add_strided<const W: usize>(&mut self, raw: &[i32], at: usize, of: impl Fn(i32) -> Rank) {
        let at = at.min(W - 1);
        let add = |slots: &mut [Rank], rows: &[[i32; W]]| {
            let mut first = 0;
            for (rank, row) in slots.iter_mut().zip(rows) {
                let added = rank.wrapping_add(of(row[at]));
                *rank = if *rank == 0 { 0 } else { added };
                first = first.max(*rank);
            }
            first
        };
        let (full, rest) = raw.as_chunks::<W>().0.as_chunks::<POOL>();
        let pools = self.pools.as_flattened_mut();
        for ((slots, rows), pool) in self.slots.iter_mut().zip(full).zip(&mut *pools) {
            *pool = add(slots, rows);
        }
        if let Some((slots, pool)) = self.slots.get_mut(full.len()).zip(pools.get_mut(full.len())) {
            *pool = add(slots, rest);
        }
    }

    /// Ranks all pools and brackets.
    pub(crate) fn rank_all(&mut self) {
        let pools = self.pools.as_flattened_mut();
        self.slots.iter().zip(pools).for_each(|(slots, pool)| *pool = greatest(slots));
        self.rank_brackets();
    }

    fn rank_brackets(&mut self) {
        self.pools.iter().zip(&mut self.brackets).for_each(|(pools, bracket)| *bracket = greatest(pools));
        self.stale.fill(0);
    }

    /// Returns the best node by total, tie hash and name, with its total; `None` if no slot competes.
    pub(crate) fn best(&mut self, view: View<'_>) -> Option<(NodeIdx, i64)> {
        let ties = view.cluster().ties();
        let precedes = |a: usize, b: usize| view.name(NodeIdx(a as u32)) < view.name(NodeIdx(b as u32));
        let node = NodeIdx(self.winner(ties, precedes)? as u32);
        Some((node, self.total(node)?))
    }

    #[inline(always)]
    fn rank(&self, total: i64, tie: u64) -> Rank {
        (total as u64 + 1) << self.tie_bits | tie >> (64 - self.tie_bits)
    }

    #[inline(always)]
    fn rank_pool(&mut self, pool: usize) {
        let first = greatest(&self.slots[pool]);
        let bracket = pool / BRACKET;
        if std::mem::replace(&mut self.pools[bracket][pool % BRACKET], first) != first {
            self.stale[bracket / 64] |= 1 << (bracket % 64);
        }
    }

    /// Returns the best slot. `precedes` orders slots with equal totals and tie hashes.
    fn winner(&mut self, ties: &[u64], precedes: impl Fn(usize, usize) -> bool) -> Option<usize> {
        for (word, stale) in self.stale.iter_mut().enumerate() {
            while *stale != 0 {
                let bracket = word * 64 + stale.trailing_zeros() as usize;
                self.brackets[bracket] = greatest(&self.pools[bracket]);
                *stale &= *stale - 1;
            }
        }
        let first = greatest(&self.brackets);
        if first == 0 {
            return None;
        }
        self.only_slot(first).or_else(|| {
            let slots = self.slots.as_flattened();
            let of_rank = (0..slots.len()).filter(|slot| slots[*slot] == first);
            of_rank.reduce(|a, b| {
                let is_before = ties[b] > ties[a] || ties[b] == ties[a] && precedes(b, a);
                if is_before { b } else { a }
            })
        })
    }

    /// Returns the slot with a rank, which is the greatest of all, if there is only one.
    fn only_slot(&self, rank: Rank) -> Option<usize> {
        let bracket = only(&self.brackets, rank)?;
        let pool = bracket * BRACKET + only(&self.pools[bracket], rank)?;
        Some(pool * POOL + only(&self.slots[pool], rank)?)
    }
}

/// Returns the greatest of some ranks, 0 without any.
#[inline(always)]
fn greatest(ranks: &[Rank]) -> Rank {
    let (fours, rest) = ranks.as_chunks::<4>();
    let mut greatest = [0; 4];
    for four in fours {
        for (greatest, rank) in greatest.iter_mut().zip(four) {
            *greatest = (*greatest).max(*rank);
        }
    }
    greatest.into_iter().chain(rest.iter().copied()).fold(0, Rank::max)
}

/// Returns the place of a rank that is there once; `None` if it is there more often.
#[inline(always)]
fn only(ranks: &[Rank], wanted: Rank) -> Option<usize> {
    let at = ranks.iter().position(|rank| *rank == wanted)?;
    ranks[at + 1..].iter().all(|rank| *rank != wanted).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of slots: three brackets, the last with a pool that is not full.
    const SLOTS: usize = 2 * BRACKET * POOL + 3 * POOL + 5;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 16
    }

    /// Returns the best slot by a walk over all; of equal ones the last precedes.
    fn by_walk(totals: &[Option<i64>], ties: &[u64]) -> Option<(usize, i64)> {
        let competing = (0..totals.len()).filter_map(|slot| Some((totals[slot]?, ties[slot], slot)));
        competing.max().map(|(total, _, slot)| (slot, total))
    }

    /// Totals up to this change at random; tie hashes are one of `n_ties`.
    fn check(most: i64, n_ties: u64) {
        let mut state = 1;
        let mut ties: Vec<u64> = Vec::new();
        ties.resize_with(SLOTS, || (random(&mut state) % n_ties).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut totals = vec![None; SLOTS];
        let mut kept = Tournament::new(SLOTS, most);
        let step = (most / 30).max(1);
        for round in 0..4000 {
            let slot = random(&mut state) as usize % SLOTS;
            let node = NodeIdx(slot as u32);
            let value = (random(&mut state) % 40) as i64;
            match totals[slot] {
                Some(total) if round % 2 == 0 => {
                    let new = value.saturating_mul(step).min(most);
                    kept.add(node, new - total);
                    totals[slot] = Some(new);
                }
                _ => {
                    totals[slot] = (value > 5).then(|| (value - 5).saturating_mul(step).min(most));
                    kept.slots[slot / POOL][slot % POOL] =
                        totals[slot].map_or(0, |total| kept.rank(total, ties[slot]));
                    kept.rank_pool(slot / POOL);
                }
            }
            if round % 500 == 0 {
                let down = |total: &Option<i64>| total.map_or(7, |total| -(total / 2));
                let width = 1 + round / 500;
                let raws = |slot: i32| (0..width).map(move |at| if at + 1 == width { slot } else { -1 });
                let raw: Vec<i32> = (0..SLOTS as i32).flat_map(raws).collect();
                let deltas: [i64; SLOTS] = std::array::from_fn(|slot| down(&totals[slot]));
                match width % 2 {
                    0 => kept.add_from((&raw, width, width - 1), &deltas),
                    _ => kept.add_to_all((&raw, width, width - 1), |slot| deltas[slot as usize]),
                }
                totals.iter_mut().flatten().for_each(|total| *total -= *total / 2);
            }
            assert_eq!(kept.total(node), totals[slot]);
            if round % 3 == 0 {
                let found = kept.winner(&ties, |a, b| a > b);
                let found = found.map(|slot| (slot, kept.total(NodeIdx(slot as u32)).expect("it competes")));
                assert_eq!(
                    found,
                    by_walk(&totals, &ties),
                    "up to {most}, {n_ties} tie hashes, round {round}"
                );
            }
        }
        for slot in 0..SLOTS {
            kept.slots[slot / POOL][slot % POOL] = 0;
            kept.rank_pool(slot / POOL);
        }
        assert_eq!(kept.winner(&ties, |a, b| a > b), None);
    }

    #[test]
    fn the_best_is_always_the_one_that_a_walk_over_all_finds() {
        for most in [0, 1, 100, 1100, 501_100, 1 << 40, i64::MAX - 1] {
            for n_ties in [1, 3, u64::MAX] {
                check(most, n_ties);
            }
        }
    }

    #[test]
    fn without_slots_there_is_no_best() {
        assert_eq!(Tournament::new(0, 100).winner(&[], |a, b| a > b), None);
    }
}
