//! Every driver that refuses a node, and words for the limits of drivers.

use std::collections::BTreeMap;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_framework::{NodeReason, Reason, View};
use pellucid_model::{Name, NodeIdx, PodSpec};

use super::super::claims::describe_missing;
use super::{NAME, VolumesOnNodes, Wanted, limit, wanted};
use pellucid_plugin_helper::describing::{MAX_REQUIREMENTS, count, detail, first_by_name};

/// Why a driver refuses a node.
pub(super) enum DriverAnswer<'a> {
    /// The node lacks the driver.
    Missing(&'a Name),
    /// The pod adds `new` volumes to the `used` ones, of `limit`. `all` are the pod's volumes of the driver.
    Full { driver: &'a Name, new: usize, used: usize, limit: i64, all: usize },
}

impl DriverAnswer<'_> {
    fn driver(&self) -> &Name {
        match self {
            Self::Missing(driver) | Self::Full { driver, .. } => driver,
        }
    }

    /// Returns the reason. A limit is fixed when it is below the number of the pod's own volumes.
    pub(super) fn reason(&self) -> NodeReason {
        match self {
            Self::Missing(driver) => {
                NodeReason::fixed(Reason::about(ReasonCode::DriverMissing, (*driver).clone()))
            }
            Self::Full { driver, all, limit, .. } => NodeReason {
                reason: Reason::about(ReasonCode::TooManyVolumes, (*driver).clone()).into(),
                is_fixed: i64::try_from(*all).is_ok_and(|all| all > *limit),
            },
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Missing(driver) => format!("CSI driver {driver} is not installed"),
            Self::Full { driver, new, used, limit, .. } => {
                let new = count(*new, "volume");
                format!("the pod adds {new} of CSI driver {driver} to {used} of at most {limit}")
            }
        }
    }
}

/// Calls `with` for each driver for which a node refuses some volumes.
pub(super) fn every_answer<'a>(
    view: View<'_>,
    volumes: &VolumesOnNodes,
    wanted: &'a [Wanted],
    n: NodeIdx,
    mut with: impl FnMut(DriverAnswer<'a>),
) {
    let name = view.name(n);
    let csi_node = view.cluster().objects().csi_node(name);
    // Volumes are sorted by driver, then handle.
    for of_driver in wanted.chunk_by(|a, b| a.id.driver == b.id.driver) {
        let mut counting: Vec<&Wanted> = of_driver.iter().filter(|w| w.id.counts_on(csi_node)).collect();
        let Some(first) = counting.first() else { continue };
        let driver = &first.id.driver;
        let is_there = csi_node.is_some_and(|c| c.drivers.iter().any(|d| d.name == *driver));
        if !is_there && counting.iter().any(|w| w.needs_driver) {
            with(DriverAnswer::Missing(driver));
            continue;
        }
        let Some(limit) = limit(csi_node, driver) else { continue };
        counting.dedup_by(|a, b| a.id.handle == b.id.handle);
        let on_node = volumes.driver((n, name), driver, csi_node);
        let new = counting.iter().filter(|w| !on_node.is_used(&w.id.handle)).count();
        let fill = on_node.fill();
        let used = fill.used + fill.attached_only;
        if new > 0 && new as i64 > limit - used as i64 {
            with(DriverAnswer::Full { driver, new, used, limit, all: counting.len() });
        }
    }
}

/// Describes each driver for which some node refuses volumes, with the first such nodes by name.
pub(super) fn of(view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
    let mut all = describe_missing(view, NAME, spec);
    let (Some(volumes), Ok(wanted)) = (view.state::<VolumesOnNodes>(), wanted(view, spec)) else {
        return all;
    };
    let mut by_driver: BTreeMap<(&str, Name), Vec<NodeIdx>> = BTreeMap::new();
    for node in refused {
        every_answer(view, volumes, &wanted, *node, |answer| {
            let code = answer.reason().reason.code.as_str();
            by_driver.entry((code, answer.driver().clone())).or_default().push(*node);
        });
    }
    for ((code, driver), nodes) in by_driver.into_iter().take(MAX_REQUIREMENTS) {
        let of = detail(view, NAME, ReasonCode::TooManyVolumes, format!("volumes of CSI driver {driver}"));
        let on = |node: NodeIdx| {
            let mut text = String::new();
            every_answer(view, volumes, &wanted, node, |answer| {
                if *answer.driver() == driver {
                    text = format!("{}: {}", view.name(node), answer.text());
                }
            });
            text
        };
        let examples: Vec<String> = first_by_name(view, nodes.iter().copied()).into_iter().map(on).collect();
        let (n, total) = (nodes.len(), of.total_nodes);
        let text = format!("{}: refused on {n} of {total} nodes; {}", of.requirement, examples.join("; "));
        let nodes = total - n;
        all.push(RequirementDetail { code: code.into(), text, nodes, key: Some(driver.to_string()), ..of });
    }
    all.truncate(MAX_REQUIREMENTS);
    all
}

/// Describes the drivers for which one node refuses volumes.
pub(super) fn on_node(view: View<'_>, spec: &PodSpec, node: NodeIdx) -> Option<String> {
    let (volumes, wanted) = (view.state::<VolumesOnNodes>()?, wanted(view, spec).ok()?);
    let mut all = Vec::new();
    every_answer(view, volumes, &wanted, node, |answer| all.push(answer.text()));
    all.truncate(MAX_REQUIREMENTS);
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pellucid_framework::CycleValue;
    use pellucid_framework::plugin::{Filter, PreFilter, PreFiltered};
    use pellucid_model::Object;
    use pellucid_model::storage::{
        ClaimUse, CsiDriver, CsiNode, CsiNodeDriver, CsiVolume, PersistentVolume, PersistentVolumeClaim,
    };

    use super::*;
    use crate::node_volume_limits::NodeVolumeLimits;
    use crate::testing::{TestCluster, cluster_of, node};

    /// Returns a cluster with node `a` that takes one volume of driver `few`, and claims `few-1`, `few-2` and `none-1`
    /// with volumes of these drivers.
    fn cluster() -> TestCluster {
        let mut cluster = cluster_of([node("a"), node("b")]);
        let few = CsiNodeDriver { name: "few".into(), count: Some(1) };
        let csi_node = CsiNode { name: "a".into(), drivers: [few].into(), ..CsiNode::default() };
        let required = CsiDriver { name: "none".into(), required_on_node: true, ..CsiDriver::default() };
        let mut objects = vec![Object::CsiNode(csi_node), Object::CsiDriver(required)];
        for (driver, claim) in [("few", "few-1"), ("few", "few-2"), ("none", "none-1")] {
            let csi = CsiVolume { driver: driver.into(), handle: claim.into(), migrated_from: None };
            let (volume, namespace) = (Name::new(claim), Name::new("d"));
            objects.push(Object::PersistentVolume(PersistentVolume {
                name: volume.clone(),
                csi: Some(csi),
                ..PersistentVolume::default()
            }));
            let claim = PersistentVolumeClaim { namespace, name: claim.into(), volume, ..Default::default() };
            objects.push(Object::PersistentVolumeClaim(claim));
        }
        for object in objects {
            cluster.cluster.apply_object(Arc::new(object), &mut Vec::new());
        }
        cluster
    }

    fn mounting(claims: &[&str]) -> PodSpec {
        let mut spec = PodSpec { namespace: "d".into(), ..PodSpec::default() };
        let mounted = |claim: &&str| ClaimUse { claim: (*claim).into(), owner: None };
        spec.volumes.claims = claims.iter().map(mounted).collect();
        spec
    }

    /// Returns the subject of each reason of node `a`, with whether it is fixed.
    fn reasons(cluster: &TestCluster, spec: &PodSpec) -> Vec<(String, bool)> {
        let PreFiltered::Ready { value, .. } = NodeVolumeLimits.pre_filter(cluster.view(), spec) else {
            panic!("it has volumes")
        };
        let value: CycleValue = value;
        let every = NodeVolumeLimits.every_reason(cluster.view(), spec, &value).expect("it lists them");
        let mut reasons = Vec::new();
        every(cluster.idx("a"), &mut reasons);
        let row = |r: NodeReason| {
            (r.reason.subject.as_ref().map(ToString::to_string).unwrap_or_default(), r.is_fixed)
        };
        reasons.into_iter().map(row).collect()
    }

    #[test]
    fn every_driver_that_refuses_is_named_with_its_limit() {
        let mut cluster = cluster();
        cluster.place(mounting(&["few-1"]), "a");
        let spec = mounting(&["few-2", "none-1"]);
        assert_eq!(reasons(&cluster, &spec), [("few".into(), false), ("none".into(), true)]);
        let texts: Vec<String> =
            of(cluster.view(), &spec, &[cluster.idx("a")]).into_iter().map(|of| of.text).collect();
        assert_eq!(
            texts,
            [
                "volumes of CSI driver none: refused on 1 of 2 nodes; a: CSI driver none is not installed",
                "volumes of CSI driver few: refused on 1 of 2 nodes; a: the pod adds 1 volume of CSI driver few to 1 \
                 of at most 1",
            ]
        );
        let both = mounting(&["few-1", "few-2"]);
        assert_eq!(reasons(&cluster, &both), [("few".into(), true)], "two are too many for the empty node");
    }
}
