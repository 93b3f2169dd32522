//! The pods whose end would give a gang group its quorum. A set is estimated from what nodes have free and then tried
//! out; one that was not tried is not named.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pellucid_cluster::Cluster;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_cycle::what_if::simulation::Simulation;
use pellucid_model::requests::ResourceList;
use pellucid_model::{Name, NodeIdx, PodId, PodKey, cancellation};

use super::outlook::Look;
use crate::requirements::{PodRequirements, ask};

/// Largest number of pods that are named.
pub(super) const MOST_LEAVING: usize = 100;
/// Bounds on the plans with which pods are found that may stay, and on the members planned in all of them together.
const LEAST_PLANS: usize = 4;
const MOST_PLANS: usize = 16;
const MOST_MEMBERS: usize = 4_000;

/// Returns pods whose end gives the group its quorum, by name, and the plan without them. Returns `None` if none of the
/// sets tried does, or each is too large. `emptied` is a plan on emptied nodes that gave a quorum, with the pods in `kept`
/// still there.
pub(super) fn leaving(
    look: &Look<'_>,
    emptied: &Simulation,
    kept: &BTreeSet<PodId>,
) -> Option<(Vec<PodKey>, Simulation)> {
    let pods = Pods { look, cluster: &look.snapshot.cluster, kept };
    let nodes = pods.taken(emptied);
    let sets: [&dyn Fn() -> Option<Vec<PodId>>; 3] =
        [&|| pods.cheapest(), &|| Some(pods.for_demand(&nodes)), &|| Some(pods.all_on(&nodes))];
    let mut tried = BTreeSet::new();
    for set in sets {
        cancellation::check();
        let Some(set) = set() else { continue };
        let keys = set.iter().filter_map(|id| Some(pods.cluster.pod(*id)?.pod.key.clone()));
        let keys: BTreeSet<PodKey> = keys.collect();
        if keys.is_empty() || keys.len() > MOST_LEAVING || !tried.insert(keys.clone()) {
            continue;
        }
        if let Some(plan) = pods.tried(&keys) {
            return Some(pods.fewest(keys, plan));
        }
    }
    None
}

struct Pods<'s> {
    look: &'s Look<'s>,
    cluster: &'s Cluster,
    kept: &'s BTreeSet<PodId>,
}

/// Ways to make room on a node: how many pods leave, and how many members fit more than before.
struct Offer {
    node: NodeIdx,
    leaving: Vec<PodId>,
    /// After each pod that leaves, the number of members that fit more.
    gains: Vec<i64>,
    /// Number of pods with the best gain for each.
    best: usize,
}

impl Pods<'_> {
    /// Returns the plan without some pods if it gives the group its quorum.
    fn tried(&self, keys: &BTreeSet<PodKey>) -> Option<Simulation> {
        let edits: Vec<Edit> = keys.iter().cloned().map(Edit::DeletePod).collect();
        self.look.plan_with(&edits).filter(|plan| self.look.is_met(plan))
    }

    /// Leaves those pods out of a set that may stay, as far as the plans reach: many at once, then fewer, those of the
    /// highest priority first.
    fn fewest(&self, mut keys: BTreeSet<PodKey>, mut plan: Simulation) -> (Vec<PodKey>, Simulation) {
        let record = |key: &PodKey| self.cluster.pod(self.cluster.find_pod(key)?);
        let mut open: Vec<PodKey> = keys.iter().cloned().collect();
        open.sort_by_cached_key(|key| {
            record(key).map(|r| (r.pod.deleting, Reverse(r.pod.priority), r.pod.spec.requests.list.milli_cpu))
        });
        let gangs = self.look.keys.iter().filter_map(|key| self.cluster.gangs().get(key));
        let members: usize = gangs.map(|gang| gang.members.len()).sum();
        let mut left = (MOST_MEMBERS / members.max(1)).clamp(LEAST_PLANS, MOST_PLANS);
        let mut size = open.len() / 2;
        while size > 0 {
            let mut at = 0;
            while at < open.len() && keys.len() > 1 {
                if left == 0 {
                    return (keys.into_iter().collect(), plan);
                }
                left -= 1;
                let end = open.len().min(at + size);
                let fewer: BTreeSet<PodKey> =
                    keys.iter().filter(|key| !open[at..end].contains(key)).cloned().collect();
                match self.tried(&fewer).filter(|_| !fewer.is_empty()) {
                    Some(better) => {
                        (keys, plan) = (fewer, better);
                        open.drain(at..end);
                    }
                    None => at = end,
                }
            }
            size /= 2;
        }
        (keys.into_iter().collect(), plan)
    }

    /// Returns the pods of a node that could leave: those that are ending, then by priority and size.
    fn on(&self, node: NodeIdx) -> Vec<PodId> {
        let leaves = |id: &PodId| {
            let record = self.cluster.pod(*id);
            record.is_some_and(|r| r.pod.can_leave() && !self.look.is_own(r) && !self.kept.contains(id))
        };
        let mut pods: Vec<PodId> = self.cluster.slot(node).pods.iter().copied().filter(leaves).collect();
        pods.sort_by_cached_key(|id| {
            self.cluster.pod(*id).map(|r| {
                let cpu = Reverse(r.pod.spec.requests.list.milli_cpu);
                (!r.pod.deleting, r.pod.priority, cpu, r.pod.key.clone())
            })
        });
        pods
    }

    /// Returns the members that a plan placed, by node.
    fn taken(&self, plan: &Simulation) -> BTreeMap<NodeIdx, Vec<PodId>> {
        let mut taken: BTreeMap<NodeIdx, Vec<PodId>> = BTreeMap::new();
        let after = plan.scheduler().cluster();
        let gangs = self.look.keys.iter().filter_map(|key| self.cluster.gangs().get(key));
        for id in gangs.flat_map(|gang| gang.members.keys()) {
            let was_pending = self.cluster.pod(*id).is_some_and(|record| record.node.is_none());
            if let Some(node) = after.pod(*id).and_then(|record| record.node).filter(|_| was_pending) {
                taken.entry(node).or_default().push(*id);
            }
        }
        taken
    }

    fn all_on(&self, nodes: &BTreeMap<NodeIdx, Vec<PodId>>) -> Vec<PodId> {
        nodes.keys().flat_map(|node| self.on(*node)).collect()
    }

    /// Returns as many pods of each node as make room for the members that a plan placed there.
    fn for_demand(&self, nodes: &BTreeMap<NodeIdx, Vec<PodId>>) -> Vec<PodId> {
        let mut all = Vec::new();
        for (node, members) in nodes {
            cancellation::check();
            let lists = members.iter().filter_map(|id| self.cluster.pod(*id));
            let mut wanted = Amounts::default();
            lists.for_each(|record| wanted.add(&record.pod.spec.requests.list));
            let mut freed = Amounts::default();
            for id in self.on(*node) {
                if wanted.fit(self.cluster, *node, &freed) {
                    break;
                }
                if let Some(record) = self.cluster.pod(id) {
                    freed.add(&record.pod.spec.requests.list);
                    all.push(id);
                }
            }
        }
        all
    }

    /// Returns the fewest pods that make room for the missing members, if these are all like one of them.
    fn cheapest(&self) -> Option<Vec<PodId>> {
        let gang = self.cluster.gangs().get(self.look.key)?;
        let pending = gang.members.keys().filter_map(|id| Some((*id, self.cluster.pod(*id)?)));
        let first = pending.filter(|(_, r)| r.node.is_none()).min_by(|a, b| a.1.pod.key.cmp(&b.1.pod.key));
        let asked = ask(self.look.snapshot, first?.0)?;
        if asked.masks.pod.is_some() {
            return None;
        }
        let needs = self.look.keys.iter().filter_map(|key| self.cluster.gangs().get(key));
        let mut missing: i64 = needs.map(|gang| i64::from(gang.need())).sum();
        let mut offers = Vec::new();
        for node in self.cluster.by_name() {
            cancellation::check();
            if asked.masks.of(*node) == 0 {
                missing -= slots(&asked, *node, &Amounts::default());
            }
            offers.extend(self.offer(&asked, *node));
        }
        offers.sort_by(|a, b| {
            let ratio = |o: &Offer, other: &Offer| o.gains[o.best - 1] * other.best as i64;
            let name = |o: &Offer| self.cluster.node_name(o.node).clone();
            ratio(b, a).cmp(&ratio(a, b)).then(a.best.cmp(&b.best)).then_with(|| name(a).cmp(&name(b)))
        });
        let mut chosen = Vec::new();
        for offer in offers {
            if missing <= 0 {
                break;
            }
            // On the last node fewer pods may be enough.
            let enough = offer.gains[..offer.best].iter().position(|gain| *gain >= missing);
            let n = enough.map_or(offer.best, |at| at + 1);
            missing -= offer.gains[n - 1];
            chosen.extend_from_slice(&offer.leaving[..n]);
        }
        (missing <= 0).then_some(chosen)
    }

    /// Returns what a node offers once pods leave, or `None` if that gives no member room.
    fn offer(&self, asked: &PodRequirements<'_>, node: NodeIdx) -> Option<Offer> {
        if asked.masks.fixed_of(node) != 0 {
            return None;
        }
        let leaving = self.on(node);
        let mut freed = Amounts::default();
        let now = if asked.masks.of(node) == 0 { slots(asked, node, &freed) } else { 0 };
        let mut gains = Vec::new();
        for id in &leaving {
            freed.add(&self.cluster.pod(*id)?.pod.spec.requests.list);
            gains.push(slots(asked, node, &freed) - now);
        }
        let best = (1..=gains.len()).reduce(|best, n| {
            if gains[n - 1] * best as i64 > gains[best - 1] * n as i64 { n } else { best }
        })?;
        (gains[best - 1] > 0).then_some(Offer { node, leaving, gains, best })
    }
}

/// Amounts of resources by name, and a number of pods.
#[derive(Default)]
struct Amounts {
    of: BTreeMap<Name, i64>,
    pods: i64,
}

impl Amounts {
    fn add(&mut self, list: &ResourceList) {
        self.pods += 1;
        for (name, amount) in list.named() {
            let sum = self.of.entry(name).or_default();
            *sum = sum.saturating_add(amount);
        }
    }

    /// Returns whether a node has room for these amounts once others are freed.
    fn fit(&self, cluster: &Cluster, node: NodeIdx, freed: &Self) -> bool {
        self.pods <= free(cluster, node, &Name::new("pods"), freed)
            && self.of.iter().all(|(name, amount)| *amount <= free(cluster, node, name, freed))
    }
}

fn free(cluster: &Cluster, node: NodeIdx, name: &Name, freed: &Amounts) -> i64 {
    let columns = cluster.columns();
    let now = columns.find(name).map_or(0, |resource| columns.free(node, resource));
    let more = if &**name == "pods" { freed.pods } else { freed.of.get(name).copied().unwrap_or(0) };
    now.saturating_add(more)
}

/// Returns the number of members for which a node has room once amounts are freed, by their requests.
fn slots(asked: &PodRequirements<'_>, node: NodeIdx, freed: &Amounts) -> i64 {
    let room = |name: &Name| free(&asked.cluster, node, name, freed).max(0);
    let fits = asked.record.pod.spec.requests.list.named().map(|(name, amount)| room(&name) / amount.max(1));
    fits.chain([room(&Name::new("pods"))]).min().unwrap_or(0)
}
