//! One GPU for a request that says nothing else of it: what [`allocate_any`](super::allocate_any) would choose, found without lists of
//! cards and scopes. Most pods that share a card are such, and each is asked about on many nodes.
//!
//! Any GPU is a scope of its own switch, so the narrowest scope is always a switch: one in use before others, then one of a
//! NUMA node in use, then that of the best card, which is taken.

use std::ops::ControlFlow;

use super::super::device::DeviceType;
use super::super::request::Part;
use super::super::row::{ByPair, Row, turns};
use super::{Attempt, Lack, ScoringStrategy as Strategy, name};

/// Returns whether a request for a single GPU of a node asks for no more than that: for no entry of its partition table.
pub(super) fn is_asked(row: &Row, part: &Part) -> bool {
    row.has_numbers && (part.is_shared || !row.has_partitions())
}

/// Returns whether a GPU can be had, or what the node lacks.
pub(super) fn fits(attempt: &Attempt<'_>, part: &Part) -> Result<(), Lack> {
    let found = each_able(attempt, part, |_| ControlFlow::Break(()));
    if found.is_break() { Ok(()) } else { Err(lack(attempt.row)) }
}

/// A GPU that is the best so far, with its turn and, if it had to be compared, its score.
struct Best {
    at: u16,
    turn: u8,
    score: Option<i64>,
}

/// Chooses a GPU.
pub(super) fn choose(attempt: &Attempt<'_>, part: &Part) -> Result<u16, Lack> {
    let (row, gpus) = (attempt.row, attempt.row.gpus_in_row());
    if let Some(chosen) = choose_plainly(attempt) {
        return chosen.ok_or_else(|| lack(row));
    }
    let own = (!row.has_turns() || attempt.terms.is_empty).then(|| {
        let counts = |at: usize| gpus[at].is_healthy || attempt.is_used(attempt.card(at as u16));
        turns(gpus, row.has_gpu_topology && !attempt.terms.is_empty, counts)
    });
    let turn = |at: u16| own.as_ref().map_or(gpus[usize::from(at)].turn, |own| own[usize::from(at)]);
    let score = scores(attempt, part);
    let switch = |at: u16| if row.has_gpu_topology { gpus[usize::from(at)].switch } else { 0 };
    let mut best: Option<Best> = None;
    _ = each_able(attempt, part, |at| {
        let turn = turn(at);
        match &mut best {
            Some(known) if known.turn < turn => {}
            Some(known) if known.turn == turn => {
                let (own, of_known) = (score(at), *known.score.get_or_insert_with(|| score(known.at)));
                if own > of_known || own == of_known && switch(at) < switch(known.at) {
                    *known = Best { at, turn, score: Some(own) };
                }
            }
            _ => best = Some(Best { at, turn, score: None }),
        }
        ControlFlow::Continue(())
    });
    best.map(|best| best.at).ok_or_else(|| lack(row))
}

/// Chooses a GPU, if one can be had, by numbers that the row has of each; `None` where these do not tell.
pub(super) fn choose_plainly(attempt: &Attempt<'_>) -> Option<Option<u16>> {
    let Attempt { row, request, terms } = *attempt;
    if terms.is_empty || terms.numa.is_some() || terms.prospect.is_some() {
        return None;
    }
    let plain = request.plain()?;
    let ranked =
        Plainly { row, percent: plain.percent, left: row.left_for(plain).filter(|_| row.has_turns())? };
    let scores = row.loads()?.by_pair(request.weighed()?.pair()?)?;
    Some(match terms.scoring.strategy {
        Strategy::LeastAllocated => ranked.best(&scores, Strategy::LeastAllocated),
        Strategy::MostAllocated => ranked.best(&scores, Strategy::MostAllocated),
    })
}

/// What a row has of each of its GPUs, for a request of some percent of one.
struct Plainly<'a> {
    row: &'a Row,
    percent: u8,
    left: &'a [u8],
}

impl Plainly<'_> {
    /// Returns the best GPU, by turn, score and switch; of equal ones the first.
    #[inline(always)]
    fn best(&self, scores: &ByPair<'_>, strategy: Strategy) -> Option<u16> {
        let has_switches = i64::from(self.row.has_gpu_topology);
        // The turn and what is greatest of the GPU that is best so far.
        let (mut best, mut first, mut greatest) = (None, u8::MAX, i64::MIN);
        for (at, (gpu, left)) in self.row.gpus_in_row().iter().zip(self.left).enumerate() {
            if *left < self.percent || gpu.turn > first {
                continue;
            }
            let own = (scores.score(at, gpu, strategy) << 8) - has_switches * i64::from(gpu.switch);
            if gpu.turn < first || own > greatest {
                (best, first, greatest) = (Some(at as u16), gpu.turn, own);
            }
        }
        best
    }
}

/// Returns what scores the GPUs: by their main amounts alone, where they have no others.
fn scores(attempt: &Attempt<'_>, part: &Part) -> impl Fn(u16) -> i64 {
    let scoring = attempt.terms.scoring;
    let is_by_amounts = !attempt.terms.is_empty && attempt.terms.prospect.is_none();
    let loads = attempt.row.loads().filter(|_| is_by_amounts);
    let known = loads.zip(attempt.request.weighed());
    move |at| match known {
        Some((loads, weighed)) => loads.get(usize::from(at)).score(scoring, weighed, loads.each_has_all()),
        None => attempt.score(part, attempt.card(at)),
    }
}

/// Names the GPUs that may be taken and have enough, until `each` breaks.
fn each_able(
    attempt: &Attempt<'_>,
    part: &Part,
    mut each: impl FnMut(u16) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (row, terms) = (attempt.row, attempt.terms);
    let is_aligned = |at: u16| terms.numa.is_none() || attempt.is_aligned(&attempt.card(at));
    let plain = attempt.request.plain().filter(|_| !terms.is_empty);
    if let Some((plain, left)) = plain.and_then(|plain| Some((plain, row.left_for(plain)?))) {
        let enough = (0..).zip(left).filter(|(_, left)| **left >= plain.percent);
        return enough.map(|(at, _)| at).filter(|at| is_aligned(*at)).try_for_each(each);
    }
    let has_enough = |at: u16| row.gpus_in_row()[usize::from(at)].is_healthy && attempt.fits(part, at);
    (0..row.gpus().len() as u16).filter(|at| has_enough(*at) && is_aligned(*at)).try_for_each(&mut each)
}

fn lack(row: &Row) -> Lack {
    if row.has_gpu_topology { Lack::Gpus } else { Lack::Devices(name(&DeviceType::Gpu)) }
}
