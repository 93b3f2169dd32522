//! How much room there is for what pods typically request, and how much of the idle GPUs is of no use to each.

use std::cmp::Reverse;

use pellucid_api::rest::device_share::TypicalPodRoom;
use pellucid_cluster::columns::CPU;
use pellucid_framework::View;
use pellucid_model::NodeIdx;
use pellucid_model::collections::FxHashMap;
use pellucid_model::quantity::format_milli;
use pellucid_model::selector::NodeAffinity;

use super::super::fragmentation::free;
use super::super::node_devices::NodeDevices;
use super::super::row::{CardInUse, Row};
use super::state::TypicalPods;
use super::typical::{Given, Wish};

/// Largest number of typical pods in an answer.
const MOST: usize = 20;

/// Returns the room for typical pods, and where those are known from.
pub(in super::super) fn of_typical(view: View<'_>) -> (Vec<TypicalPodRoom>, &'static str) {
    let known = view.state::<TypicalPods>().map_or(&[][..], TypicalPods::typical);
    let with_gpus = |given: &&Given| given.wish.gpus > 0;
    let mut known: Vec<Given> = known.iter().filter(with_gpus).cloned().collect();
    let from = if known.is_empty() { "pods" } else { "typicalPods" };
    if known.is_empty() {
        known = of_pods(view);
    }
    known.truncate(MOST);
    (known.iter().map(|given| room(view, given)).collect(), from)
}

/// Counts what the pods request that have or want GPUs, the most frequent first.
fn of_pods(view: View<'_>) -> Vec<Given> {
    let mut counts: FxHashMap<Wish, i64> = FxHashMap::default();
    let wishes = view.cluster().pods().filter_map(|(_, record)| Wish::of(&record.pod.spec));
    wishes.filter(|wish| wish.gpus > 0).for_each(|wish| *counts.entry(wish).or_default() += 1);
    let mut all: Vec<Given> = counts.into_iter().map(|(wish, weight)| Given { wish, weight }).collect();
    // Wishes that differ in their nodes alone are told apart by the nodes in words.
    all.sort_by_cached_key(|Given { wish, weight }| {
        (Reverse(*weight), wish.gpus, wish.percent, wish.milli_cpu, format!("{:?}", wish.nodes))
    });
    all
}

fn room(view: View<'_>, Given { wish, weight }: &Given) -> TypicalPodRoom {
    let mut made = TypicalPodRoom {
        gpus: wish.gpus,
        percent: wish.percent,
        cpu: format_milli(wish.milli_cpu),
        selects_nodes: wish.nodes != NodeAffinity::default(),
        weight: *weight,
        ..TypicalPodRoom::default()
    };
    let Some(devices) = view.state::<NodeDevices>() else { return made };
    for node in view.cluster().by_name() {
        let Some(row) = devices.row(*node) else { continue };
        let pods = fitting(view, *node, row, wish);
        made.nodes += usize::from(pods > 0);
        made.pods += pods;
        let useless = |card: &CardInUse<'_>| pods == 0 || !is_enough(card, wish);
        made.fragment_percent += healthy(row).filter(useless).map(|card| free(&card)).sum::<i64>();
    }
    made
}

fn healthy(row: &Row) -> impl Iterator<Item = CardInUse<'_>> {
    row.gpus().filter(|card| card.healthy)
}

/// Returns whether a card has as much as a pod requests of one. Whole cards are not shared.
fn is_enough(card: &CardInUse<'_>, wish: &Wish) -> bool {
    free(card) >= i64::from(wish.percent) && (wish.percent < 100 || card.taken.pods == 0)
}

/// Returns how many such pods fit on a node, by GPUs and CPU.
fn fitting(view: View<'_>, node: NodeIdx, row: &Row, wish: &Wish) -> i64 {
    let accepts = view.labels(node).is_some_and(|labels| wish.nodes.accepts(view.name(node), labels));
    let percent = i64::from(wish.percent.max(1));
    let able = healthy(row).filter(|card| is_enough(card, wish));
    let by_cards = match wish.gpus {
        1 => able.map(|card| free(&card) / percent).sum(),
        n => able.count() as i64 / i64::from(n.max(1)),
    };
    let by_cpu = view.columns().free(node, CPU).max(0) / wish.milli_cpu.max(1);
    if accepts { by_cards.min(if wish.milli_cpu > 0 { by_cpu } else { i64::MAX }) } else { 0 }
}
