//! A gang preempts as one: it gets victims for the whole quorum, or none.
//!
//! When a strict group cannot be placed, its members are planned again on an overlay. Each goes where it fits beside
//! the earlier ones. For a member that fits nowhere, its profile's PostFilter selects a node in the state as it is by
//! then, and the victims are released. When every gang has its quorum, victims that turn out to be unnecessary are put
//! back, the whole plan is replayed from the start, and all of it is undone. Only then are members nominated and
//! evictions ordered, in one step. The plugin chooses between victims (`framework::victim_search`);
//! `scheduler::preempt` evicts and waits. Members beyond the quorum preempt for themselves later, like any pod.

use std::cmp::Reverse;
use std::sync::Arc;

use pellucid_cluster::preemptions::{End, GangPart, Plan, VictimChoice};
use pellucid_cluster::{NominatedBy, Place};
use pellucid_framework::post_filter::{Budgets, PostFiltered, Preemptor};
use pellucid_framework::{Cause, View};
use pellucid_model::sentence::ended;
use pellucid_model::time::Probe;
use pellucid_model::{NodeIdx, Now, Pod, PodId, cancellation};
use pellucid_queue::UnitId;
use pellucid_recording::Decision;
use pellucid_recording::gang_verdict::GangRefusal;

use super::plan::{Candidate, GangAttempt};
use super::search::Failed;
use super::trial::Fate;
use super::victims::Before;
use crate::attempt::nominations::AttemptKind;
use crate::attempt::post_filter::KnownNodes;
use crate::attempt::work;
use crate::scheduler::records::last_attempt::LastAttempt;
use crate::scheduler::schedule_one::Decided;
use crate::scheduler::{Scheduler, Step};

/// A pod that has to go.
pub(super) struct Victim {
    pub(super) choice: VictimChoice,
    pod: Arc<Pod>,
    place: Place,
}

/// One member of the quorum, its node, and its victims there.
pub(super) struct Part {
    pub(super) member: usize,
    pub(super) node: NodeIdx,
    pub(super) victims: Vec<Victim>,
    /// The plan of its search for victims, if it needed one.
    plan: Option<Arc<Plan>>,
}

/// The result of a search for victims.
pub(super) enum Found {
    /// No search was made.
    NotAsked,
    /// The group may not preempt now; earlier nominations stay.
    NotEligible(Arc<str>),
    /// No victims help. Holds the member that was refused last and the plan of its search.
    Nothing(Arc<str>, Option<(usize, Arc<Plan>)>),
    /// The search took too much work, so its result is unknown; earlier nominations stay.
    CutShort(Arc<str>),
    /// The quorum fits once the victims are gone.
    Quorum(Vec<Part>),
}

impl Found {
    fn note(&self) -> Option<&Arc<str>> {
        match self {
            Self::NotEligible(message) | Self::Nothing(message, _) | Self::CutShort(message) => Some(message),
            Self::NotAsked | Self::Quorum(_) => None,
        }
    }
}

/// The members fit one by one but not together.
pub(super) fn not_together() -> Found {
    Found::Nothing("the quorum would not fit together even with the victims gone.".into(), None)
}

/// The parameters of a search.
pub(super) struct VictimSearchParams<'a> {
    pub(super) attempt: &'a GangAttempt,
    /// Victims of lower priority have one below this.
    pub(super) below: i32,
    pub(super) now: Now,
    pub(super) probe: &'a dyn Probe,
}

impl Scheduler {
    /// Refuses the group, reports it, and carries out what the search found. `work` is the work of the attempt.
    pub(super) fn refuse_after(
        &mut self,
        attempt: &GangAttempt,
        before: Before,
        found: Found,
        work: u64,
        now: Now,
    ) -> Vec<Step> {
        let (mut refusal, trial) = match before {
            Before::Tried(Failed { mut best, tried, is_truncated }) => {
                if let Some(note) = found.note() {
                    for fate in &mut best.fates {
                        if let Fate::Failed(refusal) = fate {
                            *refusal = self.with_post_filter_note(refusal.clone(), note.clone());
                        }
                    }
                }
                let mut refusal = self.account(attempt, &best, tried);
                if is_truncated {
                    let all = "further orders of the members were not tried, because it took too long";
                    refusal.message = format!("{}; {all}", refusal.message).into();
                }
                (GangRefusal { is_truncated, ..refusal }, Some(best))
            }
            Before::Short(mut refusal) => {
                if let Some(note) = found.note() {
                    refusal.message = format!("{}; preemption: {note}", refusal.message).into();
                }
                (refusal, None)
            }
        };
        refusal.is_truncated |= matches!(found, Found::CutShort(_));
        let steps = self.refuse_group(attempt, refusal, trial.as_ref(), work, now);
        self.follow_up(attempt, found, steps, now)
    }

    /// Places a member where it fits, or where it would fit without some victims, and releases those. A failure changes
    /// nothing.
    pub(super) fn make_room_for(
        &mut self,
        hunt: &VictimSearchParams<'_>,
        i: usize,
        earlier: &[PodId],
        known: &KnownNodes,
    ) -> Result<Part, Found> {
        let member = &hunt.attempt.candidates[i];
        let kind = AttemptKind::Preemptor { group: &hunt.attempt.keys, below: hunt.below, earlier, known };
        let Decided { decision, found, .. } =
            self.find_node((member.id, &member.pod), member.kind(), kind, hunt.now, hunt.probe);
        let (node, choices, plan) = match (decision, found) {
            (Decision::Place(placement), _) => (placement.node, Vec::new(), None),
            (_, Some(PostFiltered::NotEligible { message })) => return Err(Found::NotEligible(message)),
            (_, Some(PostFiltered::Nothing { message, plan })) => {
                return Err(Found::Nothing(message, Some((i, plan))));
            }
            (_, Some(PostFiltered::Nominate(plan))) => {
                let Some(best) = plan.candidates.first() else { return Err(not_together()) };
                (best.node, best.victims.clone(), Some(plan.clone()))
            }
            (_, None) => return Err(not_together()),
        };
        let victims = choices.into_iter().filter_map(|choice| {
            let pod = self.cluster.pod(choice.pod)?.pod.clone();
            let place = self.cluster.place_of(choice.pod)?;
            Some(Victim { choice, pod, place })
        });
        let part = Part { member: i, node, victims: victims.collect(), plan };
        let overlay = self.cluster.begin();
        for victim in &part.victims {
            self.cluster.release(victim.choice.pod);
        }
        self.turns.work += work::MOVE * part.victims.len() as u64;
        match self.put(hunt, &part) {
            Ok(()) => {
                self.cluster.commit(overlay);
                Ok(part)
            }
            Err(cause) => {
                self.cluster.rollback(overlay);
                Err(Found::Nothing(ended(cause.message()).into(), None))
            }
        }
    }

    fn put(&mut self, hunt: &VictimSearchParams<'_>, part: &Part) -> Result<(), Cause> {
        self.put_member(&hunt.attempt.candidates[part.member], part.node)
    }

    /// Puts back victims that are not needed. Returns whether the quorum fits with the others gone.
    pub(super) fn settle_plan(&mut self, hunt: &VictimSearchParams<'_>, parts: &mut [Part]) -> bool {
        self.judge_budgets(parts);
        let needed = self.spare(hunt, parts);
        if self.stands(hunt, parts) {
            for (part, needed) in parts.iter_mut().zip(needed) {
                let mut needed = needed.into_iter();
                part.victims.retain(|_| needed.next().unwrap_or(true));
            }
            self.judge_budgets(parts);
            return true;
        }
        // A victim that was put back blocks a member elsewhere, so none is spared.
        let spared = parts.iter().zip(needed).flat_map(|(part, needed)| part.victims.iter().zip(needed));
        let spared: Vec<PodId> = spared.filter(|(_, needed)| !needed).map(|(v, _)| v.choice.pod).collect();
        for pod in &spared {
            self.cluster.release(*pod);
        }
        !spared.is_empty() && self.stands(hunt, parts)
    }

    /// Sets for each victim whether it exceeds a disruption budget when all go, in the order of their importance.
    fn judge_budgets(&self, parts: &mut [Part]) {
        let mut all: Vec<&mut Victim> = parts.iter_mut().flat_map(|p| &mut p.victims).collect();
        all.sort_by_cached_key(|v| importance(&v.pod));
        let violated = Budgets::beside(&self.cluster, &[]).violated(all.iter().map(|v| &*v.pod));
        for (victim, violates) in all.into_iter().zip(violated) {
            victim.choice.violates_budget = violates;
        }
    }

    /// Puts victims back one by one, first those that exceed their budgets, then the most important. Releases a victim
    /// again if a member planned on its node would not fit beside it. Returns which victims have to go.
    fn spare(&mut self, hunt: &VictimSearchParams<'_>, parts: &[Part]) -> Vec<Vec<bool>> {
        let mut needed: Vec<Vec<bool>> = parts.iter().map(|p| vec![true; p.victims.len()]).collect();
        let all = parts.iter().enumerate().flat_map(|(p, part)| (0..part.victims.len()).map(move |v| (p, v)));
        let mut all: Vec<(usize, usize)> = all.collect();
        all.sort_by_cached_key(|(p, v)| {
            let victim = &parts[*p].victims[*v];
            (!victim.choice.violates_budget, importance(&victim.pod))
        });
        for (p, v) in all {
            cancellation::check();
            let (victim, node) = (&parts[p].victims[v], parts[p].node);
            self.cluster.put_back(victim.choice.pod, victim.place.clone());
            let mut beside = parts.iter().filter(|part| part.node == node);
            if beside.all(|part| self.fits(hunt, part)) {
                needed[p][v] = false;
            } else {
                self.cluster.release(victim.choice.pod);
            }
        }
        needed
    }

    /// Whether the node of a placed member would take it in the current state.
    fn fits(&mut self, hunt: &VictimSearchParams<'_>, part: &Part) -> bool {
        let member = hunt.attempt.candidates[part.member].id;
        let place = self.cluster.displace(member);
        let fits = self.is_taken(hunt, part);
        if let Some(place) = place {
            self.cluster.put_back(member, place);
        }
        fits
    }

    /// Whether the node takes the member of a part that is not placed: no filter refuses it, nor does the plugin that
    /// chose victims for it.
    pub(super) fn is_taken(&mut self, hunt: &VictimSearchParams<'_>, part: &Part) -> bool {
        let member = &hunt.attempt.candidates[part.member];
        !self.is_refused_on(hunt.attempt, member, part.node, hunt.probe) && self.holds(hunt, part)
    }

    /// Whether the condition of the plugin that chose victims for a part holds.
    fn holds(&self, hunt: &VictimSearchParams<'_>, part: &Part) -> bool {
        let (Some(plan), member) = (&part.plan, &hunt.attempt.candidates[part.member]) else { return true };
        let plugins = self.profiles.all[member.profile].post_filter.iter();
        let mut chose = plugins.filter(|e| e.plugin.name() == plan.plugin);
        let preemptor = Preemptor { id: member.id, pod: &member.pod, below: hunt.below };
        let view = View::new(&self.cluster);
        chose.all(|e| e.plugin.post_filter().is_none_or(|p| p.condition(view, &preemptor, part.node).is_ok()))
    }

    /// Replays the plan from the start, with the victims gone and no member placed. Returns whether it holds.
    fn stands(&mut self, hunt: &VictimSearchParams<'_>, parts: &[Part]) -> bool {
        for part in parts {
            self.cluster.release(hunt.attempt.candidates[part.member].id);
        }
        self.lacks_resources(hunt.attempt).is_none()
            && parts.iter().all(|part| self.is_taken(hunt, part) && self.put(hunt, part).is_ok())
    }

    /// Carries out what the search found for a refused group, and orders the members' changed nominations.
    fn follow_up(
        &mut self,
        attempt: &GangAttempt,
        found: Found,
        mut steps: Vec<Step>,
        now: Now,
    ) -> Vec<Step> {
        match found {
            Found::NotAsked | Found::NotEligible(_) | Found::CutShort(_) => {}
            Found::Nothing(_, account) => {
                for member in &attempt.candidates {
                    self.end_nomination(member.id, End::NothingFound, now);
                }
                if let Some((i, plan)) = account {
                    self.keep_account(&attempt.candidates[i], plan, &mut steps);
                }
            }
            Found::Quorum(parts) => self.carry_out(attempt, &parts, &mut steps, now),
        }
        for member in &attempt.candidates {
            let ours = self.cluster.nominator().of(member.id).map(|n| n.node.clone());
            if member.pod.nominated_node != ours {
                self.order_nomination(&member.pod, ours);
            }
        }
        steps
    }

    /// Nominates the members of a plan and evicts its victims.
    fn carry_out(&mut self, attempt: &GangAttempt, parts: &[Part], steps: &mut [Step], now: Now) {
        for (i, member) in attempt.candidates.iter().enumerate() {
            let is_planned = parts.iter().any(|part| part.member == i);
            let is_ours = self.cluster.nominator().of(member.id).is_some_and(|n| n.by == NominatedBy::Us);
            if !is_planned && is_ours {
                self.end_nomination(member.id, End::ChosenAgain, now);
            }
        }
        let (group, members): (Arc<[_]>, u32) = (attempt.keys.clone().into(), parts.len() as u32);
        for (at, part) in parts.iter().enumerate() {
            let member = &attempt.candidates[part.member];
            let node = self.cluster.node_name(part.node).clone();
            let choices: Vec<VictimChoice> = part.victims.iter().map(|v| v.choice.clone()).collect();
            let gang = GangPart { group: group.clone(), members, is_counted: at == 0 };
            let plan = part.plan.clone().unwrap_or_default();
            self.preempt((member.id, &member.pod), node, &choices, plan, Some(gang), now);
            if let Some(plan) = &part.plan {
                self.keep_account(member, plan.clone(), steps);
            }
        }
        if let Some(part) = parts.first() {
            self.try_again(attempt.candidates[part.member].id, now);
        }
    }

    /// Adds the plan of a member's search to its verdict and its step.
    fn keep_account(&mut self, member: &Candidate, plan: Arc<Plan>, steps: &mut [Step]) {
        if let Some(mut verdict) = self.verdict(member.id) {
            verdict.plan = Some(plan.clone());
            self.set_last_attempt(member.id, LastAttempt::Full(Arc::new(verdict)));
        }
        if let Some(step) = steps.iter_mut().find(|step| step.pod.key == member.pod.key) {
            step.verdict.plan = Some(plan);
        }
    }

    /// Ends our nominations of the pods in the unit of a group that is now held back.
    pub(super) fn end_promises(&mut self, unit: UnitId, now: Now) {
        if self.cluster.nominator().is_empty() {
            return;
        }
        let pods = self.queue.unit(unit).map(|u| u.pods.to_vec()).unwrap_or_default();
        let is_ours = |id: &PodId| self.cluster.nominator().of(*id).is_some_and(|n| n.by == NominatedBy::Us);
        let promised: Vec<PodId> = pods.into_iter().filter(is_ours).collect();
        for id in promised {
            self.clear_nomination(id, End::PreemptorGone, now);
        }
    }
}

/// Returns the members that may preempt, if they are enough for every gang's quorum.
pub(super) fn able(attempt: &GangAttempt) -> Option<Vec<usize>> {
    let able = |i: &usize| !attempt.candidates[*i].pod.never_preempts;
    let members: Vec<usize> = (0..attempt.candidates.len()).filter(able).collect();
    let of_gang = |gang| members.iter().filter(|i| attempt.candidates[**i].gang == gang).count();
    let is_enough = attempt.needs.iter().enumerate().all(|(gang, need)| of_gang(gang) >= *need as usize);
    is_enough.then_some(members)
}

/// Sorts the most important first: higher priority, then earlier start, then the later name.
fn importance(pod: &Pod) -> impl Ord + use<> {
    let started = pod.started.unwrap_or(i64::MAX);
    (Reverse(pod.priority), started, Reverse((pod.key.name.clone(), pod.key.namespace.clone())))
}
