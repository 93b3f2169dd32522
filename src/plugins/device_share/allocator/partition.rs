//! Chooses an entry of a node's partition table: GPUs that are linked and may be allocated together.
//!
//! An entry is free when no pod has a part of one of its GPUs and the pod's amounts fit each. (Koordinator does not compare
//! amounts, and so can give a pod more of a card than there is.) Entries with the least allocation score come first; of
//! these the one that leaves most of the larger entries free.

use std::cmp::Reverse;

use super::super::request::Part;
use super::super::row::{CardList, Entry};
use super::{Attempt, Lack};

/// What a free entry is worth that an allocation leaves, by its number of GPUs.
const WORTH: [(usize, i64); 3] = [(8, 10_000), (4, 100), (2, 1)];

/// Chooses the cards of an entry.
pub(super) fn choose(
    attempt: &Attempt<'_>,
    part: &Part,
    candidates: &CardList,
    table: &[Entry],
) -> Result<CardList, Lack> {
    let of_size = || table.iter().filter(|entry| entry.size == part.count);
    if of_size().next().is_none() {
        return Err(Lack::PartitionSize);
    }
    let first = attempt.row.of(&part.kind).start;
    let free = candidates.iter().filter(|at| !attempt.is_used(attempt.card(**at))).fold(0u64, |set, at| {
        let bit = usize::from(*at) - first;
        set | u32::try_from(bit).ok().and_then(|bit| 1u64.checked_shl(bit)).unwrap_or(0)
    });
    let cards = |set: u64| {
        (0..u64::BITS as usize).filter(move |bit| set >> bit & 1 == 1).map(|bit| (bit + first) as u16)
    };
    let bandwidth = attempt.request.hints.partition.unwrap_or(0);
    let fits = |set: u64| set & !free == 0 && cards(set).all(|at| attempt.fits(part, at));
    let able = of_size().filter(|entry| entry.bandwidth >= bandwidth && entry.cards.is_some_and(fits));
    let rank = |entry: &&Entry| (entry.score, Reverse(left(table, free & !entry.cards.unwrap_or(0))));
    let best = able.min_by_key(rank).and_then(|entry| entry.cards);
    best.map(|set| cards(set).collect()).ok_or(Lack::Partition)
}

/// Returns what the entries are worth that are free when only these cards are. Of each size those with the least score
/// count, which are taken first.
fn left(table: &[Entry], free: u64) -> i64 {
    let worth = |(size, worth): (usize, i64)| {
        let of_size = || table.iter().filter(move |entry| entry.size == size);
        let least = of_size().map(|entry| entry.score).min();
        let is_free =
            |entry: &&Entry| Some(entry.score) == least && entry.cards.is_some_and(|set| set & !free == 0);
        worth * of_size().filter(is_free).count() as i64
    };
    WORTH.into_iter().map(worth).sum()
}
