//! Every driver that refuses a node, and words for the limits of drivers.

use std::collections::BTreeMap;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_framework::{NodeReason, Reason, View};
use pellucid_model::{Name, NodeIdx, PodSpec};

use super::super::claims::describe_missing;
use super::super::describing::{MAX_REQUIREMENTS, count, detail, first_by_name};
use super::{NAME, VolumesOnNodes, Wanted, limit, wanted};

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
                reason: Reason::about(ReasonCode::TooManyVolumes, (*driver).clone()),
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
