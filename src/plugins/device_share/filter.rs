//! Filter and Score: which nodes have the devices that a pod requests, and how much of them would be used.

use std::sync::Arc;

use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_framework::plugin::{
    CycleValue, Filter, Measure, Nodes, Normalize, PreFilter, PreFiltered, PreScore, PreScored, Reads, Score,
};
use pellucid_framework::topology::{NumaMask, NumaPolicy};
use pellucid_framework::{Cause, CauseId, NumaAffinity, View};
use pellucid_model::requests::ResourceList;
use pellucid_model::{NodeIdx, Now, PodSpec};
use smallvec::SmallVec;

use super::DeviceShare;
use super::allocator::{Attempt, Lack, ScoringStrategy as Strategy, Terms};
use super::device::DeviceType;
use super::node_devices::NodeDevices;
use super::reasons;
use super::request::{Part, Request};
use super::row::{CardInUse, Row, Sums};

/// What PreScore prepares for a pod that requests no device.
struct NoDevices;

impl PreFilter for DeviceShare {
    /// Whether there is any Device matters too; the state invalidates all results when that changes.
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        if view.state::<NodeDevices>().is_none_or(NodeDevices::is_idle) {
            return PreFiltered::Skip;
        }
        match Request::of(spec) {
            Ok(None) => PreFiltered::Skip,
            Ok(Some(request)) => {
                let value = Arc::new(request.prepared(&self.args.scoring));
                PreFiltered::Ready { value, nodes: None }
            }
            Err(invalid) => PreFiltered::Refused(reasons::refusal(&invalid)),
        }
    }
}

impl Filter for DeviceShare {
    fn reads(&self) -> Reads {
        Reads::Usage
    }

    fn filter(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>) {
        let (Some(request), Some(devices)) = (value.downcast_ref::<Request>(), view.state::<NodeDevices>())
        else {
            return;
        };
        let plain = request.plain();
        // Most nodes that have changed fit, and many requests are plain.
        let first = plain.map_or(Some(0), |plain| devices.first_uncertain(plain, nodes.members()));
        let Some(first) = first else { return };
        let mut known: SmallVec<[((Lack, bool), CauseId); 4]> = SmallVec::new();
        nodes.refuse_from(first, |causes, node| {
            let Some(glance) = devices.glance(node) else { return CauseId::FEASIBLE };
            if plain.is_some_and(|plain| glance.fits(plain)) {
                return CauseId::FEASIBLE;
            }
            let Some(row) = devices.row(node) else { return CauseId::FEASIBLE };
            let found = match plain.and_then(|plain| row.fits_plainly(plain)) {
                Some(Ok(())) => return CauseId::FEASIBLE,
                Some(Err(lack)) => (lack, false),
                None => {
                    let prospect = self.prospect(view, (node, row), spec.requests.list.milli_cpu);
                    let Err(lack) = self.fits(row, request, prospect) else { return CauseId::FEASIBLE };
                    (lack, self.lacks_even_empty(row, request))
                }
            };
            if let Some((_, cause)) = known.iter().find(|(same, _)| *same == found) {
                return *cause;
            }
            let cause = causes.id(reasons::cause(found.0, found.1));
            known.push((found, cause));
            cause
        });
    }

    fn at_most(&self, view: View<'_>, spec: &PodSpec, node: NodeIdx, gone: &ResourceList) -> u64 {
        let row = NodeDevices::row_in(view, node);
        let (Some(row), Ok(Some(request))) = (row, Request::of(spec)) else { return u64::MAX };
        let is_empty = *gone != ResourceList::default();
        let terms = Terms { scoring: &self.args.scoring, numa: None, is_empty, prospect: None };
        let attempt = Attempt { row, request: &request, terms: &terms };
        request.parts.iter().map(|part| attempt.at_most(part)).min().unwrap_or(u64::MAX)
    }

    fn measure(&self, view: View<'_>, spec: &PodSpec, cause: &Cause, nodes: &[NodeIdx]) -> Vec<Measure> {
        self.measures(view, spec, cause, nodes)
    }

    fn requirements(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        self.describe(view, spec, refused)
    }

    fn detail(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        cause: &Cause,
        node: NodeIdx,
        _now: Now,
    ) -> Option<String> {
        self.words(view, spec, cause, node)
    }
}

impl PreScore for DeviceShare {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn pre_score(&self, view: View<'_>, spec: &PodSpec, _nodes: &[NodeIdx]) -> PreScored {
        if view.state::<NodeDevices>().is_none_or(NodeDevices::is_idle) {
            return PreScored::Skip;
        }
        match Request::of(spec) {
            Ok(Some(request)) => PreScored::Ready(Arc::new(request.prepared(&self.args.scoring))),
            // Pods without devices take CPU from the GPUs' users.
            Ok(None) if self.args.gradient.is_some() => PreScored::Ready(Arc::new(NoDevices)),
            Ok(None) | Err(_) => PreScored::Skip,
        }
    }
}

impl Score for DeviceShare {
    fn reads(&self) -> Reads {
        Reads::Usage
    }

    fn score(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]) {
        if let Some(args) = &self.args.gradient {
            return self.gradients((view, args), spec, value.downcast_ref(), nodes, out);
        }
        let (Some(request), Some(devices)) = (value.downcast_ref::<Request>(), view.state::<NodeDevices>())
        else {
            return;
        };
        let scoring = &self.args.scoring;
        let of_row = |node| devices.row(node).map_or(0, |row| self.node_score(row, request, None));
        let Some(weighed) = request.weighed() else {
            return nodes.iter().zip(out).for_each(|(node, score)| *score = of_row(*node));
        };
        let any = |node| {
            let at_a_glance = devices.glance(node).and_then(|glance| glance.score(scoring, weighed));
            at_a_glance.unwrap_or_else(|| of_row(node))
        };

        // Most nodes have ordinary GPUs. A strategy that the compiler knows is decided once, not for every node.
        let mut at = 0;
        while at < nodes.len() {
            at += match (weighed.pair(), scoring.strategy) {
                (Some(pair), Strategy::LeastAllocated) => {
                    devices.score_pairs::<true>(pair, &nodes[at..], &mut out[at..])
                }
                (Some(pair), Strategy::MostAllocated) => {
                    devices.score_pairs::<false>(pair, &nodes[at..], &mut out[at..])
                }
                (None, _) => 0,
            };
            if let Some(node) = nodes.get(at) {
                out[at] = any(*node);
                at += 1;
            }
        }
    }

    fn reads_affinity(&self) -> bool {
        self.args.gradient.is_none() && !self.args.ignores_numa
    }

    /// Counts the devices of the NUMA nodes alone that the pod would get. Under best-effort these are chosen with the node, so
    /// there all count.
    fn score_aligned(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        value: &CycleValue,
        nodes: &[(NodeIdx, Option<NumaAffinity>)],
        out: &mut [i64],
    ) {
        let (Some(request), Some(devices)) = (value.downcast_ref::<Request>(), view.state::<NodeDevices>())
        else {
            return;
        };
        for ((node, affinity), score) in nodes.iter().zip(out) {
            let agreed = affinity.filter(|affinity| affinity.policy != NumaPolicy::BestEffort);
            match agreed.zip(devices.row(*node)) {
                Some((affinity, row)) => *score = self.node_score(row, request, Some(affinity.mask)),
                None => self.score(view, spec, value, &[*node], std::slice::from_mut(score)),
            }
        }
    }

    fn normalize(&self) -> Normalize {
        if self.args.gradient.is_some() { Normalize::Identity } else { Normalize::Proportional }
    }
}

impl DeviceShare {
    /// Scores a node: the sum over the requested types of what would be used, or left, of the devices that are selected and on
    /// the agreed NUMA nodes.
    fn node_score(&self, row: &Row, request: &Request, numa: Option<NumaMask>) -> i64 {
        let is_on = |card: &CardInUse<'_>| {
            let has_place = |mask: NumaMask| card.numa.is_none_or(|numa| mask.contains(u32::from(numa)));
            numa.is_none_or(|mask| card.has_topology && has_place(mask))
        };
        let score = |part: &Part| {
            let scoring = &self.args.scoring;
            let selector = part.hint.selector.as_ref();
            if part.kind == DeviceType::Gpu && selector.is_none() && numa.is_none() {
                let sums = row.gpu_sums();
                return scoring.score(&part.each, &sums.total, &sums.used);
            }
            let mut sums = Sums::default();
            for card in row.cards_of(&part.kind).filter(is_on) {
                let info = row.info(&card);
                if selector.is_none_or(|s| info.is_some_and(|info| s.matches(&info.labels))) {
                    sums.add(&card);
                }
            }
            scoring.score(&part.each, &sums.total, &sums.used)
        };
        let primary = primary_alone(row, request);
        request.parts.iter().filter(|part| primary.is_none_or(|kind| part.kind == *kind)).map(score).sum()
    }
}

/// Returns the type of devices that counts alone: where the others are planned to follow from it, and a pod wants GPUs as a
/// whole, beside which they are.
fn primary_alone<'a>(row: &Row, request: &'a Request) -> Option<&'a DeviceType> {
    let has_whole_gpus = || request.parts.iter().any(|part| part.kind == DeviceType::Gpu && !part.is_shared);
    let joint = request.hints.joint.as_ref().filter(|_| row.is_well_planned() && has_whole_gpus());
    joint.and_then(|joint| joint.types.first())
}

#[cfg(test)]
mod tests {
    use pellucid_plugin_helper::testing::raw_scores;
    use serde_json::{Value, json};

    use super::super::tests::{JOINT, bound, cluster, devices, gpu, plugin, rdma, report, spec};
    use super::*;

    const HALF_OF_0: &str = r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"50",
        "koordinator.sh/gpu-memory":"8Gi","koordinator.sh/gpu-memory-ratio":"50"}}]}"#;

    /// Half of the one GPU of NUMA node 0 is used, and nothing of that of NUMA node 1.
    #[test]
    fn devices_of_the_agreed_numa_nodes_are_scored_alone() {
        let plugin = plugin(Value::Null);
        let mut cluster = cluster(&plugin);
        report(&mut cluster, "a", &devices(&[gpu(0, 0), gpu(1, 2)]), "1");
        bound(&mut cluster, "p", "a", HALF_OF_0);
        let spec = spec(&[("koordinator.sh/gpu", 50)], &[]);
        let score = plugin.score().expect("it scores");
        assert!(score.reads_affinity());
        let PreScored::Ready(value) =
            plugin.pre_score().expect("it prepares").pre_score(cluster.view(), &spec, &[])
        else {
            panic!("it requests devices")
        };
        let of = |mask: Option<u64>, policy| {
            let agreed = |mask| NumaAffinity { policy, mask: NumaMask(mask), preferred: true, score: 0 };
            let (node, mut out) = (cluster.idx("a"), [0]);
            score.score_aligned(cluster.view(), &spec, &value, &[(node, mask.map(agreed))], &mut out);
            out[0]
        };
        let strict = NumaPolicy::Restricted;
        let masks = [None, Some(0b01), Some(0b10), Some(0b11)];
        // What is left of the memory ratio and of memory, which the pod does not name: of both GPUs 50 % and 75 %.
        assert_eq!(masks.map(|mask| of(mask, strict)), [62, 25, 75, 62]);
        assert_eq!(masks.map(|mask| of(mask, NumaPolicy::BestEffort)), [62; 4]);
        let idle = self::plugin(json!({"disableDeviceNUMATopologyAlignment": true}));
        assert!(!idle.score().expect("it scores").reads_affinity());
    }

    #[test]
    fn where_others_follow_from_the_gpus_only_these_are_scored_unless_they_are_shared() {
        let plugin = plugin(Value::Null);
        let mut planned = devices(&[gpu(0, 0), gpu(1, 0), rdma(0, 0, 0), rdma(1, 0, 0)]);
        planned["metadata"]["labels"] = json!({"node.koordinator.sh/secondary-device-well-planned": "true"});
        let score = |gpus: i64, kinds: &str| {
            let mut cluster = cluster(&plugin);
            report(&mut cluster, "a", &planned, "1");
            let joint = format!(r#"{{"deviceTypes":{kinds}}}"#);
            let wanted = [("koordinator.sh/gpu", gpus), ("koordinator.sh/rdma", 100)];
            raw_scores(&*plugin, &cluster, &spec(&wanted, &[(JOINT, &joint)])).expect("it scores")[0]
        };
        // A whole GPU leaves 50 % of the memory ratio and names no memory, half a GPU leaves 75 %; an adapter leaves 50 %.
        assert_eq!(score(100, r#"["gpu","rdma"]"#), 75);
        assert_eq!(score(100, r#"["gpu"]"#), 75);
        assert_eq!(score(100, r#"["rdma","gpu"]"#), 50);
        assert_eq!(score(50, r#"["gpu","rdma"]"#), 87 + 50);
    }
}
