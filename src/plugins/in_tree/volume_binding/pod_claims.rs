//! Classifies a pod's claims: refused, bound, or to be bound on the chosen node.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_framework::{Reason, View};
use pellucid_model::selector::Labels;
use pellucid_model::storage::{ClaimPhase, CsiStorageCapacity, PersistentVolumeClaim, StorageClass};
use pellucid_model::{Name, Object, ObjectKind, PodSpec};

use super::super::claims;
use super::assumed::Assumed;
use super::candidates::{Candidates, Volume};

/// The provisioner of classes without dynamic provisioning.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// What Filter needs of a pod's claims. Each claim occurs once, however often the pod mounts it.
pub(super) struct PodClaims {
    /// Bound claims with their volumes; `None` where the volume does not exist.
    pub(super) bound: Vec<(Name, Option<Volume>)>,
    /// Unbound claims with `WaitForFirstConsumer`, smallest first, then by name.
    pub(super) to_bind: Vec<ToBind>,
}

/// An unbound claim with `WaitForFirstConsumer`.
pub(super) struct ToBind {
    claim: Arc<Object>,
    /// The node for which a volume is already being provisioned.
    pub(super) selected: Option<Name>,
    /// Existing volumes that fit; empty when a volume is being provisioned.
    pub(super) candidates: Candidates,
    class: Arc<Object>,
    /// Storage capacities with room for a new volume; `None` when the driver does not track capacity.
    room: Option<Vec<Arc<Object>>>,
}

/// Returns whether the claim names a volume and the binding is completed.
pub(super) fn is_fully_bound(claim: &PersistentVolumeClaim) -> bool {
    !claim.volume.is_empty() && claim.bind_completed
}

/// Classifies the claims of a pod. Fails with the reason when the pod cannot be placed on any node.
pub(super) fn classify_claims(view: View<'_>, spec: &PodSpec) -> Result<PodClaims, Reason> {
    let mut all: Vec<&PersistentVolumeClaim> = Vec::new();
    for mounted in &spec.volumes.claims {
        let Some(claim) = claims::find(view, spec, mounted) else {
            let name = mounted.claim.clone();
            return Err(match mounted.owner {
                Some(_) => Reason::about(ReasonCode::EphemeralClaimMissing, name),
                None => claims::not_found(mounted),
            });
        };
        if claim.phase == ClaimPhase::Lost {
            let (claim, volume) = (&claim.name, &claim.volume);
            let text = format!("\"{claim}\" bound to non-existent persistentvolume \"{volume}\"");
            return Err(Reason::about(ReasonCode::ClaimLost, text.as_str()));
        }
        if claim.deleting {
            return Err(Reason::about(ReasonCode::ClaimDeleting, claim.name.clone()));
        }
        if !claims::is_for_pod(claim, mounted) {
            return Err(claims::not_for_pod(view, spec, mounted));
        }
        if !all.iter().any(|known| known.name == claim.name) {
            all.push(claim);
        }
    }
    let objects = view.cluster().objects();
    let cluster_wide = |name: &Name| (Name::default(), name.clone());
    let mut made = PodClaims { bound: Vec::new(), to_bind: Vec::new() };
    for claim in all {
        if is_fully_bound(claim) {
            let volume = objects.get(ObjectKind::PersistentVolume, &cluster_wide(&claim.volume));
            made.bound.push((claim.name.clone(), volume.and_then(Volume::new)));
            continue;
        }
        let class = claim.class.as_ref().and_then(|class| {
            let object = objects.get(ObjectKind::StorageClass, &cluster_wide(class))?;
            class_of(object).filter(|class| class.waits_for_consumer && claim.volume.is_empty())?;
            Some(object.clone())
        });
        // The volume controller binds a claim that already names a volume, whatever its class.
        let immediate = || Reason::of(ReasonCode::UnboundImmediateClaims);
        made.to_bind.push(ToBind::of(view, claim, class.ok_or_else(immediate)?).ok_or_else(immediate)?);
    }
    made.to_bind.sort_by(|a, b| a.order().cmp(&b.order()));
    Ok(made)
}

fn class_of(object: &Arc<Object>) -> Option<&StorageClass> {
    if let Object::StorageClass(class) = &**object { Some(class) } else { None }
}

fn capacity_of(object: &Arc<Object>) -> Option<&CsiStorageCapacity> {
    if let Object::CsiStorageCapacity(capacity) = &**object { Some(capacity) } else { None }
}

impl ToBind {
    fn of(view: View<'_>, claim: &PersistentVolumeClaim, class: Arc<Object>) -> Option<Self> {
        let key = (claim.namespace.clone(), claim.name.clone());
        let object = view.cluster().objects().get(ObjectKind::PersistentVolumeClaim, &key)?.clone();
        let selected = match view.state::<Assumed>() {
            Some(assumed) => assumed.selected_node(claim).cloned(),
            None => claim.selected_node.clone(),
        };
        let candidates = match selected {
            Some(_) => Candidates::default(),
            None => Candidates::collect(view, claim),
        };
        let room = room(view, claim, class_of(&class)?);
        Some(Self { claim: object, selected, candidates, class, room })
    }

    pub(super) fn claim(&self) -> Option<&PersistentVolumeClaim> {
        if let Object::PersistentVolumeClaim(claim) = &*self.claim { Some(claim) } else { None }
    }

    /// Returns the claim's storage class.
    pub(super) fn class(&self) -> Option<&StorageClass> {
        class_of(&self.class)
    }

    /// Returns whether the driver says where it has room.
    pub(super) fn tracks_room(&self) -> bool {
        self.room.is_some()
    }

    fn order(&self) -> Option<(i64, &Name)> {
        self.claim().map(|c| (c.requested, &c.name))
    }

    /// Returns whether the class can provision a volume for nodes with these labels.
    pub(super) fn can_be_made(&self, labels: &Labels) -> bool {
        class_of(&self.class)
            .is_some_and(|class| makes_volumes(class) && suits(&class.allowed_topologies, labels))
    }

    /// Returns whether the class provisions volumes at all.
    pub(super) fn makes_volumes(&self) -> bool {
        class_of(&self.class).is_some_and(makes_volumes)
    }

    /// Returns whether a storage capacity reachable from nodes with these labels has room for a new volume.
    pub(super) fn has_room(&self, labels: &Labels) -> bool {
        let Some(room) = &self.room else { return true };
        let reached = |c: &CsiStorageCapacity| c.nodes.as_ref().is_some_and(|s| s.matches(labels));
        room.iter().filter_map(capacity_of).any(reached)
    }
}

fn makes_volumes(class: &StorageClass) -> bool {
    !class.provisioner.is_empty() && &*class.provisioner != NO_PROVISIONER
}

/// Returns whether at least one term of `allowedTopologies` matches. No terms match every node; an empty term matches
/// none.
fn suits(terms: &[Box<[pellucid_model::selector::Requirement]>], labels: &Labels) -> bool {
    let holds = |term: &[pellucid_model::selector::Requirement]| {
        !term.is_empty() && term.iter().all(|r| r.matches(labels.get(&r.key)))
    };
    terms.is_empty() || terms.iter().any(|term| holds(term))
}

/// Returns the storage capacities with room for a claim's volume; `None` when the driver does not track capacity.
fn room(view: View<'_>, claim: &PersistentVolumeClaim, class: &StorageClass) -> Option<Vec<Arc<Object>>> {
    let objects = view.cluster().objects();
    let tracks = objects.csi_driver(&class.provisioner).is_some_and(|driver| driver.tracks_capacity);
    if !tracks || claim.requested == 0 {
        return None;
    }
    let suffices = |object: &&Arc<Object>| {
        capacity_of(object).is_some_and(|c| {
            c.class == class.name && c.largest.is_some_and(|largest| largest >= claim.requested)
        })
    };
    Some(objects.iter(ObjectKind::CsiStorageCapacity).filter(suffices).cloned().collect())
}
