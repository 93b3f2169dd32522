//! Keeps the best node up to date: nodes are grouped into blocks, each with its best node and a bound on the others, and blocks
//! into groups.
//!
//! When a best node gets worse than that bound, its block only becomes inexact; it is scanned again when it could win. Most
//! blocks cannot, so a changed node costs one comparison, and a decision compares the groups and the blocks of those that
//! changed.

use pellucid_framework::View;
use pellucid_model::NodeIdx;

/// Slots per block. Smaller blocks cost more at each decision, larger ones when they are scanned again.
const BLOCK: usize = 32;

/// Blocks per group.
const GROUP: usize = 16;

/// The total of a slot that does not compete.
pub(crate) const REFUSED: i64 = i64::MIN;

/// Total and tie hash: the greater precedes.
type Key = (i64, u64);

/// The key of a slot that does not compete, or of none.
const NONE: Key = (REFUSED, 0);

/// A block with its best node, or, if `is_exact` is false, with a bound that its best node does not beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    key: Key,
    /// Of an exact block, a bound that its other nodes do not beat.
    next: Key,
    node: NodeIdx,
    is_exact: bool,
}

impl Block {
    /// Whether this block's node precedes that of another exact one: by key, then by name. An inexact block may precede what
    /// its bound equals.
    #[inline(always)]
    fn beats(&self, view: View<'_>, other: &Self) -> bool {
        self.key > other.key || self.key == other.key && self.wins_by_name(view, other)
    }

    #[cold]
    fn wins_by_name(&self, view: View<'_>, other: &Self) -> bool {
        let precedes = || self.node != other.node && view.name(self.node) < view.name(other.node);
        self.key.0 != REFUSED && (!self.is_exact || precedes())
    }
}

/// The best of some blocks.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// The best exact block.
    best: Block,
    /// The greatest bound of the inexact blocks, [`NONE`] without them.
    bound: Key,
    /// Whether a block has changed since.
    is_stale: bool,
}

impl Group {
    const STALE: Self = Self { best: nobody(0), bound: NONE, is_stale: true };

    fn of(view: View<'_>, blocks: &[Block]) -> Self {
        let mut group = Self { is_stale: false, ..Self::STALE };
        for block in blocks {
            if !block.is_exact {
                group.bound = group.bound.max(block.key);
            } else if block.beats(view, &group.best) {
                group.best = *block;
            }
        }
        group
    }

    /// Whether an inexact block may precede an exact one.
    #[inline]
    fn may_beat(&self, best: &Block) -> bool {
        self.bound.0 != REFUSED && self.bound >= best.key
    }
}

/// The blocks over all slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    blocks: Vec<Block>,
    groups: Vec<Group>,
}

impl Blocks {
    /// Scans all slots.
    pub(crate) fn rebuild(&mut self, view: View<'_>, totals: &[i64]) {
        self.blocks.clear();
        let n = totals.len().div_ceil(BLOCK);
        self.blocks.extend((0..n).map(|i| look_through(view, totals, i)));
        self.groups.clear();
        self.groups.resize(n.div_ceil(GROUP), Group::STALE);
    }

    /// Updates the block of a slot whose total changed.
    pub(crate) fn update(&mut self, view: View<'_>, totals: &[i64], node: NodeIdx) {
        let at = node.index() / BLOCK;
        let (block, group) = (&mut self.blocks[at], &mut self.groups[at / GROUP]);
        let key = (totals[node.index()], view.cluster().ties()[node.index()]);
        if node == block.node && block.is_exact {
            // Still the best if it is as good as it was, or better than any other.
            if key.0 >= block.key.0 || key > block.next {
                block.key = key;
            } else {
                (block.key, block.is_exact) = (block.next, false);
            }
            group.is_stale = true;
            return;
        }
        if key.0 == REFUSED {
            return;
        }
        if !block.is_exact {
            if key > block.key {
                *block = Block { key, next: block.key, node, is_exact: true };
                group.is_stale = true;
            }
            return;
        }
        let own = Block { key, next: block.key, node, is_exact: true };
        if own.beats(view, block) {
            *block = own;
            group.is_stale = true;
        } else if key > block.next {
            block.next = key;
        }
    }

    /// Returns the best node, or `None` if no slot competes.
    pub(crate) fn best(&mut self, view: View<'_>, totals: &[i64]) -> Option<NodeIdx> {
        let mut best = nobody(0);
        for (group, blocks) in self.groups.iter_mut().zip(self.blocks.chunks(GROUP)) {
            if group.is_stale {
                *group = Group::of(view, blocks);
            }
            if group.best.beats(view, &best) {
                best = group.best;
            }
        }
        for (g, group) in self.groups.iter_mut().enumerate() {
            if !group.may_beat(&best) {
                continue;
            }
            group.is_stale = true;
            let first = g * GROUP;
            for (i, block) in self.blocks.iter_mut().enumerate().skip(first).take(GROUP) {
                if !block.is_exact && block.beats(view, &best) {
                    *block = look_through(view, totals, i);
                    if block.beats(view, &best) {
                        best = *block;
                    }
                }
            }
        }
        (best.key.0 != REFUSED).then_some(best.node)
    }
}

const fn nobody(slot: usize) -> Block {
    Block { key: NONE, next: NONE, node: NodeIdx(slot as u32), is_exact: true }
}

fn look_through(view: View<'_>, totals: &[i64], block: usize) -> Block {
    let start = block * BLOCK;
    let part = &totals[start..(start + BLOCK).min(totals.len())];
    best_of(view, start, part, &view.cluster().ties()[start..][..part.len()])
}

/// Bits of a rank that are left for the tie hash.
const TIE_BITS: u32 = 40;

/// Finds the best of the slots from `start` on. Total and the upper bits of the tie hash are one number, so that one walk that
/// does not branch finds the greatest; where that does not tell, a slower walk does.
fn best_of(view: View<'_>, start: usize, part: &[i64], ties: &[u64]) -> Block {
    let mut ranks = [0; BLOCK];
    let mut all = 0;
    for ((rank, total), tie) in ranks.iter_mut().zip(part).zip(ties) {
        // One more than the total, so that 0 is left for slots that do not compete. A negative total is too large for a rank.
        let negative = *total as u64 & 1 << 63;
        let own = if *total == REFUSED { 0 } else { (*total as u64).wrapping_add(1) | negative };
        all |= own;
        *rank = own << TIE_BITS | tie >> (64 - TIE_BITS);
    }
    if all == 0 {
        return nobody(start);
    }
    let first = greatest(&ranks);
    let (mut at, mut count) = (0, 0);
    for (i, rank) in ranks.iter().enumerate() {
        let is_it = *rank == first;
        at = if is_it { i } else { at };
        count += u32::from(is_it);
    }
    if count > 1 || all >> (64 - TIE_BITS) != 0 {
        return best_of_any(view, start, part, ties);
    }
    ranks[at] = 0;
    let second = greatest(&ranks);
    let next = match second >> TIE_BITS {
        0 => NONE,
        // The lower bits of its tie hash are not known.
        total => (total as i64 - 1, second << (64 - TIE_BITS) | u64::MAX >> TIE_BITS),
    };
    Block { key: (part[at], ties[at]), next, node: NodeIdx((start + at) as u32), is_exact: true }
}

/// Returns the greatest of some ranks.
#[inline]
fn greatest(ranks: &[u64; BLOCK]) -> u64 {
    let mut greatest = [0; 4];
    for four in ranks.chunks_exact(4) {
        for (greatest, rank) in greatest.iter_mut().zip(four) {
            *greatest = (*greatest).max(*rank);
        }
    }
    greatest.into_iter().fold(0, u64::max)
}

/// Does the same for any totals and tie hashes.
#[cold]
fn best_of_any(view: View<'_>, start: usize, part: &[i64], ties: &[u64]) -> Block {
    let of = |at: usize| Block {
        key: (part[at], ties[at]),
        next: NONE,
        node: NodeIdx((start + at) as u32),
        is_exact: true,
    };
    let competing = || (0..part.len()).filter(|at| part[*at] != REFUSED).map(of);
    let best = competing().reduce(|a, b| if b.beats(view, &a) { b } else { a });
    let Some(mut best) = best else { return nobody(start) };
    best.next = competing().filter(|of| of.node != best.node).map(|of| of.key).max().unwrap_or(NONE);
    best
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pellucid_cluster::Cluster;
    use pellucid_model::Node;

    use super::*;

    /// Number of slots: three groups of blocks.
    const NODES: u32 = 1_200;

    #[test]
    fn the_best_is_always_the_one_that_a_walk_over_all_finds() {
        let mut cluster = Cluster::new(3, [], Vec::new());
        for i in 0..NODES {
            let node = Node { name: (&*format!("n{i}")).into(), ..Node::default() };
            cluster.apply_node(Arc::new(node), &mut Vec::new());
        }
        let view = View::new(&cluster);
        let mut totals: Vec<i64> = (0..i64::from(NODES)).map(|i| (i * 7919) % 23).collect();
        let mut blocks = Blocks::default();
        assert_eq!(blocks.best(view, &[]), None);
        blocks.rebuild(view, &totals);
        let mut random = 1u64;
        for round in 0..3000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (random >> 33) as usize % totals.len();
            let value = (random >> 50) as i64 % 40;
            totals[at] = if value < 12 { REFUSED } else { value };
            blocks.update(view, &totals, NodeIdx(at as u32));
            let competing = (0..NODES).map(NodeIdx).filter(|n| totals[n.index()] != REFUSED);
            let want = competing.max_by_key(|n| (totals[n.index()], cluster.slot(*n).tie));
            if round % 3 == 0 {
                assert_eq!(blocks.best(view, &totals), want);
            }
        }
        // As no two nodes have equal hashes here, they are made up.
        for (round, scale) in (0..300usize).zip([1, -1, 7, 1 << 40].into_iter().cycle()) {
            let ties: Vec<u64> = (0..BLOCK as u64).map(|i| (i * 31 + round as u64) % 3).collect();
            let start = round % (NODES as usize - BLOCK);
            let part: Vec<i64> = totals[start..][..BLOCK]
                .iter()
                .map(|total| if *total == REFUSED { REFUSED } else { (total % 3 - 1) * scale })
                .collect();
            let name = |i: &usize| std::cmp::Reverse(view.name(NodeIdx((start + i) as u32)));
            let competing = (0..BLOCK).filter(|i| part[*i] != REFUSED);
            let want = competing.max_by_key(|i| (part[*i], ties[*i], name(i)));
            let best = best_of(view, start, &part, &ties);
            assert_eq!((best.key.0 != REFUSED).then_some(best.node.index() - start), want, "round {round}");
            let others = (0..BLOCK).filter(|i| Some(*i) != want && part[*i] != REFUSED);
            assert!(others.into_iter().all(|i| (part[i], ties[i]) <= best.next), "round {round}");
        }
        totals.fill(REFUSED);
        (0..NODES).for_each(|i| blocks.update(view, &totals, NodeIdx(i)));
        assert_eq!(blocks.best(view, &totals), None);
        // After no node competed, equal nodes at the starts of blocks do.
        for pair in [[0u32, 96], [64, 32], [32, 1000]] {
            pair.iter().for_each(|n| totals[*n as usize] = 5);
            pair.iter().for_each(|n| blocks.update(view, &totals, NodeIdx(*n)));
            let want = (0..NODES).map(NodeIdx).filter(|n| totals[n.index()] == 5);
            assert_eq!(blocks.best(view, &totals), want.max_by_key(|n| cluster.slot(*n).tie));
        }
    }
}
