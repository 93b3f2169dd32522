//! `/apis/v1/shadow`: counts of the judgements of the other scheduler's decisions, and the list of those that are not ours.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use pellucid_api::rest::shadow::{
    DisagreementBody, Shadow, ShadowCause, ShadowDisagreement, ShadowDistance, ShadowJudged, ShadowShare,
    ShadowTimes,
};
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::shadow::Disagreement;
use pellucid_cycle::scheduler::shadow::judged::{
    DISTANCES, Judged, JudgedDecision, Judgement, LEFT_OUT, Times,
};
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::list::{Attribute, Facts, List};
use pellucid_model::{Name, Now};
use pellucid_recording::rfc3339;

use crate::explain::reasons_of;
use crate::meta::of_snapshot;

/// What disagreements are filtered and sorted by: the nodes are theirs and ours, the age is the time since the judgement.
pub(crate) const OF_DISAGREEMENTS: &[Attribute] = &[
    Attribute::Namespace,
    Attribute::Name,
    Attribute::Reason,
    Attribute::Node,
    Attribute::Judgement,
    Attribute::Age,
    Attribute::Priority,
];

/// Returns how often our decisions agree with the shadowed scheduler's, and lists its decisions that are not ours, the newest
/// first unless the request sorts otherwise. Fails when nothing is shadowed.
pub(crate) fn shadow(snapshot: &Snapshot, list: &List, now: Now) -> Result<Shadow, ReadError> {
    let Some(tally) = &snapshot.shadow else {
        let message = "this scheduler shadows no other; start it with run --shadow-of NAME".into();
        return Err(ReadError::NotFound { code: "NotShadowing", message });
    };
    let compared = tally.agreed + tally.disagreed + tally.refused_by_us;
    let example = |d: &Disagreement| DisagreementBody {
        pod: d.pod.to_string(),
        ours: d.ours.as_ref().map(ToString::to_string),
        theirs: d.theirs.to_string(),
    };
    let page = list.page(tally.judged.disagreements.iter().rev(), facts);
    Ok(Shadow {
        meta: page.meta(of_snapshot(snapshot, now)),
        of: tally.of.to_string(),
        judged: judged(&tally.judged),
        count: page.total,
        disagreements: page.items.iter().map(|decision| body(decision)).collect(),
        agreed: tally.agreed,
        disagreed: tally.disagreed,
        refused_by_us: tally.refused_by_us,
        not_compared: tally.not_compared,
        expired: tally.expired,
        agreement_percent: if compared == 0 { 0.0 } else { 100.0 * tally.agreed as f64 / compared as f64 },
        examples: tally.examples.iter().rev().map(example).collect(),
    })
}

fn judged(all: &Judged) -> ShadowJudged {
    let bindings = all.bindings();
    let percent = |n: u64| (bindings > 0).then(|| 100.0 * n as f64 / bindings as f64);
    let bounds = DISTANCES.iter().copied().map(Some).chain([None]);
    let distance = |(up_to, pods): (Option<i64>, &u64)| ShadowDistance { up_to, pods: *pods };
    let mut causes: Vec<ShadowCause> =
        all.causes.iter().map(|(code, pods)| ShadowCause { code: (*code).into(), pods: *pods }).collect();
    causes.sort_by(|a, b| b.pods.cmp(&a.pods).then_with(|| a.code.cmp(&b.code)));
    ShadowJudged {
        bindings,
        same_node: all.same_node,
        equal_score: all.equal_score,
        lower_score: all.lower_score,
        within_sampling: all.within_sampling,
        infeasible: all.infeasible,
        infeasible_everywhere: all.infeasible_everywhere,
        refused_by_them: all.refused_by_them,
        not_judged: all.not_judged,
        feasible_percent: percent(bindings - all.infeasible),
        best_score_percent: percent(all.same_node + all.equal_score),
        distances: bounds.zip(&all.distances).map(distance).collect(),
        causes,
        ours_took: times(&all.ours_took),
        theirs_took: times(&all.theirs_took),
    }
}

fn times(times: &Times) -> Option<ShadowTimes> {
    let (pods, p50, p99) = times.quantiles()?;
    let seconds = |time: Duration| time.as_secs_f64();
    Some(ShadowTimes { pods, p50: seconds(p50), p99: seconds(p99) })
}

/// Returns what a decision tells the list that it is in.
fn facts<'s>(&decision: &&'s Arc<JudgedDecision>) -> Facts<'s> {
    let nodes = [&decision.theirs, &decision.ours].into_iter().flatten();
    Facts {
        namespace: &decision.pod.namespace,
        name: &decision.pod.name,
        reasons: reasons(decision),
        nodes: nodes.map(|node| &**node).collect(),
        judgement: name_of(&decision.judgement),
        created: Some(decision.at),
        priority: Some(decision.priority),
        ..Facts::default()
    }
}

/// Returns the codes for which we refuse its node, as `causes` counts them.
fn reasons(decision: &JudgedDecision) -> Vec<Cow<'_, str>> {
    match &decision.judgement {
        Judgement::Infeasible { cause: Some(cause), .. } => {
            cause.reasons.iter().map(|reason| reason.code.as_str().into()).collect()
        }
        Judgement::Infeasible { cause: None, .. } => vec![LEFT_OUT.into()],
        _ => Vec::new(),
    }
}

const fn name_of(judgement: &Judgement) -> &'static str {
    match judgement {
        Judgement::SameNode => "SameNode",
        Judgement::EqualScore => "EqualScore",
        Judgement::LowerScore { .. } => "LowerScore",
        Judgement::Infeasible { .. } => "Infeasible",
        Judgement::RefusedByThem => "RefusedByThem",
    }
}

fn body(decision: &JudgedDecision) -> ShadowDisagreement {
    let name = |name: &Option<Name>| name.as_ref().map(ToString::to_string);
    let share = |(plugin, ours, theirs): &(&'static str, Option<i64>, Option<i64>)| ShadowShare {
        plugin: (*plugin).into(),
        ours: *ours,
        theirs: *theirs,
    };
    let body = ShadowDisagreement {
        pod: decision.pod.to_string(),
        priority: decision.priority,
        at: rfc3339(decision.at),
        judgement: name_of(&decision.judgement).into(),
        theirs: name(&decision.theirs),
        ours: name(&decision.ours),
        shares: decision.shares.iter().map(share).collect(),
        ..ShadowDisagreement::default()
    };
    match &decision.judgement {
        Judgement::LowerScore { totals, better, feasible, is_within_sampling } => ShadowDisagreement {
            their_total: Some(totals.0),
            best_total: Some(totals.1),
            better: Some(*better),
            feasible: Some(*feasible),
            within_sampling: Some(*is_within_sampling),
            ..body
        },
        Judgement::Infeasible { cause, .. } => {
            ShadowDisagreement { reasons: reasons_of(cause.as_deref()), ..body }
        }
        Judgement::SameNode | Judgement::EqualScore | Judgement::RefusedByThem => body,
    }
}
