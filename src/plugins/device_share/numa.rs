//! Hints about NUMA nodes: where a node's devices for a pod could come from, so that CPUs and memory come from there too.
//!
//! The policy of a node is another plugin's matter; here is only what it is applied to.

use std::sync::Arc;

use pellucid_framework::plugin::CycleValue;
use pellucid_framework::topology::{NumaMask, NumaTopology, ResourceHints, TopologyHint, TopologyHints};
use pellucid_framework::{Cause, NumaAffinity, View};
use pellucid_model::{NodeIdx, PodSpec};
use smallvec::SmallVec;

use super::DeviceShare;
use super::allocator::{Choices, Lack, Scoring, ScoringStrategy, Terms, allocate};
use super::device::DeviceType;
use super::node_devices::NodeDevices;
use super::request::{Part, Request};
use super::row::Row;

/// Score of a set of NUMA nodes that has the GPUs that the pod would get without one: more than CPU and memory score together,
/// so these GPUs decide where others would do too. It is Koordinator's.
const SAME_GPUS: i64 = 500;
/// Rates all cards alike. For hints the first cards that will do are compared, as in Koordinator.
static FIRST: Scoring = Scoring { strategy: ScoringStrategy::LeastAllocated, weights: Vec::new() };
/// Number of NUMA nodes up to which all sets of them are tried; beyond, single ones and all together.
const MAX_NUMA_NODES: u32 = 8;

impl TopologyHints for DeviceShare {
    fn prepare(&self, _view: View<'_>, spec: &PodSpec) -> Option<CycleValue> {
        let request = if self.args.ignores_numa { None } else { Request::of(spec).ok().flatten() };
        request.map(|request| Arc::new(request) as CycleValue)
    }

    fn knows_topologies(&self) -> bool {
        false
    }

    fn topology(
        &self,
        _view: View<'_>,
        _spec: &PodSpec,
        _value: &CycleValue,
        _node: NodeIdx,
    ) -> Result<Option<NumaTopology>, Cause> {
        Ok(None)
    }

    fn hints(
        &self,
        view: View<'_>,
        _spec: &PodSpec,
        value: &CycleValue,
        node: NodeIdx,
    ) -> Result<Vec<ResourceHints>, Cause> {
        let row = NodeDevices::row_in(view, node);
        let (Some(request), Some(row)) = (value.downcast_ref::<Request>(), row) else {
            return Ok(Vec::new());
        };
        hints_of(row, request).map_err(|lack| self.cause(row, request, lack))
    }

    fn fits(
        &self,
        view: View<'_>,
        _spec: &PodSpec,
        value: &CycleValue,
        node: NodeIdx,
        affinity: NumaAffinity,
    ) -> Result<(), Cause> {
        let row = NodeDevices::row_in(view, node);
        let (Some(request), Some(row)) = (value.downcast_ref::<Request>(), row) else { return Ok(()) };
        let chosen = self.allocate(row, request, Some(affinity.mask), None);
        chosen.map(drop).map_err(|lack| self.cause(row, request, lack))
    }
}

/// Returns the sets of NUMA nodes whose devices would do, for each type; the smallest are preferred. All types come from
/// one set, so a set is a hint of each when it does for all. Where no device has a known place, devices come from anywhere.
/// Fails when all NUMA nodes together would not do.
fn hints_of(row: &Row, request: &Request) -> Result<Vec<ResourceHints>, Lack> {
    let places = row.cards().filter_map(|card| NumaMask::of(u32::from(card.numa?)));
    let all = places.fold(NumaMask::default(), NumaMask::or);
    let mask = Some(all).filter(|all| !all.is_empty());
    let whole = first(row, request, mask)?;
    let hints = mask.map(|all| {
        let known = gpus(row, &whole);
        let does = |mask: NumaMask| {
            let is_same = mask == all || gpus(row, &first(row, request, Some(mask)).ok()?) == known;
            Some((mask, is_same))
        };
        let able: Vec<(NumaMask, bool)> = sets(all).into_iter().filter_map(does).collect();
        let least = able.iter().map(|(mask, _)| mask.count()).min();
        let hint = |(mask, is_same): &(NumaMask, bool)| TopologyHint {
            mask: Some(*mask),
            preferred: Some(mask.count()) == least,
            score: if *is_same { SAME_GPUS } else { 0 },
        };
        able.iter().map(hint).collect::<Vec<_>>()
    });
    let of = |part: &Part| {
        let resource = part.each.iter().next().map(|(resource, _)| resource.name().into());
        ResourceHints { resource: resource.unwrap_or_default(), hints: hints.clone() }
    };
    Ok(request.parts.iter().map(of).collect())
}

/// Returns the first devices that will do.
fn first(row: &Row, request: &Request, numa: Option<NumaMask>) -> Result<Choices, Lack> {
    allocate(row, request, &Terms { scoring: &FIRST, numa, is_empty: false, prospect: None })
}

/// Returns the GPUs of a choice, in order.
fn gpus(row: &Row, chosen: &Choices) -> SmallVec<[u16; 8]> {
    let of = row.of(&DeviceType::Gpu);
    let mut made: SmallVec<[u16; 8]> = chosen.iter().map(|choice| choice.card).collect();
    made.retain(|card| of.contains(&usize::from(*card)));
    made.sort_unstable();
    made
}

/// Returns the sets of NUMA nodes that are tried.
fn sets(all: NumaMask) -> Vec<NumaMask> {
    let singles: Vec<NumaMask> = all.numbers().filter_map(NumaMask::of).collect();
    if all.count() > MAX_NUMA_NODES {
        return singles.into_iter().chain([all]).collect();
    }
    let pick = |set: u32| {
        let members = singles.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
        members.fold(NumaMask::default(), |mask, (_, single)| mask.or(*single))
    };
    (1..1u32 << singles.len()).map(pick).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{bound, cluster, devices, gpu, plugin, rdma, report, spec};
    use super::*;

    /// Returns mask and score of each hint of each requested type.
    fn hints(devices: &Value, used: &str, wanted: &[(&str, i64)]) -> Vec<Vec<(u64, i64)>> {
        let plugin = plugin(Value::Null);
        let mut cluster = cluster(&plugin);
        report(&mut cluster, "a", devices, "1");
        if !used.is_empty() {
            bound(&mut cluster, "p", "a", used);
        }
        let (spec, provider) = (spec(wanted, &[]), plugin.topology_hints().expect("it provides hints"));
        let value = provider.prepare(cluster.view(), &spec).expect("it requests devices");
        let made = provider.hints(cluster.view(), &spec, &value, cluster.idx("a")).expect("it fits");
        let of = |hint: &TopologyHint| (hint.mask.map_or(0, |mask| mask.0), hint.score);
        made.iter().map(|of_one| of_one.hints.iter().flatten().map(of).collect()).collect()
    }

    /// Half of GPU 2 is used, on NUMA node 1, so a shared GPU is looked for there first.
    #[test]
    fn the_numa_nodes_of_the_gpus_that_a_pod_would_get_anywhere_are_scored() {
        let all = devices(&[gpu(0, 0), gpu(1, 0), gpu(2, 2), gpu(3, 2)]);
        let used = r#"{"gpu":[{"minor":2,"resources":{"koordinator.sh/gpu-core":"50",
            "koordinator.sh/gpu-memory":"8Gi","koordinator.sh/gpu-memory-ratio":"50"}}]}"#;
        let half = hints(&all, used, &[("koordinator.sh/gpu", 50)]);
        assert_eq!(half, [[(0b01, 0), (0b10, 500), (0b11, 500)]]);
        let pair = hints(&all, used, &[("nvidia.com/gpu", 2)]);
        assert_eq!(pair, [[(0b01, 500), (0b11, 500)]]);
        let three = hints(&all, used, &[("nvidia.com/gpu", 3)]);
        assert_eq!(three, [[(0b11, 500)]]);
    }

    #[test]
    fn adapters_do_not_tell_numa_nodes_apart() {
        let all = devices(&[rdma(0, 0, 0), rdma(1, 2, 0)]);
        let any = hints(&all, "", &[("koordinator.sh/rdma", 50)]);
        assert_eq!(any, [[(0b01, 500), (0b10, 500), (0b11, 500)]]);
    }

    #[test]
    fn sets_are_of_the_numa_nodes_of_all_devices_and_without_any_the_pod_takes_what_there_is() {
        let all = devices(&[gpu(0, 0), rdma(0, 2, 0)]);
        assert_eq!(hints(&all, "", &[("nvidia.com/gpu", 1)]), [[(0b01, 500), (0b11, 500)]]);
        let mut bare = gpu(0, 0);
        bare["topology"] = json!(null);
        assert_eq!(hints(&devices(&[bare]), "", &[("nvidia.com/gpu", 1)]), [[]]);
    }
}
