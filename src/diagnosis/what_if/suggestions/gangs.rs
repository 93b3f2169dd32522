//! Searches for changes that give a gang its quorum. Each is planned for the whole group, because what helps one
//! member may not be available for the next.
//!
//! Planning a large gang is expensive. The size of a change is first estimated from free resources and then verified;
//! changes that were not verified are not suggested.

use std::cell::Cell;
use std::collections::BTreeMap;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::explain::Outlook;
use pellucid_cluster::Stage;
use pellucid_cluster::gangs::Gang;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::Target;
use pellucid_cycle::what_if::exhaustive::Requirement;
use pellucid_cycle::what_if::simulation::Simulation;
use pellucid_framework::Reason;
use pellucid_model::{GangKey, Name, NodeIdx, Now, PodId};

use super::advised;
use super::conflicts::conflicts;
use super::gang_nodes::room;
use super::parts::{Part, changed, of_pod, remove_gates, set_request, without};
use super::search::{Candidate, Found, are_moved, is_known, rank};
use super::victims::delete_pod;
use crate::called::named;
use crate::gangs::outlook::GangOutlook;
use crate::requirements::{PodRequirements, ask, requested};

/// Largest number of nodes that a fix adds or opens.
pub(super) const MOST_NODES: usize = 64;
/// Bounds on the plans of one search, and on the members planned in all of them together.
const LEAST_PLANS: usize = 24;
const MOST_PLANS: usize = 200;
const MOST_MEMBERS: usize = 20_000;
/// Number of nodes tried as models of new ones.
const MOST_MODELS: usize = 3;

/// A change, and the number of members it places if it is known to be minimal.
pub(super) struct Tried {
    pub(super) parts: Vec<Part>,
    pub(super) slots: Option<u32>,
}

/// Largest number of pods that a fix lets go.
const MOST_LEAVING: usize = 8;
/// Number of sets of failed requirements for which changes of the members are tried.
const MOST_SETS: usize = 6;
/// Number of other members by which room is looked for, where they are unlike.
const MOST_UNLIKE: usize = 4;

/// A gang that is planned as one, and the member that is asked about.
#[derive(Clone, Copy)]
pub(super) struct Planned<'s> {
    pub(super) key: &'s GangKey,
    pub(super) look: &'s GangOutlook,
    /// The member that has to have a place beside the quorum, and its outlook.
    pub(super) member: Option<(PodId, &'s Outlook)>,
}

impl Planned<'_> {
    fn outlook(&self) -> &Outlook {
        self.member.map_or(&self.look.body, |(_, own)| own)
    }
}

/// Returns up to `most` fixes for a gang.
pub(super) fn fixes(snapshot: &Snapshot, of: Planned<'_>, most: usize, now: Now) -> Found {
    let (key, look) = (of.key, of.look);
    let Some(gang) = snapshot.cluster.gangs().get(key) else { return Found::default() };
    if of.outlook().code == "FitsNow" {
        return Found { fits_now: true, ..Found::default() };
    }
    let plans = (MOST_MEMBERS / gang.members.len().max(1)).clamp(LEAST_PLANS, MOST_PLANS);
    let mut search = Search::new(snapshot, gang, plans, now);
    search.include(of.member.map(|(id, _)| id), look);
    let asked = search.stands_for(look).and_then(|id| ask(snapshot, id));
    let mut found = Found::default();
    if let Some(asked) = &asked {
        let (all, is_cut) = conflicts(&asked.masks, asked.cluster.present());
        found.conflicts = all;
        found.truncated = asked.masks.truncated || is_cut;
    }
    if most > 0 {
        found.fixes = search.best(asked.as_ref(), &of, most);
    }
    found.truncated |= search.is_cut.get();
    if found.fixes.is_empty() && most > 0 {
        let path = format!("/apis/v1/explain/gangs/{}/{}", key.namespace, key.name);
        let what = match (search.is_cut.get(), of.outlook().would_leave.len()) {
            (_, leaving @ 1..) => {
                format!("No smaller change was found that helps than that {leaving} pods leave")
            }
            (true, 0) => {
                "No change was found that helps, and not all could be tried out on a gang of this size".into()
            }
            (false, 0) => "No change that can be tried out here helps".to_owned(),
        };
        found.note = Some(format!("{what}; {path} says what is missing."));
    }
    found
}

pub(super) struct Search<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) of: Target,
    pub(super) key: &'s GangKey,
    pub(super) gang: &'s Gang,
    /// The gangs that are planned together.
    pub(super) group: Vec<GangKey>,
    /// The member that has to have a place beside the quorum.
    pub(super) member: Option<PodId>,
    now: Now,
    /// Number of members that need places.
    pub(super) need: i64,
    /// Number of plans that may still be made.
    pub(super) left: Cell<usize>,
    /// Whether a plan was wanted when none was left.
    is_cut: Cell<bool>,
}

impl<'s> Search<'s> {
    fn new(snapshot: &'s Snapshot, gang: &'s Gang, plans: usize, now: Now) -> Self {
        let (key, need) = (&gang.key, i64::from(gang.need()));
        let (of, left) = (Target::Gang(key.clone()), Cell::new(plans));
        let group = snapshot.cluster.gangs().group_of(key);
        Self { snapshot, of, key, gang, group, member: None, now, need, left, is_cut: Cell::new(false) }
    }

    /// Looks for changes that give this member a place too.
    fn include(&mut self, member: Option<PodId>, look: &GangOutlook) {
        self.member = member;
        if member.is_some_and(|id| look.is_beyond(id)) {
            // It may be the last to get one.
            self.need = i64::try_from(self.pending().count()).unwrap_or(i64::MAX);
        }
    }

    /// Returns changes of what the gang demands.
    fn by_terms(&self, look: &GangOutlook) -> Vec<Tried> {
        let mut tried: Vec<Tried> = self.by_gates().into_iter().chain(self.by_quorum(look)).collect();
        tried.extend(self.by_quorums(look));
        tried.extend(self.by_min_resources());
        tried
    }

    /// Returns changes that make room, by what one member lacks.
    fn by_room(&self, asked: &PodRequirements<'_>, of: &Planned<'_>) -> Vec<Tried> {
        let mut tried = self.by_advice(asked);
        tried.extend(of.look.slots_now.into_iter().flat_map(|n| self.by_member_advice(n)));
        tried.extend(self.by_leaving(asked, of.outlook()));
        tried.extend(self.by_pods(asked));
        tried.extend(self.by_new_nodes(asked, MOST_MODELS));
        tried.extend(self.by_opening(asked));
        tried
    }

    /// Returns pending members unlike one, and unlike each other: the first of each kind by name.
    fn unlike(&self, id: PodId) -> Vec<PodId> {
        let pod = |id: PodId| self.snapshot.cluster.pod(id).map(|record| &record.pod);
        let mut pending: Vec<PodId> = self.pending().collect();
        pending.sort_by_key(|id| pod(*id).map(|pod| &pod.key));
        let mut kinds: Vec<PodId> = vec![id];
        for id in pending {
            let is_like = |known: &PodId| pod(*known).map(|pod| &pod.spec) == pod(id).map(|pod| &pod.spec);
            if kinds.len() <= MOST_UNLIKE && !kinds.iter().any(is_like) {
                kinds.push(id);
            }
        }
        kinds.split_off(1)
    }

    /// Returns the changes that help, the easiest first.
    fn best(&self, asked: Option<&PodRequirements<'_>>, of: &Planned<'_>, most: usize) -> Vec<Candidate> {
        // While the group cannot be planned, no room helps.
        let asked = asked.filter(|_| of.look.slots_now.is_some());
        let mut tried = self.by_terms(of.look);
        tried.extend(asked.into_iter().flat_map(|asked| self.by_room(asked, of)));
        // Where members are unlike, a node may be closed to another one alone.
        for id in asked.into_iter().flat_map(|asked| self.unlike(asked.id)) {
            let other = ask(self.snapshot, id);
            tried.extend(other.iter().flat_map(|other| self.by_advice(other)));
            tried.extend(other.iter().filter_map(|other| self.by_opening(other)));
        }
        self.found(tried, most)
    }

    /// Tries changes out. Returns those that help, the easiest first.
    fn found(&self, tried: Vec<Tried>, most: usize) -> Vec<Candidate> {
        let all: BTreeMap<_, _> = tried.into_iter().map(|tried| (rank(&tried.parts), tried)).collect();
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

    /// Removes the scheduling gates of the members, if some have any.
    fn by_gates(&self) -> Option<Tried> {
        let pending = self.pending().filter_map(|id| self.snapshot.cluster.pod(id));
        let mut gates: Vec<Name> = pending.flat_map(|record| record.pod.gates.iter().cloned()).collect();
        gates.sort();
        gates.dedup();
        let parts = vec![remove_gates(&self.of, &gates)];
        (!gates.is_empty()).then_some(Tried { parts, slots: None })
    }

    /// Lets the pods go whose end was found to give a quorum, if they are few.
    fn by_leaving(&self, asked: &PodRequirements<'_>, outlook: &Outlook) -> Option<Tried> {
        let pods = &outlook.would_leave;
        let key = |text: &String| named(&self.snapshot.cluster, text);
        let parts = pods.iter().filter_map(key).map(|key| delete_pod(asked, key)).collect();
        (1..=MOST_LEAVING).contains(&pods.len()).then_some(Tried { parts, slots: None })
    }

    /// Takes what plugins propose for as many members as need places.
    fn by_advice(&self, asked: &PodRequirements<'_>) -> Vec<Tried> {
        let all = advised::for_several(asked, &self.of, self.need);
        all.into_iter().map(|parts| Tried { parts, slots: None }).collect()
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = PodId> {
        let is_pending = |id: &PodId| self.snapshot.cluster.pod(*id).is_some_and(|r| r.node.is_none());
        self.gang.members.keys().copied().filter(is_pending)
    }

    pub(super) fn is_ready(&self, id: PodId) -> bool {
        self.snapshot.cluster.pod(id).is_some_and(|record| record.pod.gates.is_empty())
    }

    /// Returns the first pending member by name.
    fn first_pending(&self) -> Option<PodId> {
        let key = |id: &PodId| self.snapshot.cluster.pod(*id).map(|r| r.pod.key.clone());
        self.pending().min_by_key(key)
    }

    /// Plans the gang after a change. Returns how many members have places, if they are a quorum and the pods that move have
    /// places too.
    pub(super) fn solved(&self, parts: &[Part]) -> Option<u32> {
        let simulation = self.planned(parts)?;
        self.slots(&simulation).filter(|_| are_moved(parts, &simulation))
    }

    fn slots(&self, simulation: &Simulation) -> Option<u32> {
        let cluster = simulation.scheduler().cluster();
        let gangs = cluster.gangs();
        let is_whole = |g: &Gang| g.definition.undefined.is_none() && g.is_satisfied();
        let is_quorum = self.group.iter().all(|key| gangs.get(key).is_some_and(|gang| is_whole(gang)));
        let has_place = |id| cluster.pod(id).is_some_and(|r| r.node.is_some() && r.stage != Stage::Waiting);
        (is_quorum && self.member.is_none_or(has_place))
            .then(|| gangs.get(self.key).map(|gang| gang.counts.placed()))?
    }

    /// Plans the whole group after a change, including its other gangs. Returns `None` when no plan is left or an
    /// edit cannot be applied.
    pub(super) fn planned(&self, parts: &[Part]) -> Option<Simulation> {
        let Some(left) = self.left.get().checked_sub(1) else {
            self.is_cut.set(true);
            return None;
        };
        self.left.set(left);
        let mut simulation = changed(self.snapshot, parts, self.now)?;
        for key in &self.group {
            simulation.ask_gang(key);
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
            match without(&parts, at).and_then(|fewer| Some((self.solved(&fewer)?, fewer))) {
                Some((n, fewer)) => (parts, slots, at) = (fewer, n, 0),
                None => at += 1,
            }
        }
        (!self.is_cut.get()).then_some((parts, slots))
    }

    /// Finds the smallest number up to `most` with which a change gives a quorum, assuming that a larger number is
    /// never harder. A good guess costs two plans.
    pub(super) fn least(
        &self,
        guess: usize,
        most: usize,
        change: impl Fn(usize) -> Vec<Part>,
    ) -> Option<Tried> {
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

    /// Returns the member that represents the failure: the one that is asked about if it is beyond the quorum, else the
    /// root cause of a plan made now, else the first pending member by name.
    fn stands_for(&self, look: &GangOutlook) -> Option<PodId> {
        let beyond = self.member.filter(|id| look.is_beyond(*id));
        let named = look.refusal.as_ref().and_then(|refusal| Some(&refusal.root_cause.as_ref()?.0));
        let named = || named.and_then(|key| self.snapshot.cluster.find_pod(key));
        beyond.or_else(named).or_else(|| self.first_pending())
    }

    /// Returns changes of the members, all alike.
    fn by_pods(&self, asked: &PodRequirements<'_>) -> Vec<Tried> {
        let mut all = Vec::new();
        // What nodes with the same mask fail is relaxed by the same change of the members.
        let distinct: BTreeMap<u64, NodeIdx> =
            asked.cluster.by_name().iter().rev().map(|node| (asked.masks.of(*node), *node)).collect();
        let hardness = |mask: u64, node: NodeIdx| -> u32 {
            let open = asked.masks.requirements(mask);
            open.map(|(_, r)| of_pod(asked, &self.of, node, r).map_or(60, |part| part.cost)).sum()
        };
        let mut easiest: Vec<(u32, u64, NodeIdx)> =
            distinct.into_iter().map(|(mask, node)| (hardness(mask, node), mask, node)).collect();
        easiest.sort_unstable();
        for (_, mask, node) in easiest.into_iter().take(MOST_SETS) {
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
}
