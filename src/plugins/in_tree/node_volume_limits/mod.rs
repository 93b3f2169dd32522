//! NodeVolumeLimits: keeps pods off nodes that cannot attach more volumes of a CSI driver.
//!
//! A node's CSINode states the limit of each driver. Volumes used by the node's pods, other attached volumes, and the
//! volumes that the pod would add count towards it; see README.md.

use pellucid_framework::points;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_api::rest::volumes::{NodeVolumeLimitsOfNode, NodeVolumeLimitsState};
use pellucid_cluster::{ClusterEvent, DerivedState, EventKinds};
use pellucid_framework::endpoint::Endpoint;
use pellucid_framework::plugin::{
    CycleValue, Filter, Hint, Hints, Measure, Nodes, Plugin, PreFilter, PreFiltered, Reads,
};
use pellucid_framework::{Cause, CauseId, Code, EveryReason, Reason, Registration, View};
use pellucid_model::cause::Causes;
use pellucid_model::storage::CsiNode;
use pellucid_model::{Name, NodeIdx, Now, Object, Pod, PodSpec};

use super::claims;

mod endpoints;
mod per_node;
mod requirements;
mod volume_id;
mod volumes;

use volume_id::VolumeId;
pub use volumes::VolumesOnNodes;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "NodeVolumeLimits";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Keeps pods off nodes to which no more volumes of a CSI driver can be attached";
    let all = "Volumes per node and CSI driver with a limit, the fullest first";
    let of_node = "The volumes of each CSI driver on one node";
    Registration::without_args(NAME, summary, || NodeVolumeLimits).with_endpoints([
        Endpoint::of::<NodeVolumeLimitsState>("state", all, endpoints::read_state).with_rows("limits"),
        Endpoint::of::<NodeVolumeLimitsOfNode>("nodes/:nodeName", of_node, endpoints::read_node)
            .with_rows("limits"),
    ])
}

struct NodeVolumeLimits;

impl Plugin for NodeVolumeLimits {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { pre_filter, filter, hints }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(VolumesOnNodes::default())]
    }
}

/// A volume that the pod mounts.
struct Wanted {
    id: VolumeId,
    /// Whether the pod must not run on a node without the driver.
    needs_driver: bool,
}

/// Returns the volumes that the pod mounts, sorted and without duplicates. Fails with the reason when a claim is
/// missing or belongs to another pod.
fn wanted(view: View<'_>, spec: &PodSpec) -> Result<Vec<Wanted>, Reason> {
    let mut ids: Vec<VolumeId> = Vec::new();
    for mounted in &spec.volumes.claims {
        let claim = claims::find(view, spec, mounted).ok_or_else(|| claims::not_found(mounted))?;
        if !claims::is_for_pod(claim, mounted) {
            return Err(claims::not_for_pod(view, spec, mounted));
        }
        ids.extend(view.state::<VolumesOnNodes>().and_then(|v| v.resolve(&spec.namespace, mounted)));
    }
    ids.extend(spec.volumes.disks.iter().filter_map(VolumeId::of_disk));
    ids.sort();
    ids.dedup();
    let objects = view.cluster().objects();
    let needs_driver = |id: &VolumeId| objects.csi_driver(&id.driver).is_some_and(|d| d.required_on_node);
    Ok(ids.into_iter().map(|id| Wanted { needs_driver: needs_driver(&id), id }).collect())
}

impl PreFilter for NodeVolumeLimits {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        let counts = !spec.volumes.claims.is_empty()
            || spec.volumes.disks.iter().any(|disk| VolumeId::of_disk(disk).is_some());
        if !counts {
            return PreFiltered::Skip;
        }
        PreFiltered::Ready { value: Arc::new(wanted(view, spec)), nodes: None }
    }
}

/// Whether a pod's volumes fit on a node.
enum Answer<'a> {
    Fits,
    /// The node lacks the driver.
    Missing(&'a Name),
    /// The pod adds `new` volumes of the driver, but only `left` more can be attached.
    Full {
        driver: &'a Name,
        new: i64,
        left: i64,
    },
}

/// Returns the maximum number of a driver's volumes on a node; `None` means no limit.
fn limit(csi_node: Option<&CsiNode>, driver: &Name) -> Option<i64> {
    csi_node?.drivers.iter().find(|d| d.name == *driver)?.count
}

fn answer<'a>(view: View<'_>, volumes: &VolumesOnNodes, wanted: &'a [Wanted], n: NodeIdx) -> Answer<'a> {
    let name = view.name(n);
    let csi_node = view.cluster().objects().csi_node(name);
    let counting = || wanted.iter().filter(|w| w.id.counts_on(csi_node));
    let has = |driver: &Name| csi_node.is_some_and(|c| c.drivers.iter().any(|d| d.name == *driver));
    if let Some(missing) = counting().find(|w| w.needs_driver && !has(&w.id.driver)) {
        return Answer::Missing(&missing.id.driver);
    }
    let mut rest = counting().peekable();
    while let Some(first) = rest.next() {
        let driver = &first.id.driver;
        let Some(limit) = limit(csi_node, driver) else { continue };
        // Volumes are sorted by driver, then handle, so those of a driver are adjacent, duplicates included.
        let on_node = volumes.driver((n, name), driver, csi_node);
        let is_new = |w: &Wanted| !on_node.is_used(&w.id.handle);
        let mut new = i64::from(is_new(first));
        let mut last = &first.id.handle;
        while let Some(next) = rest.next_if(|w| w.id.driver == *driver) {
            new += i64::from(next.id.handle != *last && is_new(next));
            last = &next.id.handle;
        }
        if new == 0 {
            continue;
        }
        let fill = on_node.fill();
        let left = limit - (fill.used + fill.attached_only) as i64;
        if new > left {
            return Answer::Full { driver, new, left };
        }
    }
    Answer::Fits
}

impl Filter for NodeVolumeLimits {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn filter(&self, view: View<'_>, _spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>) {
        let Some(volumes) = view.state::<VolumesOnNodes>() else { return };
        let wanted = match value.downcast_ref::<Result<Vec<Wanted>, Reason>>() {
            Some(Ok(wanted)) => wanted,
            Some(Err(reason)) => {
                let code = Code::UnschedulableAndUnresolvable;
                let cause = nodes.cause(Cause::new(NAME, code, reason.clone()));
                return nodes.refuse(|_| cause);
            }
            None => return,
        };
        let refused =
            |causes: &mut Causes, reason: Reason| causes.id(Cause::new(NAME, Code::Unschedulable, reason));
        nodes.refuse_with(|causes, n| match answer(view, volumes, wanted, n) {
            Answer::Fits => CauseId::FEASIBLE,
            Answer::Missing(driver) => {
                refused(causes, Reason::about(ReasonCode::DriverMissing, driver.clone()))
            }
            Answer::Full { .. } => refused(causes, Reason::of(ReasonCode::TooManyVolumes)),
        });
    }

    /// Each driver is a reason: one that is missing, and one of which the node takes no more volumes.
    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        _spec: &'a PodSpec,
        value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        let volumes = view.state::<VolumesOnNodes>()?;
        let wanted = value.downcast_ref::<Result<Vec<Wanted>, Reason>>()?.as_ref().ok()?;
        Some(Box::new(move |node, reasons| {
            requirements::every_answer(view, volumes, wanted, node, |answer| reasons.push(answer.reason()));
        }))
    }

    fn requirements(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        requirements::of(view, spec, refused)
    }

    fn detail(&self, view: View<'_>, spec: &PodSpec, _: &Cause, node: NodeIdx, _: Now) -> Option<String> {
        requirements::on_node(view, spec, node)
    }

    fn measure(&self, view: View<'_>, spec: &PodSpec, cause: &Cause, nodes: &[NodeIdx]) -> Vec<Measure> {
        let (Some(volumes), Ok(wanted)) = (view.state::<VolumesOnNodes>(), wanted(view, spec)) else {
            return Vec::new();
        };
        if cause.reasons.first().is_none_or(|r| r.code != ReasonCode::TooManyVolumes) {
            return Vec::new();
        }
        let mut best: Vec<Measure> = Vec::new();
        for n in nodes {
            let Answer::Full { driver, new, left } = answer(view, volumes, &wanted, *n) else { continue };
            let resource = Name::new(&format!("attachable-volumes-csi-{driver}"));
            let made = Measure { resource, requested: new, available: left, best_node: *n };
            match best.iter_mut().find(|known| known.resource == made.resource) {
                Some(known) if is_better(view, &made, known) => *known = made,
                Some(_) => {}
                None => best.push(made),
            }
        }
        best.sort_by(|a, b| a.resource.cmp(&b.resource));
        best
    }
}

/// Returns whether `a` has more volumes left than `b`, or as many on a node with an earlier name.
fn is_better(view: View<'_>, a: &Measure, b: &Measure) -> bool {
    (a.available, view.name(b.best_node)) > (b.available, view.name(a.best_node))
}

impl Hints for NodeVolumeLimits {
    fn events(&self) -> EventKinds {
        EventKinds::union([
            EventKinds::CSI_NODE_ADD,
            EventKinds::CSI_NODE_UPDATE,
            EventKinds::CSI_DRIVER_UPDATE,
            EventKinds::CSI_DRIVER_DELETE,
            EventKinds::POD_DELETE,
            EventKinds::CLAIM_ADD,
            EventKinds::CLAIM_UPDATE,
            EventKinds::ATTACHMENT_DELETE,
            EventKinds::NODE_ADD,
        ])
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let opens = match event {
            ClusterEvent::NodeAdded(_) => true,
            ClusterEvent::PodReleased { pod: gone, .. } | ClusterEvent::NominationEnded { pod: gone, .. } => {
                let disks = &gone.spec.volumes.disks;
                !gone.spec.volumes.claims.is_empty() || disks.iter().any(|d| VolumeId::of_disk(d).is_some())
            }
            ClusterEvent::ObjectChanged { old, new } => opens(view, pod, old.as_deref(), new.as_deref()),
            _ => false,
        };
        if opens { Hint::Queue } else { Hint::Skip }
    }
}

fn opens(view: View<'_>, pod: &Pod, old: Option<&Object>, new: Option<&Object>) -> bool {
    match (old, new) {
        (None, Some(Object::CsiNode(_))) => true,
        (Some(Object::CsiNode(old)), Some(Object::CsiNode(new))) => raises(old, new),
        (Some(Object::CsiDriver(old)), new) => {
            let required = matches!(new, Some(Object::CsiDriver(new)) if new.required_on_node);
            old.required_on_node && !required
        }
        (None, Some(Object::PersistentVolumeClaim(claim))) => {
            claims::mounts(pod, claim, pod.spec.volumes.claims.iter())
        }
        // The claim may now be bound to a volume that the node already has, or be owned by the pod. kube-scheduler
        // waits for the next flush of the queue.
        (Some(Object::PersistentVolumeClaim(old)), Some(Object::PersistentVolumeClaim(claim))) => {
            (old.volume != claim.volume || old.owner_pod != claim.owner_pod)
                && claims::mounts(pod, claim, pod.spec.volumes.claims.iter())
        }
        (Some(Object::VolumeAttachment(gone)), None) => {
            let wanted = wanted(view, &pod.spec).unwrap_or_default();
            wanted.iter().any(|w| w.id.driver == gone.driver)
        }
        _ => false,
    }
}

/// Returns whether a node accepts more volumes of some driver than before, has a new driver, or no longer limits a
/// driver because the driver was removed.
fn raises(old: &CsiNode, new: &CsiNode) -> bool {
    let is_gone = |name: &Name| new.drivers.iter().all(|driver| driver.name != *name);
    let limit_is_gone = old.drivers.iter().any(|driver| driver.count.is_some() && is_gone(&driver.name));
    limit_is_gone
        || new.drivers.iter().any(|driver| match old.drivers.iter().find(|d| d.name == driver.name) {
            None => true,
            Some(before) => match (before.count, driver.count) {
                (Some(before), Some(now)) => now > before,
                (before, now) => before.is_some() && now.is_none(),
            },
        })
}
