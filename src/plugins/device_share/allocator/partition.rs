//! Chooses an entry of a node's partition table: GPUs that are linked and may be allocated together.
//!
//! An entry is free when no pod has a part of one of its GPUs and the pod's amounts fit each. (Koordinator does not compare
//! amounts, and so can give a pod more of a card than there is.) Entries with the least allocation score come first; of
//! these the one that leaves most of the entries free that are as large or larger.

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
    let least = of_size().map(|entry| entry.score).min().ok_or(Lack::PartitionSize)?;
    let gpus = attempt.row.gpus().enumerate();
    let used = set(gpus.filter(|(_, card)| attempt.is_used(*card)).map(|(at, _)| at as u16));
    let free = set(candidates.iter().copied()) & !used;
    let is_able = |entry: &&Entry| {
        let does = attempt.request.hints.partition.is_none_or(|spec| {
            entry.bandwidth >= spec.bandwidth && (entry.score == least || !spec.is_restricted)
        });
        does && entry.is_there
            && entry.cards & !free == 0
            && cards(entry.cards).all(|at| attempt.fits(part, at))
    };
    let rank = |entry: &&Entry| (entry.score, Reverse(left(table, part.count, used | entry.cards)));
    let best = of_size().filter(is_able).min_by_key(rank);
    best.map(|entry| cards(entry.cards).collect()).ok_or(Lack::Partition)
}

/// Returns a set of GPUs, one bit each by their order in the row.
fn set(cards: impl Iterator<Item = u16>) -> u64 {
    cards.fold(0, |set, at| set | 1u64.checked_shl(u32::from(at)).unwrap_or(0))
}

fn cards(set: u64) -> impl Iterator<Item = u16> {
    (0..u64::BITS as u16).filter(move |bit| set >> bit & 1 == 1)
}

/// Returns what the entries of this size and larger ones are worth of which no GPU is taken. Of each size those with the least
/// allocation score count, which are taken first, and each as often as that score says.
fn left(table: &[Entry], size: usize, taken: u64) -> i64 {
    let worth = |(of, worth): (usize, i64)| {
        let of_size = || table.iter().filter(move |entry| entry.size == of);
        let least = of_size().map(|entry| entry.score).min().unwrap_or(0);
        let is_free = |entry: &&Entry| entry.score == least && entry.cards & taken == 0;
        let free = of_size().filter(is_free).count() as i64;
        least.saturating_mul(worth).saturating_mul(free)
    };
    WORTH.into_iter().filter(|(of, _)| *of >= size).map(worth).fold(0, i64::saturating_add)
}
