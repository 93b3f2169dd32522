//! Whether the quorum of a gang fits now, could fit later, or never.
//!
//! The whole group is planned on copies of the state: as things are, with victims of preemption gone, and on nodes
//! emptied of every pod that can leave. Members of the group that are placed keep their places. The numbers of all
//! answers about a gang come from here, so that they agree. `leaving` names pods whose end would do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::explain::Outlook;
use pellucid_cluster::{Cluster, PodRecord, Stage};
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::gangs::gate::Block;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_cycle::what_if::simulation::Simulation;
use pellucid_model::{GangKey, Name, Now, PodId, cancellation};
use pellucid_recording::GangOutcome;
use pellucid_recording::gang_verdict::{GangRefusal, GangShare, attempt_message};

use super::explain::refusal_of_group;
use super::gang_state::{block_of, is_off};
use super::lasting::of_member_refused;
use super::leaving::{MOST_LEAVING, leaving};
use super::measured;
use super::status::GangStatus;
use super::targets::targets;
use crate::called::{called, called_as, called_in_words, called_together};
use crate::known::known;

/// Of a gang that emptied nodes may have room for once other amounts are measured on them.
const MEASURED: &str = "what is measured on nodes keeps its members off them, or decides which nodes these get; it may change when \
                        pods on them end, or by itself";

/// What a gang comes to when its group is planned now.
#[derive(Clone)]
pub(crate) struct GangOutlook {
    /// The outlook as a body.
    pub(crate) body: Outlook,
    /// Why the group has no quorum as things are; `None` when it has one, or cannot be planned.
    pub(crate) refusal: Option<Arc<GangRefusal>>,
    /// Members that the quorum still needs.
    pub(crate) wanted: u32,
    /// How many of them have places together now; `None` when the group cannot be planned.
    pub(crate) slots_now: Option<u32>,
    /// How many of them have places on emptied nodes; `None` when that was not asked.
    pub(crate) slots_empty: Option<u32>,
    /// The pending members that have places in the plan that gave the quorum, if one did.
    pub(super) placed: BTreeSet<PodId>,
    /// Of a gang that never fits: why emptied nodes refuse it.
    lasting: Option<Lasting>,
    /// What would help.
    pub(crate) remedy: String,
    /// Who can usually do that.
    pub(crate) resolver: String,
}

impl GangOutlook {
    /// Returns how many of the wanted members have no place now.
    pub(crate) fn slots_missing(&self) -> Option<u32> {
        self.slots_now.map(|placeable| self.wanted.saturating_sub(placeable))
    }

    /// Returns whether the quorum has places as things are.
    pub(crate) fn fits_now(&self) -> bool {
        self.body.code == "FitsNow"
    }
}

/// Returns the outlook of a gang, or `None` if its group has its quorum, waits for no place, or is not scheduled as one.
pub(crate) fn of_gang(snapshot: &Snapshot, key: &GangKey, now: Now) -> Option<GangOutlook> {
    let mut found = GangOutlook::clone(&*as_it_stands(snapshot, key, now)?);
    if found.slots_empty.is_some() {
        (found.remedy, found.resolver) = Look::of(snapshot, key, now).remedy(&found);
    }
    Some(found)
}

/// Does the same as [`of_gang`] without working out what would help a gang that does not fit. Kept for all readers of
/// the snapshot.
pub(crate) fn as_it_stands(snapshot: &Snapshot, key: &GangKey, now: Now) -> Option<Arc<GangOutlook>> {
    if !is_planned_as_one(snapshot, key) {
        return None;
    }
    let look = || {
        let look = Look::of(snapshot, key, now);
        Arc::new(match block_of(snapshot, key) {
            Some(block) => look.held_back(&block),
            None => look.planned(),
        })
    };
    Some(known(snapshot).outlook_of_gang(key, look))
}

/// Returns whether a gang has pending members that are planned with it, because its group has no quorum.
pub(super) fn is_planned_as_one(snapshot: &Snapshot, key: &GangKey) -> bool {
    let gangs = snapshot.cluster.gangs();
    let Some(gang) = gangs.get(key) else { return false };
    let is_pending = |id: &PodId| snapshot.cluster.pod(*id).is_some_and(|r| r.node.is_none());
    !is_whole(&snapshot.cluster, &gangs.group_of(key))
        && gang.members.keys().any(is_pending)
        && !is_off(snapshot, &GangStatus::of_gang(snapshot, gang))
}

/// Returns whether each of these gangs has its quorum.
fn is_whole(cluster: &Cluster, keys: &[GangKey]) -> bool {
    let mut gangs = keys.iter().map(|key| cluster.gangs().get(key));
    gangs.all(|gang| gang.is_some_and(|g| g.definition.undefined.is_none() && g.is_satisfied()))
}

/// A gang whose group is planned on copies of a snapshot.
pub(super) struct Look<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) key: &'s GangKey,
    /// The gangs that are planned together.
    pub(super) keys: Vec<GangKey>,
    /// The member that has to have a place beside the quorum.
    pub(super) member: Option<PodId>,
    pub(super) now: Now,
}

impl<'s> Look<'s> {
    pub(super) fn of(snapshot: &'s Snapshot, key: &'s GangKey, now: Now) -> Self {
        Self { snapshot, key, keys: snapshot.cluster.gangs().group_of(key), member: None, now }
    }

    /// Returns a look at a gang, or `None` if its group has its quorum, waits for no place, or is not scheduled as one.
    pub(super) fn at(snapshot: &'s Snapshot, key: &'s GangKey, now: Now) -> Option<Self> {
        is_planned_as_one(snapshot, key).then(|| Self::of(snapshot, key, now))
    }

    /// Returns whether a pod is a member of the group.
    pub(super) fn is_own(&self, record: &PodRecord) -> bool {
        record.pod.member_of().is_some_and(|key| self.keys.contains(key))
    }

    fn wanted(&self) -> u32 {
        self.snapshot.cluster.gangs().get(self.key).map_or(0, |gang| gang.need())
    }

    /// Plans the group in a simulation.
    pub(super) fn plan(&self, mut simulation: Simulation, evict: bool) -> Simulation {
        for key in &self.keys {
            simulation.ask_gang(key);
        }
        simulation.plan(evict);
        simulation
    }

    /// Plans the group after some edits. Returns `None` if one does not fit the state.
    pub(super) fn plan_with(&self, edits: &[Edit]) -> Option<Simulation> {
        let mut simulation = Simulation::of(self.snapshot, self.now);
        for edit in edits {
            simulation.edit(edit).ok()?;
        }
        Some(self.plan(simulation, false))
    }

    /// Returns whether a plan gave every gang of the group its quorum, and the member a place.
    pub(super) fn is_met(&self, simulation: &Simulation) -> bool {
        let cluster = simulation.scheduler().cluster();
        let has_place = |id| cluster.pod(id).is_some_and(|r| r.node.is_some() && r.stage != Stage::Waiting);
        is_whole(cluster, &self.keys) && self.member.is_none_or(has_place)
    }

    /// Returns the pending members of the gang that a plan placed.
    fn placed(&self, simulation: &Simulation) -> BTreeSet<PodId> {
        let has_place = |cluster: &Cluster, id| {
            cluster.pod(id).is_some_and(|r| r.node.is_some() && r.stage != Stage::Waiting)
        };
        let (before, after) = (&self.snapshot.cluster, simulation.scheduler().cluster());
        let members = before.gangs().get(self.key).into_iter().flat_map(|gang| gang.members.keys().copied());
        members.filter(|id| !has_place(before, *id) && has_place(after, *id)).collect()
    }

    fn held_back(&self, block: &Block) -> GangOutlook {
        let entry = block.code.entry();
        GangOutlook {
            body: body("HeldBack", block.message()),
            refusal: None,
            wanted: self.wanted(),
            slots_now: None,
            slots_empty: None,
            placed: BTreeSet::new(),
            lasting: None,
            remedy: entry.remedy.into(),
            resolver: entry.resolver.as_str().into(),
        }
    }

    /// Plans the group on copies of the state, until it is clear how the gang stands.
    pub(super) fn planned(&self) -> GangOutlook {
        let as_it_is = self.plan(Simulation::of(self.snapshot, self.now), false);
        let wanted = self.wanted();
        let again = "Nothing to do: the gang is tried again by itself.";
        let mut found = GangOutlook {
            body: Outlook::default(),
            refusal: None,
            wanted,
            slots_now: Some(wanted),
            slots_empty: None,
            placed: BTreeSet::new(),
            lasting: None,
            remedy: again.into(),
            resolver: "time".into(),
        };
        if self.is_met(&as_it_is) {
            found.body = body("FitsNow", format!("the quorum of gang {} has places as things are", self.key));
            found.placed = self.placed(&as_it_is);
            return found;
        }
        let shares = self.shares(&as_it_is);
        found.slots_now = Some(self.own_share(&shares));
        found.refusal = self.refusal(&as_it_is, shares);
        if let Some(plan) = self.preempting(&as_it_is) {
            found.body = self.after_preemption(&plan);
            found.placed = self.placed(&plan);
            return found;
        }
        let emptied = self.on_emptied();
        found.slots_empty = Some(match &emptied.quorum {
            Some(_) => wanted,
            None => self.own_share(&emptied.shares),
        });
        if let Some(simulation) = &emptied.quorum {
            (found.body, found.placed) = self.not_now(simulation, &emptied);
        } else if emptied.is_cut || as_it_is.truncated {
            found.body = body("NotKnown", "not every order of the members could be tried out".into());
        } else if measured::may_help(self, emptied.is_measured) {
            found.body = body("NotKnown", MEASURED.into());
        } else {
            found.body = body("NeverFits", never(&emptied.shares));
            let (kept, releases_waiting) = (emptied.kept, emptied.releases_waiting);
            found.lasting = emptied.refusal.map(|refusal| Lasting { refusal, kept, releases_waiting });
        }
        found
    }

    /// Returns the plan in which the victims are gone that the group asks for or asked for, if it gets its quorum then.
    fn preempting(&self, as_it_is: &Simulation) -> Option<Simulation> {
        let book = self.snapshot.cluster.preemptions();
        let is_under_way = || self.keys.iter().any(|key| !book.of_gang(key).is_empty());
        let has_victims = !as_it_is.evicted().is_empty() || is_under_way();
        let plan = has_victims.then(|| self.plan(Simulation::of(self.snapshot, self.now), true))?;
        (self.is_met(&plan) && !plan.evicted().is_empty()).then_some(plan)
    }

    /// Returns the outlook of a group that has its quorum in a plan in which pods were evicted, which it names.
    fn after_preemption(&self, plan: &Simulation) -> Outlook {
        let victims: BTreeMap<String, &Name> = plan
            .evicted()
            .iter()
            .map(|victim| (called_as(&victim.pod, victim.stands_for.as_deref()), &victim.node))
            .collect();
        let named = victims.iter().take(MOST_NAMED).map(|(name, node)| format!("{name} on {node}"));
        let named: Vec<String> = named.collect();
        let more = match victims.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!("{} has places once these are evicted: {}{more}", self.who(), named.join(", "));
        let would_leave = victims.into_keys().take(MOST_LEAVING).collect();
        Outlook { would_leave, ..body("FitsAfterPreemption", message) }
    }

    /// Returns what has no places, in words.
    fn who(&self) -> &'static str {
        if self.member.is_some() { "a quorum with this member" } else { "the quorum" }
    }

    /// Returns how many of the members that each gang needs have places in a plan.
    fn shares(&self, simulation: &Simulation) -> Vec<GangShare> {
        let refused = simulation.gang_verdict(self.key);
        let refused = refused.as_ref().and_then(|verdict| match &verdict.outcome {
            // Its placements were undone.
            GangOutcome::Refused(refusal) => Some(refusal),
            _ => None,
        });
        let share = |key: &GangKey| {
            let before = self.snapshot.cluster.gangs().get(key)?;
            let after = simulation.scheduler().cluster().gangs().get(key)?;
            let planned =
                refused.and_then(|r| r.shares.iter().find(|s| s.gang == *key)).map_or(0, |s| s.placeable);
            let gained = after.counted().saturating_sub(before.counted());
            let placeable = gained.saturating_add(planned).min(before.need());
            Some(GangShare { gang: key.clone(), wanted: before.need(), placeable })
        };
        self.keys.iter().filter_map(share).collect()
    }

    /// Returns how many of the members that this gang needs have places in a plan.
    pub(super) fn slots(&self, simulation: &Simulation) -> u32 {
        self.own_share(&self.shares(simulation))
    }

    /// Returns whether a plan of the group was cut off before every order of its members was tried.
    pub(super) fn is_cut(&self, simulation: &Simulation) -> bool {
        simulation.truncated
            || simulation.gang_verdict(self.key).is_some_and(|verdict| {
                refusal_of_group(&verdict.outcome).is_some_and(|refusal| refusal.is_truncated)
            })
    }

    fn own_share(&self, shares: &[GangShare]) -> u32 {
        shares.iter().find(|share| share.gang == *self.key).map_or(0, |share| share.placeable)
    }

    /// Returns why a plan gave no quorum, as the attempt says it.
    pub(super) fn refusal_in(&self, simulation: &Simulation) -> Option<Arc<GangRefusal>> {
        refusal_of_group(&simulation.gang_verdict(self.key)?.outcome).cloned()
    }

    /// Returns why a plan gave no quorum, with these numbers.
    fn refusal(&self, simulation: &Simulation, shares: Vec<GangShare>) -> Option<Arc<GangRefusal>> {
        let refusal = self.refusal_in(simulation)?;
        if refusal.shares == shares {
            return Some(refusal);
        }
        let message = match refusal.code {
            ReasonCode::GangMinResources => refusal.message.clone(),
            _ => attempt_message(&shares, refusal.root_cause.as_ref()),
        };
        Some(Arc::new(GangRefusal { message, shares, ..GangRefusal::clone(&refusal) }))
    }

    /// Plans the group on emptied nodes: without any other pod, then with the pods kept that its members require or are
    /// spread against, then with the waiting members of the group asked again as well.
    fn on_emptied(&self) -> Emptied {
        let mut best = Emptied::default();
        let mut tries = vec![(BTreeSet::new(), false)];
        tries.extend(targets(self).into_iter().map(|kept| (kept, false)));
        let is_waiting = |(_, r): (PodId, &PodRecord)| r.stage == Stage::Waiting && self.is_own(r);
        if self.snapshot.cluster.pods().any(is_waiting) {
            tries.push((BTreeSet::new(), true));
        }
        for (kept, releases_waiting) in tries {
            cancellation::check();
            let simulation = self.plan(self.emptied(&kept, releases_waiting), true);
            best.is_cut |= self.is_cut(&simulation);
            best.is_measured |= measured::refuses(self, &simulation);
            let shares = self.shares(&simulation);
            if best.shares.is_empty() || placeable(&shares) > placeable(&best.shares) {
                best.refusal = self.refusal(&simulation, shares.clone());
                best.shares = shares;
                (best.kept, best.releases_waiting) = (kept.clone(), releases_waiting);
            }
            if self.is_met(&simulation) {
                return Emptied { quorum: Some(simulation), kept, releases_waiting, ..best };
            }
        }
        best
    }

    /// Returns a copy of the state without the pods that can leave, but for those that are kept and those of the group.
    pub(super) fn emptied(&self, kept: &BTreeSet<PodId>, releases_waiting: bool) -> Simulation {
        let mut simulation = Simulation::of(self.snapshot, self.now);
        simulation.empty_nodes_except(|id, record| kept.contains(&id) || self.is_own(record));
        if releases_waiting {
            let can_leave = |r: &PodRecord| r.stage == Stage::Waiting && r.pod.can_leave();
            simulation.release_all(|record| can_leave(record) && self.is_own(record));
        }
        simulation
    }

    /// Returns the outlook of a group that has its quorum on emptied nodes, and the members that have places then.
    fn not_now(&self, emptied_plan: &Simulation, emptied: &Emptied) -> (Outlook, BTreeSet<PodId>) {
        let cluster = &self.snapshot.cluster;
        let found = leaving(self, emptied_plan, &emptied.kept);
        let (pods, plan) =
            found.as_ref().map_or((&[][..], emptied_plan), |(pods, plan)| (pods.as_slice(), plan));
        let known = known(self.snapshot);
        let all = known.leavers(cluster);
        let when = match pods {
            [] if emptied.releases_waiting => {
                format!("the {all} have left that can, and the members that wait have given up their places")
            }
            [] => format!("the {all} have left that can"),
            [pod] => format!("{} has left", called_in_words(cluster, pod)),
            pods => format!("{} have left", called_together(cluster, pods)),
        };
        let message = format!("{} has no places now; it would once {when}", self.who());
        let would_leave = pods.iter().map(|key| called(cluster, key)).collect();
        (Outlook { would_leave, ..body("NotNow", message) }, self.placed(plan))
    }

    /// Returns what would help a gang that does not fit now, and who can do that.
    fn remedy(&self, found: &GangOutlook) -> (String, String) {
        let said = |refusal: &GangRefusal| {
            let entry = refusal.code.entry();
            (entry.remedy.to_string(), entry.resolver.as_str().to_string())
        };
        let Some(lasting) = &found.lasting else {
            return found.refusal.as_ref().map(|refusal| said(refusal)).unwrap_or_default();
        };
        let refusal = &lasting.refusal;
        let is_room =
            matches!(refusal.code, ReasonCode::GangInsufficientCapacity | ReasonCode::GangMinResources);
        if !is_room {
            return of_member_refused(self, lasting).unwrap_or_else(|| said(refusal));
        }
        let mut ways = match refusal.code {
            ReasonCode::GangMinResources => vec!["lower spec.minResources".to_string()],
            _ => vec!["lower the requests of its members".to_string()],
        };
        ways.extend(self.quorum_that_fits(found).map(|min| format!("lower its quorum to {min}")));
        ways.push("add nodes".into());
        let path = format!("/apis/v1/explain/gangs/{}/{}/suggestions", self.key.namespace, self.key.name);
        let last = ways.pop().unwrap_or_default();
        let text =
            format!("No pod's end gives it room. To help, {}, or {last}; see {path}.", ways.join(", "));
        (text, "pod owner".into())
    }

    /// Returns the largest quorum that has places now, if the other gangs of the group have theirs with it.
    fn quorum_that_fits(&self, found: &GangOutlook) -> Option<u32> {
        let counted = self.snapshot.cluster.gangs().get(self.key)?.counted();
        let min = counted + found.slots_now?;
        let edit = Edit::SetQuorum { gang: self.key.clone(), min };
        (min > 0 && self.is_met(&self.plan_with(&[edit])?)).then_some(min)
    }
}

/// Why emptied nodes refuse a gang.
#[derive(Clone)]
pub(super) struct Lasting {
    /// Why the plan that had the most places gave no quorum.
    pub(super) refusal: Arc<GangRefusal>,
    /// Pods besides those of the group that were kept in that plan.
    pub(super) kept: BTreeSet<PodId>,
    /// Whether members that wait for the others gave up their places first.
    pub(super) releases_waiting: bool,
}

/// The plans on emptied nodes.
#[derive(Default)]
struct Emptied {
    /// The plan in which the group has its quorum.
    quorum: Option<Simulation>,
    /// Pods besides those of the group that were kept in that plan, or in the one that had the most places.
    kept: BTreeSet<PodId>,
    /// Whether members that wait for the others gave up their places first.
    releases_waiting: bool,
    /// How far the plan came that had the most places.
    shares: Vec<GangShare>,
    /// Why that plan gave no quorum.
    refusal: Option<Arc<GangRefusal>>,
    /// Whether some plan was cut off.
    is_cut: bool,
    /// Whether some plan refuses a member for what is measured.
    is_measured: bool,
}

fn placeable(shares: &[GangShare]) -> u32 {
    shares.iter().map(|share| share.placeable).sum()
}

/// Largest number of gangs, and of pods to be evicted, that a message names.
const MOST_NAMED: usize = 8;

/// Returns the message on a group that not even emptied nodes have room for.
fn never(shares: &[GangShare]) -> String {
    let short: Vec<String> = shares
        .iter()
        .filter(|share| share.placeable < share.wanted)
        .take(MOST_NAMED)
        .map(|s| format!("{}: {} of {} members", s.gang, s.placeable, s.wanted))
        .collect();
    format!(
        "the quorum has no places, not even when every pod has left that can ({} have one then)",
        short.join("; ")
    )
}

pub(super) fn body(code: &str, message: String) -> Outlook {
    Outlook { code: code.into(), message, ..Outlook::default() }
}
