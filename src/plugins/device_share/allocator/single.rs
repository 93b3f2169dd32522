//! One GPU for a request that says nothing else of it: what [`allocate_any`](super::allocate_any) would choose, found without lists of
//! cards and scopes. Most pods that share a card are such, and each is asked about on many nodes.
//!
//! Any GPU is a scope of its own switch, so the narrowest scope is always a switch: one in use before others, then one of a
//! NUMA node in use, then that of the best card, which is taken.

use smallvec::SmallVec;

use super::super::device::DeviceType;
use super::super::request::Part;
use super::super::row::{Row, Spot, weighed};
use super::{Attempt, Lack, name};

/// Sets of switches and of NUMA nodes, by number; a card without a NUMA node has number 0.
#[derive(Clone, Copy, Default)]
struct Places {
    switches: u128,
    numa: u128,
}

impl Places {
    fn of(spot: &Spot) -> Self {
        Self { switches: 1 << spot.switch, numa: 1 << spot.numa }
    }
}

/// Returns whether a request for a single GPU of a node asks for no more than that: for no entry of its partition table.
pub(super) fn is_asked(row: &Row, part: &Part) -> bool {
    row.has_numbers && (part.is_shared || row.partitions.is_none() && !row.honors_partitions)
}

/// Returns whether a GPU can be had, or what the node lacks.
pub(super) fn fits(attempt: &Attempt<'_>, part: &Part) -> Result<(), Lack> {
    able(attempt, part).next().map(drop).ok_or_else(|| lack(attempt.row))
}

/// Chooses a GPU.
pub(super) fn choose(attempt: &Attempt<'_>, part: &Part) -> Result<u16, Lack> {
    let (row, spots) = (attempt.row, attempt.row.spots());
    let mut used = Places::default();
    if row.has_gpu_topology && !attempt.terms.is_empty {
        for (at, spot) in spots.iter().enumerate().filter(|(_, spot)| spot.is_used && spot.is_placed) {
            if !spot.is_healthy && !attempt.is_used(attempt.card(at as u16)) {
                continue;
            }
            let places = Places::of(spot);
            used.switches |= places.switches;
            used.numa |= places.numa;
        }
    }
    // Whether nothing of the switch is in use, and of the NUMA node.
    let rank = |at: u16| {
        let places = Places::of(&spots[usize::from(at)]);
        (used.switches & places.switches == 0, used.numa & places.numa == 0)
    };
    let all: SmallVec<[((bool, bool), u16); 16]> = able(attempt, part).map(|at| (rank(at), at)).collect();
    let least = all.iter().map(|(rank, _)| *rank).min();
    let mut best = all.iter().filter(|(rank, _)| Some(*rank) == least).map(|(_, at)| *at);
    let first = best.next().ok_or_else(|| lack(row))?;
    let score = scores(attempt, part);
    let Some(second) = best.next() else { return Ok(first) };
    let switch = |at: u16| if row.has_gpu_topology { spots[usize::from(at)].switch } else { 0 };
    let (mut chosen, mut known) = (first, score(first));
    for at in std::iter::once(second).chain(best) {
        let score = score(at);
        if score > known || score == known && switch(at) < switch(chosen) {
            (chosen, known) = (at, score);
        }
    }
    Ok(chosen)
}

/// Returns what scores the GPUs: by their main amounts alone, where they have no others.
fn scores(attempt: &Attempt<'_>, part: &Part) -> impl Fn(u16) -> i64 {
    let scoring = attempt.terms.scoring;
    let is_by_amounts = !attempt.terms.is_empty && attempt.terms.prospect.is_none();
    let loads = attempt.row.loads().filter(|_| is_by_amounts);
    let known = loads.map(|loads| (loads, weighed(scoring, &part.each)));
    move |at| match &known {
        Some((loads, weighed)) => loads[usize::from(at)].score(scoring, weighed),
        None => attempt.score(part, attempt.card(at)),
    }
}

/// Iterates over the GPUs that may be taken and have enough.
fn able(attempt: &Attempt<'_>, part: &Part) -> impl Iterator<Item = u16> {
    let (row, terms) = (attempt.row, attempt.terms);
    let plain = attempt.request.plain().filter(|_| !terms.is_empty);
    let known = plain.and_then(|plain| Some((row.left_for(plain)?, plain.percent)));
    let has_enough = move |at: u16| match known {
        Some((left, percent)) => left.get(usize::from(at)).is_some_and(|left| *left >= percent),
        None => row.spots()[usize::from(at)].is_healthy && attempt.fits(part, at),
    };
    let all = (0..row.gpus().len() as u16).filter(move |at| has_enough(*at));
    all.filter(move |at| terms.numa.is_none() || attempt.is_aligned(attempt.card(*at)))
}

fn lack(row: &Row) -> Lack {
    if row.has_gpu_topology { Lack::Gpus } else { Lack::Devices(name(&DeviceType::Gpu)) }
}
