//! `pellucid shadow`: how the decisions of the shadowed scheduler compare with ours, before somebody switches.

use clap::Args;
use pellucid_api::rest::shadow::{Shadow, ShadowDisagreement, ShadowJudged, ShadowTimes};

use super::age::age;
use super::filters::{ListArgs, left_out, walk};
use super::out::{Paint, Style, fitted, width};
use super::server::ServerArgs;
use super::table::Table;
use super::text::{cell, clean, count, next, one, table};

/// Rows of disagreements when nothing says how many: with the counts above them they fit 60 lines.
const ROWS: usize = 25;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid shadow --judgement Infeasible")]
pub struct ShadowArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) list: ListArgs,
    /// Only disagreements of this kind: LowerScore, Infeasible or RefusedByThem
    #[arg(long, value_name = "KIND", help_heading = "Filters (several values with commas)")]
    pub(crate) judgement: Option<String>,
}

pub(crate) fn run(args: &ShadowArgs) -> anyhow::Result<String> {
    let (server, list, path) = (&args.server, &args.list, "/apis/v1/shadow");
    let more: Vec<(&str, &str)> = args.judgement.iter().map(|kind| ("judgement", kind.as_str())).collect();
    let rows = list.rows(server).map(|rows| if list.limit.is_some() { rows } else { rows.min(ROWS) });
    let body = walk(server, path, &list.query(server, &more), "disagreements", rows)?;
    server.shown(path, body, |body: &Shadow| text(body, Paint::for_stdout()))
}

fn text(body: &Shadow, paint: Paint) -> String {
    let judged = &body.judged;
    let many = count(usize::try_from(judged.bindings).unwrap_or(usize::MAX), "Binding");
    let mut head = vec![paint.apply(Style::Bold, &clean(&format!("{many} of {} judged", body.of)))];
    if let (Some(feasible), Some(best)) = (judged.feasible_percent, judged.best_score_percent) {
        head.push(format!("{feasible:.2} % went to a node that we find feasible,"));
        head.push(format!("{best:.2} % to one of the best by score."));
    }
    let mut parts = vec![head.join("\n"), classes(judged)];
    parts.extend(prose(judged).iter().map(|text| fitted(text, width())));
    let Some(first) = body.disagreements.first() else { return parts.join("\n\n") };
    parts.push(disagreements(body));
    let many = paint.apply(Style::Bold, &format!("{}.", count(body.count, "disagreement")));
    let more = left_out(body.disagreements.len(), body.count, "disagreement");
    parts.push(format!("{many}\n{more}{}", next(&format!("history {}", first.pod))));
    parts.join("\n\n")
}

/// Returns sentences on score distances, causes and times, as far as there are any.
fn prose(judged: &ShadowJudged) -> Vec<String> {
    let far = judged.distances.iter().filter(|of| of.pods > 0);
    let far: Vec<String> = far
        .map(|of| {
            of.up_to.map_or_else(|| format!("more: {}", of.pods), |most| format!("up to {most}: {}", of.pods))
        })
        .collect();
    let causes: Vec<String> =
        judged.causes.iter().map(|cause| clean(&format!("{} {}", cause.pods, cause.code))).collect();
    let took = [("ours", &judged.ours_took), ("theirs", &judged.theirs_took)];
    let took: Vec<String> =
        took.iter().filter_map(|(whose, took)| Some(time(whose, took.as_ref()?))).collect();
    let all = [
        ("Below the best total score by", far.join(", ")),
        ("We refuse their node for:", causes.join(", ")),
        ("From first seen to decided:", took.join("; ")),
    ];
    all.iter().filter(|(_, said)| !said.is_empty()).map(|(what, said)| format!("{what} {said}")).collect()
}

fn time(whose: &str, took: &ShadowTimes) -> String {
    format!("{whose} p50 {:.3} s, p99 {:.3} s ({})", took.p50, took.p99, count(took.pods, "pod"))
}

fn classes(judged: &ShadowJudged) -> String {
    let mut table = table(&["THEIR DECISION", "PODS"], [1]);
    for (what, pods) in [
        ("our node", judged.same_node),
        ("another node of equal score", judged.equal_score),
        ("a lower score", judged.lower_score),
        ("  of them, sampling alone may explain", judged.within_sampling),
        ("a node that we refuse", judged.infeasible),
        ("  of them, pods that we refuse everywhere", judged.infeasible_everywhere),
        ("refused, and we find a node", judged.refused_by_them),
        ("not judged", judged.not_judged),
    ] {
        table.add_row([one(what), one(pods)]);
    }
    table.text()
}

fn disagreements(body: &Shadow) -> String {
    let header = ["AGE", "POD", "THEIRS", "OURS", "WHY NOT THEIRS"];
    let mut table = Table::new(&header, []).elided(0..4);
    for one_of in &body.disagreements {
        table.add_row([
            one(age(&one_of.at, &body.meta.generated_at)),
            one(&one_of.pod),
            cell(&one_of.theirs),
            cell(&one_of.ours),
            cell([why(one_of)]),
        ]);
    }
    table.text()
}

fn why(of: &ShadowDisagreement) -> String {
    match (of.their_total, of.best_total) {
        (Some(theirs), Some(best)) => {
            let by = |score: Option<i64>| score.map_or_else(|| "-".to_owned(), |score| score.to_string());
            let each = of.shares.iter();
            let each: Vec<String> =
                each.map(|of| format!("{} {} against {}", of.plugin, by(of.theirs), by(of.ours))).collect();
            format!("score {theirs} of {best}: {}", each.join(", "))
        }
        _ if of.theirs.is_none() => "it refused the pod".to_owned(),
        _ if of.reasons.is_empty() => "PreFilter leaves it out".to_owned(),
        _ => of.reasons.iter().map(|reason| reason.message.as_str()).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use pellucid_api::rest::explain::ReasonBody;
    use pellucid_api::rest::shadow::{ShadowCause, ShadowDistance, ShadowShare};

    use super::super::text::testing::assert_in_order;
    use super::*;

    #[test]
    fn the_report_goes_from_the_whole_to_the_single_pod() {
        let share = |plugin: &str, ours, theirs| ShadowShare { plugin: plugin.into(), ours, theirs };
        let lower = ShadowDisagreement {
            pod: "d/a".into(),
            theirs: Some("n1".into()),
            ours: Some("n2".into()),
            their_total: Some(90),
            best_total: Some(97),
            shares: vec![share("ImageLocality", Some(7), None)],
            ..ShadowDisagreement::default()
        };
        let refused = ShadowDisagreement {
            pod: "d/b".into(),
            theirs: Some("n3".into()),
            reasons: vec![ReasonBody { message: "Insufficient cpu".into(), ..ReasonBody::default() }],
            ..ShadowDisagreement::default()
        };
        let judged = ShadowJudged {
            bindings: 10,
            feasible_percent: Some(90.0),
            best_score_percent: Some(80.0),
            distances: vec![
                ShadowDistance { up_to: Some(10), pods: 1 },
                ShadowDistance { up_to: None, pods: 2 },
            ],
            causes: vec![ShadowCause { code: "InsufficientResource".into(), pods: 1 }],
            theirs_took: Some(ShadowTimes { pods: 10, p50: 0.01, p99: 0.5 }),
            ..ShadowJudged::default()
        };
        let body = Shadow {
            of: "default-scheduler".into(),
            judged,
            count: 3,
            disagreements: vec![lower, refused],
            ..Shadow::default()
        };
        let text = text(&body, Paint::plain());
        let order = [
            "10 Bindings of default-scheduler judged",
            "90.00 % went to a node that we find feasible,\n80.00 %",
            "a node that we refuse",
            "by up to 10: 1, more: 2",
            "We refuse their node for: 1 InsufficientResource",
            "theirs p50 0.010 s, p99 0.500 s (10 pods)",
            "d/a",
            "score 90 of 97: ImageLocality - against 7",
            "d/b",
            "Insufficient cpu",
            "3 disagreements.\nand 1 more disagreement: --limit 3 shows all\npellucid history d/a",
        ];
        assert_in_order(&text, &order);
    }
}
