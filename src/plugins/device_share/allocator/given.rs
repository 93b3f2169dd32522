//! What a pod has of a node by the cards that are chosen for it.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::super::allocation::{Allocation, Given};
use super::super::amounts::{Amounts, MEMORY, RATIO};
use super::super::device::DeviceType;
use super::super::request::{Part, Request};
use super::super::row::{Card, Row};
use super::{Choice, Choices};

/// Returns what the pod has of the node by these choices. Pods of a shape share it where they have the same.
pub(in super::super) fn allocation(row: &Row, request: &Request, choices: &Choices) -> Arc<Allocation> {
    let shared = || {
        let ([choice], Some(part)) = (&choices[..], request.single()) else { return None };
        shared(row, (request, part), usize::from(choice.card))
    };
    shared().unwrap_or_else(|| Arc::new(any_allocation(row, request, choices)))
}

/// Returns what a pod has that requests this part of one GPU, and nothing else.
pub(super) fn shared(row: &Row, (request, part): (&Request, &Part), at: usize) -> Option<Arc<Allocation>> {
    let (kind, minor, memory) = (DeviceType::Gpu, at as i64, row.memory_in_order(at)?);
    request.shared.get((at, memory), || {
        let amounts = filled(&part.each, memory);
        let given = smallvec![Given { kind, minor, amounts, functions: SmallVec::new() }];
        Allocation { given, exclusive: SmallVec::new() }
    })
}

pub(super) fn any_allocation(row: &Row, request: &Request, choices: &Choices) -> Allocation {
    let given = |choice: &Choice| {
        let card = row.card(usize::from(choice.card));
        let info = row.info(&card)?;
        let function = choice.function.and_then(|(group, function)| {
            info.vf_groups.get(usize::from(group))?.functions.get(usize::from(function))
        });
        Some(Given {
            kind: card.kind.clone(),
            minor: card.minor,
            amounts: amounts(request, &card),
            functions: function.map(|function| (function.minor, function.bus.clone())).into_iter().collect(),
        })
    };
    let exclusive = request.parts.iter().filter_map(|part| Some((part.kind.clone(), part.hint.exclusive?)));
    Allocation { given: choices.iter().filter_map(given).collect(), exclusive: exclusive.collect() }
}

/// Returns what a request takes of a card that is chosen for it.
pub(in super::super) fn amounts(request: &Request, card: &Card) -> Amounts {
    let part = request.parts.iter().find(|part| part.kind == card.kind);
    part.map(|part| filled(&part.each, card.total.get(MEMORY))).unwrap_or_default()
}

/// Returns what a request takes of a card: of memory and its ratio, the one that is not requested follows from the other.
/// Both are rounded down as Koordinator does, in floating point. `all` is the card's memory in bytes.
pub(in super::super) fn filled(each: &Amounts, all: i64) -> Amounts {
    let mut made = *each;
    match (each.has(MEMORY), each.has(RATIO)) {
        (true, false) if all > 0 => made.set(RATIO, (each.get(MEMORY) as f64 / all as f64 * 100.0) as i64),
        (true, false) => made.set(RATIO, 0),
        (false, true) => {
            let ratio = each.get(RATIO);
            let memory = all.checked_mul(ratio).map_or_else(
                || i64::try_from(i128::from(all) * i128::from(ratio) / 100).unwrap_or(i64::MAX),
                |hundredfold| hundredfold / 100,
            );
            made.set(MEMORY, memory);
        }
        _ => {}
    }
    made
}
