//! Searches for changes that make one pod fit. Every node is estimated, and those that could be cheapest are looked at
//! first; each change is simulated, alone and with the other pending pods.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::suggestions::Conflict;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::{Edit, Target};
use pellucid_cycle::what_if::exhaustive::{Masks, Requirement, masks_of_pod_on};
use pellucid_cycle::what_if::simulation::{Fate, Simulation};
use pellucid_model::{Name, NodeIdx, Now, PodKey, cancellation};

use super::advised;
use super::company::{Company, InCompany};
use super::conflicts::conflicts;
use super::estimates::{Estimate, Kind, is_no_better, kinds};
use super::parts::{Part, Side, changed, copy_node, cost, in_object, of_pod, relax, remove_gates, without};
use super::victims::{delete_pod, related};
use crate::requirements::PodRequirements;
use crate::requirements::nearest::order;

/// Rounds of relaxing what a node still fails.
pub(super) const MOST_ROUNDS: usize = 4;
/// Number of plans per search.
const MOST_PLANS: usize = 300;
/// Number of nodes and sides for which a change is made from what the node fails.
const MOST_MADE: usize = 200;
/// Number of changes tried in company because no other holds there.
const MOST_WIDENED: usize = 10;
/// Largest number of nodes that are added so that a fix holds in company.
const MOST_COPIES: usize = 8;

/// A change that was simulated and works.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidate {
    pub(super) parts: Vec<Part>,
    pub(super) node: Option<String>,
    pub(super) slots: Option<u32>,
    /// Whether it holds with the other pending pods, if that was asked.
    pub(super) company: Option<InCompany>,
    /// Whether some parts are needed only in company.
    pub(super) widened: bool,
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
    let of = Target::Pod(asked.record.pod.key.clone());
    let mut search = Search { snapshot, asked, of: of.clone(), now, plans: 0, made: 0, is_cut: false };
    if search.place(&[]).is_some() {
        found.fits_now = true;
        return found;
    }
    if most == 0 {
        return found;
    }
    let mut line = Line::of(&search);
    search.take(&mut line, &mut found.fixes, most);
    if found.fixes.is_empty() {
        // What the plugin asks for may not be all.
        search.advised_with_nodes().into_iter().for_each(|parts| line.add(parts));
        search.take(&mut line, &mut found.fixes, most);
    }
    let deletes = |fix: &Candidate| kinds(&fix.parts).contains(&Kind::Delete);
    if found.fixes.len() < most && !found.fixes.iter().any(deletes) {
        // Pods on other nodes may be in the way of a whole domain.
        related(asked).into_iter().for_each(|key| line.add(vec![delete_pod(asked, key)]));
        found.fixes.extend(search.next(&mut line, &found.fixes));
    }
    let mut company = Company::new(snapshot, &of, now);
    for fix in &mut found.fixes {
        fix.company = Some(company.judge(&fix.parts, fix.node.as_deref()));
    }
    let holds = |fix: &Candidate| fix.company.as_ref().is_some_and(InCompany::holds);
    if company.can_plan() && !found.fixes.is_empty() && !found.fixes.iter().any(holds) {
        let other = search.other_that_holds(&mut line, &found.fixes, &mut company);
        if let Some(other) = other.or_else(|| search.widened(&found.fixes, &mut company)) {
            found.fixes.truncate(most - 1);
            found.fixes.push(other);
        }
    }
    found.truncated |= search.is_cut || company.is_cut;
    found
}

/// Returns whether a change adds nothing to one of the fixes.
pub(super) fn is_known(parts: &[Part], fixes: &[Candidate]) -> bool {
    let change = kinds(parts);
    fixes.iter().any(|fix| is_no_better(&change, &kinds(&fix.parts)))
}

/// Returns the key by which changes are ordered: the sum of the parts' costs, and the edits as texts.
pub(super) fn rank(parts: &[Part]) -> (u32, BTreeSet<String>) {
    (cost(parts), edits_of(parts))
}

/// Returns whether all pods that a change moves have a place.
pub(super) fn are_moved(parts: &[Part], simulation: &Simulation) -> bool {
    parts.iter().all(|part| match &part.edit {
        Edit::MovePod { pod, .. } => simulation.is_placed(pod),
        _ => true,
    })
}

fn edits_of(parts: &[Part]) -> BTreeSet<String> {
    parts.iter().map(|part| format!("{:?}", part.edit)).collect()
}

/// What to look at next: a change that is made already, or a node of which one can be made. Of equal costs, changes come
/// first, then the nearest nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    /// Of a node the least that a change costs.
    cost: u32,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The change at this place of [`Line::made`].
    Change(usize),
    Node {
        place: usize,
        side: Side,
        node: NodeIdx,
        is_counted: bool,
    },
}

/// The changes and nodes that are to be looked at, the cheapest first.
#[derive(Default)]
struct Line {
    open: BinaryHeap<Reverse<Next>>,
    made: Vec<Vec<Part>>,
    known: BTreeSet<BTreeSet<String>>,
    /// Nodes whose changes would add nothing to what was found.
    passed: Vec<Next>,
}

impl Line {
    fn of(search: &Search<'_>) -> Self {
        let mut line = Self::default();
        let gates = search.gates();
        let base = cost(&gates);
        for (place, node) in search.nodes().into_iter().enumerate() {
            cancellation::check();
            let estimates = Side::ALL.map(|side| Estimate::of(search.asked, node, side));
            for (at, side) in Side::ALL.into_iter().enumerate() {
                let Some(estimate) = &estimates[at] else { continue };
                let is_same = |other: &Option<Estimate>| {
                    other.as_ref().is_some_and(|other| other.kinds == estimate.kinds)
                };
                if estimates[..at].iter().any(is_same) {
                    continue;
                }
                let what = What::Node { place, side, node, is_counted: !estimate.deletes() };
                line.open.push(Reverse(Next { cost: base + estimate.cost, what }));
            }
        }
        for like in search.models() {
            line.add(gates.iter().cloned().chain([copy_node(&like, 1)]).collect());
        }
        if gates.is_empty() {
            search.of_whole().into_iter().for_each(|parts| line.add(parts));
            advised::changes(search.asked, &search.of).into_iter().for_each(|parts| line.add(parts));
            advised::on_nodes(search.asked, &search.of).into_iter().for_each(|parts| line.add(parts));
        } else {
            line.add(gates);
        }
        line
    }

    /// Adds a change, once.
    fn add(&mut self, parts: Vec<Part>) {
        if !parts.is_empty() && self.known.insert(edits_of(&parts)) {
            self.open.push(Reverse(Next { cost: cost(&parts), what: What::Change(self.made.len()) }));
            self.made.push(parts);
        }
    }

    /// Looks at nodes again that were passed.
    fn reopen(&mut self) {
        self.open.extend(self.passed.drain(..).map(Reverse));
    }
}

pub(super) struct Search<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) asked: &'s PodRequirements<'s>,
    pub(super) of: Target,
    pub(super) now: Now,
    plans: usize,
    made: usize,
    is_cut: bool,
}

impl Search<'_> {
    fn key(&self) -> &PodKey {
        &self.asked.record.pod.key
    }

    /// Adds fixes until there are `most`.
    fn take(&mut self, line: &mut Line, fixes: &mut Vec<Candidate>, most: usize) {
        while fixes.len() < most
            && let Some(fix) = self.next(line, fixes)
        {
            fixes.push(fix);
        }
    }

    /// Returns the next fix that adds something to the known ones.
    fn next(&mut self, line: &mut Line, known: &[Candidate]) -> Option<Candidate> {
        while let Some(parts) = self.next_change(line, known) {
            if self.plans >= MOST_PLANS {
                self.is_cut = true;
                return None;
            }
            let fix = self.shrunk(parts).filter(|(parts, _)| !is_known(parts, known));
            if let Some((parts, node)) = fix {
                return Some(Candidate { parts, node: Some(node), ..Candidate::default() });
            }
        }
        None
    }

    /// Returns the cheapest change that was not looked at yet. Makes the changes of nodes whose estimates are lower.
    fn next_change(&mut self, line: &mut Line, known: &[Candidate]) -> Option<Vec<Part>> {
        let found: Vec<_> = known.iter().map(|fix| kinds(&fix.parts)).collect();
        let gates = self.gates();
        while let Some(Reverse(next)) = line.open.pop() {
            let What::Node { place, side, node, is_counted } = next.what else {
                let What::Change(at) = next.what else { continue };
                if !is_known(&line.made[at], known) {
                    return Some(line.made[at].clone());
                }
                continue;
            };
            cancellation::check();
            let Some(mut estimate) = Estimate::of(self.asked, node, side) else { continue };
            estimate.kinds.extend(kinds(&gates));
            if found.iter().any(|known| is_no_better(&estimate.kinds, known)) {
                line.passed.push(next);
                continue;
            }
            if !is_counted {
                if estimate.count_victims(self.asked, node).is_some() {
                    let what = What::Node { place, side, node, is_counted: true };
                    line.open.push(Reverse(Next { cost: cost(&gates) + estimate.cost, what }));
                }
                continue;
            }
            if self.made >= MOST_MADE {
                self.is_cut = true;
                continue;
            }
            self.made += 1;
            if let Some(parts) = self.repaired(node, side, &gates) {
                line.add(parts);
            }
        }
        None
    }

    /// Returns a fix that holds in company, of another node or of another kind than the known ones.
    fn other_that_holds(
        &mut self,
        line: &mut Line,
        known: &[Candidate],
        company: &mut Company<'_>,
    ) -> Option<Candidate> {
        line.reopen();
        let mut tried: BTreeSet<BTreeSet<String>> = known.iter().map(|fix| edits_of(&fix.parts)).collect();
        for _ in 0..MOST_WIDENED {
            let parts = self.next_change(line, &[])?;
            if self.plans >= MOST_PLANS || !company.can_plan() {
                return None;
            }
            let Some((parts, node)) = self.shrunk(parts).filter(|(parts, _)| tried.insert(edits_of(parts)))
            else {
                continue;
            };
            let judged = company.judge(&parts, Some(&node));
            if judged.holds() {
                let (node, company) = (Some(node), Some(judged));
                return Some(Candidate { parts, node, company, ..Candidate::default() });
            }
        }
        None
    }

    /// Returns one of the fixes with as few additional nodes as it needs to hold in company.
    fn widened(&mut self, fixes: &[Candidate], company: &mut Company<'_>) -> Option<Candidate> {
        let like = self.models().into_iter().next()?;
        let copies = |base: &[Part], n: usize| -> Vec<Part> {
            base.iter().cloned().chain((1..=n).map(|number| copy_node(&like, number))).collect()
        };
        let gates = self.gates();
        // New nodes alone, then beside each fix.
        let bases = fixes.iter().filter(|fix| fix.slots.is_none()).map(|fix| fix.parts.clone());
        let bases = std::iter::once(gates).chain(bases.take(3));
        for base in bases {
            if base.iter().any(|part| matches!(part.edit, Edit::CopyNode { .. })) {
                continue;
            }
            let Some(n) = self.fewest(company, |n| copies(&base, n)) else { continue };
            let Some(fix) = self.shrunk_in_company(copies(&base, n), company) else { continue };
            let least = self.shrunk(fix.parts.clone());
            let widened = least.is_none_or(|(least, _)| least.len() < fix.parts.len());
            return Some(Candidate { widened, ..fix });
        }
        None
    }

    /// Returns the smallest number of new nodes with which a change holds in company, assuming that more never harm.
    fn fewest(&self, company: &mut Company<'_>, change: impl Fn(usize) -> Vec<Part>) -> Option<usize> {
        let mut holds = |n: usize| company.judge(&change(n), None).holds();
        if !holds(MOST_COPIES) {
            return None;
        }
        let (mut fails, mut enough) = (0, MOST_COPIES);
        while enough - fails > 1 {
            let middle = fails + (enough - fails) / 2;
            if holds(middle) { enough = middle } else { fails = middle }
        }
        Some(enough)
    }

    /// Drops every part without which a change still holds, alone and in company. Returns the fix, or `None` when it is not
    /// known of a part whether it is needed. New nodes are needed without which it is not sure that the change holds.
    fn shrunk_in_company(&mut self, mut parts: Vec<Part>, company: &mut Company<'_>) -> Option<Candidate> {
        let (mut node, mut held) = (self.place(&parts)?, InCompany::Holds(None));
        parts.sort_by_key(|part| Reverse(part.cost));
        let mut at = 0;
        while at < parts.len() && parts.len() > 1 {
            let tried = |fewer: Vec<Part>| Some((self.place(&fewer)?, company.judge(&fewer, None), fewer));
            match without(&parts, at).and_then(tried) {
                Some((other, said, fewer)) if said.holds() => {
                    (parts, node, held, at) = (fewer, other, said, 0)
                }
                Some((_, InCompany::Unknown, _)) if !matches!(parts[at].edit, Edit::CopyNode { .. }) => {
                    return None;
                }
                // Its equals follow each other.
                _ => at += parts[at..].iter().take_while(|part| part.text == parts[at].text).count(),
            }
        }
        Some(Candidate { parts, node: Some(node), company: Some(held), ..Candidate::default() })
    }

    /// Simulates a change. Returns the node that takes the pod, or `None`, also when a pod that is moved finds no place.
    fn place(&mut self, parts: &[Part]) -> Option<String> {
        self.plans += 1;
        let mut simulation = changed(self.snapshot, parts, self.now)?;
        simulation.ask(self.key());
        simulation.plan(false);
        match simulation.fate(self.key()) {
            Fate::Placed { node, .. } if are_moved(parts, &simulation) => Some(node.to_string()),
            _ => None,
        }
    }

    /// Simulates a change and drops every part that it does not need. Returns the remaining parts and the pod's node.
    fn shrunk(&mut self, mut parts: Vec<Part>) -> Option<(Vec<Part>, String)> {
        let mut node = self.place(&parts)?;
        let mut at = 0;
        while at < parts.len() {
            // Drop the most expensive parts first, so that the cheap ones remain.
            let mut by_cost: Vec<usize> = (0..parts.len()).collect();
            by_cost.sort_by_key(|at| std::cmp::Reverse(parts[*at].cost));
            let fewer = without(&parts, by_cost[at]);
            match fewer.and_then(|fewer| Some((self.place(&fewer)?, fewer))) {
                Some((other, fewer)) if !fewer.is_empty() => (parts, node, at) = (fewer, other, 0),
                _ => at += 1,
            }
        }
        Some((parts, node))
    }

    fn gates(&self) -> Vec<Part> {
        let pod = &self.asked.record.pod;
        let part = || in_object(pod, remove_gates(&self.of, &pod.gates));
        if pod.gates.is_empty() { Vec::new() } else { vec![part()] }
    }

    /// Returns changes that may help a pod that is refused as a whole.
    fn of_whole(&self) -> Vec<Vec<Part>> {
        let Some(cause) = &self.asked.masks.pod else { return Vec::new() };
        let Some(node) = self.asked.cluster.by_name().first() else { return Vec::new() };
        let parts = cause.reasons.iter().filter_map(|reason| {
            let code = match reason.code {
                ReasonCode::AffinityTermsConflict | ReasonCode::NamedNodesMissing => {
                    ReasonCode::NodeAffinityMismatch
                }
                other => other,
            };
            let reason = pellucid_framework::Reason { code, subject: reason.subject.clone() };
            let requirement = Requirement { plugin: cause.plugin, reason };
            of_pod(self.asked, &self.of, *node, &requirement).map(|part| vec![part])
        });
        parts.collect()
    }

    /// Returns the nodes that refuse the pod, the nearest first.
    fn nodes(&self) -> Vec<NodeIdx> {
        match self.asked.masks.pod {
            Some(_) => Vec::new(),
            None => order(self.asked).into_iter().map(|near| near.node).collect(),
        }
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
    pub(super) fn round(
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
            (fixed, std::cmp::Reverse(cpu), asked.cluster.node_name(*node), *node)
        };
        let mut nodes: Vec<_> = asked.cluster.by_name().iter().map(key).collect();
        nodes.sort_unstable();
        nodes.into_iter().take(2).map(|(.., name, _)| name.clone()).collect()
    }
}

/// A failed requirement, and whether removing pods cannot satisfy it.
pub(super) type Open = (Requirement, bool);

pub(super) fn requirements(masks: &Masks, node: NodeIdx) -> Vec<Open> {
    let fixed = masks.fixed_of(node);
    let open = masks.requirements(masks.of(node));
    open.map(|(bit, requirement)| (requirement.clone(), fixed & (1 << bit) != 0)).collect()
}
