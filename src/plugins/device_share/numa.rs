//! Hints about NUMA nodes: where a node's devices for a pod could come from, so that CPUs and memory come from there too.
//!
//! The policy of a node is another plugin's matter; here is only what it is applied to.

use std::sync::Arc;

use pellucid_framework::plugin::CycleValue;
use pellucid_framework::topology::{NumaMask, NumaTopology, ResourceHints, TopologyHint, TopologyHints};
use pellucid_framework::{Cause, NumaAffinity, View};
use pellucid_model::{NodeIdx, PodSpec};

use super::DeviceShare;
use super::node_devices::NodeDevices;
use super::request::{Part, Request};
use super::row::Row;

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
        let row = view.state::<NodeDevices>().and_then(|devices| devices.row(node));
        let (Some(request), Some(row)) = (value.downcast_ref::<Request>(), row) else {
            return Ok(Vec::new());
        };
        self.allocate(row, request, None, None).map_err(|lack| self.cause(row, request, lack))?;
        Ok(self.hints_of(row, request))
    }

    fn fits(
        &self,
        view: View<'_>,
        _spec: &PodSpec,
        value: &CycleValue,
        node: NodeIdx,
        affinity: NumaAffinity,
    ) -> Result<(), Cause> {
        let row = view.state::<NodeDevices>().and_then(|devices| devices.row(node));
        let (Some(request), Some(row)) = (value.downcast_ref::<Request>(), row) else { return Ok(()) };
        let chosen = self.allocate(row, request, Some(affinity.mask), None);
        chosen.map(drop).map_err(|lack| self.cause(row, request, lack))
    }
}

impl DeviceShare {
    /// Returns the sets of NUMA nodes whose devices would do, for each type; the smallest are preferred. All types come from
    /// one set, so a set is a hint of each when it does for all. A type without known places comes from anywhere.
    fn hints_of(&self, row: &Row, request: &Request) -> Vec<ResourceHints> {
        let places = |part: &Part| {
            let cards = row.cards[row.of(&part.kind)].iter();
            let places = cards.filter_map(|card| NumaMask::of(u32::from(card.numa?)));
            places.fold(NumaMask::default(), NumaMask::or)
        };
        let all = request.parts.iter().map(places).fold(NumaMask::default(), NumaMask::or);
        let does = |mask: &NumaMask| self.allocate(row, request, Some(*mask), None).is_ok();
        let able: Vec<NumaMask> = sets(all).into_iter().filter(does).collect();
        let least = able.iter().map(|mask| mask.count()).min();
        let hint = |mask: &NumaMask| TopologyHint {
            mask: Some(*mask),
            preferred: Some(mask.count()) == least,
            score: 0,
        };
        let of = |part: &Part| {
            let resource = part.each.iter().next().map(|(resource, _)| resource.name().into());
            let hints = (!places(part).is_empty()).then(|| able.iter().map(hint).collect());
            ResourceHints { resource: resource.unwrap_or_default(), hints }
        };
        request.parts.iter().map(of).collect()
    }
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
