//! `pellucid quotas`: the tree of quotas with what each may use, uses and borrows, or how the share of one comes about.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use pellucid_api::rest::elastic_quota::{QuotaExplanation, QuotaShare, QuotaSummary};
use pellucid_model::quantity::{format_amount, milli, units};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::filters::encoded;
use super::out::{Paint, Style, fitted, width};
use super::server::ServerArgs;
use super::table::Table;
use super::text::{Amounts, clean, count, next, one, resource_names, rounds, table};

const QUOTAS: &str = "/apis/v1/plugins/ElasticQuota/quotas";
/// Rows without `--all`: with the lines below them they fit 60 lines.
const ROWS: usize = 54;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pellucid quotas --tree gpu\n  pellucid quotas team-a")]
pub struct QuotasArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Quota to explain
    #[arg(value_name = "QUOTA")]
    quota: Option<String>,
    /// Only quotas of this tree
    #[arg(long, value_name = "TREE", conflicts_with = "quota")]
    tree: Option<String>,
    /// All rows, however many
    #[arg(long, conflicts_with = "quota")]
    all: bool,
}

/// The quotas of an answer. `meta` stands beside them and is none.
#[derive(Deserialize)]
struct Summaries {
    #[serde(rename = "meta")]
    _meta: Option<IgnoredAny>,
    #[serde(flatten)]
    quotas: BTreeMap<String, QuotaSummary>,
}

pub(crate) fn run(args: &QuotasArgs) -> anyhow::Result<String> {
    let paint = Paint::for_stdout();
    if let Some(name) = &args.quota {
        let path = format!("/apis/v1/explain/quotas/{}", encoded(name));
        return args.server.show(&path, |body: &QuotaExplanation| explained(body, paint));
    }
    // A tree of its own has a root without a name of its own.
    let query = match args.tree.as_deref() {
        Some(tree) => format!("tree={}", encoded(tree)),
        None => "includeRoot=true".to_owned(),
    };
    let rows = if args.all { usize::MAX } else { ROWS };
    args.server.show(&format!("{QUOTAS}?{query}"), |body: &Summaries| listed(&body.quotas, rows, paint))
}

/// Returns the quotas with their depth, each below its parent, siblings by name.
fn in_tree(all: &BTreeMap<String, QuotaSummary>) -> Vec<(usize, &QuotaSummary)> {
    let mut children: BTreeMap<&str, Vec<&QuotaSummary>> = BTreeMap::new();
    // The root is its own parent.
    let is_root = |quota: &QuotaSummary| quota.parent_name == quota.name;
    for quota in all.values().filter(|quota| !is_root(quota)) {
        children.entry(&quota.parent_name).or_default().push(quota);
    }
    let is_top = |quota: &&&QuotaSummary| is_root(quota) || !all.contains_key(&quota.parent_name);
    let mut open: Vec<(usize, &QuotaSummary)> = all.values().rev().map(|quota| (0, quota)).collect();
    open.retain(|(_, quota)| is_top(&quota));
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    while let Some((depth, quota)) = open.pop() {
        if !seen.insert(&quota.name) {
            continue;
        }
        found.push((depth, quota));
        let below = children.get(quota.name.as_str()).into_iter().flatten().rev();
        open.extend(below.map(|child| (depth + 1, *child)));
    }
    found.extend(all.values().filter(|quota| !seen.contains(&quota.name)).map(|quota| (0, quota)));
    found
}

fn listed(all: &BTreeMap<String, QuotaSummary>, most: usize, paint: Paint) -> String {
    if all.is_empty() {
        return "There are no quotas.".to_owned();
    }
    let header = ["QUOTA", "RESOURCE", "MIN", "USED", "RUNTIME", "MAX", "REQUEST", "BORROWED", "STATE"];
    let mut table = Table::new(&header, 2..8).elided(0..9).sparing([7, 5]);
    let rows: Vec<_> = in_tree(all)
        .into_iter()
        .flat_map(|(depth, quota)| {
            let each = resources(quota).into_iter().enumerate();
            each.map(move |(n, resource)| (depth, quota, resource, n == 0))
        })
        .collect();
    for (depth, quota, resource, is_first) in rows.iter().take(most) {
        let of = |amounts: &Amounts| amounts.get(*resource).cloned().unwrap_or("-".into());
        let name = if *is_first { format!("{}{}", "  ".repeat(*depth), quota.name) } else { String::new() };
        table.add_row([
            one(clean(&name)),
            one(resource),
            one(of(&quota.min)),
            one(of(&quota.used)),
            one(of(&quota.runtime)),
            one(of(&quota.max)),
            one(of(&quota.request)),
            one(borrowed(quota, resource)),
            one(state(quota, resource)),
        ]);
    }
    let mut text = format!("{}\n\n", table.text());
    text += &paint.apply(Style::Bold, &format!("{}.", count(all.len(), "quota")));
    if rows.len() > most {
        text += &format!("\n{} more: --all", count(rows.len() - most, "row"));
    }
    let problems: usize = all.values().map(|quota| quota.problems.len()).sum();
    if problems > 0 {
        text += &format!("\n{} in quotas: -o json, or name the quota.", count(problems, "problem"));
    }
    let first = |begin: &str| {
        all.values().find(|quota| resources(quota).iter().any(|r| state(quota, r).starts_with(begin)))
    };
    let worst = first("over").or_else(|| first("short"));
    let example = worst.or_else(|| all.values().next()).map(|quota| quota.name.as_str()).unwrap_or_default();
    format!("{text}\n{}", next(&format!("quotas {example}")))
}

/// Returns the resources of a quota.
fn resources(quota: &QuotaSummary) -> Vec<&str> {
    resource_names([&quota.max, &quota.min, &quota.used, &quota.runtime])
}

/// Returns an amount in the stored unit of its resource. What is absent is 0.
fn number(amounts: &Amounts, resource: &str) -> i64 {
    let text = amounts.get(resource).map_or("0", String::as_str);
    let parsed = if resource == "cpu" { milli(text) } else { units(text) };
    parsed.unwrap_or(0)
}

/// Returns what the pods of a quota use beyond its min.
fn borrowed(quota: &QuotaSummary, resource: &str) -> String {
    let beyond = number(&quota.used, resource).saturating_sub(number(&quota.min, resource));
    if beyond > 0 { format_amount(resource, beyond) } else { "-".to_owned() }
}

/// Says what is wrong with a quota in one resource.
fn state(quota: &QuotaSummary, resource: &str) -> String {
    let (used, request) = (number(&quota.used, resource), number(&quota.request, resource));
    let runtime = quota.runtime.contains_key(resource).then(|| number(&quota.runtime, resource));
    match runtime {
        Some(runtime) if used > runtime => format!("over by {}", format_amount(resource, used - runtime)),
        Some(runtime) if request > used && request > runtime => {
            format!("short of {}", format_amount(resource, request - runtime))
        }
        _ => "-".to_owned(),
    }
}

fn explained(body: &QuotaExplanation, paint: Paint) -> String {
    let mut head = vec![paint.apply(Style::Bold, &clean(&body.path.join(" > ")))];
    head.extend(body.sentences.iter().map(|sentence| fitted(&clean(sentence), width())));
    let mut parts = vec![head.join("\n")];
    for share in &body.resources {
        parts.push(siblings(share));
        parts.push(rounds(&share.rounds));
    }
    if let Some(overuse) = &body.overuse {
        let over: Vec<String> = overuse.excess.iter().map(|(name, n)| format!("{n} {name}")).collect();
        let who = match overuse.would_evict.join(", ") {
            none if none.is_empty() => "nobody".to_owned(),
            pods => pods,
        };
        let mut when = match (overuse.monitored, overuse.evicts_in_seconds) {
            (false, _) => "Nobody is evicted for it (monitorAllQuotas is off).".to_owned(),
            (true, Some(seconds)) => format!("In {seconds} s would be evicted: {who}"),
            (true, None) => format!("Would be evicted: {who}"),
        };
        if overuse.monitored && !overuse.held_back.is_empty() {
            let kept = overuse.held_back.iter().map(|(pod, budget)| format!("{pod} (by {budget})"));
            when.push_str(&format!(
                "; kept by a PodDisruptionBudget: {}",
                kept.collect::<Vec<_>>().join(", ")
            ));
        }
        parts.push(fitted(&clean(&format!("Over its runtime by {}. {when}", over.join(", "))), width()));
    }
    let problems = body.problems.iter();
    let problems: Vec<String> = problems
        .map(|of| fitted(&clean(&format!("{} = {:?}: {}", of.field, of.value, of.problem)), width()))
        .collect();
    parts.extend((!problems.is_empty()).then(|| problems.join("\n")));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// Returns a table of a quota and its siblings in one resource.
fn siblings(share: &QuotaShare) -> String {
    let mut table = table(&["SHARE OF", "REQUEST", "GUARANTEED", "WEIGHT", "LENDS", "RUNTIME"], [1, 2, 3, 5]);
    for claim in &share.siblings {
        table.add_row([
            one(&claim.quota),
            one(&claim.request),
            one(&claim.guaranteed),
            one(claim.weight),
            one(if claim.lends { "yes" } else { "no" }),
            one(&claim.runtime),
        ]);
    }
    let total = clean(&format!("{}: {} to share out.", share.resource, share.total));
    format!("{total}\n{}", table.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(cpu: &str) -> BTreeMap<String, String> {
        [("cpu".to_owned(), cpu.to_owned())].into()
    }

    fn quota(name: &str, parent: &str, [min, used, runtime, request]: [&str; 4]) -> (String, QuotaSummary) {
        let summary = QuotaSummary {
            name: name.into(),
            parent_name: parent.into(),
            min: amounts(min),
            used: amounts(used),
            runtime: amounts(runtime),
            request: amounts(request),
            max: amounts("100"),
            ..QuotaSummary::default()
        };
        (name.into(), summary)
    }

    #[test]
    fn children_stand_below_their_parent_and_circles_are_listed_too() {
        let numbers = ["1", "0", "1", "0"];
        let all = [("b", "root"), ("a", "b"), ("c", "root"), ("x", "y"), ("y", "x")];
        let all = all.into_iter().map(|(name, parent)| quota(name, parent, numbers)).collect();
        let found: Vec<(usize, &str)> = in_tree(&all).iter().map(|(d, q)| (*d, q.name.as_str())).collect();
        assert_eq!(found, [(0, "b"), (1, "a"), (0, "c"), (0, "x"), (0, "y")]);
    }

    #[test]
    fn who_borrows_who_is_over_and_who_is_short_is_said() {
        let all = [
            quota("borrows", "root", ["10", "12500m", "15", "12500m"]),
            quota("over", "root", ["10", "12", "11", "12"]),
            quota("short", "root", ["10", "10", "10", "14"]),
        ];
        let text = listed(&all.into_iter().collect(), ROWS, Paint::plain());
        for said in ["2500m", "over by 1", "short of 4", "3 quotas.", "pellucid quotas over"] {
            assert!(text.contains(said), "{said} is not in\n{text}");
        }
    }

    #[test]
    fn many_rows_are_cut() {
        let all = (0..100).map(|n| quota(&format!("q{n:03}"), "root", ["1", "0", "1", "0"])).collect();
        let text = listed(&all, ROWS, Paint::plain());
        assert!(text.lines().count() <= 60 && text.contains("46 rows more: --all"), "{text}");
    }
}
