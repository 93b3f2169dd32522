//! Rates nodes: the fragments before, less those with the pod, through a sigmoid into 0 to 100. 50 leaves them as they are.
//!
//! Coarse scores are part of what makes the gradient good: among nodes of one score a stable order decides, so they are
//! filled one by one. (With finer scores, GPUs are packed worse than with FGD's hundred.)

use std::sync::LazyLock;

use pellucid_cluster::columns::CPU;
use pellucid_framework::View;
use pellucid_model::{NodeIdx, PodSpec};
use smallvec::SmallVec;

use super::super::DeviceShare;
use super::super::amounts::{CORE, RATIO};
use super::super::device::DeviceType;
use super::super::node_devices::NodeDevices;
use super::super::request::Request;
use super::super::row::Row;
use super::state::{Set, TypicalPods};
use super::table::{Level, Prospect, Table};
use super::typical::GradientArgs;

/// The score of a node whose fragments stay as they are.
const EVEN: i64 = 50;

/// By score less 1: the least decrease of fragments that has the score, in millionths of a card. That is FGD's sigmoid,
/// `score = floor(100 / (1 + exp(-x)))`, resolved for x.
static LEAST: LazyLock<[i64; 99]> = LazyLock::new(|| {
    std::array::from_fn(|at| {
        let score = (at + 1) as f64;
        ((score / (100.0 - score)).ln() * 1e6).ceil() as i64
    })
});

/// Scores a decrease of fragments, in percent of a card times weight.
fn score(decrease: i64, table: &Table) -> i64 {
    let millionths = decrease * 10_000 / table.weights.max(1);
    LEAST.partition_point(|least| *least <= millionths) as i64
}

/// Returns which percentage of one card a request takes that is for GPUs alone and whose cards are chosen one by one, and
/// how many cards.
fn plain(request: &Request) -> Option<(u8, usize)> {
    let [part] = &request.parts[..] else { return None };
    let percent = super::typical::whole_percent(&part.each)?;
    let is_plain = part.kind == DeviceType::Gpu
        && part.each.get(CORE) == part.each.get(RATIO)
        && part.hint == Default::default()
        && request.hints.partition.is_none();
    is_plain.then_some((percent, part.count))
}

impl DeviceShare {
    /// Returns what a node would be with a pod on it, for the choice of cards. `milli_cpu` is what the pod still has to get.
    pub(in super::super) fn prospect<'a>(
        &self,
        view: View<'a>,
        (node, row): (NodeIdx, &'a Row),
        milli_cpu: i64,
    ) -> Option<Prospect<'a>> {
        let args = self.args.gradient.as_ref()?;
        let table = view.state::<TypicalPods>()?.set(args)?.table(node)?;
        let level = table.level(view.columns().free(node, CPU).saturating_sub(milli_cpu));
        Some(Prospect { level, left: &row.left })
    }

    /// Scores nodes by the gradient. `request` is `None` for a pod without devices.
    pub(in super::super) fn gradients(
        &self,
        (view, args): (View<'_>, &GradientArgs),
        spec: &PodSpec,
        request: Option<&Request>,
        nodes: &[NodeIdx],
        out: &mut [i64],
    ) {
        let (Some(set), Some(devices)) =
            (view.state::<TypicalPods>().and_then(|typical| typical.set(args)), view.state::<NodeDevices>())
        else {
            out.fill(EVEN);
            return;
        };
        let rating = Rating { plugin: self, view, set, milli_cpu: spec.requests.list.milli_cpu };
        let plain = request.and_then(plain);
        for (node, score) in nodes.iter().zip(out) {
            *score = devices.row(*node).map_or(EVEN, |row| rating.node(*node, row, request, plain));
        }
    }
}

/// What one call of Score goes by.
struct Rating<'a> {
    plugin: &'a DeviceShare,
    view: View<'a>,
    set: &'a Set,
    milli_cpu: i64,
}

impl Rating<'_> {
    fn node(&self, node: NodeIdx, row: &Row, request: Option<&Request>, plain: Option<(u8, usize)>) -> i64 {
        let Some(table) = self.set.table(node) else { return EVEN };
        let free = self.view.columns().free(node, CPU);
        let (now, with) = (table.level(free), table.level(free.saturating_sub(self.milli_cpu)));
        let before = now.fragments(row.left.iter().copied());
        let after = match (request, plain) {
            (None, _) => with.fragments(row.left.iter().copied()),
            (Some(_), Some((percent, 1))) if row.is_plain() => least_with(with, &row.left, percent),
            (Some(request), _) => self.with_choices(row, request, Prospect { level: with, left: &row.left }),
        };
        score(before - after, table)
    }

    /// Returns the fragments with the cards that the allocator chooses.
    fn with_choices(&self, row: &Row, request: &Request, prospect: Prospect<'_>) -> i64 {
        let Ok(choices) = self.plugin.allocate(row, request, None, Some(prospect)) else {
            return prospect.level.fragments(row.left.iter().copied());
        };
        let mut left = row.left.clone();
        let first = row.of(&DeviceType::Gpu).start;
        for choice in &choices {
            let Some(at) = usize::from(choice.card).checked_sub(first).filter(|at| *at < left.len()) else {
                continue;
            };
            left[at] = left[at].saturating_sub(row.cards[first + at].percent(&choice.amounts));
        }
        prospect.level.fragments(left.iter().copied())
    }
}

/// Returns the fragments with a share of the card for which they are least.
fn least_with(level: &Level, left: &[u8], percent: u8) -> i64 {
    let prospect = Prospect { level, left };
    let mut seen: SmallVec<[u8; 16]> = SmallVec::new();
    let mut least = None;
    for of_card in left.iter().copied().filter(|of_card| *of_card >= percent) {
        if seen.contains(&of_card) {
            continue;
        }
        seen.push(of_card);
        let fragments = prospect.fragments_with(of_card, percent);
        least = Some(least.map_or(fragments, |known: i64| known.min(fragments)));
    }
    least.unwrap_or_else(|| level.fragments(left.iter().copied()))
}
