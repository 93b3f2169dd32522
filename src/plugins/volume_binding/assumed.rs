//! What is held for pods that have a node and whose volumes are not bound yet, and who else may see it.
//!
//! Between the decision and the moment at which the watch shows what was written, the objects still say that
//! a volume is free and a claim has no node. Here stands what they will say, so that no other pod is promised
//! the same volume. The cluster's word goes first: what an object says itself is not overruled.

use std::sync::Arc;

use pellucid_cluster::{DerivedState, Hold};
use pellucid_model::storage::{PersistentVolume, PersistentVolumeClaim};
use pellucid_model::{CowMap, Name, PodId};

use super::super::claims::ClaimKey;
use super::NAME;

/// A volume that is held for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBinding {
    /// Name of the claim, in the pod's namespace.
    pub claim: Name,
    /// Its uid.
    pub claim_uid: Arc<str>,
    /// Name of the volume.
    pub volume: Name,
    /// `resourceVersion` of the volume at the decision: the write is made on this version or not at all.
    pub volume_version: Arc<str>,
}

/// A claim for which a volume is to be provisioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldProvision {
    /// Name of the claim, in the pod's namespace.
    pub claim: Name,
    /// Its uid.
    pub claim_uid: Arc<str>,
    /// `resourceVersion` of the claim at the decision: the write is made on this version or not at all.
    pub claim_version: Arc<str>,
}

/// What Reserve holds for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Namespace of the pod and its claims.
    pub namespace: Name,
    /// The node it was given.
    pub node: Name,
    /// Volumes that are there, in order of the claims' sizes.
    pub bindings: Vec<HeldBinding>,
    /// Volumes that are to be made.
    pub provisions: Vec<HeldProvision>,
}

/// Holders of the same thing are counted: pods may share a claim.
type Counted<T> = Arc<Vec<(T, u32)>>;

/// A claim by name and uid.
pub(super) type ClaimId = (ClaimKey, Arc<str>);

/// What is held for all pods.
#[derive(Clone, Default)]
pub struct Assumed {
    /// Claims by volume.
    volumes: CowMap<Name, Counted<ClaimId>>,
    /// Nodes by claim.
    claims: CowMap<ClaimKey, Counted<(Name, Arc<str>)>>,
}

/// Adds a holder to what is held under a key, or takes one away.
fn change<K, T>(all: &mut CowMap<K, Counted<T>>, key: K, what: T, add: bool)
where
    K: Eq + std::hash::Hash + Clone,
    T: Clone + PartialEq,
{
    let mut counted = all.remove(&key).unwrap_or_default();
    let holders = Arc::make_mut(&mut counted);
    match (holders.iter().position(|(known, _)| *known == what), add) {
        (Some(at), true) => holders[at].1 += 1,
        (None, true) => holders.push((what, 1)),
        (Some(at), false) => {
            holders[at].1 -= 1;
            if holders[at].1 == 0 {
                holders.remove(at);
            }
        }
        (None, false) => {}
    }
    if !holders.is_empty() {
        all.insert(key, counted);
    }
}

impl Assumed {
    /// Returns the claim for which a volume is held.
    pub(super) fn claim_of(&self, volume: &Name) -> Option<&ClaimId> {
        self.volumes.get(volume).and_then(|holders| holders.first()).map(|(claim, _)| claim)
    }

    /// Returns the node at which a claim is to be provisioned.
    fn node_of(&self, claim: &PersistentVolumeClaim) -> Option<&Name> {
        let holders = self.claims.get(&(claim.namespace.clone(), claim.name.clone()))?;
        holders.iter().map(|(held, _)| held).find(|(_, uid)| *uid == claim.uid).map(|(node, _)| node)
    }

    /// Whose a volume is, by the cluster's word or ours.
    pub(super) fn ownership(&self, volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Ownership {
        let is_same = |namespace: &Name, name: &Name| *namespace == claim.namespace && *name == claim.name;
        let is_ours = match (&volume.claim, self.claim_of(&volume.name)) {
            (Some(by), _) => is_same(&by.namespace, &by.name) && (by.uid.is_empty() || by.uid == claim.uid),
            (None, Some(((namespace, name), uid))) => is_same(namespace, name) && *uid == claim.uid,
            (None, None) => return Ownership::Nobodys,
        };
        if is_ours { Ownership::Ours } else { Ownership::Anothers }
    }

    /// Returns the node for which a claim's volume is to be made, by the cluster's word or ours.
    pub(super) fn selected_node<'a>(&'a self, claim: &'a PersistentVolumeClaim) -> Option<&'a Name> {
        claim.selected_node.as_ref().or_else(|| self.node_of(claim))
    }

    fn change(&mut self, reservation: &Hold, add: bool) {
        if reservation.plugin != NAME {
            return;
        }
        let Some(held) = reservation.what.downcast_ref::<Held>() else { return };
        for binding in &held.bindings {
            let claim = ((held.namespace.clone(), binding.claim.clone()), binding.claim_uid.clone());
            change(&mut self.volumes, binding.volume.clone(), claim, add);
        }
        for provision in &held.provisions {
            let key = (held.namespace.clone(), provision.claim.clone());
            change(&mut self.claims, key, (held.node.clone(), provision.claim_uid.clone()), add);
        }
    }
}

/// Whose a volume is, as one claim sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// It is bound to the claim, or set aside for it.
    Ours,
    /// It belongs to another claim.
    Anothers,
    /// It belongs to none.
    Nobodys,
}

impl DerivedState for Assumed {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn reserved(&mut self, _pod: PodId, reservation: &Hold) {
        self.change(reservation, true);
    }

    fn unreserved(&mut self, _pod: PodId, reservation: &Hold) {
        self.change(reservation, false);
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
