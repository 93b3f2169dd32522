//! Nodes that are opened or added for the members of a gang, as many as a quorum needs. How many members a node takes is estimated from
//! their requests; the plan says whether it is true.

use pellucid_api::reason::ReasonCode;
use pellucid_model::{Name, NodeIdx, cancellation};

use super::gangs::{MOST_NODES, Search, Tried};
use super::parts::{Part, copy_node, cost, of_cluster};
use crate::requirements::PodRequirements;

impl Search<'_> {
    /// Opens nodes that fail nothing but being cordoned, tainted or without a label, those first whose room is the
    /// easiest to have, until there is a quorum.
    pub(super) fn by_opening(&self, asked: &PodRequirements<'_>) -> Option<Tried> {
        let mut closed: Vec<Opening> = Vec::new();
        for node in asked.cluster.by_name() {
            cancellation::check();
            let (room, parts) = (room(asked, *node, None), opened(asked, *node));
            closed.extend(parts.filter(|_| room > 0).map(|parts| Opening {
                cost: cost(&parts),
                room,
                parts,
            }));
        }
        // The order by name stays among equals.
        closed.sort_by(|a, b| {
            let (this, other) = (i64::from(a.cost) * b.room, i64::from(b.cost) * a.room);
            this.cmp(&other).then(b.room.cmp(&a.room))
        });
        closed.truncate(MOST_NODES);
        let mut missing = self.missing(asked);
        let is_needed = |opening: &&Opening| {
            missing -= opening.room;
            missing + opening.room > 0
        };
        let guess = closed.iter().take_while(is_needed).count();
        let change =
            |n: usize| closed[..n].iter().flat_map(|opening| opening.parts.clone()).collect::<Vec<_>>();
        let tried = if closed.is_empty() { None } else { self.least(guess, closed.len(), change) }?;
        // A single part cannot be reduced; of several, each is tried.
        Some(Tried { slots: tried.slots.filter(|_| tried.parts.len() == 1), ..tried })
    }

    /// Adds nodes like existing ones, as few as suffice, after trying up to `most` of them as models.
    pub(super) fn by_new_nodes(&self, asked: &PodRequirements<'_>, most: usize) -> Vec<Tried> {
        let nodes = asked.cluster.by_name().iter();
        let mut models: Vec<_> = nodes.filter_map(|idx| Some((*idx, asked.cluster.node(*idx)?))).collect();
        let fixed = |idx: NodeIdx| {
            let fixed = asked.masks.requirements(asked.masks.fixed_of(idx));
            fixed.filter(|(_, r)| r.reason.code != ReasonCode::NodeUnschedulable).count()
        };
        // One of several equal nodes is enough.
        models.sort_by_key(|(idx, node)| {
            (fixed(*idx), std::cmp::Reverse(size(node, asked)), node.name.clone())
        });
        models.dedup_by(|(_, a), (_, b)| a.allocatable == b.allocatable && a.taints == b.taints);
        let missing = self.missing(asked);
        let enough = |node: &Name, size: i64| {
            let copies = |n: usize| (1..=n).map(|i| copy_node(node, i)).collect();
            let guess = usize::try_from(missing / size + i64::from(missing % size != 0)).unwrap_or(1);
            self.least(guess, MOST_NODES, copies)
        };
        let models = models.into_iter().filter(|(_, node)| size(node, asked) > 0).take(most);
        models.filter_map(|(_, node)| enough(&node.name, size(node, asked))).collect()
    }

    /// Returns the number of members for which there is no room now.
    fn missing(&self, asked: &PodRequirements<'_>) -> i64 {
        let open = asked.cluster.by_name().iter().filter(|node| asked.masks.of(**node) == 0);
        self.need - open.map(|node| room(asked, *node, None)).sum::<i64>()
    }
}

/// A node that can be opened for members.
struct Opening {
    parts: Vec<Part>,
    cost: u32,
    /// Number of members for which there is room.
    room: i64,
}

/// Returns the parts that open a node, or `None` if it is open or fails something else as well.
fn opened(asked: &PodRequirements<'_>, node: NodeIdx) -> Option<Vec<Part>> {
    let mask = asked.masks.of(node);
    let opens = |code: ReasonCode| {
        use ReasonCode::{NodeAffinityMismatch, NodeUnschedulable, UntoleratedTaint};
        matches!(code, NodeUnschedulable | UntoleratedTaint | NodeAffinityMismatch)
    };
    let mut parts: Vec<Part> = Vec::new();
    for (_, requirement) in asked.masks.requirements(mask) {
        if !opens(requirement.reason.code) {
            return None;
        }
        let more = of_cluster(asked, node, requirement)?;
        let is_known = |part: &Part| parts.iter().any(|known| known.text == part.text);
        let more: Vec<Part> = more.into_iter().filter(|part| !is_known(part)).collect();
        parts.extend(more);
    }
    (!parts.is_empty()).then_some(parts)
}

/// Returns the number of members for which a node has room, by their requests; `other` replaces the amount of one
/// resource.
pub(super) fn room(asked: &PodRequirements<'_>, node: NodeIdx, other: Option<(&Name, i64)>) -> i64 {
    let columns = asked.cluster.columns();
    let free = |name: &Name| columns.find(name).map_or(0, |resource| columns.free(node, resource)).max(0);
    let amount =
        |name: &Name, amount: i64| other.filter(|(n, _)| *n == name).map_or(amount, |(_, other)| other);
    let requests = asked.record.pod.spec.requests.list.named();
    let fits = requests.map(|(name, requested)| free(&name) / amount(&name, requested).max(1));
    fits.chain([free(&Name::new("pods"))]).min().unwrap_or(0)
}

/// Returns the number of members that an empty node has room for, by their requests.
fn size(node: &pellucid_model::Node, asked: &PodRequirements<'_>) -> i64 {
    let requests = &asked.record.pod.spec.requests.list;
    let offers = |name: &Name| match &**name {
        "cpu" => node.allocatable.milli_cpu,
        "memory" => node.allocatable.memory,
        "ephemeral-storage" => node.allocatable.ephemeral_storage,
        _ => node.allocatable.scalar(name),
    };
    requests.named().map(|(name, amount)| offers(&name) / amount).min().unwrap_or(node.allocatable.pods)
}
