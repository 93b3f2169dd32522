//! Answers what-if questions as bodies. The planning is in `cycle::what_if::simulation`.

use std::collections::{BTreeMap, BTreeSet};

use pellucid_api::rest::gang_explain::GangVerdict as VerdictBody;
use pellucid_api::rest::simulate::{
    SimulatedGang, SimulatedPlacement, SimulatedRefusal, SimulatedVictim, Simulation as SimulationBody,
    StateHash,
};
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_cycle::what_if::simulation::{Fate, Simulation};
use pellucid_framework::View;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::sentence::ended;
use pellucid_model::{GangKey, Now, PodKey};
use pellucid_recording::Refusal;

use crate::called::called_as;
use crate::explain::{group_bodies, reasons_of};
use crate::gangs::explain::refusal_of_group;
use crate::gangs::gang_state::reason;
use crate::gangs::member::Outlooks;
use crate::meta::of_snapshot;
use crate::not_pending;
use crate::requirements::details::Details;
use crate::verdict::{PodVerdict, of_refusal_among, sentence};
use crate::views::score_views;

/// A decoded what-if request.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Changes, applied in order.
    pub edits: Vec<Edit>,
    /// Pending pods to plan, besides those that are changed.
    pub pods: Vec<PodKey>,
    /// Gangs whose pending members are planned.
    pub gangs: Vec<GangKey>,
    /// Whether victims are removed at once.
    pub evict: bool,
    /// Number of rows per score table.
    pub scores: usize,
    /// Whether to include the hash of the state.
    pub state_hash: bool,
}

impl Question {
    fn deletes(&self, key: &PodKey) -> bool {
        self.edits.iter().any(|edit| matches!(edit, Edit::DeletePod(gone) if gone == key))
    }
}

/// Largest number of rows of all score tables of one answer.
const MOST_ROWS: usize = 20_000;

/// Simulates a question. Fails when an edit is invalid, a pod or gang is unknown, or too many score rows are
/// requested.
pub fn simulate(snapshot: &Snapshot, question: &Question, now: Now) -> Result<SimulationBody, ReadError> {
    let mut simulation = plan(snapshot, question, now)?;
    let planned = simulation.snapshot();
    let mut body = SimulationBody {
        meta: of_snapshot(snapshot, now),
        state_hash: question.state_hash.then(|| state_hash(snapshot, now).hash),
        ..SimulationBody::default()
    };
    body.meta.truncated = simulation.truncated;
    let mut refusals = Refusals::new(&simulation, &planned, now);
    for (key, fate) in simulation.outcomes() {
        match fate {
            Fate::Placed { node, stage, placement } => body.placements.push(SimulatedPlacement {
                pod: key.to_string(),
                node: node.to_string(),
                stage: stage.as_str().into(),
                score: placement.and_then(|p| p.score),
                feasible_nodes: placement.map_or(0, |p| p.feasible as usize),
            }),
            Fate::Refused(refusal) => {
                body.refused.push(refusals.of_pod(key, refusal));
            }
            Fate::NotTried => body.refused.push(refusals.not_tried(key, "Not planned.")),
            Fate::Gone if question.deletes(key) => {
                body.refused.push(refusals.not_tried(key, "An edit of this request deletes it."));
            }
            Fate::Gone => {
                body.refused.push(refusals.not_tried(key, "It is not there, or not ours to place."))
            }
        }
    }
    body.gangs = refusals.gangs();
    let victims = simulation.evicted().iter().map(|victim| SimulatedVictim {
        pod: called_as(&victim.pod, victim.stands_for.as_deref()),
        node: victim.node.to_string(),
        preemptor: victim.preemptor.to_string(),
    });
    body.victims = victims.collect();
    body.victims.sort_by(|a, b| a.pod.cmp(&b.pod));
    body.victims.dedup();
    // A pod that was tried more than once shows only its last table.
    let tables = simulation.steps().iter().flat_map(|step| step.all()).filter_map(|step| step.table.as_ref());
    let tables: BTreeMap<&PodKey, _> = tables.map(|table| (&table.pod, table)).collect();
    body.scores = tables.into_values().map(|table| score_views::body(snapshot, table, now)).collect();
    Ok(body)
}

/// Plans a question on a copy of a snapshot. Fails as [`simulate`] does.
fn plan(snapshot: &Snapshot, question: &Question, now: Now) -> Result<Simulation, ReadError> {
    check(snapshot, question)?;
    let mut simulation = Simulation::with_weights(snapshot, &question.edits, now);
    simulation.record_scores(question.scores);
    for (at, edit) in question.edits.iter().enumerate() {
        simulation.edit(edit).map_err(|error| misfit(at, &error))?;
    }
    for key in &question.pods {
        if !simulation.ask(key) {
            if question.deletes(key) {
                let message = format!("include: an edit of this request deletes pod {key}");
                return Err(ReadError::NotFound { code: "PodNotFound", message });
            }
            return Err(match not_pending::error(snapshot, key) {
                ReadError::NotFound { code, message } => {
                    ReadError::NotFound { code, message: format!("include: {message}") }
                }
                other => other,
            });
        }
    }
    for key in &question.gangs {
        if simulation.ask_gang(key) == 0 {
            let message = format!("includeGangs: gang {key} is not known, or has no pending pods");
            return Err(ReadError::NotFound { code: "GangNotFound", message });
        }
    }
    let (rows, pods) = (question.scores, simulation.planned_pods());
    if rows.saturating_mul(pods) > MOST_ROWS {
        let message = format!(
            "scores: {rows} rows for each of {pods} pods are {} rows; at most {MOST_ROWS} in all",
            rows.saturating_mul(pods)
        );
        return Err(ReadError::BadRequest { code: "InvalidBody", message });
    }
    simulation.plan(question.evict);
    Ok(simulation)
}

/// Returns the error for the edit at an index, which is also its index in the request: the edits of a request come
/// first.
fn misfit(at: usize, problem: &str) -> ReadError {
    ReadError::BadRequest { code: "InvalidEdit", message: format!("edits[{at}]: {problem}") }
}

fn check(snapshot: &Snapshot, question: &Question) -> Result<(), ReadError> {
    for (at, edit) in question.edits.iter().enumerate() {
        let Edit::SetWeight { plugin, .. } = edit else { continue };
        let mut scoring = snapshot.profiles.iter().flat_map(|p| &p.score);
        if !scoring.any(|e| e.plugin.name() == &**plugin) {
            let problem = format!("setWeight.plugin: no profile scores with a plugin {plugin}");
            return Err(misfit(at, &problem));
        }
    }
    Ok(())
}

/// Says why pods and gangs have no places, by their verdicts in the planned state.
struct Refusals<'s> {
    simulation: &'s Simulation,
    planned: &'s Snapshot,
    outlooks: Outlooks<'s>,
    of_gangs: BTreeMap<GangKey, Option<VerdictBody>>,
    now: Now,
}

impl<'s> Refusals<'s> {
    fn new(simulation: &'s Simulation, planned: &'s Snapshot, now: Now) -> Self {
        let outlooks = Outlooks::new(planned, now);
        Self { simulation, planned, outlooks, of_gangs: BTreeMap::new(), now }
    }

    /// Explains a refused pod.
    fn of_pod(&mut self, key: &PodKey, refusal: &Refusal) -> SimulatedRefusal {
        let (planned, now) = (self.planned, self.now);
        let known = planned.find_pod(key);
        let details = known.and_then(|(_, record)| {
            let (_, profile) = planned.profile_of(record)?;
            let view = View::new(&planned.cluster).for_pod(&record.pod);
            Some(Details { profile, view, spec: &record.pod.spec, now })
        });
        let verdict =
            known.and_then(|(id, _)| of_refusal_among(&mut self.outlooks, planned, (id, refusal), now));
        SimulatedRefusal {
            pod: key.to_string(),
            summary: verdict.as_ref().map(|verdict| sentence(refusal, verdict)).unwrap_or_default(),
            key_reason: verdict.as_ref().map(PodVerdict::key_body),
            outlook: verdict.as_ref().and_then(|verdict| verdict.outlook.clone()),
            remedy: verdict.as_ref().map(PodVerdict::remedy).unwrap_or_default(),
            message: refusal.message().to_string(),
            total_nodes: refusal.total_nodes,
            not_evaluated: refusal.not_evaluated,
            node_groups: details
                .map_or_else(|| group_bodies(refusal), |details| details.group_bodies(refusal)),
            pod_reasons: reasons_of(refusal.pod_cause.as_ref()),
        }
    }

    /// Explains a pod that was not tried: by the verdict of its gang if there is one, else by `otherwise`.
    fn not_tried(&mut self, key: &PodKey, otherwise: &str) -> SimulatedRefusal {
        let cluster = self.simulation.scheduler().cluster();
        let gang = cluster.find_pod(key).and_then(|id| cluster.pod(id)?.pod.member_of().cloned());
        let summary = match gang.as_ref().and_then(|gang| self.of_gang(gang)) {
            Some(verdict) => format!("Not placed: {} {}", ended(verdict.message.as_str()), verdict.remedy),
            None => otherwise.to_string(),
        };
        let total_nodes = cluster.present().len();
        SimulatedRefusal {
            pod: key.to_string(),
            message: summary.clone(),
            summary,
            total_nodes,
            not_evaluated: total_nodes,
            ..SimulatedRefusal::default()
        }
    }

    /// Returns the gangs of the planned pods, each with its verdict if it has no quorum.
    fn gangs(&mut self) -> Vec<SimulatedGang> {
        let cluster = self.simulation.scheduler().cluster();
        let pods = self.simulation.outcomes().filter_map(|(key, _)| cluster.pod(cluster.find_pod(key)?));
        let keys: BTreeSet<GangKey> = pods.filter_map(|record| record.pod.member_of().cloned()).collect();
        let gang = |key: &GangKey| {
            let gang = cluster.gangs().get(key)?;
            let counts = &gang.counts;
            let has_quorum = gang.definition.undefined.is_none() && gang.is_satisfied();
            Some(SimulatedGang {
                gang: key.to_string(),
                min: gang.definition.min,
                placed: counts.waiting + counts.permitted + counts.bound,
                has_quorum,
                verdict: if has_quorum { None } else { self.of_gang(key) },
            })
        };
        keys.iter().filter_map(gang).collect()
    }

    /// Returns why a gang has no quorum: what prevents planning it, or the outcome of its attempt.
    fn of_gang(&mut self, key: &GangKey) -> Option<VerdictBody> {
        if !self.of_gangs.contains_key(key) {
            let verdict = self.verdict(key);
            self.of_gangs.insert(key.clone(), verdict);
        }
        self.of_gangs.get(key)?.clone()
    }

    fn verdict(&mut self, key: &GangKey) -> Option<VerdictBody> {
        if let Some(block) = self.simulation.block(key) {
            return Some(reason(block.code, block.message()));
        }
        let attempt = self.simulation.gang_verdict(key)?;
        let refusal = refusal_of_group(&attempt.outcome)?;
        let said = reason(refusal.code, refusal.message.to_string());
        // Of a gang that is left out it is not known whether pods that end would help.
        let (remedy, resolver) = self.outlooks.remedy(key).unwrap_or_else(|| {
            let entry = refusal.code.entry();
            (entry.never.into(), entry.resolver.never().as_str().into())
        });
        Some(VerdictBody { remedy, resolver, ..said })
    }
}

/// Returns the hash of a snapshot's state by name: nodes, pods with their places, nominations.
pub(crate) fn state_hash(snapshot: &Snapshot, now: Now) -> StateHash {
    let (hash, pods) = snapshot.cluster.content_hash();
    StateHash {
        meta: of_snapshot(snapshot, now),
        hash: format!("{hash:016x}"),
        nodes: snapshot.cluster.present().len(),
        pods,
    }
}
