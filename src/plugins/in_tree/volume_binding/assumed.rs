//! Volumes and claims held for pods that have a node but whose volumes are not bound yet.
//!
//! Between the decision and the moment when the watch delivers our writes, the objects still show a volume as free and
//! a claim without a node. This state records what they will show, so that no other pod gets the same volume. The
//! objects take precedence: what an object states is never overridden.

use std::sync::Arc;

use pellucid_cluster::derived::{HookContext, Placed, Touched};
use pellucid_cluster::{DerivedState, HoldValue};
use pellucid_model::storage::{PersistentVolume, PersistentVolumeClaim};
use pellucid_model::{CowMap, Name};

use super::super::claims::ClaimKey;
use super::NAME;

/// A volume held for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBinding {
    /// Name of the claim, in the pod's namespace.
    pub claim: Name,
    /// Uid of the claim.
    pub claim_uid: Arc<str>,
    /// Name of the volume.
    pub volume: Name,
    /// `resourceVersion` of the volume at the decision: the write succeeds only on this version.
    pub volume_version: Arc<str>,
}

/// A claim whose volume is to be provisioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldProvision {
    /// Name of the claim, in the pod's namespace.
    pub claim: Name,
    /// Uid of the claim.
    pub claim_uid: Arc<str>,
    /// `resourceVersion` of the claim at the decision: the write succeeds only on this version.
    pub claim_version: Arc<str>,
}

/// What Reserve holds for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Namespace of the pod and its claims.
    pub namespace: Name,
    /// Name of the node chosen for the pod.
    pub node: Name,
    /// Bindings to existing volumes, ordered by the requested size of the claims.
    pub bindings: Vec<HeldBinding>,
    /// Volumes to be provisioned.
    pub provisions: Vec<HeldProvision>,
}

/// Values with their number of holders, because pods may share a claim.
type Counted<T> = Arc<Vec<(T, u32)>>;

/// Namespace, name and uid of a claim.
pub(super) type ClaimId = (ClaimKey, Arc<str>);

/// Holds the volumes and claims held for all pods, as derived state of the cluster.
#[derive(Clone, Default)]
pub struct Assumed {
    /// Claims by the volume held for them.
    volumes: CowMap<Name, Counted<ClaimId>>,
    /// Selected node and uid by claim.
    claims: CowMap<ClaimKey, Counted<(Name, Arc<str>)>>,
}

/// Adds a holder of `what` under a key, or removes one.
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
    /// Returns the claim that a volume is held for.
    pub(super) fn claim_of(&self, volume: &Name) -> Option<&ClaimId> {
        self.volumes.get(volume).and_then(|holders| holders.first()).map(|(claim, _)| claim)
    }

    /// Returns the node for which a claim is to be provisioned, according to the holds.
    fn node_of(&self, claim: &PersistentVolumeClaim) -> Option<&Name> {
        let holders = self.claims.get(&(claim.namespace.clone(), claim.name.clone()))?;
        holders.iter().map(|(held, _)| held).find(|(_, uid)| *uid == claim.uid).map(|(node, _)| node)
    }

    /// Returns the ownership of a volume, according to the object or, if it states none, to the holds.
    pub(super) fn ownership(&self, volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Ownership {
        let is_same = |namespace: &Name, name: &Name| *namespace == claim.namespace && *name == claim.name;
        let is_ours = match (&volume.claim, self.claim_of(&volume.name)) {
            (Some(by), _) => is_same(&by.namespace, &by.name) && (by.uid.is_empty() || by.uid == claim.uid),
            (None, Some(((namespace, name), uid))) => is_same(namespace, name) && *uid == claim.uid,
            (None, None) => return Ownership::Nobodys,
        };
        if is_ours { Ownership::Ours } else { Ownership::Anothers }
    }

    /// Returns the node for which a claim's volume is provisioned, according to the object or else to the holds.
    pub(super) fn selected_node<'a>(&'a self, claim: &'a PersistentVolumeClaim) -> Option<&'a Name> {
        claim.selected_node.as_ref().or_else(|| self.node_of(claim))
    }

    fn change(&mut self, hold: &HoldValue, add: bool) -> Touched {
        let Some(held) = hold.downcast_ref::<Held>() else { return Touched::Nothing };
        for binding in &held.bindings {
            let claim = ((held.namespace.clone(), binding.claim.clone()), binding.claim_uid.clone());
            change(&mut self.volumes, binding.volume.clone(), claim, add);
        }
        for provision in &held.provisions {
            let key = (held.namespace.clone(), provision.claim.clone());
            change(&mut self.claims, key, (held.node.clone(), provision.claim_uid.clone()), add);
        }
        // Claims and volumes are looked at anew at every attempt.
        Touched::Nothing
    }
}

/// Ownership of a volume from the point of view of one claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// The volume is bound to the claim or reserved for it.
    Ours,
    /// The volume belongs to another claim.
    Anothers,
    /// The volume belongs to no claim.
    Nobodys,
}

impl DerivedState for Assumed {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn plugin(&self) -> &'static str {
        NAME
    }

    fn reserved(&mut self, _cx: &HookContext<'_>, _placed: &Placed<'_>, hold: &HoldValue) -> Touched {
        self.change(hold, true)
    }

    fn unreserved(&mut self, _cx: &HookContext<'_>, _placed: &Placed<'_>, hold: &HoldValue) -> Touched {
        self.change(hold, false)
    }

    /// Volumes and claims of a bound pod say themselves whose they are.
    fn bound_hold(
        &self,
        _cx: &HookContext<'_>,
        _placed: &Placed<'_>,
        _held: Option<&HoldValue>,
    ) -> Option<HoldValue> {
        None
    }
}
