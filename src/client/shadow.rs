//! `pellucid shadow`: how the decisions of the shadowed scheduler compare with ours, before somebody switches.

use clap::Args;
use pellucid_api::rest::shadow::{Shadow, ShadowExample, ShadowJudged, ShadowTimes};

use super::explain_text::line;
use super::out::{Paint, Style};
use super::server::ServerArgs;
use super::text::{cell, clean, count, one, section, table};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid shadow")]
pub struct ShadowArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &ShadowArgs) -> anyhow::Result<String> {
    args.server.show("/apis/v1/shadow", |body: &Shadow| text(body, Paint::for_stdout()))
}

fn text(body: &Shadow, paint: Paint) -> String {
    let judged = &body.judged;
    let mut out = String::new();
    let many = count(usize::try_from(judged.bindings).unwrap_or(usize::MAX), "Binding");
    line(&mut out, &paint.apply(Style::Bold, &clean(&format!("{many} of {} judged", body.of))));
    if let (Some(feasible), Some(best)) = (judged.feasible_percent, judged.best_score_percent) {
        line(
            &mut out,
            &format!(
                "{feasible:.2} % went to a node that we find feasible, {best:.2} % to one of the best by score."
            ),
        );
    }
    out += &format!("\n{}\n", classes(judged));
    let far: Vec<String> = judged
        .distances
        .iter()
        .filter(|of| of.pods > 0)
        .map(|of| {
            of.up_to.map_or_else(|| format!("more: {}", of.pods), |most| format!("up to {most}: {}", of.pods))
        })
        .collect();
    if !far.is_empty() {
        line(&mut out, &format!("\nBelow the best total score by {}", far.join(", ")));
    }
    section(&mut out, &judged.causes, |causes| {
        let all: Vec<String> = causes.iter().map(|cause| format!("{} {}", cause.pods, cause.code)).collect();
        clean(&format!("We refuse their node for: {}", all.join(", ")))
    });
    let took = [("ours", &judged.ours_took), ("theirs", &judged.theirs_took)];
    let took: Vec<String> =
        took.iter().filter_map(|(whose, took)| Some(time(whose, took.as_ref()?))).collect();
    if !took.is_empty() {
        line(&mut out, &format!("\nFrom first seen to decided: {}", took.join("; ")));
    }
    section(&mut out, &judged.examples, examples);
    out
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

fn examples(all: &[ShadowExample]) -> String {
    let mut table = table(&["POD", "THEIRS", "OURS", "WHY NOT THEIRS"], []);
    for example in all.iter().take(10) {
        table.add_row([one(&example.pod), cell(&example.theirs), cell(&example.ours), cell([why(example)])]);
    }
    table.text()
}

fn why(example: &ShadowExample) -> String {
    match (example.their_total, example.best_total) {
        (Some(theirs), Some(best)) => {
            let by = |score: Option<i64>| score.map_or_else(|| "-".to_owned(), |score| score.to_string());
            let each = example.shares.iter();
            let each: Vec<String> =
                each.map(|of| format!("{} {} against {}", of.plugin, by(of.theirs), by(of.ours))).collect();
            format!("score {theirs} of {best}: {}", each.join(", "))
        }
        _ if example.theirs.is_none() => "it refused the pod".to_owned(),
        _ if example.reasons.is_empty() => "PreFilter leaves it out".to_owned(),
        _ => example.reasons.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use pellucid_api::rest::shadow::{ShadowCause, ShadowDistance, ShadowShare};

    use super::super::text::testing::assert_in_order;
    use super::*;

    #[test]
    fn the_report_goes_from_the_whole_to_the_single_pod() {
        let share = |plugin: &str, ours, theirs| ShadowShare { plugin: plugin.into(), ours, theirs };
        let lower = ShadowExample {
            pod: "d/a".into(),
            theirs: Some("n1".into()),
            ours: Some("n2".into()),
            their_total: Some(90),
            best_total: Some(97),
            shares: vec![share("ImageLocality", Some(7), None)],
            ..ShadowExample::default()
        };
        let refused = ShadowExample {
            pod: "d/b".into(),
            theirs: Some("n3".into()),
            reasons: vec!["Insufficient cpu".into()],
            ..ShadowExample::default()
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
            examples: vec![lower, refused],
            ..ShadowJudged::default()
        };
        let body = Shadow { of: "default-scheduler".into(), judged, ..Shadow::default() };
        let text = text(&body, Paint::plain());
        let order = [
            "10 Bindings of default-scheduler judged",
            "90.00 % went to a node that we find feasible, 80.00 %",
            "a node that we refuse",
            "by up to 10: 1, more: 2",
            "1 InsufficientResource",
            "theirs p50 0.010 s, p99 0.500 s (10 pods)",
            "d/a",
            "score 90 of 97: ImageLocality - against 7",
            "d/b",
            "Insufficient cpu",
        ];
        assert_in_order(&text, &order);
    }
}
