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
use super::super::allocator::amounts;
use super::super::device::DeviceType;
use super::super::node_devices::NodeDevices;
use super::super::request::{Plain, Request};
use super::super::row::Row;
use super::state::{Set, TypicalPods};
use super::table::{Prospect, Table};
use super::typical::GradientArgs;

/// Number of kinds of nodes whose scores are kept while nodes are scored.
const KINDS: usize = 4;
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
    let millionths = decrease * 10_000 / (table.weights * table.width()).max(1);
    LEAST.partition_point(|least| *least <= millionths) as i64
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
        Some(table.prospect(view.columns().free(node, CPU).saturating_sub(milli_cpu), &row.left))
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
        let milli_cpu = spec.requests.list.milli_cpu;
        let mut rating = Rating { plugin: self, view, set, milli_cpu, known: SmallVec::new() };
        let plain = request.and_then(Request::plain);
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
    /// Scores by the node as it is, and as it is without the pod's CPU, where the cards follow from these. Empty nodes of one kind
    /// share them.
    known: SmallVec<[([Prospect<'a>; 2], i64); KINDS]>,
}

impl<'a> Rating<'a> {
    fn node(&mut self, node: NodeIdx, row: &'a Row, request: Option<&Request>, plain: Option<Plain>) -> i64 {
        let Some(table) = self.set.table(node) else { return EVEN };
        let free = self.view.columns().free(node, CPU);
        let before = table.prospect(free, &row.left);
        let with = table.prospect(free.saturating_sub(self.milli_cpu), &row.left);
        let plain =
            plain.filter(|plain| plain.count == 1 && row.is_plain() && row.left_for(*plain).is_some());
        if let Some(request) = request.filter(|_| plain.is_none()) {
            let after = self.with_choices((table, free), row, request, with);
            return score(before.fragments() - after, table);
        }
        let is_same = |known: &[Prospect<'_>; 2]| known[0].rates_as(&before) && known[1].rates_as(&with);
        if let Some((_, score)) = self.known.iter().find(|(known, _)| is_same(known)) {
            return *score;
        }
        let after =
            plain.and_then(|plain| with.least_with(plain.percent)).unwrap_or_else(|| with.fragments());
        let score = score(before.fragments() - after, table);
        if self.known.len() < KINDS {
            self.known.push(([before, with], score));
        }
        score
    }

    /// Returns the fragments with the cards that the allocator chooses.
    fn with_choices(
        &self,
        (table, free): (&Table, i64),
        row: &Row,
        request: &Request,
        with: Prospect<'_>,
    ) -> i64 {
        let Ok(choices) = self.plugin.allocate(row, request, None, Some(with)) else {
            return with.fragments();
        };
        let mut left = row.left.clone();
        let first = row.of(&DeviceType::Gpu).start;
        for choice in &choices {
            let Some(at) = usize::from(choice.card).checked_sub(first).filter(|at| *at < left.len()) else {
                continue;
            };
            let card = row.card(first + at);
            left[at] = left[at].saturating_sub(card.percent(&amounts(request, &card)));
        }
        table.prospect(free.saturating_sub(self.milli_cpu), &left).fragments()
    }
}
