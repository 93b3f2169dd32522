//! The plugin as a provider of topology hints: which NUMA nodes could give a pod its CPU, memory and huge pages.

use std::sync::Arc;

use pellucid_framework::merge::MOST;
use pellucid_framework::topology::{
    NumaAffinity, NumaMask, NumaPolicy, NumaTopology, ResourceHints, TopologyHint, TopologyHints,
};
use pellucid_framework::{Cause, CycleValue, View};
use pellucid_model::{Name, NodeIdx, PodSpec};
use smallvec::SmallVec;

use super::NodeNumaResource;
use super::allocation::{Left, NodeRequest};
use super::keys;
use super::numa_nodes::NumaNodes;
use super::on_node::OnNode;
use super::reasons::Refusal;
use super::resource_spec::PodRequest;

impl TopologyHints for NodeNumaResource {
    /// Without a policy of the pod or of some node there is nothing to align.
    fn prepare(&self, view: View<'_>, spec: &PodSpec) -> Option<CycleValue> {
        let has_policies = view.state::<NumaNodes>().is_some_and(NumaNodes::has_policies);
        if !has_policies && spec.annotations.text(keys::NUMA_TOPOLOGY_SPEC).is_none() {
            return None;
        }
        let request = PodRequest::of(spec, self.args.default_bind).ok()?;
        (!request.amounts.is_empty()).then(|| Arc::new(request) as CycleValue)
    }

    fn topology(
        &self,
        view: View<'_>,
        _spec: &PodSpec,
        value: &CycleValue,
        node: NodeIdx,
    ) -> Result<Option<NumaTopology>, Cause> {
        let facts = view.state::<NumaNodes>().map(|state| state.facts(node)).unwrap_or_default();
        let has_own = |pod: &PodRequest| pod.policy != NumaPolicy::None;
        if !facts.has_policy && !value.downcast_ref().is_some_and(has_own) {
            return Ok(None);
        }
        let asked = self.asked(view, value, node);
        let Some(asked) = asked.transpose().map_err(|refusal| refusal.cause())? else { return Ok(None) };
        match Self::topology_of(&asked) {
            Some(topology) if topology.nodes.is_empty() => Err(Refusal::NoZones.cause()),
            topology => Ok(topology),
        }
    }

    fn hints(
        &self,
        view: View<'_>,
        _spec: &PodSpec,
        value: &CycleValue,
        node: NodeIdx,
    ) -> Result<Vec<ResourceHints>, Cause> {
        let asked = self.asked(view, value, node);
        let Some(asked) = asked.transpose().map_err(|refusal| refusal.cause())? else {
            return Ok(Vec::new());
        };
        self.hints_of(&asked).map_err(|refusal| refusal.cause())
    }

    fn fits(
        &self,
        view: View<'_>,
        _spec: &PodSpec,
        value: &CycleValue,
        node: NodeIdx,
        affinity: NumaAffinity,
    ) -> Result<(), Cause> {
        let asked = self.asked(view, value, node);
        let Some(asked) = asked.transpose().map_err(|refusal| refusal.cause())? else { return Ok(()) };
        asked.allocate(Some(affinity.mask)).map(drop).map_err(|refusal| refusal.cause())
    }
}

impl NodeNumaResource {
    /// Returns the NUMA nodes of a node as a pod may use them; `None` without a policy.
    pub(super) fn topology_of(asked: &NodeRequest<'_>) -> Option<NumaTopology> {
        if asked.policy == NumaPolicy::None {
            return None;
        }
        let on = asked.on;
        let mut topology =
            NumaTopology { policy: asked.policy, nodes: on.zone_mask(), ..NumaTopology::default() };
        if asked.pod.is_alone {
            (topology.only_alone, topology.never_alone) = (on.single, on.shared);
        }
        Some(topology)
    }

    /// Joins a prepared pod with a node.
    fn asked<'a>(
        &self,
        view: View<'a>,
        value: &'a CycleValue,
        node: NodeIdx,
    ) -> Option<Result<NodeRequest<'a>, Refusal>> {
        let pod = value.downcast_ref::<PodRequest>()?;
        Some(NodeRequest::of(self.on(view, node), pod, self.args.allocate_strategy()))
    }

    /// Returns the hints for each resource that NUMA nodes count: every set of NUMA nodes that can give the pod all of
    /// them. The smallest are preferred; under Restricted all are. Fails under a strict policy when a resource has none,
    /// and under any when no set will do.
    pub(super) fn hints_of(&self, asked: &NodeRequest<'_>) -> Result<Vec<ResourceHints>, Refusal> {
        let left = asked.left();
        let is_counted = |name: &Name| left.iter().any(|(_, amounts)| amounts.get(name).is_some());
        let names = asked.pod.amounts.iter().map(|(name, _)| name).filter(|name| is_counted(name));
        let names: SmallVec<[&Name; 4]> = names.collect();
        let mut lists: SmallVec<[Vec<TopologyHint>; 4]> = names.iter().map(|_| Vec::new()).collect();
        let nodes: SmallVec<[u16; 8]> = left.iter().map(|(node, _)| *node).collect();
        for mask in masks(&nodes) {
            if asked.allocate_of(Some(mask), Some(&left)).is_err() {
                continue;
            }
            let score = self.zone_score(asked, mask, &left);
            for (name, list) in names.iter().zip(&mut lists) {
                if has_all(&left, mask, name) {
                    list.push(TopologyHint { mask: Some(mask), preferred: false, score });
                }
            }
        }
        let unsatisfied = names.iter().zip(&lists).filter(|(_, list)| list.is_empty());
        let unsatisfied: SmallVec<[Name; 2]> = unsatisfied.map(|(name, _)| (*name).clone()).collect();
        if !unsatisfied.is_empty() {
            if asked.policy != NumaPolicy::BestEffort {
                return Err(Refusal::Unsatisfied(unsatisfied));
            }
            // Without a set that will do, all NUMA nodes together say what is missing.
            asked.allocate_of(Some(asked.on.zone_mask()), Some(&left))?;
        }
        for list in &mut lists {
            let width = |hint: &TopologyHint| hint.mask.map_or(0, NumaMask::count);
            let least = list.iter().map(width).min().unwrap_or(0);
            for hint in list {
                hint.preferred = width(hint) == least || asked.policy == NumaPolicy::Restricted;
            }
        }
        let with_name = |(name, hints): (&&Name, Vec<TopologyHint>)| ResourceHints {
            resource: (*name).clone(),
            hints: Some(hints),
        };
        Ok(names.iter().zip(lists).map(with_name).collect())
    }

    /// Returns the state of a node, an empty one when nothing is known of it.
    pub(super) fn on<'a>(&self, view: View<'a>, node: NodeIdx) -> &'a OnNode {
        static EMPTY: std::sync::LazyLock<OnNode> = std::sync::LazyLock::new(OnNode::default);
        view.state::<NumaNodes>().and_then(|state| state.on(node)).unwrap_or(&EMPTY)
    }
}

/// Returns whether each NUMA node of a set has some of a resource left.
fn has_all(left: &Left, mask: NumaMask, name: &str) -> bool {
    let mut inside = left.iter().filter(|(node, _)| mask.contains(u32::from(*node)));
    inside.all(|(_, amounts)| amounts.get(name).is_some_and(|amount| amount > 0))
}

/// Returns sets of NUMA nodes, the smallest first and of equal size those with lower ids; at most as many as count, the
/// last of them all NUMA nodes.
pub(super) fn masks(nodes: &[u16]) -> Vec<NumaMask> {
    let bit = |node: &u16| NumaMask::of(u32::from(*node)).unwrap_or_default();
    let all = nodes.iter().map(bit).fold(NumaMask::default(), NumaMask::or);
    let mut made = Vec::new();
    for size in 1..nodes.len() {
        let mut at: SmallVec<[usize; 8]> = (0..size).collect();
        loop {
            if made.len() + 1 >= MOST {
                made.push(all);
                return made;
            }
            made.push(at.iter().map(|i| bit(&nodes[*i])).fold(NumaMask::default(), NumaMask::or));
            // The next combination: the last index that can move does, and those behind it follow.
            let Some(moves) = (0..size).rev().find(|i| at[*i] < nodes.len() - size + i) else { break };
            at[moves] += 1;
            for i in moves + 1..size {
                at[i] = at[i - 1] + 1;
            }
        }
    }
    if !nodes.is_empty() {
        made.push(all);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_all_sets_by_size_and_bounded() {
        let bits = |nodes: &[u16]| masks(nodes).iter().map(|mask| mask.0).collect::<Vec<_>>();
        assert_eq!(bits(&[]), Vec::<u64>::new());
        assert_eq!(bits(&[3]), [0b1000]);
        assert_eq!(bits(&[0, 1, 3]), [0b1, 0b10, 0b1000, 0b11, 0b1001, 0b1010, 0b1011]);
        let eight: Vec<u16> = (0..8).collect();
        assert_eq!(masks(&eight).len(), 255);
        let many: Vec<u16> = (0..64).collect();
        assert_eq!((masks(&many).len(), masks(&many).last().copied()), (MOST, Some(NumaMask::first(64))));
    }
}
