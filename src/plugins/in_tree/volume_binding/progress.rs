//! Progress of binding a pod's volumes, computed from what was held at the decision and the current objects.
//!
//! A pure function, evaluated again whenever something may have changed. The `resourceVersion` at the decision
//! distinguishes "not yet written" from "written and since reverted": our write succeeds only on that version. While
//! the object has that version, nobody has written. Once it has another version without the expected content, either
//! our write was reverted or somebody else was faster, and the pod is planned anew.

use pellucid_cluster::Objects;
use pellucid_framework::View;
use pellucid_model::effect::ObjectWrite;
use pellucid_model::storage::{PersistentVolume, PersistentVolumeClaim};
use pellucid_model::{Name, Node};

use super::super::claims::reaches;
use super::assumed::{Held, HeldBinding, HeldProvision};
use super::pod_claims::is_fully_bound;
use super::writes;

/// Progress of one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The write must still be made.
    Write(ObjectWrite),
    /// Our write is visible; the volume controller or provisioner must complete the binding.
    Wait,
    /// The claim is bound.
    Done,
    /// The claim can no longer be bound as planned.
    Failed(String),
}

/// Returns the progress of each claim by name, in the order of `held`.
pub(super) fn of(view: View<'_>, node: Option<&Node>, held: &Held) -> Vec<(Name, Progress)> {
    let objects = view.cluster().objects();
    let Some(node) = node else {
        let failed = Progress::Failed(format!("node \"{}\" is gone", held.node));
        let claims = held.bindings.iter().map(|b| &b.claim).chain(held.provisions.iter().map(|p| &p.claim));
        return claims.map(|claim| (claim.clone(), failed.clone())).collect();
    };
    let bindings =
        held.bindings.iter().map(|b| (b.claim.clone(), of_binding(objects, node, &held.namespace, b)));
    let provisions =
        held.provisions.iter().map(|p| (p.claim.clone(), of_provision(objects, node, &held.namespace, p)));
    bindings
        .chain(provisions)
        .map(|(claim, progress)| (claim, progress.unwrap_or_else(Progress::Failed)))
        .collect()
}

/// Returns the claim if its uid is unchanged.
fn claim_of<'a>(
    objects: &'a Objects,
    namespace: &Name,
    name: &Name,
    uid: &str,
) -> Result<&'a PersistentVolumeClaim, String> {
    let claim = objects.claim(namespace, name).filter(|claim| *claim.uid == *uid);
    claim.ok_or_else(|| format!("PVC \"{name}\" is gone"))
}

fn check_reached(volume: &PersistentVolume, node: &Node) -> Result<(), String> {
    if reaches(volume.node_affinity.as_deref(), &node.labels) {
        return Ok(());
    }
    Err(format!("pv \"{}\" node affinity doesn't match node \"{}\"", volume.name, node.name))
}

/// Returns the progress of a claim for which our write is visible.
fn rest(claim: &PersistentVolumeClaim) -> Result<Progress, String> {
    if is_fully_bound(claim) {
        return Ok(Progress::Done);
    }
    if claim.deleting {
        return Err(format!("PVC \"{}\" is being deleted", claim.name));
    }
    Ok(Progress::Wait)
}

fn of_binding(
    objects: &Objects,
    node: &Node,
    namespace: &Name,
    held: &HeldBinding,
) -> Result<Progress, String> {
    let claim = claim_of(objects, namespace, &held.claim, &held.claim_uid)?;
    let volume = objects.volume(&held.volume);
    let volume = volume.ok_or_else(|| format!("pv \"{}\" is gone", held.volume))?;
    if is_fully_bound(claim) && claim.volume != volume.name {
        let (claim, other, ours) = (&claim.name, &claim.volume, &volume.name);
        return Err(format!("PVC \"{claim}\" was bound to pv \"{other}\" instead of \"{ours}\""));
    }
    // A volume that its creator pre-bound to the claim has no uid in `claimRef` until it is bound.
    let is_ours = volume.claim.as_ref().is_some_and(|by| {
        let is_same = by.namespace == *namespace && by.name == held.claim;
        is_same && (by.uid.is_empty() || by.uid == held.claim_uid)
    });
    if !is_ours && volume.resource_version != held.volume_version {
        return Err(format!("ClaimRef got reset for pv \"{}\"", volume.name));
    }
    check_reached(volume, node)?;
    if !is_ours {
        return Ok(Progress::Write(writes::bind_volume(namespace, held)));
    }
    rest(claim)
}

fn of_provision(
    objects: &Objects,
    node: &Node,
    namespace: &Name,
    held: &HeldProvision,
) -> Result<Progress, String> {
    let claim = claim_of(objects, namespace, &held.claim, &held.claim_uid)?;
    if claim.selected_node.as_ref() != Some(&node.name) {
        if claim.resource_version == held.claim_version {
            return Ok(Progress::Write(writes::select_node(namespace, held, &node.name)));
        }
        return Err(match &claim.selected_node {
            Some(other) => format!("PVC \"{}\" is being provisioned for node \"{other}\"", claim.name),
            None => format!("provisioning failed for PVC \"{}\"", claim.name),
        });
    }
    if !claim.volume.is_empty() {
        // The claim may be observed before its volume.
        let Some(volume) = objects.volume(&claim.volume) else { return Ok(Progress::Wait) };
        check_reached(volume, node)?;
    }
    rest(claim)
}
