//! Searches for changes that make one pod fit. Candidates come from the nodes nearest to taking it; each is
//! simulated.

use std::collections::{BTreeMap, BTreeSet};

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::suggestions::Conflict;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::{Edit, Target};
use pellucid_cycle::what_if::exhaustive::{Masks, Requirement, masks_of_pod_on};
use pellucid_cycle::what_if::simulation::{Fate, Simulation};
use pellucid_model::{Name, NodeIdx, Now, PodKey};

use super::conflicts::conflicts;
use super::parts::{Part, Side, copy_node, of_pod, relax, remove_gates};
use crate::what_if::nearest::order;
use crate::what_if::requirements::PodRequirements;

/// Number of nodes that candidates are made from: the nearest of each set of failed requirements.
const MOST_NODES: usize = 12;
/// Rounds of relaxing what a node still fails.
const MOST_ROUNDS: usize = 4;
/// Number of plans per search.
const MOST_PLANS: usize = 300;

/// A change that was simulated and works.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) parts: Vec<Part>,
    pub(super) node: Option<String>,
    pub(super) slots: Option<u32>,
}

/// The result of a search.
#[derive(Default)]
pub(super) struct Found {
    pub(super) fits_now: bool,
    pub(super) conflicts: Vec<Conflict>,
    pub(super) fixes: Vec<Candidate>,
    pub(super) note: Option<String>,
    /// Whether the plans ran out before everything was tried, or there may be more conflicts.
    pub(super) truncated: bool,
}

/// Returns up to `most` fixes.
pub(super) fn fixes(snapshot: &Snapshot, asked: &PodRequirements<'_>, most: usize, now: Now) -> Found {
    let (conflicts, is_cut) = conflicts(&asked.masks, asked.cluster.present());
    let mut found = Found { conflicts, truncated: asked.masks.truncated || is_cut, ..Found::default() };
    let mut search = Search { snapshot, asked, of: Target::Pod(asked.record.pod.key.clone()), now, plans: 0 };
    if search.place(&[]).is_some() {
        found.fits_now = true;
        return found;
    }
    for parts in search.candidates() {
        if found.fixes.len() >= most {
            break;
        }
        if is_known(&parts, &found.fixes) {
            continue;
        }
        if search.plans >= MOST_PLANS {
            found.truncated = true;
            break;
        }
        let fix = search.shrunk(parts).filter(|(parts, _)| !is_known(parts, &found.fixes));
        found.fixes.extend(fix.map(|(parts, node)| Candidate { parts, node: Some(node), slots: None }));
    }
    found
}

/// Returns whether a change adds nothing to one of the fixes.
pub(super) fn is_known(parts: &[Part], fixes: &[Candidate]) -> bool {
    fixes.iter().any(|fix| is_no_better(parts, &fix.parts))
}

/// Returns whether `parts` adds nothing to a known change: it contains every kind of edit that the known one does, on
/// whichever node, and allows no larger request.
fn is_no_better(parts: &[Part], known: &[Part]) -> bool {
    known.iter().all(|k| {
        parts.iter().any(|part| match (&part.edit, &k.edit) {
            (
                Edit::SetRequest { resource, amount, .. },
                Edit::SetRequest { resource: other, amount: enough, .. },
            ) => resource == other && amount <= enough,
            (edit, other) => std::mem::discriminant(edit) == std::mem::discriminant(other),
        })
    })
}

/// Returns the key by which changes are ordered: the sum of the parts' costs, and the edits as texts.
pub(super) fn rank(parts: &[Part]) -> (u32, BTreeSet<String>) {
    (cost(parts), edits_of(parts))
}

pub(super) fn cost(parts: &[Part]) -> u32 {
    parts.iter().map(|part| part.cost).sum()
}

fn edits_of(parts: &[Part]) -> BTreeSet<String> {
    parts.iter().map(|part| format!("{:?}", part.edit)).collect()
}

struct Search<'s> {
    snapshot: &'s Snapshot,
    asked: &'s PodRequirements<'s>,
    of: Target,
    now: Now,
    plans: usize,
}

impl Search<'_> {
    fn key(&self) -> &PodKey {
        &self.asked.record.pod.key
    }

    /// Simulates a change. Returns the node that takes the pod, or `None`.
    fn place(&mut self, parts: &[Part]) -> Option<String> {
        self.plans += 1;
        let mut simulation = changed(self.snapshot, parts, self.now)?;
        simulation.ask(self.key());
        simulation.plan(false);
        match simulation.fate(self.key()) {
            Fate::Placed { node, .. } => Some(node.to_string()),
            _ => None,
        }
    }

    /// Simulates a change and drops every part that it does not need. Returns the remaining parts and the pod's node.
    fn shrunk(&mut self, mut parts: Vec<Part>) -> Option<(Vec<Part>, String)> {
        let mut node = self.place(&parts)?;
        let mut at = 0;
        while at < parts.len() {
            let mut fewer = parts.clone();
            // Drop the most expensive parts first, so that the cheap ones remain.
            let mut by_cost: Vec<usize> = (0..parts.len()).collect();
            by_cost.sort_by_key(|at| std::cmp::Reverse(parts[*at].cost));
            fewer.remove(by_cost[at]);
            match self.place(&fewer) {
                Some(other) if !fewer.is_empty() => (parts, node, at) = (fewer, other, 0),
                _ => at += 1,
            }
        }
        Some((parts, node))
    }

    /// Returns changes that may help, the cheapest first.
    fn candidates(&mut self) -> Vec<Vec<Part>> {
        let mut all: BTreeMap<(u32, BTreeSet<String>), Vec<Part>> = BTreeMap::new();
        let mut add = |parts: Vec<Part>| {
            if !parts.is_empty() {
                all.insert(rank(&parts), parts);
            }
        };
        let gates = self.gates();
        for node in self.nodes() {
            for side in [Side::Pod, Side::Cluster] {
                if let Some(parts) = self.repaired(node, side, &gates) {
                    add(parts);
                }
            }
        }
        for like in self.models() {
            add(gates.iter().cloned().chain([copy_node(&like, 1)]).collect());
        }
        if gates.is_empty() {
            self.of_whole().into_iter().for_each(&mut add);
        } else {
            add(gates);
        }
        all.into_values().collect()
    }

    fn gates(&self) -> Vec<Part> {
        let gates = &self.asked.record.pod.gates;
        if gates.is_empty() { Vec::new() } else { vec![remove_gates(&self.of, gates)] }
    }

    /// Returns changes that may help a pod that is refused as a whole.
    fn of_whole(&self) -> Vec<Vec<Part>> {
        let Some(cause) = &self.asked.masks.pod else { return Vec::new() };
        let Some(node) = self.asked.cluster.by_name().first() else { return Vec::new() };
        let parts = cause.reasons.iter().filter_map(|reason| {
            let code = match reason.code {
                ReasonCode::AffinityTermsConflict => ReasonCode::NodeAffinityMismatch,
                other => other,
            };
            let reason = pellucid_framework::Reason { code, subject: reason.subject.clone() };
            let requirement = Requirement { plugin: cause.plugin, reason };
            of_pod(self.asked, &self.of, *node, &requirement).map(|part| vec![part])
        });
        parts.collect()
    }

    /// Returns the nearest node of each set of failed requirements, the nearest first.
    fn nodes(&self) -> Vec<NodeIdx> {
        if self.asked.masks.pod.is_some() {
            return Vec::new();
        }
        let mut known = BTreeSet::new();
        let nearest = order(self.asked).into_iter().filter(|near| known.insert(near.mask));
        nearest.take(MOST_NODES).map(|near| near.node).collect()
    }

    /// Relaxes what a node fails until it fails nothing. Returns `None` when no part helps or the rounds run out.
    fn repaired(&self, node: NodeIdx, side: Side, base: &[Part]) -> Option<Vec<Part>> {
        let mut parts = base.to_vec();
        let mut open = requirements(&self.asked.masks, node);
        let mut record = self.asked.record.clone();
        let mut cluster = self.asked.cluster.fork();
        for _ in 0..MOST_ROUNDS {
            if open.is_empty() {
                return Some(parts);
            }
            let PodRequirements { id, profile, ref masks, .. } = *self.asked;
            let asked = PodRequirements { id, record: &record, profile, cluster, masks: masks.clone() };
            parts.extend(self.round(&asked, node, side, &open)?);
            let simulation = changed(self.snapshot, &parts, self.now)?;
            cluster = simulation.scheduler().cluster().fork();
            record = cluster.pod(id)?.clone();
            let masks = masks_of_pod_on(&mut cluster, profile, (id, &record.pod.spec), &[node]);
            open = requirements(&masks, node);
        }
        None
    }

    /// Returns the parts of one round. Requirements that removing pods cannot satisfy come first: only then is it
    /// visible which pods are in the way.
    fn round(
        &self,
        asked: &PodRequirements<'_>,
        node: NodeIdx,
        side: Side,
        open: &[Open],
    ) -> Option<Vec<Part>> {
        let has_fixed = open.iter().any(|(_, is_fixed)| *is_fixed);
        let first = open.iter().filter(|(_, is_fixed)| *is_fixed || !has_fixed).map(|(r, _)| r);
        let mut parts: Vec<Part> = Vec::new();
        for requirement in first {
            for part in relax(asked, &self.of, node, requirement, side)? {
                if !edits_of(&parts).contains(&format!("{:?}", part.edit)) {
                    parts.push(part);
                }
            }
        }
        Some(parts)
    }

    /// Returns up to two nodes whose empty copy might take the pod: those that fail the fewest requirements that
    /// removing pods cannot satisfy, then those with the most CPU.
    fn models(&self) -> Vec<Name> {
        let asked = self.asked;
        if asked.masks.pod.is_some() {
            return Vec::new();
        }
        let key = |node: &NodeIdx| {
            let fixed = asked.masks.requirements(asked.masks.fixed_of(*node));
            let fixed = fixed.filter(|(_, r)| r.reason.code != ReasonCode::NodeUnschedulable).count();
            let cpu = asked.cluster.node(*node).map_or(0, |n| n.allocatable.milli_cpu);
            (fixed, std::cmp::Reverse(cpu), &asked.cluster.slot(*node).name, *node)
        };
        let mut nodes: Vec<_> = asked.cluster.by_name().iter().map(key).collect();
        nodes.sort_unstable();
        nodes.into_iter().take(2).map(|(.., name, _)| name.clone()).collect()
    }
}

/// A failed requirement, and whether removing pods cannot satisfy it.
type Open = (Requirement, bool);

fn requirements(masks: &Masks, node: NodeIdx) -> Vec<Open> {
    let fixed = masks.fixed_of(node);
    let open = masks.requirements(masks.of(node));
    open.map(|(bit, requirement)| (requirement.clone(), fixed & (1 << bit) != 0)).collect()
}

/// Returns a copy of the state with a change applied, or `None` when an edit cannot be applied.
pub(super) fn changed(snapshot: &Snapshot, parts: &[Part], now: Now) -> Option<Simulation> {
    let mut simulation = Simulation::of(snapshot, now);
    for part in parts {
        simulation.edit(&part.edit).ok()?;
    }
    Some(simulation)
}
