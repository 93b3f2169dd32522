//! `pellucid nodes`: every node, with how many of the pending pods it would take and why it refuses the others.

use clap::Args;
use pellucid_api::rest::node_explain::{NodeLine, NodeLines};

use super::filters::{AskedList, left_out, walk};
use super::out::{Paint, Style};
use super::table::Table;
use super::text::{cell, count, next, one};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid nodes -l node-pool=gpu")]
pub struct NodesArgs {
    #[command(flatten)]
    pub(crate) asked: AskedList,
}

pub(crate) fn run(args: &NodesArgs) -> anyhow::Result<()> {
    args.asked.run(|list, server| {
        let path = "/apis/v1/explain/nodes";
        let body = walk(server, path, &list.query(server, &[]), "nodes", list.rows(server))?;
        server.shown(path, body, |body: &NodeLines| text(body, Paint::for_stdout()))
    })
}

fn text(body: &NodeLines, paint: Paint) -> String {
    let Some(first) = body.nodes.first() else { return "There are no nodes.".to_owned() };
    let header = ["NODE", "STATUS", "PODS", "TAKES", "REFUSES", "MOSTLY FOR", "FREE"];
    let mut table = Table::new(&header, [2, 3, 4]).elided(0..5).sparing([6]);
    for node in &body.nodes {
        table.add_row([
            one(&node.name),
            cell([status(node).join(",")]),
            one(node.pods),
            one(node.takes),
            one(node.refuses),
            cell(mostly(node)),
            cell(free(node)),
        ]);
    }
    let asked = match body.pending_considered < body.pending_total {
        true => format!("{} of {}", body.pending_considered, count(body.pending_total, "pending pod")),
        false => count(body.pending_total, "pending pod"),
    };
    let many = format!("{}, asked about {asked}, each alone.", count(body.count, "node"));
    let more = left_out(body.nodes.len(), body.count, "node");
    let next = next(&format!("explain node {}", first.name));
    format!("{}\n\n{}\n{more}{next}", table.text(), paint.apply(Style::Bold, &many))
}

/// Returns what is free, CPU and memory first.
fn free(node: &NodeLine) -> Vec<String> {
    let mut free: Vec<_> = node.free.iter().collect();
    let first = ["cpu", "memory"];
    let place = |name: &str| match first.iter().position(|known| *known == name) {
        Some(at) => at,
        None if name == "ephemeral-storage" => first.len() + 1,
        None => first.len(),
    };
    free.sort_by_key(|(name, _)| place(name));
    free.into_iter().map(|(name, amount)| format!("{name}={amount}")).collect()
}

/// Returns the states of a node as `kubectl get nodes` writes them.
fn status(node: &NodeLine) -> Vec<&str> {
    let ready = if node.ready { "Ready" } else { "NotReady" };
    std::iter::once(ready).chain(node.unschedulable.then_some("SchedulingDisabled")).collect()
}

/// Returns the reason for which a node refuses most pods, with their number.
fn mostly(node: &NodeLine) -> Option<String> {
    let most = node.refused_for.iter().max_by_key(|(code, pods)| (**pods, std::cmp::Reverse(*code)))?;
    Some(format!("{} ({})", most.0, most.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_says_how_it_stands_towards_what_is_pending() {
        let node = NodeLine {
            name: "n1".into(),
            unschedulable: true,
            takes: 2,
            refuses: 9,
            refused_for: [("A".to_owned(), 1), ("NodeUnschedulable".to_owned(), 9)].into(),
            ..NodeLine::default()
        };
        let body = NodeLines {
            count: 2,
            pending_considered: 11,
            pending_total: 20,
            nodes: vec![node],
            ..NodeLines::default()
        };
        let text = text(&body, Paint::plain());
        assert!(
            text.contains("NotReady,SchedulingDisabled") && text.contains("NodeUnschedulable (9)"),
            "{text}"
        );
        let end = "2 nodes, asked about 11 of 20 pending pods, each alone.\nand 1 more node: --limit 2 shows all\n\
                   pellucid explain node n1";
        assert!(text.ends_with(end), "{text}");
    }
}
