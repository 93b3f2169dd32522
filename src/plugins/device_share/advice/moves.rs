//! Which pods could move so that a node has the devices that a pod requests: pods with a part of its cards, each to a node
//! whose devices take it, best where cards are in use already.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pellucid_framework::View;
use pellucid_framework::advice::{Change, PodMove, Proposal};
use pellucid_model::{NodeIdx, PodId};

use super::super::DeviceShare;
use super::super::allocation::{Allocation, Given};
use super::super::allocator::allocation;
use super::super::node_devices::NodeDevices;
use super::super::request::Request;
use super::super::row::{CardInUse, PodOnCards, Row};

/// Number of refused nodes on which pods are looked for.
const MOST_NODES: usize = 64;
/// Number of pods of a node that are looked at.
const MOST_PODS: usize = 32;
/// Number of sets of pods for which other nodes are looked for.
const MOST_SETS: usize = 64;
/// Number of pods that one proposal moves.
const MOST_MOVED: usize = 3;
/// Number of proposals.
const MOST_PROPOSALS: usize = 8;
/// Number of other nodes that are proposed for one pod.
const MOST_TARGETS: usize = 2;
/// Cost of a move: less than that of a pod that ends.
const MOVE: u32 = 50;

impl DeviceShare {
    /// Returns moves of pods that give one of the refusing nodes the devices: of single pods, or of a few together where no
    /// single one is enough.
    pub(super) fn moves(&self, view: View<'_>, request: &Request, refused: &[NodeIdx]) -> Vec<Proposal> {
        let Some(devices) = view.state::<NodeDevices>() else { return Vec::new() };
        let lacks = |node: &NodeIdx| {
            let row = devices.row(*node)?;
            let lacks =
                self.allocate(row, request, None, None).is_err() && !self.lacks_even_empty(row, request);
            lacks.then_some((*node, row))
        };
        let nodes: Vec<(NodeIdx, &Row)> = refused.iter().filter_map(lacks).take(MOST_NODES).collect();
        let proposal = |moves| Proposal { change: Change::Move(moves), text: String::new(), cost: MOVE };
        for find in [Self::singles, Self::together] {
            let sets = nodes.iter().flat_map(|(node, row)| {
                let sets = find(self, view, row, request);
                sets.into_iter().map(|pods| (*node, pods))
            });
            let moves = sets.take(MOST_SETS).flat_map(|(node, pods)| self.elsewhere(view, node, &pods));
            let found: Vec<Proposal> = moves.take(MOST_PROPOSALS).map(proposal).collect();
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Returns whether a node has the devices once some pods are gone.
    fn takes_without(&self, row: &Row, request: &Request, gone: &[&PodOnCards]) -> bool {
        let mut row = row.clone();
        gone.iter().for_each(|pod| row.remove(pod.id));
        self.allocate(&row, request, None, None).is_ok()
    }

    /// Returns the single pods of a node whose leaving gives it the devices.
    fn singles<'a>(&self, view: View<'a>, row: &'a Row, request: &Request) -> Vec<Vec<&'a PodOnCards>> {
        let pods = movable(view, row).into_iter().map(|pod| vec![pod]);
        pods.filter(|pods| self.takes_without(row, request, pods)).collect()
    }

    /// Returns a few pods of a node whose leaving together gives it the devices.
    fn together<'a>(&self, view: View<'a>, row: &'a Row, request: &Request) -> Vec<Vec<&'a PodOnCards>> {
        let pods = movable(view, row);
        let enough = (2..=pods.len()).find(|n| self.takes_without(row, request, &pods[..*n]));
        let Some(mut needed) = enough.map(|n| pods[..n].to_vec()) else { return Vec::new() };
        for at in (0..needed.len()).rev() {
            let mut fewer = needed.clone();
            fewer.remove(at);
            if self.takes_without(row, request, &fewer) {
                needed = fewer;
            }
        }
        if needed.len() <= MOST_MOVED { vec![needed] } else { Vec::new() }
    }

    /// Returns where else the devices would take pods of a node that move together; of a single pod the best nodes.
    fn elsewhere(&self, view: View<'_>, from: NodeIdx, pods: &[&PodOnCards]) -> Vec<Vec<PodMove>> {
        let mut changed: BTreeMap<NodeIdx, Row> = BTreeMap::new();
        if let [pod] = pods {
            let targets = self.targets(view, from, pod.id, &changed).into_iter().take(MOST_TARGETS);
            return targets.map(|(to, _)| vec![move_of(view, pod, from, to)]).collect();
        }
        let mut moves = Vec::new();
        for pod in pods {
            let target = self.targets(view, from, pod.id, &changed).into_iter().next();
            let Some((to, what)) = target else { return Vec::new() };
            moves.push(move_of(view, pod, from, to));
            let known = NodeDevices::row_in(view, to);
            let row = changed.entry(to).or_insert_with(|| known.cloned().unwrap_or_default());
            row.add(PodOnCards { id: pod.id, what });
        }
        vec![moves]
    }

    /// Returns the other nodes whose devices take a pod, with what each would give it: those first where it needs the fewest
    /// unused cards. `changed` has the rows that other moves have changed.
    fn targets(
        &self,
        view: View<'_>,
        from: NodeIdx,
        pod: PodId,
        changed: &BTreeMap<NodeIdx, Row>,
    ) -> Vec<(NodeIdx, Arc<Allocation>)> {
        let Some(devices) = view.state::<NodeDevices>() else { return Vec::new() };
        let request = view.cluster().pod(pod).and_then(|record| Request::of(&record.pod.spec).ok()?);
        let Some(request) = request else { return Vec::new() };
        let target = |node: &NodeIdx| {
            let row = changed.get(node).or_else(|| devices.row(*node))?;
            let chosen = self.allocate(row, &request, None, None).ok()?;
            let given = allocation(row, &request, &chosen);
            let is_unused = |card: &CardInUse<'_>| {
                let has = |of: &Given| of.minor == card.minor && of.kind == card.kind;
                card.taken.pods == 0 && given.given.iter().any(has)
            };
            Some((row.cards().filter(is_unused).count(), *node, given))
        };
        let others = view.cluster().by_name().iter().filter(|node| **node != from);
        let mut all: Vec<(usize, NodeIdx, Arc<Allocation>)> = others.filter_map(target).collect();
        // A stable sort: equal ones stay in the order of their names.
        all.sort_by_key(|(unused, ..)| *unused);
        all.into_iter().map(|(_, node, given)| (node, given)).collect()
    }
}

/// Returns the pods with devices of a node that can leave it: those of low priority first, then those with few devices.
fn movable<'a>(view: View<'a>, row: &'a Row) -> Vec<&'a PodOnCards> {
    let key = |pod: &'a PodOnCards| {
        let record = view.cluster().pod(pod.id)?;
        let can_leave = !record.pod.deleting && record.pod.can_leave();
        can_leave.then_some((record.pod.priority, amount(pod), &record.pod.key, pod))
    };
    let mut pods: Vec<_> = row.pods.iter().filter_map(key).collect();
    pods.sort_by(|a, b| (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2)));
    pods.into_iter().map(|(.., pod)| pod).take(MOST_PODS).collect()
}

/// Returns how many devices a pod has, and how much of the first.
fn amount(pod: &PodOnCards) -> (usize, i64) {
    let given = &pod.what.given;
    let first = given.first().and_then(|given| given.amounts.iter().next());
    (given.len(), first.map_or(0, |(_, amount)| amount))
}

fn move_of(view: View<'_>, pod: &PodOnCards, from: NodeIdx, to: NodeIdx) -> PodMove {
    let devices: BTreeSet<(String, i64)> =
        pod.what.given.iter().map(|given| (given.kind.to_string(), given.minor)).collect();
    let devices: Vec<String> = devices.into_iter().map(|(kind, minor)| format!("{kind} {minor}")).collect();
    let (from, to) = (view.name(from), view.name(to).clone());
    let pod = pod.key(view);
    let text = format!("move pod {pod} from {} of {from} to {to}", devices.join(", "));
    PodMove { pod, to, text }
}
