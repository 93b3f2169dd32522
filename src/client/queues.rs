//! `pellucid queues`: kube-batch's Queues with what each deserves, holds and borrows, or how the share of one comes about.

use clap::Args;
use pellucid_api::rest::proportion::{QueueExplanation, QueueShare, QueueSummaries, QueueSummary};
use pellucid_model::quantity::{format_milli, milli};

use super::filters::encoded;
use super::out::{Paint, Style, fitted, width};
use super::server::ServerArgs;
use super::table::Table;
use super::text::{Amounts, clean, count, next, one, resource_names, rounds, table};

const QUEUES: &str = "/apis/v1/plugins/Proportion/queues";
/// Rows without `--all`: with the lines below them they fit 60 lines.
const ROWS: usize = 54;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pellucid queues\n  pellucid queues research")]
pub struct QueuesArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Queue to explain
    #[arg(value_name = "QUEUE")]
    queue: Option<String>,
    /// All rows, however many
    #[arg(long, conflicts_with = "queue")]
    all: bool,
}

pub(crate) fn run(args: &QueuesArgs) -> anyhow::Result<String> {
    let paint = Paint::for_stdout();
    if let Some(name) = &args.queue {
        let path = format!("/apis/v1/explain/queues/{}", encoded(name));
        return args.server.show(&path, |body: &QueueExplanation| explained(body, paint));
    }
    let rows = if args.all { usize::MAX } else { ROWS };
    args.server.show(QUEUES, |body: &QueueSummaries| listed(body, rows, paint))
}

fn listed(body: &QueueSummaries, most: usize, paint: Paint) -> String {
    let header = [
        "QUEUE",
        "WEIGHT",
        "RESOURCE",
        "ALLOCATED",
        "DESERVED",
        "CAPABILITY",
        "REQUEST",
        "BORROWED",
        "STATE",
    ];
    let mut table = Table::new(&header, [1, 3, 4, 5, 6, 7]).elided(0..9).sparing([7, 5]);
    let rows: Vec<_> = body
        .queues
        .iter()
        .flat_map(|queue| resources(queue).into_iter().enumerate().map(move |(n, r)| (queue, r, n == 0)))
        .collect();
    for (queue, resource, is_first) in rows.iter().take(most) {
        let of = |amounts: &Amounts| amounts.get(*resource).cloned().unwrap_or("-".into());
        let (name, weight) =
            if *is_first { (clean(&queue.name), queue.weight.to_string()) } else { Default::default() };
        table.add_row([
            one(name),
            one(weight),
            one(resource),
            one(of(&queue.allocated)),
            one(of(&queue.deserved)),
            one(of(&queue.capability)),
            one(of(&queue.request)),
            one(of(&queue.borrowed)),
            one(state(queue, resource)),
        ]);
    }
    let mut text = format!("{}\n\n", table.text());
    text += &paint.apply(Style::Bold, &format!("{}.", count(body.queues.len(), "queue")));
    if body.queues.iter().all(|queue| queue.api_groups.is_empty()) {
        text += "\nThere is no Queue, so nothing is shared out and no pod is refused for it.";
    }
    if rows.len() > most {
        text += &format!("\n{} more: --all", count(rows.len() - most, "row"));
    }
    if body.truncated {
        text += "\nThere are more queues than an answer holds.";
    }
    let problems: usize = body.queues.iter().map(|queue| queue.problems.len()).sum();
    if problems > 0 {
        text += &format!("\n{} in queues: -o json, or name the queue.", count(problems, "problem"));
    }
    let first = |begin: &str| {
        let is_so = |queue: &&QueueSummary| {
            resources(queue).iter().any(|resource| state(queue, resource).starts_with(begin))
        };
        body.queues.iter().find(is_so)
    };
    let worst = first("over").or_else(|| first("waits"));
    let example = worst.or_else(|| body.queues.first()).map_or("default", |queue| queue.name.as_str());
    format!("{text}\n{}", next(&format!("queues {example}")))
}

/// Returns the resources of a queue.
fn resources(queue: &QueueSummary) -> Vec<&str> {
    resource_names([&queue.request, &queue.allocated, &queue.deserved, &queue.capability])
}

/// Returns an amount in thousandths, whatever the resource: what queues deserve has fractions. What is absent is 0.
fn number(amounts: &Amounts, resource: &str) -> i64 {
    milli(amounts.get(resource).map_or("0", String::as_str)).unwrap_or(0)
}

/// Says how a queue stands in one resource.
fn state(queue: &QueueSummary, resource: &str) -> String {
    let (held, deserved) = (number(&queue.allocated, resource), number(&queue.deserved, resource));
    // Without a Queue nothing is shared out, and pods outside queues may leave one less than it deserves.
    let is_overused = queue.overused.iter().any(|known| known == resource);
    let is_refused = queue.waiting.iter().any(|of| of.reason.as_deref() == Some("QueueCapabilityExceeded"));
    match held - deserved {
        over if is_overused && over > 0 => format!("over by {}", shown(resource, over)),
        _ if is_overused => "waits: holds all".to_owned(),
        _ if is_refused && queue.capability.contains_key(resource) => "waits: capability".to_owned(),
        _ => "-".to_owned(),
    }
}

/// Writes thousandths as a quantity, bytes in whole ones.
fn shown(resource: &str, milli: i64) -> String {
    let is_bytes = matches!(resource, "memory" | "ephemeral-storage") || resource.starts_with("hugepages-");
    match is_bytes {
        true => pellucid_model::quantity::format_amount(resource, milli / 1000),
        false => format_milli(milli),
    }
}

fn explained(body: &QueueExplanation, paint: Paint) -> String {
    let mut head = vec![paint.apply(Style::Bold, &clean(&body.name))];
    head.extend(body.sentences.iter().map(|sentence| fitted(&clean(sentence), width())));
    let mut parts = vec![head.join("\n")];
    for share in &body.resources {
        parts.push(claims(share));
        parts.push(rounds(&share.rounds));
    }
    let problems = body.problems.iter();
    let problems: Vec<String> = problems
        .map(|of| fitted(&clean(&format!("{} = {:?}: {}", of.field, of.value, of.problem)), width()))
        .collect();
    parts.extend((!problems.is_empty()).then(|| problems.join("\n")));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// Returns a table of all queues in one resource.
fn claims(share: &QueueShare) -> String {
    let header = ["SHARE OF", "WEIGHT", "PART", "REQUEST", "CAPABILITY", "DESERVED", "ALLOCATED"];
    let mut table = table(&header, [1, 2, 3, 4, 5, 6]);
    for claim in &share.queues {
        table.add_row([
            one(&claim.queue),
            one(claim.weight),
            one(&claim.part),
            one(&claim.request),
            one(claim.capability.as_deref().unwrap_or("-")),
            one(&claim.deserved),
            one(&claim.allocated),
        ]);
    }
    let total = clean(&format!("{}: {} to share out.", share.resource, share.total));
    format!("{total}\n{}", table.text())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pellucid_api::rest::proportion::QueueWaiting;

    use super::*;

    fn queue(name: &str, [allocated, deserved, request]: [&str; 3], is_overused: bool) -> QueueSummary {
        let amounts = |cpu: &str| BTreeMap::from([("cpu".to_owned(), cpu.to_owned())]);
        QueueSummary {
            name: name.into(),
            api_groups: vec!["scheduling.incubator.k8s.io".to_owned()],
            weight: 1,
            allocated: amounts(allocated),
            deserved: amounts(deserved),
            request: amounts(request),
            overused: is_overused.then(|| "cpu".to_owned()).into_iter().collect(),
            ..QueueSummary::default()
        }
    }

    #[test]
    fn who_is_over_and_who_waits_is_said() {
        let queues = vec![
            queue("fine", ["1", "2", "2"], false),
            queue("over", ["4500m", "4", "6"], true),
            queue("waits", ["4", "4", "6"], true),
        ];
        let body = QueueSummaries { queues, truncated: false };
        let text = listed(&body, ROWS, Paint::plain());
        for said in ["over by 500m", "waits: holds all", "3 queues.", "pellucid queues over"] {
            assert!(text.contains(said), "{said} is not in\n{text}");
        }
        assert!(!text.contains("There is no Queue"), "{text}");
        let mut limited = queue("limited", ["2", "3", "4"], false);
        limited.capability = limited.deserved.clone();
        assert_eq!(state(&limited, "cpu"), "-");
        let reason = Some("QueueCapabilityExceeded".to_owned());
        limited.waiting.push(QueueWaiting { reason, ..QueueWaiting::default() });
        assert_eq!(state(&limited, "cpu"), "waits: capability");
    }

    #[test]
    fn many_rows_are_cut_and_a_cluster_without_queues_says_so() {
        let queues = (0..100).map(|n| queue(&format!("q{n:03}"), ["1", "1", "1"], false)).collect();
        let text = listed(&QueueSummaries { queues, truncated: false }, ROWS, Paint::plain());
        assert!(text.lines().count() <= 60 && text.contains("46 rows more: --all"), "{text}");
        let only = QueueSummary { name: "default".into(), weight: 1, ..QueueSummary::default() };
        let body = QueueSummaries { queues: vec![only], truncated: false };
        assert!(listed(&body, ROWS, Paint::plain()).contains("There is no Queue"));
    }

    #[test]
    fn bytes_are_shown_as_bytes() {
        assert_eq!(shown("memory", (1 << 30) * 1000), "1Gi");
        assert_eq!((shown("cpu", 1500), shown("nvidia.com/gpu", 600)), ("1500m".into(), "600m".into()));
    }
}
