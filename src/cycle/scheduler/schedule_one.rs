//! One attempt at one unit, from the queue to the Binding, in the order of kube-scheduler's scheduling cycle.
//!
//! `schedule_one` takes a unit; gangs continue in [`super::gangs`]. For a pod, `find_node` runs the filters and the
//! scores and selects a node, or runs PostFilter when no node is feasible. `assume_and_bind` places the pod in the
//! state, runs Reserve and Permit, and starts the binding (`pre_bind`). A pod that finds no node is refused (`report`).

use std::sync::Arc;

use pellucid_cluster::preemptions::{End, Plan};
use pellucid_cluster::{ShapeId, Stage};
use pellucid_framework::post_filter::PostFiltered;
use pellucid_framework::profile::{Aside, Profile};
use pellucid_framework::{Cause, Permitted, View};
use pellucid_model::time::Probe;
use pellucid_model::{NodeIdx, Now, Pod, PodId, cancellation};
use pellucid_queue::UnitId;
use pellucid_recording::{Decision, Outcome, Placement};

use crate::attempt::node_result_cache::{CycleContext, NodeResultCache};
use crate::attempt::nominations::{AttemptContext, AttemptKind, NominationFilter};
use crate::attempt::overrides::affinity;
use crate::attempt::post_filter::post_filter;
use crate::attempt::refusal::refusal_of_pod;
use crate::attempt::reserve::{Known, reserve_by};
use crate::attempt::work;
use crate::scheduler::records::draft::Draft;
use crate::scheduler::{Scheduler, Step};

/// The decision of an attempt, before it is carried out.
pub(crate) struct Decided {
    pub(crate) decision: Decision,
    /// The result of PostFilter for a refused pod.
    pub(crate) found: Option<PostFiltered>,
    /// What to record of the attempt if the decision is carried out.
    pub(crate) draft: Option<Arc<Draft>>,
    /// Whether a plugin that may read more than the node itself took part in the decision.
    pub(crate) reads_others: bool,
    /// What Reserve is told of the pod.
    pub(crate) known: Known,
    /// Whether a provider of topology hints has something to say of the pod.
    pub(crate) has_hints: bool,
}

impl Scheduler {
    /// Schedules a unit that was taken from the queue. Returns `None` when an attempt at a gang is paused.
    pub(crate) fn schedule_one(&mut self, unit_id: UnitId, now: Now, probe: &dyn Probe) -> Option<Step> {
        let unit = self.queue.unit(unit_id)?;
        if let Some(rep) = unit.gang.clone() {
            return self.schedule_gang(unit_id, &rep, now, probe);
        }
        let (pod_id, profile, attempts, first_queued_at) =
            (unit.pods[0], unit.profile, unit.attempts, unit.first_queued_at);
        let Some(record) = self.cluster.pod(pod_id) else {
            debug_assert!(false, "unit {unit_id:?} has no pod");
            self.queue.remove(unit_id);
            return None;
        };
        let (pod, shape) = (record.pod.clone(), record.shape);
        self.cycle += 1;
        self.records.counters.attempts += 1;
        let Decided { decision, found, draft, known, has_hints, .. } =
            self.find_node((pod_id, &pod), (profile, shape), AttemptKind::Alone, now, probe);
        let (table, failure) = self.record(draft.as_ref(), now);
        let (outcome, plan) = match (decision, found) {
            (Decision::Place(placement), _) => {
                let decided = (placement, known, has_hints);
                (self.assume_and_bind(unit_id, (pod_id, &pod, shape), decided, now), None)
            }
            (Decision::Refuse(refusal), Some(found)) => {
                self.after_post_filter(unit_id, (pod_id, &pod, shape), refusal, found, now)
            }
            (Decision::Refuse(refusal), None) => {
                // In a cluster without nodes every nomination is void, whoever wrote it.
                let has_no_node = self.cluster.present().is_empty();
                let clear = has_no_node && self.end_nomination(pod_id, End::NothingFound, now);
                (self.refuse(unit_id, &pod, shape, refusal, clear.then_some(None), now), None)
            }
        };
        let verdict = self.metered(probe, |core| core.store_verdict_of(pod_id, attempts, outcome, plan, now));
        if pod.gang.is_some() {
            self.review_gangs(now);
        }
        let (gang, others) = (None, Vec::new());
        Some(Step { pod, profile, attempts, first_queued_at, verdict, table, failure, gang, others })
    }

    /// Selects a node for a pod, or returns why there is none. Does not place the pod.
    pub(crate) fn find_node(
        &mut self,
        (id, pod): (PodId, &Pod),
        (profile, shape): (usize, ShapeId),
        kind: AttemptKind<'_>,
        now: Now,
        clock: &dyn Probe,
    ) -> Decided {
        cancellation::check();
        let probe: &dyn Probe = &self.timer(clock, now);
        let results = self.profiles.results.of((profile, shape), self.cluster.shapes(), self.cycle);
        let tally = &mut self.profiles.tally[profile];
        let start = &mut self.profiles.starts[profile];
        let profile = &self.profiles.all[profile];
        let attempt = AttemptContext::new(profile, (id, pod), kind, &self.cluster, probe);
        let ctx = attempt.on(&self.cluster);
        results.run_filters(&ctx, self.switches.reuse(), tally);
        results.run_global_filters(&ctx, tally);
        let scratch = &mut self.profiles.scratch;
        let mut filter = NominationFilter::new(attempt, &mut self.cluster, tally, scratch);
        filter.filter_overridden_nodes(results);
        let own = filter.filter_with_nominated_pods(results);
        filter.score_overridden_nodes(results, *start);
        let ctx = attempt.on(&self.cluster);
        let decision = match own {
            Some(node) => Decision::Place(Placement::nominated(node, ctx.view.nodes().len())),
            None => results.select_node(&ctx, start, tally),
        };
        let draft = if self.switches.is_recording() && kind.is_real() {
            let (meter, at) = (&mut self.records.meter, (pod, self.cycle, now));
            let decided = (&decision, own.is_some());
            Draft::measured(&self.switches, (meter, clock), results, &ctx, at, decided, tally)
        } else {
            None
        };
        let found = match &decision {
            // A cluster without nodes has no victims.
            Decision::Refuse(_) if kind.may_preempt() && !self.cluster.present().is_empty() => {
                let filter = NominationFilter::new(attempt, &mut self.cluster, tally, scratch);
                let (mut found, work) = post_filter(filter, results);
                results.work += work;
                if let Some(PostFiltered::Nominate(plan)) = &mut found {
                    note_lack(plan, results, &attempt.on(&self.cluster));
                }
                found
            }
            _ => None,
        };
        results.attempt = None;
        self.turns.work += work::DECISION + std::mem::take(&mut results.work);
        let has_hints = !results.alignment.is_idle();
        let (aside, idle) = (attempt.aside, attempt.aside.or(results.idle_at_reserve));
        let known = Known { aside, idle, prepared: results.for_reserve.clone() };
        if let Decision::Place(placement) = &decision {
            self.cluster.prefetch(placement.node, &pod.spec.requests);
            known.prefetch(View::new(&self.cluster), profile, placement.node);
        }
        Decided { decision, found, draft, reads_others: results.reads_others, known, has_hints }
    }

    /// Places a pod in the state, runs Reserve and Permit, and starts its binding. Placement, Reserve and Permit are
    /// one overlay, so a refusal leaves nothing behind.
    fn assume_and_bind(
        &mut self,
        unit: UnitId,
        (pod_id, pod, shape): (PodId, &Arc<Pod>, ShapeId),
        (placement, known, has_hints): (Placement, Known, bool),
        now: Now,
    ) -> Outcome {
        let profile = self.profiles.all[self.queue.unit(unit).map_or(0, |u| u.profile)].clone();
        let aligned = match has_hints {
            true => affinity(&mut self.cluster, &profile, pod, placement.node),
            false => Ok(None),
        };
        let overlay = self.cluster.begin();
        self.cluster.place(pod_id, placement.node, Stage::Reserved);
        let reserved = aligned.and_then(|affinity| {
            reserve_by(&mut self.cluster, &profile, (pod_id, pod), (placement.node, &known), affinity)
        });
        let is_permitted =
            match reserved.and_then(|()| self.permit(&profile, known.aside, pod, placement.node)) {
                Ok(is_permitted) => is_permitted,
                Err(cause) => {
                    self.cluster.rollback(overlay);
                    let refusal = refusal_of_pod(&profile, cause, placement.total as usize);
                    return self.refuse(unit, pod, shape, Arc::new(refusal), None, now);
                }
            };
        self.cluster.commit(overlay);
        self.consume_nomination(pod_id, pod, Some(placement.node), now);
        self.records.counters.placed += 1;
        if self.shadow.is_some() {
            self.hold_in_shadow(pod_id, now);
            return Outcome::Placed(placement);
        }
        let mut events = Vec::new();
        let failed = self.start_binding(pod_id, unit, (now, is_permitted, known.aside), &mut events);
        self.wake_all(&events, now);
        match failed {
            Some(refusal) => Outcome::Refused(refusal),
            None => Outcome::Placed(placement),
        }
    }

    /// Runs Permit of the plugins that are not aside. Returns whether all say yes; one that waits is asked again in `pre_bind`.
    /// Fails with the cause of the first plugin that refuses.
    pub(crate) fn permit(
        &self,
        profile: &Profile,
        aside: Aside,
        pod: &Pod,
        node: NodeIdx,
    ) -> Result<bool, Cause> {
        let mut is_permitted = true;
        for enabled in profile.permit.iter().filter(|enabled| !aside.has(enabled)) {
            let view = View::new(&self.cluster);
            match enabled.plugin.permit().map(|p| p.permit(view, pod, node)) {
                Some(Permitted::No(cause)) => return Err(cause),
                Some(Permitted::Wait { .. }) => is_permitted = false,
                Some(Permitted::Yes) | None => {}
            }
        }
        Ok(is_permitted)
    }
}

/// Notes in a plan what the chosen node lacks for the pod.
fn note_lack(plan: &mut Arc<Plan>, results: &NodeResultCache, ctx: &CycleContext<'_>) {
    let lack = plan.candidates.first().and_then(|best| results.lack(ctx, best.node));
    Arc::make_mut(plan).lack = lack.map(Arc::new);
}
