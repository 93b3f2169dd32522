//! Explains why one node was chosen rather than another, evaluated on a copy of the snapshot without the pod.
//!
//! The state may have changed since the decision, and the answer may then differ from it: `outcome` says so. Scores
//! recorded at decision time are in the score tables (flag `s`).

use std::time::Duration;

use pellucid_api::rest::contrast::{Contrast, NodeRefusal, PluginGap, ScorePair, TieHashes};
use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_cycle::attempt::node_result_cache::tie_order;
use pellucid_cycle::attempt::search::Scored;
use pellucid_cycle::what_if::question::Question;
use pellucid_framework::View;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::profile::Profile;
use pellucid_model::sentence::ended;
use pellucid_model::{NodeIdx, Now, PodId, PodKey};
use pellucid_recording::{Decision, Placement, rfc3339};

use crate::explain::{TIE_RULE, reasons_of};
use crate::meta::of_snapshot;
use crate::not_pending;
use crate::requirements::details::Details;
use crate::what_if::node_explain::{cause_of, find_node};

/// The pod and the two nodes that are compared.
struct Sides<'r> {
    snapshot: &'r Snapshot,
    record: &'r PodRecord,
    profile: &'r Profile,
    chosen: Option<NodeIdx>,
    versus: NodeIdx,
    /// Whether the decision evaluated only some of the nodes.
    is_sampled: bool,
}

/// Compares a pod's node with another one, by default with the runner-up. Fails when the pod or the node is unknown,
/// or when there is nothing to compare.
pub(crate) fn compare_nodes(
    snapshot: &Snapshot,
    key: &PodKey,
    versus: Option<&str>,
    now: Now,
) -> Result<Contrast, ReadError> {
    let Some((id, record)) = snapshot.find_pod(key) else {
        return Err(not_pending::error(snapshot, key));
    };
    let versus = versus.map(|name| find_node(snapshot, name)).transpose()?;
    let bad = |code, message| ReadError::BadRequest { code, message };
    let profile = snapshot.profile_of(record);
    let question =
        profile.and_then(|(_, profile)| Some((profile, Question::ask(&snapshot.cluster, profile, id)?)));
    let Some((profile, mut question)) = question else {
        let message = not_pending::of(snapshot, key).map_or_else(
            || format!("pod {key} is of scheduler {}, not of ours", record.pod.scheduler_name),
            |said| said.message,
        );
        return Err(ReadError::NotFound { code: "NotOurPod", message });
    };
    let placement = match question.decision() {
        Decision::Place(placement) => Some(*placement),
        Decision::Refuse(_) => None,
    };
    let chosen = record.node.or(placement.map(|p| p.node));
    let scores = question.scores();
    let Some(versus) = versus.or_else(|| runner_up(snapshot, &scores, chosen)) else {
        return Err(bad("NoOtherNode", format!("there is no other node to compare with for pod {key}")));
    };
    if chosen == Some(versus) {
        let node = snapshot.cluster.node_name(versus);
        let message = format!("parameter `versus` names {node}, which is the node of pod {key}");
        return Err(bad("SameNode", message));
    }
    let recorded = recorded(snapshot, id, record);
    let of_decision = if record.node.is_some() { recorded.as_ref().map(|(p, _)| *p) } else { placement };
    let is_sampled = of_decision.is_some_and(|placement| is_sampled(profile, placement));
    let sides = Sides { snapshot, record, profile, chosen, versus, is_sampled };
    let mut body = sides.compare(&question, &scores, now);
    body.meta.decided_at = recorded.map(|(_, at)| at);
    Ok(body)
}

/// Returns whether a decision skipped nodes that might have taken the pod, because it sampled or the pod was
/// nominated.
fn is_sampled(profile: &Profile, placement: Placement) -> bool {
    let is_some = (1..100).contains(&profile.percentage_of_nodes_to_score);
    let is_nominated = placement.score.is_none() && placement.evaluated == 1;
    placement.evaluated < placement.total && (is_some || is_nominated)
}

/// Returns the recorded decision about a placed pod, and its time.
fn recorded(snapshot: &Snapshot, id: PodId, record: &PodRecord) -> Option<(Placement, String)> {
    let verdict = snapshot.verdict(id)?;
    let placement = verdict.placement().filter(|placement| record.node == Some(placement.node))?;
    Some((placement, rfc3339(Duration::from_nanos(verdict.at))))
}

/// Returns the best other node, or the first by name when no other node takes the pod.
fn runner_up(snapshot: &Snapshot, scores: &[Scored], chosen: Option<NodeIdx>) -> Option<NodeIdx> {
    let others = scores.iter().map(|scored| scored.node).filter(|node| Some(*node) != chosen);
    let by_name = snapshot.cluster.by_name().iter().copied().filter(|node| Some(*node) != chosen);
    others.chain(by_name).next()
}

impl Sides<'_> {
    fn name(&self, node: NodeIdx) -> String {
        self.snapshot.cluster.node_name(node).to_string()
    }

    fn compare(&self, question: &Question<'_>, scores: &[Scored], now: Now) -> Contrast {
        let mut meta = of_snapshot(self.snapshot, now);
        meta.refreshed = true;
        let tie = |node: NodeIdx| self.snapshot.cluster.slot(node).tie.to_string();
        let mut body = Contrast {
            meta,
            namespace: self.record.pod.key.namespace.to_string(),
            name: self.record.pod.key.name.to_string(),
            chosen: self.chosen.map(|node| self.name(node)),
            versus: self.name(self.versus),
            basis: match (self.record.node, self.chosen) {
                (Some(_), _) => "placed".into(),
                (None, Some(_)) => "wouldBePlaced".into(),
                (None, None) => "fitsNowhere".into(),
            },
            tie_rule: TIE_RULE.into(),
            tie_hashes: self.chosen.map(|node| TieHashes { chosen: tie(node), versus: tie(self.versus) }),
            reason: self.refusal(question, self.versus, now),
            chosen_reason: self.chosen.and_then(|node| self.refusal(question, node, now)),
            ..Contrast::default()
        };
        let of = |node: NodeIdx| scores.iter().find(|scored| scored.node == node);
        match (self.chosen.and_then(of), of(self.versus)) {
            (Some(chosen), Some(versus)) => self.compare_scores(&mut body, chosen, versus),
            (None, Some(_)) => {
                body.outcome = "ChosenFilteredOut".into();
                body.winner = Some(body.versus.clone());
            }
            (chosen, None) => {
                body.outcome = "FilteredOut".into();
                body.winner = chosen.and(body.chosen.clone());
            }
        }
        body.summary = summary(&body);
        body
    }

    /// Returns why a node refuses the pod, if it does.
    fn refusal(&self, question: &Question<'_>, node: NodeIdx, now: Now) -> Option<NodeRefusal> {
        let answer = question.answer(node);
        let cause = cause_of(&answer)?;
        let spec = &self.record.pod.spec;
        let details = Details { profile: self.profile, view: question.view(), spec, now };
        Some(NodeRefusal {
            plugin: cause.plugin.into(),
            code: cause.code.as_str().into(),
            reasons: reasons_of(Some(&cause)),
            message: cause.message(),
            detail: details.of(&cause, node),
        })
    }

    fn compare_scores(&self, body: &mut Contrast, chosen: &Scored, versus: &Scored) {
        let gap = chosen.total - versus.total;
        let view = View::new(&self.snapshot.cluster);
        let is_first = tie_order(view, chosen.node, versus.node).is_lt();
        let wins = |gap: i64| gap > 0 || (gap == 0 && is_first);
        for (at, enabled) in self.profile.score.iter().enumerate() {
            let of = |scored: &Scored| scored.shares[at].unwrap_or_default();
            let ((raw_a, normal_a, weighted_a), (raw_b, normal_b, weighted_b)) = (of(chosen), of(versus));
            let own = weighted_a - weighted_b;
            body.plugins.push(PluginGap {
                plugin: enabled.plugin.name().into(),
                weight: enabled.weight,
                skipped: chosen.shares[at].is_none(),
                raw: ScorePair { chosen: raw_a, versus: raw_b },
                normalized: ScorePair { chosen: normal_a, versus: normal_b },
                weighted: ScorePair { chosen: weighted_a, versus: weighted_b },
                gap: own,
                decisive: wins(gap - own) != wins(gap),
                opposing: own != 0 && (own > 0) != wins(gap),
            });
        }
        body.plugins.sort_by(|a, b| b.gap.abs().cmp(&a.gap.abs()).then_with(|| a.plugin.cmp(&b.plugin)));
        let named = |is: fn(&PluginGap) -> bool| {
            body.plugins.iter().filter(|p| is(p)).map(|p| p.plugin.clone()).collect::<Vec<_>>()
        };
        (body.decisive, body.opposing) = (named(|p| p.decisive), named(|p| p.opposing));
        body.total = Some(ScorePair { chosen: chosen.total, versus: versus.total });
        body.total_gap = Some(gap);
        let outcome = match wins(gap) {
            true if gap > 0 => "LowerScore",
            true => "TieBreak",
            false if self.is_sampled => "NotSampled",
            false => "HigherScore",
        };
        body.outcome = outcome.into();
        body.winner = if wins(gap) { body.chosen.clone() } else { Some(body.versus.clone()) };
    }
}

fn summary(body: &Contrast) -> String {
    let Contrast { versus, total_gap, .. } = body;
    let message = |refusal: &Option<NodeRefusal>| refusal.as_ref().map_or("", |r| &r.message).to_owned();
    let gap = total_gap.unwrap_or_default().abs();
    let by = match body.decisive.as_slice() {
        [] => String::new(),
        plugins => format!(" Decisive: {}.", plugins.join(", ")),
    };
    let Some(chosen) = &body.chosen else {
        return ended(format!(
            "The pod fits on no node now. {versus} does not take it: {}",
            message(&body.reason)
        ));
    };
    match &*body.outcome {
        "FilteredOut" => match body.chosen_reason {
            None => ended(format!("{versus} does not take the pod: {}", message(&body.reason))),
            Some(_) => format!(
                "Neither takes the pod now. {versus}: {} {chosen}: {}",
                ended(message(&body.reason)),
                ended(message(&body.chosen_reason))
            ),
        },
        "ChosenFilteredOut" => {
            ended(format!("{chosen} would not take the pod any more: {}", message(&body.chosen_reason)))
        }
        "LowerScore" => format!("{versus} scores {gap} less than {chosen}.{by}"),
        "TieBreak" => {
            format!("{versus} scores the same as {chosen}, which comes first by hash(seed, node name).{by}")
        }
        "NotSampled" => format!("{versus} would win, but not all nodes were looked at.{by}"),
        _ if gap == 0 => {
            format!(
                "{versus} would win now by hash(seed, node name): the state has changed since the decision.{by}"
            )
        }
        _ => format!(
            "{versus} would win now, by {gap}: the state has changed since the decision, in which other pods were where \
             they were then.{by}"
        ),
    }
}
