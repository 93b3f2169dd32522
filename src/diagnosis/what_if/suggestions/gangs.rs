//! Searches for changes that give a gang its quorum. Each is planned for the whole group, because what helps one
//! member may not be available for the next.
//!
//! Planning a large gang is expensive. The size of a change is first estimated from free resources and then verified;
//! changes that were not verified are not suggested.

use std::cell::Cell;
use std::collections::BTreeMap;

use pellucid_api::reason::ReasonCode;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::Target;
use pellucid_cycle::what_if::exhaustive::Requirement;
use pellucid_cycle::what_if::simulation::Simulation;
use pellucid_framework::Reason;
use pellucid_model::taint::tolerated;
use pellucid_model::{GangKey, Name, NodeIdx, Now, PodId};

use super::conflicts::conflicts;
use super::parts::{Part, copy_node, of_pod, remove_taint, set_request, uncordon};
use super::search::{Candidate, Found, changed, is_known, rank};
use crate::gangs::explain::refusal_of_group;
use crate::what_if::requirements::{PodRequirements, ask, requested};

/// Largest number of nodes that a fix adds or opens.
const MOST_NODES: usize = 64;
/// Bounds on the plans of one search, and on the members planned in all of them together.
const LEAST_PLANS: usize = 24;
const MOST_PLANS: usize = 200;
const MOST_MEMBERS: usize = 20_000;
/// Number of nodes tried as models of new ones.
const MOST_MODELS: usize = 3;

/// A change, and the number of members it places if it is known to be minimal.
struct Tried {
    parts: Vec<Part>,
    slots: Option<u32>,
}

/// Returns up to `most` fixes.
pub(super) fn fixes(snapshot: &Snapshot, key: &GangKey, most: usize, now: Now) -> Found {
    let Some(gang) = snapshot.cluster.gangs().get(key) else { return Found::default() };
    let left = Cell::new((MOST_MEMBERS / gang.members.len().max(1)).clamp(LEAST_PLANS, MOST_PLANS));
    let (of, need) = (Target::Gang(key.clone()), i64::from(gang.need()));
    let search = Search { snapshot, of, key, now, need, left, is_cut: Cell::new(false) };
    let as_it_is = search.planned(&[]);
    if as_it_is.as_ref().is_some_and(|simulation| search.slots(simulation).is_some()) {
        return Found { fits_now: true, ..Found::default() };
    }
    let stands_for = as_it_is.and_then(|simulation| search.stands_for(&simulation));
    let Some(asked) = stands_for.and_then(|id| ask(snapshot, id)) else {
        let note = "No member waits for a node; see what the gang's explanation says is missing.".to_string();
        return Found { note: Some(note), ..Found::default() };
    };
    let (conflicts, is_cut) = conflicts(&asked.masks, asked.cluster.present());
    let fixes = if most > 0 { search.found(&asked, most) } else { Vec::new() };
    let mut found = Found { conflicts, fixes, ..Found::default() };
    found.truncated = asked.masks.truncated || is_cut || search.is_cut.get();
    if found.fixes.is_empty() && most > 0 {
        let path = format!("/apis/v1/explain/gangs/{}/{}", key.namespace, key.name);
        let what = match search.is_cut.get() {
            true => "No change was found that helps, and not all could be tried out on a gang of this size",
            false => "No change that can be tried out here helps",
        };
        found.note = Some(format!("{what}; {path} says what is missing."));
    }
    found
}

struct Search<'s> {
    snapshot: &'s Snapshot,
    of: Target,
    key: &'s GangKey,
    now: Now,
    /// Number of members that need places.
    need: i64,
    /// Number of plans that may still be made.
    left: Cell<usize>,
    /// Whether a plan was wanted when none was left.
    is_cut: Cell<bool>,
}

impl Search<'_> {
    /// Returns the changes that help.
    fn found(&self, asked: &PodRequirements<'_>, most: usize) -> Vec<Candidate> {
        let mut all = BTreeMap::new();
        let tried =
            self.by_pods(asked).into_iter().chain(self.by_new_nodes(asked)).chain(self.by_opening(asked));
        for tried in tried {
            all.insert(rank(&tried.parts), tried);
        }
        let mut found: Vec<Candidate> = Vec::new();
        for tried in all.into_values() {
            if found.len() >= most {
                break;
            }
            if is_known(&tried.parts, &found) {
                continue;
            }
            let least = match tried.slots {
                Some(slots) => Some((tried.parts, slots)),
                None => self.shrunk(tried.parts),
            };
            found.extend(least.map(|(parts, slots)| Candidate {
                parts,
                slots: Some(slots),
                ..Candidate::default()
            }));
        }
        found
    }

    /// Plans the gang after a change. Returns how many members have places, if they are a quorum.
    fn solved(&self, parts: &[Part]) -> Option<u32> {
        self.slots(&self.planned(parts)?)
    }

    fn slots(&self, simulation: &Simulation) -> Option<u32> {
        let gang = simulation.scheduler().cluster().gangs().get(self.key)?;
        let counts = &gang.counts;
        let is_quorum = gang.definition.undefined.is_none() && gang.is_satisfied();
        is_quorum.then_some(counts.waiting + counts.permitted + counts.bound)
    }

    /// Plans the whole group after a change, including its other gangs. Returns `None` when no plan is left or an
    /// edit cannot be applied.
    fn planned(&self, parts: &[Part]) -> Option<Simulation> {
        let Some(left) = self.left.get().checked_sub(1) else {
            self.is_cut.set(true);
            return None;
        };
        self.left.set(left);
        let mut simulation = changed(self.snapshot, parts, self.now)?;
        for key in self.snapshot.cluster.gangs().group_of(self.key) {
            simulation.ask_gang(&key);
        }
        simulation.plan(false);
        Some(simulation)
    }

    /// Drops every part without which the quorum still has places. Returns `None` when the change does not give a
    /// quorum or the plans ran out.
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
        (!self.is_cut.get()).then_some((parts, slots))
    }

    /// Finds the smallest number up to `most` with which a change gives a quorum, assuming that a larger number is
    /// never harder. A good guess costs two plans.
    fn least(&self, guess: usize, most: usize, change: impl Fn(usize) -> Vec<Part>) -> Option<Tried> {
        let guess = guess.clamp(1, most.max(1));
        let tried = |n: usize| self.solved(&change(n)).map(|slots| (n, slots));
        let (mut works, mut fails) = match tried(guess) {
            Some(works) => (works, 0),
            None if guess < most => (tried(most)?, guess),
            None => return None,
        };
        let mut step = 1;
        while works.0 - fails > 1 {
            // From a guess that works, search downwards in growing steps.
            let middle =
                if fails == 0 { works.0.saturating_sub(step).max(1) } else { fails + (works.0 - fails) / 2 };
            step *= 2;
            match tried(middle) {
                Some(better) => works = better,
                None => fails = middle,
            }
        }
        (!self.is_cut.get()).then(|| Tried { parts: change(works.0), slots: Some(works.1) })
    }

    /// Returns the member that represents the failure: the root cause of an attempt made now, else the first pending
    /// member by name.
    fn stands_for(&self, simulation: &Simulation) -> Option<PodId> {
        let named = simulation.gang_verdict(self.key).and_then(|verdict| {
            let (key, _) = refusal_of_group(&verdict.outcome)?.root_cause.as_ref()?;
            Some(key.clone())
        });
        let cluster = &self.snapshot.cluster;
        let gang = cluster.gangs().get(self.key)?;
        let pending =
            gang.members.keys().copied().filter(|id| cluster.pod(*id).is_some_and(|r| r.node.is_none()));
        let first = pending.min_by_key(|id| cluster.pod(*id).map(|r| r.pod.key.clone()));
        named.and_then(|key| cluster.find_pod(&key)).or(first)
    }

    /// Returns changes of the members, all alike.
    fn by_pods(&self, asked: &PodRequirements<'_>) -> Vec<Tried> {
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
                // Some nodes take a member, but there are too few of them.
                [] if parts.is_empty() => {
                    let named = asked.record.pod.spec.requests.list.named();
                    all.extend(named.filter_map(|(name, _)| self.lowered(asked, &[], &name)));
                }
                [] => all.push(Tried { parts, slots: None }),
                [resource] => all.extend(self.lowered(asked, &parts, resource)),
                // There is no single best way to lower several resources at once.
                _ => {}
            }
        }
        all
    }

    /// Finds the largest request with which the quorum has places, in addition to `parts`.
    fn lowered(&self, asked: &PodRequirements<'_>, parts: &[Part], resource: &Name) -> Option<Tried> {
        let spec = &asked.record.pod.spec;
        let requested = requested(spec, resource)?;
        let step = match &**resource {
            "memory" | "ephemeral-storage" => 1 << 20,
            _ => 1,
        };
        let units = requested / step + i64::from(requested % step != 0);
        let amount = |cut: usize| (units - cut as i64) * step;
        let most = usize::try_from(units - 1).ok().filter(|most| *most > 0)?;
        // Nodes that lack nothing but this resource.
        let lack = Reason::about(ReasonCode::InsufficientResource, resource.clone());
        let is_only = |mask: u64| asked.masks.requirements(mask).all(|(_, r)| r.reason == lack);
        let open: Vec<NodeIdx> =
            asked.cluster.by_name().iter().copied().filter(|n| is_only(asked.masks.of(*n))).collect();
        let room_after = |cut: usize| -> i64 {
            open.iter().map(|node| room(asked, *node, Some((resource, amount(cut))))).sum()
        };
        let (mut fails, mut enough) = (0, most);
        while enough - fails > 1 {
            let middle = fails + (enough - fails) / 2;
            if room_after(middle) >= self.need { enough = middle } else { fails = middle }
        }
        let change = |cut: usize| {
            let request = set_request(spec, &self.of, resource, amount(cut));
            parts.iter().cloned().chain([request]).collect()
        };
        let tried = self.least(enough, most, change)?;
        // Whether the other parts are needed was not tried.
        Some(Tried { slots: tried.slots.filter(|_| parts.is_empty()), ..tried })
    }

    /// Opens nodes that fail nothing but being cordoned or tainted, those with the most room first, until there is a
    /// quorum.
    fn by_opening(&self, asked: &PodRequirements<'_>) -> Option<Tried> {
        let opens = |r: &Requirement| {
            matches!(r.reason.code, ReasonCode::NodeUnschedulable | ReasonCode::UntoleratedTaint)
        };
        let closed = asked.cluster.by_name().iter().filter(|node| {
            let mask = asked.masks.of(**node);
            mask != 0 && asked.masks.requirements(mask).all(|(_, r)| opens(r))
        });
        let mut closed: Vec<(i64, NodeIdx)> = closed.map(|node| (room(asked, *node, None), *node)).collect();
        closed.sort_by_key(|(room, _)| std::cmp::Reverse(*room));
        closed.truncate(MOST_NODES);
        let mut missing = self.missing(asked);
        let is_needed = |(room, _): &&(i64, NodeIdx)| {
            missing -= room;
            missing + room > 0
        };
        let guess = closed.iter().take_while(is_needed).count();
        let change =
            |n: usize| closed[..n].iter().flat_map(|(_, node)| opened(asked, *node)).collect::<Vec<_>>();
        let tried = if closed.is_empty() { None } else { self.least(guess, closed.len(), change) }?;
        // A single part cannot be reduced; of several, each is tried.
        Some(Tried { slots: tried.slots.filter(|_| tried.parts.len() == 1), ..tried })
    }

    /// Adds nodes like existing ones, as few as suffice.
    fn by_new_nodes(&self, asked: &PodRequirements<'_>) -> Vec<Tried> {
        let nodes = asked.cluster.by_name().iter();
        let mut models: Vec<_> = nodes.filter_map(|idx| Some((*idx, asked.cluster.node(*idx)?))).collect();
        let fixed = |idx: NodeIdx| {
            let fixed = asked.masks.requirements(asked.masks.fixed_of(idx));
            fixed.filter(|(_, r)| r.reason.code != ReasonCode::NodeUnschedulable).count()
        };
        // One of several equal nodes is enough.
        models.sort_by_key(|(idx, node)| {
            (fixed(*idx), std::cmp::Reverse(size(node, asked)), node.name.clone())
        });
        models.dedup_by(|(_, a), (_, b)| a.allocatable == b.allocatable && a.taints == b.taints);
        let missing = self.missing(asked);
        let enough = |node: &Name, size: i64| {
            let copies = |n: usize| (1..=n).map(|i| copy_node(node, i)).collect();
            let guess = usize::try_from(missing / size + i64::from(missing % size != 0)).unwrap_or(1);
            self.least(guess, MOST_NODES, copies)
        };
        let models = models.into_iter().filter(|(_, node)| size(node, asked) > 0).take(MOST_MODELS);
        models.filter_map(|(_, node)| enough(&node.name, size(node, asked))).collect()
    }

    /// Returns the number of members for which there is no room now.
    fn missing(&self, asked: &PodRequirements<'_>) -> i64 {
        let open = asked.cluster.by_name().iter().filter(|node| asked.masks.of(**node) == 0);
        self.need - open.map(|node| room(asked, *node, None)).sum::<i64>()
    }
}

/// Returns the parts that open a cordoned or tainted node.
fn opened(asked: &PodRequirements<'_>, node: NodeIdx) -> Vec<Part> {
    let Some(object) = asked.cluster.node(node) else { return Vec::new() };
    let tolerations = &asked.record.pod.spec.tolerations;
    let is_cordon = |key: &str| key == "node.kubernetes.io/unschedulable";
    let taints = object.taints.iter().filter(|t| !tolerated(tolerations, t) && !is_cordon(&t.key));
    let uncordon = object.unschedulable.then(|| uncordon(&object.name));
    uncordon.into_iter().chain(taints.map(|taint| remove_taint(&object.name, taint))).collect()
}

/// Returns the number of members for which a node has room, by their requests; `other` replaces the amount of one
/// resource.
fn room(asked: &PodRequirements<'_>, node: NodeIdx, other: Option<(&Name, i64)>) -> i64 {
    let columns = asked.cluster.columns();
    let free = |name: &Name| columns.find(name).map_or(0, |resource| columns.free(node, resource)).max(0);
    let amount =
        |name: &Name, amount: i64| other.filter(|(n, _)| *n == name).map_or(amount, |(_, other)| other);
    let requests = asked.record.pod.spec.requests.list.named();
    let fits = requests.map(|(name, requested)| free(&name) / amount(&name, requested).max(1));
    fits.chain([free(&Name::new("pods"))]).min().unwrap_or(0)
}

/// Returns the number of members that an empty node has room for, by their requests.
fn size(node: &pellucid_model::Node, asked: &PodRequirements<'_>) -> i64 {
    let requests = &asked.record.pod.spec.requests.list;
    let offers = |name: &Name| match &**name {
        "cpu" => node.allocatable.milli_cpu,
        "memory" => node.allocatable.memory,
        "ephemeral-storage" => node.allocatable.ephemeral_storage,
        _ => node.allocatable.scalar(name),
    };
    requests.named().map(|(name, amount)| offers(&name) / amount).min().unwrap_or(node.allocatable.pods)
}
