//! What shadow mode found: counts, and the judgements of the other scheduler's decisions.

use std::time::Duration;

use pellucid_api::rest::shadow::{
    DisagreementBody, Shadow, ShadowCause, ShadowDistance, ShadowExample, ShadowJudged, ShadowShare,
    ShadowTimes,
};
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::shadow::Disagreement;
use pellucid_cycle::scheduler::shadow::judged::{DISTANCES, Example, Judged, Judgement, Times};
use pellucid_framework::endpoint::ReadError;
use pellucid_model::{Name, Now};
use pellucid_recording::rfc3339;

use crate::meta::of_snapshot;

/// Returns how often our decisions agree with the shadowed scheduler's. Fails when nothing is shadowed.
pub(crate) fn shadow(snapshot: &Snapshot, now: Now) -> Result<Shadow, ReadError> {
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
    Ok(Shadow {
        meta: of_snapshot(snapshot, now),
        of: tally.of.to_string(),
        judged: judged(&tally.judged),
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
        examples: all.examples.iter().rev().map(|example| body(example)).collect(),
    }
}

fn times(times: &Times) -> Option<ShadowTimes> {
    let (pods, p50, p99) = times.quantiles()?;
    let seconds = |time: Duration| time.as_secs_f64();
    Some(ShadowTimes { pods, p50: seconds(p50), p99: seconds(p99) })
}

fn body(example: &Example) -> ShadowExample {
    let name = |name: &Option<Name>| name.as_ref().map(ToString::to_string);
    let share = |(plugin, ours, theirs): &(&'static str, Option<i64>, Option<i64>)| ShadowShare {
        plugin: (*plugin).into(),
        ours: *ours,
        theirs: *theirs,
    };
    let mut body = ShadowExample {
        pod: example.pod.to_string(),
        at: rfc3339(example.at),
        theirs: name(&example.theirs),
        ours: name(&example.ours),
        shares: example.shares.iter().map(share).collect(),
        ..ShadowExample::default()
    };
    body.judgement = match &example.judgement {
        Judgement::SameNode => "SameNode",
        Judgement::EqualScore => "EqualScore",
        Judgement::LowerScore { totals, better, feasible, is_within_sampling } => {
            (body.their_total, body.best_total) = (Some(totals.0), Some(totals.1));
            (body.better, body.feasible) = (Some(*better), Some(*feasible));
            body.within_sampling = Some(*is_within_sampling);
            "LowerScore"
        }
        Judgement::Infeasible { cause, .. } => {
            let reasons = cause.iter().flat_map(|cause| &cause.reasons);
            body.reasons = reasons.map(|reason| reason.message()).collect();
            "Infeasible"
        }
        Judgement::RefusedByThem => "RefusedByThem",
    }
    .into();
    body
}
