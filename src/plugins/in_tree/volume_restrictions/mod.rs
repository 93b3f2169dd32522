//! VolumeRestrictions: keeps a pod off nodes where another pod mounts the same disk in a conflicting way, and prevents
//! a second pod from using a claim with access mode ReadWriteOncePod.
//!
//! The claims in use are derived state. Removing pods can lift both refusals, so preemption may try: PreFilter runs
//! again after pods were removed.

use pellucid_framework::points;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_api::rest::volumes::{ClaimInUse, VolumeRestrictionsState};
use pellucid_cluster::{ClusterEvent, DerivedState, EventKinds};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{
    CycleValue, Filter, Hint, Hints, Nodes, Plugin, PreFilter, PreFiltered, Reads,
};
use pellucid_framework::{Cause, CauseId, Code, EveryReason, NodeReason, Reason, Registration, View};
use pellucid_model::storage::{AccessModes, Disk, PersistentVolumeClaim};
use pellucid_model::{Name, NodeIdx, Now, Object, Pod, PodSpec};
use serde_json::{Value, json};

use super::claims;
use pellucid_plugin_helper::listing::{Examples, MAX_ROWS, cut};

mod advice;
mod in_use;
mod requirements;

pub use in_use::ClaimsInUse;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "VolumeRestrictions";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Keeps pods apart that cannot share a disk, or a claim with access mode ReadWriteOncePod";
    let about = "The claims that pods on nodes use, and which of them exclude a second pod";
    let state = Endpoint::of::<VolumeRestrictionsState>("state", about, read_state).with_rows("claims");
    Registration::without_args(NAME, summary, || VolumeRestrictions).with_endpoints([state])
}

struct VolumeRestrictions;

impl Plugin for VolumeRestrictions {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { pre_filter, filter, hints, advice }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(ClaimsInUse::default())]
    }
}

/// Result of PreFilter: whether another pod uses one of the pod's ReadWriteOncePod claims.
struct Found {
    is_in_use: bool,
}

impl PreFilter for VolumeRestrictions {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        let mut is_in_use = false;
        for mounted in claims::named(spec) {
            let Some(claim) = claims::find(view, spec, mounted) else {
                let reason = claims::not_found(mounted);
                return PreFiltered::Refused(Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason));
            };
            is_in_use |= is_in_use_alone(view, spec, claim);
        }
        if spec.volumes.disks.is_empty() && !is_in_use {
            return PreFiltered::Skip;
        }
        PreFiltered::Ready { value: Arc::new(Found { is_in_use }), nodes: None }
    }
}

/// Returns whether a claim is ReadWriteOncePod and a placed pod uses it.
fn is_in_use_alone(view: View<'_>, spec: &PodSpec, claim: &PersistentVolumeClaim) -> bool {
    claim.access_modes.contains(AccessModes::RWOP)
        && view
            .state::<ClaimsInUse>()
            .is_some_and(|c| c.is_used(&(spec.namespace.clone(), claim.name.clone())))
}

/// Returns whether two disks cannot be mounted on one node by different pods.
fn disks_conflict(a: &Disk, b: &Disk) -> bool {
    use Disk::{AwsElasticBlockStore, GcePersistentDisk, Iscsi, Rbd};
    match (a, b) {
        (
            GcePersistentDisk { name: a, read_only: a_reads },
            GcePersistentDisk { name: b, read_only: b_reads },
        ) => a == b && !(*a_reads && *b_reads),
        (AwsElasticBlockStore { id: a }, AwsElasticBlockStore { id: b }) => a == b,
        (Iscsi { iqn: a, read_only: a_reads }, Iscsi { iqn: b, read_only: b_reads }) => {
            a == b && !(*a_reads && *b_reads)
        }
        (
            Rbd { monitors, pool, image, read_only },
            Rbd { monitors: b_monitors, pool: b_pool, image: b_image, read_only: b_reads },
        ) => {
            pool == b_pool
                && image == b_image
                && !(*read_only && *b_reads)
                && monitors.iter().any(|m| b_monitors.contains(m))
        }
        _ => false,
    }
}

/// Returns whether disks conflict with those of a pod.
fn conflict(disks: &[Disk], pod: &PodSpec) -> bool {
    disks.iter().any(|a| pod.volumes.disks.iter().any(|b| disks_conflict(a, b)))
}

impl Filter for VolumeRestrictions {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn filter(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>) {
        let is_in_use = value.downcast_ref::<Found>().is_some_and(|found| found.is_in_use);
        let mut cause = |code| nodes.cause(Cause::new(NAME, Code::Unschedulable, Reason::of(code)));
        let (disk, in_use) = (cause(ReasonCode::DiskConflict), cause(ReasonCode::ClaimInUse));
        nodes.refuse(|n| {
            if !spec.volumes.disks.is_empty() && has_conflict(view, &spec.volumes.disks, n) {
                disk
            } else if is_in_use {
                in_use
            } else {
                CauseId::FEASIBLE
            }
        });
    }

    /// Each disk and each claim is a reason.
    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        spec: &'a PodSpec,
        _value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        let claims: Vec<Name> = requirements::claims_in_use(view, spec).cloned().collect();
        Some(Box::new(move |node, reasons| {
            let disks = spec
                .volumes
                .disks
                .iter()
                .filter(|disk| has_conflict(view, std::slice::from_ref(*disk), node));
            let disk = |disk| Reason::about(ReasonCode::DiskConflict, &*requirements::disk_text(disk));
            reasons.extend(disks.map(|of| NodeReason::open(disk(of))));
            let claim = |claim: &Name| Reason::about(ReasonCode::ClaimInUse, claim.clone());
            reasons.extend(claims.iter().map(|of| NodeReason::open(claim(of))));
        }))
    }

    fn requirements(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        requirements::of(view, spec, refused)
    }

    fn detail(&self, view: View<'_>, spec: &PodSpec, _: &Cause, node: NodeIdx, _: Now) -> Option<String> {
        requirements::on_node(view, spec, node)
    }
}

/// Returns whether a pod on the node conflicts with these disks.
fn has_conflict(view: View<'_>, disks: &[Disk], node: NodeIdx) -> bool {
    let cluster = view.cluster();
    let pods = cluster.slot(node).pods.iter().filter_map(|id| cluster.pod(*id));
    pods.into_iter().any(|record| conflict(disks, &record.pod.spec))
}

impl Hints for VolumeRestrictions {
    fn events(&self) -> EventKinds {
        let of_claims = EventKinds::CLAIM_ADD.with(EventKinds::CLAIM_UPDATE);
        EventKinds::POD_DELETE.with(EventKinds::NODE_ADD).with(of_claims)
    }

    fn hint(&self, _view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let opens = match event {
            ClusterEvent::NodeAdded(_) => true,
            // A pod of another namespace may use the disk too; kube-scheduler overlooks that.
            ClusterEvent::PodReleased { pod: gone, .. } | ClusterEvent::NominationEnded { pod: gone, .. } => {
                conflict(&pod.spec.volumes.disks, &gone.spec) || shares_claim(pod, gone)
            }
            // Access modes do not change, but a relist may deliver another claim with the same name.
            ClusterEvent::ObjectChanged { old, .. } => claims::of_event(event).is_some_and(|claim| {
                let is_opened = old.as_deref().is_none_or(is_exclusive)
                    && (old.is_none() || !claim.access_modes.contains(AccessModes::RWOP));
                is_opened && claims::mounts(pod, claim, claims::named(&pod.spec))
            }),
            _ => false,
        };
        if opens { Hint::Queue } else { Hint::Skip }
    }
}

fn is_exclusive(object: &Object) -> bool {
    matches!(object, Object::PersistentVolumeClaim(claim) if claim.access_modes.contains(AccessModes::RWOP))
}

/// Returns whether both pods name the same claim.
fn shares_claim(a: &Pod, b: &Pod) -> bool {
    a.spec.namespace == b.spec.namespace
        && claims::named(&a.spec).any(|a| claims::named(&b.spec).any(|b| a.claim == b.claim))
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let objects = cx.view.cluster().objects();
    let row = |((namespace, name), nodes): (&claims::ClaimKey, &in_use::PerNode)| {
        let mut examples = Examples::default();
        nodes.keys().for_each(|n| examples.add(cx.view.name(*n)));
        let claim = objects.claim(namespace, name);
        ClaimInUse {
            claim: format!("{namespace}/{name}"),
            exclusive: claim.is_some_and(|c| c.access_modes.contains(AccessModes::RWOP)),
            pods: nodes.values().sum(),
            nodes: examples.finish().1,
        }
    };
    let mut rows: Vec<_> =
        cx.view.state::<ClaimsInUse>().into_iter().flat_map(|c| c.iter()).map(row).collect();
    rows.sort_by(|a, b| (!a.exclusive, &a.claim).cmp(&(!b.exclusive, &b.claim)));
    let exclusive_claims = rows.iter().filter(|row| row.exclusive).count();
    let total_claims = rows.len();
    let (claims, truncated) = cut(rows, MAX_ROWS);
    Ok(json!(VolumeRestrictionsState { claims, exclusive_claims, total_claims, truncated }))
}
