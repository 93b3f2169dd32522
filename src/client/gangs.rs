//! `pellucid gangs`: lists the gangs with their members by stage, or how many there are of each state.

use std::collections::BTreeMap;

use clap::Args;
use pellucid_api::rest::gang_explain::{GangLine, GangList};

use super::age::age;
use super::filters::{AskedList, ListArgs, left_out, walk};
use super::out::{Paint, Style};
use super::server::ServerArgs;
use super::table::Table;
use super::text::{clean, count, next, one};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid gangs -n training --reason GangInsufficientCapacity --all")]
pub struct GangsArgs {
    #[command(flatten)]
    pub(crate) asked: AskedList,
}

pub(crate) fn run(args: &GangsArgs) -> anyhow::Result<()> {
    args.asked.run(list)
}

/// Returns a row for each gang, or for each state when there are many.
pub(crate) fn list(list: &ListArgs, server: &ServerArgs) -> anyhow::Result<String> {
    let (path, paint) = ("/apis/v1/explain/gangs", Paint::for_stdout());
    let query = list.query(server, &[]);
    let rows = if list.wants_items(server) || list.limit.is_some() { list.rows(server) } else { None };
    let body = walk(server, path, &query, "gangs", rows)?;
    let is_each = |body: &GangList| {
        rows.is_some()
            || list.wants_items(server)
            || list.rows(server).is_none_or(|rows| body.gangs.len() <= rows)
    };
    server.shown(path, body, |body: &GangList| match is_each(body) {
        true => each(body, paint),
        false => by_state(body, paint),
    })
}

fn each(body: &GangList, paint: Paint) -> String {
    let Some(first) = body.gangs.first() else { return "There are no gangs.".to_owned() };
    let header =
        ["GANG", "STATE", "MIN", "GATED", "PENDING", "WAITING", "BOUND", "AGE", "OUTLOOK", "VERDICT"];
    let mut table = Table::new(&header, 2..7).elided(0..9).sparing([7, 5, 3, 9]);
    for gang in &body.gangs {
        let counts = &gang.counts;
        let mut cells = vec![one(name(gang)), one(&gang.state)];
        let bound = counts.permitted + counts.bound + counts.finished;
        cells.extend([gang.min, counts.gated, counts.pending, counts.waiting, bound].map(one));
        cells.push(one(age(gang.created_at.as_deref().unwrap_or_default(), &body.meta.generated_at)));
        cells.push(one(if gang.outlook.is_empty() { "-" } else { &gang.outlook }));
        cells.push(one(&gang.message));
        table.add_row(cells);
    }
    let more = left_out(body.gangs.len(), body.count, "gang");
    foot(&table, body, &more, first, paint)
}

fn by_state(body: &GangList, paint: Paint) -> String {
    let mut groups: BTreeMap<(&str, &str, &str), Vec<&GangLine>> = BTreeMap::new();
    for gang in &body.gangs {
        groups.entry((&gang.state, &gang.code, &gang.outlook)).or_default().push(gang);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, gangs)| std::cmp::Reverse(gangs.len()));
    let header = ["GANGS", "STATE", "VERDICT", "OUTLOOK", "PENDING PODS", "OLDEST", "EXAMPLE"];
    let mut table = Table::new(&header, [0, 4]).elided(0..7).sparing([4]);
    for ((state, code, outlook), gangs) in &groups {
        let oldest = gangs.iter().filter_map(|gang| gang.created_at.as_deref()).min().unwrap_or_default();
        let pending: u32 = gangs.iter().map(|gang| gang.counts.pending + gang.counts.gated).sum();
        table.add_row([
            one(gangs.len()),
            one(state),
            one(code),
            one(if outlook.is_empty() { "-" } else { outlook }),
            one(pending),
            one(age(oldest, &body.meta.generated_at)),
            one(name(gangs[0])),
        ]);
    }
    foot(&table, body, "Each gang: --all\n", groups[0].1[0], paint)
}

/// Returns a table with its number of gangs, who waits for each other, and the next command.
fn foot(table: &Table, body: &GangList, more: &str, example: &GangLine, paint: Paint) -> String {
    let many = paint.apply(Style::Bold, &format!("{}.", count(body.count, "gang")));
    let waits = |gangs: &[String]| clean(&format!("These wait for each other: {}", gangs.join(", ")));
    let deadlocks: String = body.deadlocks.iter().map(|cycle| waits(&cycle.gangs) + "\n").collect();
    let next = next(&format!("explain gang {}", name(example)));
    format!("{}\n\n{many}\n{more}{deadlocks}{next}", table.text())
}

fn name(gang: &GangLine) -> String {
    format!("{}/{}", gang.namespace, gang.name)
}

#[cfg(test)]
mod tests {
    use pellucid_api::rest::gang_explain::InterferenceCycle;

    use super::*;

    fn gangs(number: usize) -> GangList {
        let gang = |n: usize| GangLine {
            namespace: "ns".into(),
            name: format!("g-{n}"),
            state: if n == 0 { "Running".into() } else { "Unschedulable".into() },
            ..GangLine::default()
        };
        GangList { count: number, gangs: (0..number).map(gang).collect(), ..GangList::default() }
    }

    #[test]
    fn the_list_has_a_row_per_gang() {
        assert_eq!(each(&gangs(0), Paint::plain()), "There are no gangs.");
        let mut body = gangs(1);
        body.deadlocks.push(InterferenceCycle { gangs: vec!["a/x".into(), "a/y".into()], breaks_at: None });
        let text = each(&body, Paint::plain());
        let end = "1 gang.\nThese wait for each other: a/x, a/y\npellucid explain gang ns/g-0";
        assert!(text.contains("Running") && text.ends_with(end), "{text}");
    }

    #[test]
    fn many_gangs_are_counted_by_state() {
        let text = by_state(&gangs(300), Paint::plain());
        assert!(text.lines().count() < 10, "{text}");
        assert!(text.contains(" 299  Unschedulable") && text.ends_with("explain gang ns/g-1"), "{text}");
    }
}
