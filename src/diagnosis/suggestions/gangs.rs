//! Looks for changes that give a gang its quorum: each is planned for the whole group, because what helps one member
//! may not be there for the next.

use std::cell::Cell;
use std::collections::BTreeMap;

use pellucid_api::rest::suggestions::Conflict;

use super::conflicts::conflicts;
use super::parts::{Part, copy_node, of_pod, remove_taint, set_request, uncordon};
use super::search::{Candidate, changed, cost, edits_of, is_no_better};
use crate::cycle::exhaustive::Requirement;
use crate::cycle::gangs::GangOutcome;
use crate::cycle::whatif::{Aside, Target};
use crate::diagnosis::requirements::{Asked, ask};
use crate::diagnosis::root::Root;
use crate::model::taint::tolerated;
use crate::model::{GangKey, Name, NodeIdx, Now, PodId};
use pellucid_api::reason::ReasonCode;

/// The most nodes that a fix adds or opens.
const MOST_NODES: usize = 64;
/// Plans of one search, and members that are planned in all of them together.
const MOST_PLANS: usize = 200;
const MOST_MEMBERS: usize = 20_000;
/// Nodes that are tried as models of new ones.
const MOST_MODELS: usize = 3;

/// What a search found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) fits_now: bool,
    pub(super) conflicts: Vec<Conflict>,
    pub(super) fixes: Vec<Candidate>,
    pub(super) note: Option<String>,
    /// The plans ran out before everything was tried, or there may be more conflicts.
    pub(super) truncated: bool,
}

/// Searches, the easiest changes first.
pub(super) fn fixes(root: &Root, key: &GangKey, most: usize, now: Now) -> Found {
    let members = root.cluster.gangs().get(key).map_or(0, |gang| gang.members.len());
    let left = Cell::new((MOST_MEMBERS / members.max(1)).clamp(20, MOST_PLANS));
    let search = Search { root, of: Target::Gang(key.clone()), key, now, left, is_cut: Cell::new(false) };
    if search.solved(&[]).is_some() {
        return Found { fits_now: true, ..Found::default() };
    }
    let Some(asked) = search.stands_for().and_then(|id| ask(root, id)) else {
        let note = "No member waits for a node; see what the gang's explanation says is missing.".to_string();
        return Found { note: Some(note), ..Found::default() };
    };
    let (conflicts, is_cut) = conflicts(&asked.masks, asked.cluster.present());
    let mut found = Found { conflicts, ..Found::default() };
    let mut all: BTreeMap<(u32, Vec<String>), Vec<Part>> = BTreeMap::new();
    let mut add = |parts: Vec<Part>| {
        let edits: Vec<String> = edits_of(&parts).into_iter().collect();
        all.insert((cost(&parts), edits), parts);
    };
    search.by_pods(&asked).into_iter().for_each(&mut add);
    search.by_opening(&asked).into_iter().for_each(&mut add);
    search.by_new_nodes(&asked).into_iter().for_each(&mut add);
    for parts in all.into_values() {
        if found.fixes.len() >= most {
            break;
        }
        if found.fixes.iter().any(|known| is_no_better(&parts, &known.parts)) {
            continue;
        }
        if let Some((parts, slots)) = search.shrunk(parts) {
            found.fixes.push(Candidate { parts, node: None, slots: Some(slots) });
        }
    }
    found.truncated = asked.masks.truncated || is_cut || search.is_cut.get();
    found.fixes.sort_by_cached_key(|fix| (cost(&fix.parts), edits_of(&fix.parts)));
    if found.fixes.is_empty() {
        let path = format!("/apis/v1/explain/gangs/{}/{}", key.namespace, key.name);
        found.note =
            Some(format!("No change that can be tried out here helps; {path} says what is missing."));
    }
    found
}

struct Search<'s> {
    root: &'s Root,
    of: Target,
    key: &'s GangKey,
    now: Now,
    /// Plans that may still be made.
    left: Cell<usize>,
    /// One more was wanted.
    is_cut: Cell<bool>,
}

impl Search<'_> {
    /// Plans the gang after a change. Returns how many members have places when that is a quorum.
    fn solved(&self, parts: &[Part]) -> Option<u32> {
        let aside = self.planned(parts)?;
        let gang = aside.scheduler().cluster().gangs().get(self.key)?;
        let counts = &gang.counts;
        let is_quorum = gang.definition.undefined.is_none() && gang.is_satisfied();
        is_quorum.then_some(counts.waiting + counts.permitted + counts.bound)
    }

    /// The whole group is planned: its other gangs too.
    fn planned(&self, parts: &[Part]) -> Option<Aside> {
        let Some(left) = self.left.get().checked_sub(1) else {
            self.is_cut.set(true);
            return None;
        };
        self.left.set(left);
        let mut aside = changed(self.root, parts, self.now)?;
        for key in self.root.cluster.gangs().group_of(self.key) {
            aside.ask_gang(&key);
        }
        aside.plan(false);
        Some(aside)
    }

    /// Takes away every part without which the quorum still has its places.
    fn shrunk(&self, mut parts: Vec<Part>) -> Option<(Vec<Part>, u32)> {
        let mut slots = self.solved(&parts)?;
        let mut at = 0;
        while at < parts.len() && parts.len() > 1 {
            let mut fewer = parts.clone();
            fewer.remove(at);
            match self.solved(&fewer) {
                Some(n) => (parts, slots, at) = (fewer, n, 0),
                None => at += 1,
            }
        }
        Some((parts, slots))
    }

    /// Returns the member that stands for the failure: the root cause of an attempt at it now, else the first by
    /// name.
    fn stands_for(&self) -> Option<PodId> {
        let aside = self.planned(&[])?;
        let verdict = aside.gang_verdict(self.key);
        let named = verdict.and_then(|verdict| match &verdict.outcome {
            GangOutcome::Refused(refusal) | GangOutcome::Waiting { refusal, .. } => {
                refusal.root_cause.as_ref().map(|(key, _)| key.clone())
            }
            _ => None,
        });
        let cluster = &self.root.cluster;
        let gang = cluster.gangs().get(self.key)?;
        let pending =
            gang.members.keys().copied().filter(|id| cluster.pod(*id).is_some_and(|r| r.node.is_none()));
        let first = pending.min_by_key(|id| cluster.pod(*id).map(|r| r.pod.key.clone()));
        named.and_then(|key| cluster.find_pod(&key)).or(first)
    }

    /// The members are changed, all alike.
    fn by_pods(&self, asked: &Asked<'_>) -> Vec<Vec<Part>> {
        let mut all = Vec::new();
        let distinct: BTreeMap<u64, NodeIdx> =
            asked.cluster.by_name().iter().rev().map(|node| (asked.masks.of(*node), *node)).collect();
        let mut smallest: Vec<(u32, u64, NodeIdx)> =
            distinct.into_iter().map(|(mask, node)| (mask.count_ones(), mask, node)).collect();
        smallest.sort_unstable();
        for (_, mask, node) in smallest.into_iter().take(6) {
            let requirements: Vec<&Requirement> = asked.masks.requirements(mask).map(|(_, r)| r).collect();
            let resources = requirements.iter().filter(|r| r.reason.code == ReasonCode::InsufficientResource);
            let resources: Vec<Name> = resources.filter_map(|r| r.reason.subject.clone()).collect();
            let others = requirements.iter().filter(|r| r.reason.code != ReasonCode::InsufficientResource);
            let parts: Option<Vec<Part>> = others.map(|r| of_pod(asked, &self.of, node, r)).collect();
            let Some(parts) = parts else { continue };
            match resources.as_slice() {
                [] if parts.is_empty() => all.extend(self.lowered_most(asked)),
                [] => all.push(parts),
                [resource] => all.extend(self.lowered(asked, parts, resource)),
                // Several resources at once have no single best way to be lowered.
                _ => {}
            }
        }
        all
    }

    /// Some nodes take a member and there are too few of them: one of the resources is requested less.
    fn lowered_most(&self, asked: &Asked<'_>) -> Vec<Vec<Part>> {
        let named: Vec<Name> = asked.record.pod.spec.requests.list.named().map(|(name, _)| name).collect();
        named.iter().filter_map(|resource| self.lowered(asked, Vec::new(), resource)).collect()
    }

    /// Finds the largest request with which the quorum has its places, by halving.
    fn lowered(&self, asked: &Asked<'_>, parts: Vec<Part>, resource: &Name) -> Option<Vec<Part>> {
        let spec = &asked.record.pod.spec;
        let requested = spec.requests.list.named().find(|(name, _)| name == resource)?.1;
        let step = match &**resource {
            "memory" | "ephemeral-storage" => 1 << 20,
            _ => 1,
        };
        let with = |units: i64| {
            let mut parts = parts.clone();
            parts.push(set_request(spec, &self.of, resource, units * step));
            parts
        };
        let (mut works, mut fails) = (1, requested / step + i64::from(requested % step != 0));
        if fails <= works || self.solved(&with(works)).is_none() {
            return None;
        }
        while fails - works > 1 {
            let middle = works + (fails - works) / 2;
            if self.solved(&with(middle)).is_some() { works = middle } else { fails = middle }
        }
        Some(with(works))
    }

    /// Nodes that fail nothing but being closed or tainted are opened, until there is a quorum.
    fn by_opening(&self, asked: &Asked<'_>) -> Option<Vec<Part>> {
        let opens = |r: &Requirement| {
            matches!(r.reason.code, ReasonCode::NodeUnschedulable | ReasonCode::UntoleratedTaint)
        };
        let closed = asked.cluster.by_name().iter().filter(|node| {
            let mask = asked.masks.of(**node);
            mask != 0 && asked.masks.requirements(mask).all(|(_, r)| opens(r))
        });
        let mut parts: Vec<Part> = Vec::new();
        for node in closed.take(MOST_NODES) {
            let Some(object) = asked.cluster.node(*node) else { continue };
            if object.unschedulable {
                parts.push(uncordon(&object.name));
            }
            let tolerations = &asked.record.pod.spec.tolerations;
            let is_cordon = |key: &str| key == "node.kubernetes.io/unschedulable";
            let taints = object.taints.iter().filter(|t| !tolerated(tolerations, t) && !is_cordon(&t.key));
            parts.extend(taints.map(|taint| remove_taint(&object.name, taint)));
            if self.solved(&parts).is_some() {
                return Some(parts);
            }
        }
        None
    }

    /// Nodes like some that are there are added, as few as do.
    fn by_new_nodes(&self, asked: &Asked<'_>) -> Vec<Vec<Part>> {
        let mut models: Vec<_> =
            asked.cluster.by_name().iter().filter_map(|idx| asked.cluster.node(*idx)).collect();
        // Of equal nodes one is enough.
        models.sort_by_key(|node| (std::cmp::Reverse(size(node, asked)), node.name.clone()));
        models.dedup_by(|a, b| a.allocatable == b.allocatable && a.taints == b.taints);
        let copies = |node: &Name, n: usize| -> Vec<Part> { (1..=n).map(|i| copy_node(node, i)).collect() };
        let enough = |node: &Name| {
            let mut n = 1;
            while n <= MOST_NODES && self.solved(&copies(node, n)).is_none() {
                n *= 2;
            }
            if n > MOST_NODES {
                return None;
            }
            let (mut works, mut fails) = (n, n / 2);
            while works - fails > 1 {
                let middle = fails + (works - fails) / 2;
                if self.solved(&copies(node, middle)).is_some() { works = middle } else { fails = middle }
            }
            Some(copies(node, works))
        };
        models.into_iter().take(MOST_MODELS).filter_map(|node| enough(&node.name)).collect()
    }
}

/// How many times a node offers what a member requests.
fn size(node: &crate::model::Node, asked: &Asked<'_>) -> i64 {
    let requests = &asked.record.pod.spec.requests.list;
    let offers = |name: &Name| match &**name {
        "cpu" => node.allocatable.milli_cpu,
        "memory" => node.allocatable.memory,
        "ephemeral-storage" => node.allocatable.ephemeral_storage,
        _ => node.allocatable.scalar(name),
    };
    requests.named().map(|(name, amount)| offers(&name) / amount).min().unwrap_or(node.allocatable.pods)
}
