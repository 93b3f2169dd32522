//! VolumeZone: keeps pods off nodes in another zone or region than their volumes.
//!
//! Labels of a volume state its location; a value may list several zones. Only claims that a pod names explicitly
//! count, and only those with a volume; a claim that waits for its first consumer has none yet. A node without any zone
//! or region label suits every volume, because such a cluster does not use zones.

use pellucid_framework::points;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_api::rest::volumes::{VolumeZoneState, ZoneOfVolumes};
use pellucid_cluster::{ClusterEvent, EventKinds, NodeChange};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{
    CycleValue, Filter, Hint, Hints, Nodes, Plugin, PreFilter, PreFiltered, Reads,
};
use pellucid_framework::{Cause, CauseId, Code, EveryReason, NodeReason, Reason, Registration, View};
use pellucid_model::selector::Labels;
use pellucid_model::storage::{ClaimUse, PersistentVolume};
use pellucid_model::{Name, NodeIdx, Now, Object, ObjectKind, Pod, PodSpec};
use serde_json::{Value, json};

use super::claims;
use pellucid_plugin_helper::listing::{MAX_ROWS, cut};

mod requirements;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "VolumeZone";

/// A label that locates volumes and nodes, and the label that replaces it (itself if it is current).
struct Topology {
    key: Name,
    current: Name,
}

/// The location labels, in the order in which they are checked.
static TOPOLOGIES: LazyLock<[Topology; 4]> = LazyLock::new(|| {
    let (zone, region) = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region");
    [
        ("failure-domain.beta.kubernetes.io/zone", zone),
        ("failure-domain.beta.kubernetes.io/region", region),
        (zone, zone),
        (region, region),
    ]
    .map(|(key, current)| Topology { key: key.into(), current: current.into() })
});

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Keeps pods on nodes in the zones and regions of their volumes";
    let about = "The zones and regions of volumes, with the nodes that suit them";
    let state = Endpoint::of::<VolumeZoneState>("state", about, read_state).with_rows("zones");
    Registration::without_args(NAME, summary, || VolumeZone).with_endpoints([state])
}

struct VolumeZone;

impl Plugin for VolumeZone {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { pre_filter, filter, hints }
}

/// What a label of a volume requires of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Demand {
    /// Index into [`TOPOLOGIES`].
    topology: usize,
    /// The accepted values.
    values: BTreeSet<Name>,
}

impl Demand {
    fn suits(&self, labels: &Labels) -> bool {
        let topology = &TOPOLOGIES[self.topology];
        let value = labels.get(&topology.key).or_else(|| labels.get(&topology.current));
        value.is_some_and(|v| self.values.contains(v))
    }
}

/// Returns the demands of a volume. A label whose list contains an empty zone is ignored, as in kube-scheduler.
fn demands(volume: &PersistentVolume) -> Vec<Demand> {
    let demand = |(topology, label): (usize, &Topology)| {
        let values: Vec<&str> = volume.labels.get(&label.key)?.split("__").map(str::trim).collect();
        let is_valid = values.iter().all(|v| !v.is_empty());
        is_valid.then(|| Demand { topology, values: values.into_iter().map(Name::new).collect() })
    };
    TOPOLOGIES.iter().enumerate().filter_map(demand).collect()
}

fn is_placed(labels: &Labels) -> bool {
    TOPOLOGIES.iter().any(|t| labels.get(&t.key).is_some())
}

/// Returns the demands of the volume behind one claim. Fails with the reason when the claim, its volume or its class does
/// not exist, or when the claim has no volume and does not wait for a consumer.
fn demands_of(view: View<'_>, spec: &PodSpec, mounted: &ClaimUse) -> Result<Vec<Demand>, Reason> {
    let objects = view.cluster().objects();
    let claim = claims::find(view, spec, mounted).ok_or_else(|| claims::not_found(mounted))?;
    if !claim.volume.is_empty() {
        let volume = objects.volume(&claim.volume);
        let missing = || Reason::about(ReasonCode::VolumeNotFound, claim.volume.clone());
        return Ok(demands(volume.ok_or_else(missing)?));
    }
    let class = claim.class.as_ref().filter(|class| !class.is_empty());
    let class = class.ok_or_else(|| Reason::of(ReasonCode::ClaimWithoutClass))?;
    let missing = || Reason::about(ReasonCode::ClassNotFound, class.clone());
    if objects.class(class).ok_or_else(missing)?.waits_for_consumer {
        return Ok(Vec::new());
    }
    Err(Reason::of(ReasonCode::ClaimWithoutVolume))
}

impl PreFilter for VolumeZone {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        let mut all = Vec::new();
        for mounted in claims::named(spec) {
            match demands_of(view, spec, mounted) {
                Ok(demands) => all.extend(demands),
                Err(reason) => {
                    let code = Code::UnschedulableAndUnresolvable;
                    return PreFiltered::Refused(Cause::new(NAME, code, reason));
                }
            }
        }
        if all.is_empty() {
            return PreFiltered::Skip;
        }
        PreFiltered::Ready { value: Arc::new(all), nodes: None }
    }
}

impl Filter for VolumeZone {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn filter(&self, view: View<'_>, _spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>) {
        let Some(demands) = value.downcast_ref::<Vec<Demand>>() else { return };
        let reason = Reason::of(ReasonCode::VolumeZoneConflict);
        let cause = nodes.cause(Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason));
        nodes.refuse(|n| {
            let fits = |labels: &Labels| !is_placed(labels) || demands.iter().all(|d| d.suits(labels));
            if view.labels(n).is_none_or(fits) { CauseId::FEASIBLE } else { cause }
        });
    }

    /// Each claim is a reason.
    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        spec: &'a PodSpec,
        _value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        let located = requirements::located(view, spec);
        Some(Box::new(move |node, reasons| {
            let unsuited = located.iter().filter(|(_, demands)| !requirements::suits(view, demands, node));
            let reason = |claim: &Name| Reason::about(ReasonCode::VolumeZoneConflict, claim.clone());
            reasons.extend(unsuited.map(|(claim, _)| NodeReason::fixed(reason(claim))));
        }))
    }

    fn requirements(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        requirements::of(view, spec, refused)
    }

    fn detail(&self, view: View<'_>, spec: &PodSpec, _: &Cause, node: NodeIdx, _: Now) -> Option<String> {
        requirements::on_node(view, spec, node)
    }
}

impl Hints for VolumeZone {
    fn events(&self) -> EventKinds {
        EventKinds::union([
            EventKinds::NODE_ADD,
            EventKinds::CLASS_ADD,
            EventKinds::CLAIM_ADD,
            EventKinds::CLAIM_UPDATE,
            EventKinds::VOLUME_ADD,
            EventKinds::VOLUME_UPDATE,
            EventKinds::NODE_LABEL,
        ])
    }

    fn hint(&self, _view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let opens = match event {
            ClusterEvent::NodeAdded(_) => true,
            ClusterEvent::NodeUpdated { change, .. } => change.any(NodeChange::LABELS),
            ClusterEvent::ObjectChanged { old, new: Some(new) } => opens(pod, old.as_deref(), new),
            _ => false,
        };
        if opens { Hint::Queue } else { Hint::Skip }
    }
}

fn opens(pod: &Pod, old: Option<&Object>, new: &Object) -> bool {
    match (old, new) {
        (None, Object::StorageClass(class)) => class.waits_for_consumer,
        (_, Object::PersistentVolumeClaim(claim)) => claims::mounts(pod, claim, claims::named(&pod.spec)),
        (None, Object::PersistentVolume(_)) => true,
        (Some(Object::PersistentVolume(old)), Object::PersistentVolume(new)) => demands(old) != demands(new),
        _ => false,
    }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut rows: BTreeMap<(usize, Name), (usize, Demand)> = BTreeMap::new();
    let mut unzoned_volumes = 0;
    for object in cx.view.cluster().objects().iter(ObjectKind::PersistentVolume) {
        let Object::PersistentVolume(volume) = &**object else { continue };
        let demands = demands(volume);
        unzoned_volumes += usize::from(demands.is_empty());
        for demand in demands {
            let value = volume.labels.get(&TOPOLOGIES[demand.topology].key).cloned().unwrap_or_default();
            rows.entry((demand.topology, value)).or_insert((0, demand)).0 += 1;
        }
    }
    let (rows, truncated) = cut(rows.into_iter().collect(), MAX_ROWS);
    let suits = |demand: &Demand| {
        let labels = cx.view.nodes().iter().filter_map(|n| cx.view.labels(*n));
        labels.filter(|labels| !is_placed(labels) || demand.suits(labels)).count()
    };
    let row = |((topology, value), (volumes, demand)): ((usize, Name), (usize, Demand))| ZoneOfVolumes {
        label: TOPOLOGIES[topology].key.to_string(),
        value: value.to_string(),
        volumes,
        nodes: suits(&demand),
    };
    let zones = rows.into_iter().map(row).collect();
    Ok(json!(VolumeZoneState { zones, unzoned_volumes, truncated }))
}
