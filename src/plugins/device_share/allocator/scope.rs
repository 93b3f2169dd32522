//! Chooses GPUs within the narrowest scope of the node's topology that holds all of them: a PCIe switch, a NUMA node, or
//! the node.
//!
//! Scopes in which GPUs are in use already are preferred, so that others stay whole. Koordinator has no scope of a single
//! device, so a pod that demands one is refused, and so it is here.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::super::hints::Scope;
use super::super::request::Part;
use super::super::row::{Card, CardInUse, CardList};
use super::{Attempt, Choices, Lack, Wanted};

/// A scope by which cards are grouped: its number among those of its width.
fn group(scope: Scope, card: &Card) -> u16 {
    match scope {
        Scope::Device | Scope::Node => 0,
        Scope::Pcie => u16::from(card.switch),
        Scope::NumaNode => card.numa.map_or(0, |numa| u16::from(numa) + 1),
    }
}

/// Chooses cards within one scope.
pub(super) fn choose(attempt: &Attempt<'_>, part: &Part, candidates: &CardList) -> Result<Choices, Lack> {
    let demanded = part.hint.scope;
    let is_able = |at: &u16| attempt.fits(part, *at) && attempt.has_function(part, *at);
    let able: CardList = candidates.iter().copied().filter(is_able).collect();
    for scope in [Scope::Pcie, Scope::NumaNode, Scope::Node] {
        if demanded.is_some_and(|demanded| scope > demanded) {
            break;
        }
        if let Some(within) = best(attempt, part, scope, (&able, part.count)) {
            return attempt.choose_cards(part, &within, Wanted::just(part.count));
        }
    }
    Err(if demanded.is_some() { Lack::ScopedGpus } else { Lack::Gpus })
}

/// The lesser is taken: whether no GPU of the scope, and of its NUMA node, is in use; then the score of its best card.
type Rank = (bool, bool, Reverse<i64>);

/// Returns the cards of the best scope that has enough of them, if one has.
fn best(
    attempt: &Attempt<'_>,
    part: &Part,
    scope: Scope,
    (able, least): (&CardList, usize),
) -> Option<CardList> {
    let mut groups: SmallVec<[u16; 16]> = able.iter().map(|at| group(scope, &attempt.card(*at))).collect();
    groups.sort_unstable();
    groups.dedup();
    let members = |number: u16| -> CardList {
        able.iter().copied().filter(|at| group(scope, &attempt.card(*at)) == number).collect()
    };
    let is_used = |scope: Scope, number: u16| {
        let is_in = |card: &CardInUse<'_>| card.has_topology && group(scope, card) == number;
        attempt.row.gpus().filter(is_in).any(|card| attempt.is_used(card))
    };
    let mut found: Option<(Rank, CardList)> = None;
    for number in groups {
        let cards = members(number);
        if cards.len() < least {
            continue;
        }
        let numa = group(Scope::NumaNode, &attempt.card(cards[0]));
        let score = cards.iter().map(|at| attempt.score(part, attempt.card(*at))).max().unwrap_or(0);
        let is_free = scope == Scope::Node || !is_used(scope, number);
        let rank = (is_free, !is_used(Scope::NumaNode, numa), Reverse(score));
        if found.as_ref().is_none_or(|(known, _)| rank < *known) {
            found = Some((rank, cards));
        }
    }
    found.map(|(_, cards)| cards)
}
