//! `/apis/v1/explain/nodes`: how nodes stand towards what is pending, one per line.
//!
//! Pods of equal shape are evaluated once, on the nodes of the page alone. The number of shapes is bounded: those with
//! most pods are asked about.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pellucid_api::rest::node_explain::{NodeLine, NodeLines};
use pellucid_cluster::{Cluster, ShapeId, Stage};
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::exhaustive::{Masks, masks_of_pod_on};
use pellucid_cycle::what_if::question::{held_back, is_own};
use pellucid_framework::list::List;
use pellucid_model::collections::FxHashMap;
use pellucid_model::quantity::format_amount;
use pellucid_model::taint::Taint;
use pellucid_model::{NodeIdx, Now, PodId, cancellation};

use crate::meta::of_snapshot;
use crate::views::node_views::{free, page};

/// Largest number of evaluations: shapes times nodes of the page.
const MOST_EVALUATED: usize = 20_000;

/// Pending pods that are alike: one of them, and their number.
type Alike = (PodId, usize);

/// What is pending.
#[derive(Default)]
struct Pending {
    /// The pods that may be placed, by profile and shape, those with most pods first. A pod that nodes answer for alone is alike to none.
    alike: Vec<Alike>,
    /// The number of pods that PreEnqueue holds back, by the codes of its reasons.
    held_back: BTreeMap<Vec<&'static str>, usize>,
    /// The number of pods of ours that are pending.
    total: usize,
}

/// Lists nodes by name, unless the request sorts otherwise.
pub(crate) fn list(snapshot: &Snapshot, list: &List, now: Now) -> NodeLines {
    let page = page(snapshot, list);
    let mut pending = Pending::of(snapshot);
    pending.alike.truncate(MOST_EVALUATED / page.items.len().max(1));
    let held_back: usize = pending.held_back.values().sum();
    let pending_considered = held_back + pending.alike.iter().map(|(_, pods)| pods).sum::<usize>();
    let mut nodes: Vec<NodeLine> = page.items.iter().map(|node| line(snapshot, *node)).collect();
    for (codes, pods) in &pending.held_back {
        nodes.iter_mut().for_each(|line| add(line, codes, *pods));
    }
    // One copy of the state for all, which every evaluation leaves as it was.
    let mut state = snapshot.cluster.fork();
    for (pod, pods) in &pending.alike {
        cancellation::check();
        let Some(masks) = masks(snapshot, &mut state, *pod, &page.items) else { continue };
        // Most nodes fail the same.
        let mut codes: FxHashMap<u64, Vec<&'static str>> = FxHashMap::default();
        for (node, line) in page.items.iter().zip(&mut nodes) {
            let mask = masks.of(*node);
            add(line, codes.entry(mask).or_insert_with(|| codes_of(&masks, mask)), *pods);
        }
    }
    let mut meta = page.meta(of_snapshot(snapshot, now));
    (meta.refreshed, meta.truncated) = (true, pending_considered < pending.total);
    NodeLines { meta, count: page.total, pending_considered, pending_total: pending.total, nodes }
}

impl Pending {
    fn of(snapshot: &Snapshot) -> Self {
        let mut all = Self::default();
        let mut by_shape: FxHashMap<(usize, ShapeId, Option<PodId>), Alike> = FxHashMap::default();
        for (id, record) in snapshot.cluster.pods().filter(|(_, record)| record.stage == Stage::Pending) {
            let Some((number, profile)) = snapshot.profile_of(record) else { continue };
            all.total += 1;
            if let Some(cause) = held_back(profile, &record.pod) {
                let codes = cause.reasons.iter().map(|reason| reason.code.as_str()).collect();
                *all.held_back.entry(codes).or_default() += 1;
                continue;
            }
            let own = is_own(&snapshot.cluster, profile, (id, &record.pod)).then_some(id);
            by_shape.entry((number, record.shape, own)).or_insert((id, 0)).1 += 1;
        }
        all.alike = by_shape.into_values().collect();
        all.alike.sort_by_key(|(pod, pods)| (Reverse(*pods), *pod));
        all
    }
}

/// Returns what nodes fail of a pod's requirements.
fn masks(snapshot: &Snapshot, state: &mut Cluster, pod: PodId, nodes: &[NodeIdx]) -> Option<Masks> {
    let record = snapshot.cluster.pod(pod)?;
    let (_, profile) = snapshot.profile_of(record)?;
    Some(masks_of_pod_on(state, profile, (pod, &record.pod.spec), nodes))
}

/// Returns the codes for which a node that fails so refuses a pod; none if it takes it.
fn codes_of(masks: &Masks, mask: u64) -> Vec<&'static str> {
    let of_pod = masks.pod.iter().flat_map(|cause| &cause.reasons).map(|reason| reason.code.as_str());
    let of_node = masks.requirements(mask).map(|(_, requirement)| requirement.reason.code.as_str());
    let mut codes: Vec<&str> = of_pod.chain(of_node).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Adds pods that are alike to the counts of a node.
fn add(line: &mut NodeLine, codes: &[&'static str], pods: usize) {
    *(if codes.is_empty() { &mut line.takes } else { &mut line.refuses }) += pods;
    for code in codes {
        match line.refused_for.get_mut(*code) {
            Some(known) => *known += pods,
            None => drop(line.refused_for.insert((*code).to_owned(), pods)),
        }
    }
}

/// Returns the line of a node without what it takes and refuses.
fn line(snapshot: &Snapshot, idx: NodeIdx) -> NodeLine {
    let slot = snapshot.cluster.slot(idx);
    let node = slot.node.as_deref();
    let nominated = snapshot.cluster.nominator().on(snapshot.cluster.node_name(idx)).iter();
    let nominated = nominated.filter_map(|id| snapshot.cluster.pod(*id)).filter(|r| r.node.is_none());
    let amounts = free(snapshot, idx).into_iter();
    NodeLine {
        name: snapshot.cluster.node_name(idx).to_string(),
        ready: node.is_some_and(|node| node.ready),
        unschedulable: node.is_some_and(|node| node.unschedulable),
        taints: node.into_iter().flat_map(|node| node.taints.iter()).map(taint).collect(),
        pods: slot.pods.len(),
        free: amounts
            .map(|(name, n)| {
                let text = format_amount(&name, n);
                (name, text)
            })
            .collect(),
        nominated: nominated.map(|record| record.pod.key.to_string()).collect(),
        takes: 0,
        refuses: 0,
        refused_for: BTreeMap::new(),
    }
}

/// Returns a taint as kubectl shows it: `key=value:effect`.
fn taint(taint: &Taint) -> String {
    let value = if taint.value.is_empty() { String::new() } else { format!("={}", taint.value) };
    format!("{}{value}:{}", taint.key, taint.effect.as_str())
}
