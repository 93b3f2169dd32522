//! CSI volumes per node, derived from pods, claims, volumes, storage classes and attachments.
//!
//! A pod names a claim, the claim a volume or a class, the volume a driver and a handle, and each object may appear,
//! change or disappear independently. This state therefore stores the links too; when one changes, the dependent pods
//! are recounted. A query about a node costs a few lookups, however many volumes the node has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pellucid_cluster::DerivedState;
use pellucid_cluster::derived::{Placed, Touched};
use pellucid_model::collections::FxHashMap;
use pellucid_model::storage::{ClaimUse, CsiNode, CsiVolume, PersistentVolumeClaim, VolumeAttachment};
use pellucid_model::{CowMap, Name, NodeIdx, Object, Pages, Pod};

use super::super::claims::ClaimKey;
use super::per_node::{DriverView, Handles, OnNode, count};
use super::volume_id::{Handle, VolumeId};

/// The parts of a claim that determine its volume.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClaimFacts {
    volume: Name,
    class: Option<Name>,
    owner_pod: Option<Arc<str>>,
}

impl ClaimFacts {
    fn of(claim: &PersistentVolumeClaim) -> Self {
        let (volume, class) = (claim.volume.clone(), claim.class.clone());
        Self { volume, class, owner_pod: claim.owner_pod.clone() }
    }
}

/// Number of pods that mount a claim, by node and, for a generic ephemeral volume, the uid of its pod.
type Users = BTreeMap<(NodeIdx, Option<Arc<str>>), u32>;

/// Dependants of a volume: claims that name it, and attachments.
#[derive(Clone, Debug, Default)]
struct Dependants {
    claims: BTreeSet<ClaimKey>,
    attachments: BTreeSet<Name>,
}

/// Holds the volumes on all nodes, as derived state of the cluster.
#[derive(Clone, Default)]
pub struct VolumesOnNodes {
    nodes: Pages<Option<Arc<OnNode>>>,
    /// By node name: an attachment may be observed before its node.
    attached: CowMap<Name, Arc<FxHashMap<Name, Handles>>>,
    users: CowMap<ClaimKey, Arc<Users>>,
    claims: CowMap<ClaimKey, ClaimFacts>,
    volumes: CowMap<Name, CsiVolume>,
    provisioners: CowMap<Name, Name>,
    attachments: CowMap<Name, VolumeAttachment>,
    by_volume: CowMap<Name, Arc<Dependants>>,
}

impl VolumesOnNodes {
    pub(super) fn driver<'a>(
        &'a self,
        (node, name): (NodeIdx, &Name),
        driver: &Name,
        csi_node: Option<&'a CsiNode>,
    ) -> DriverView<'a> {
        let attached = self.attached.get(name).and_then(|drivers| drivers.get(driver));
        DriverView::new(self.on(node), attached, csi_node, driver)
    }

    /// Returns the drivers that have volumes on a node, sorted.
    pub(super) fn drivers(&self, node: NodeIdx, name: &Name) -> BTreeSet<Name> {
        let used = self.on(node).into_iter().flat_map(OnNode::drivers);
        let attached = self.attached.get(name).into_iter().flat_map(|drivers| drivers.keys());
        used.chain(attached).cloned().collect()
    }

    fn on(&self, node: NodeIdx) -> Option<&OnNode> {
        self.nodes.get(node.index()).and_then(Option::as_deref)
    }

    /// Returns the volume behind a claim that a pod mounts; `None` if the claim counts for nothing.
    pub(super) fn resolve(&self, namespace: &Name, mounted: &ClaimUse) -> Option<VolumeId> {
        self.volume_of(&(namespace.clone(), mounted.claim.clone()), mounted.owner.as_ref())
    }

    fn volume_of(&self, key: &ClaimKey, owner: Option<&Arc<str>>) -> Option<VolumeId> {
        let claim = self.claims.get(key)?;
        if owner.is_some() && owner != claim.owner_pod.as_ref() {
            return None;
        }
        // A volume that is not known yet counts by the class, like a claim without a volume.
        let volume = Some(&claim.volume).filter(|v| !v.is_empty());
        if let Some(csi) = volume.and_then(|v| self.volumes.get(v)) {
            return VolumeId::of_volume(csi);
        }
        VolumeId::of_claim(self.provisioners.get(claim.class.as_ref()?)?, &key.0, &key.1)
    }

    fn change_on(&mut self, node: NodeIdx, id: VolumeId, by: i64) {
        self.nodes.grow(node.index() + 1);
        let slot = &mut self.nodes[node.index()];
        let on = Arc::make_mut(slot.get_or_insert_default());
        on.change(id, by);
        if on.is_empty() {
            *slot = None;
        }
    }

    fn change_pod(&mut self, node: NodeIdx, pod: &Pod, by: i64) {
        for mounted in &pod.spec.volumes.claims {
            let key = (pod.spec.namespace.clone(), mounted.claim.clone());
            if let Some(id) = self.volume_of(&key, mounted.owner.as_ref()) {
                self.change_on(node, id, by);
            }
            // Remove and reinsert the entry, so that it is copied only when a published snapshot still shares it.
            let mut users = self.users.remove(&key).unwrap_or_default();
            let all = Arc::make_mut(&mut users);
            let user = (node, mounted.owner.clone());
            let pods = i64::from(all.get(&user).copied().unwrap_or(0)) + by;
            match u32::try_from(pods) {
                Ok(0) | Err(_) => drop(all.remove(&user)),
                Ok(pods) => drop(all.insert(user, pods)),
            }
            if !all.is_empty() {
                self.users.insert(key, users);
            }
        }
        for id in pod.spec.volumes.disks.iter().filter_map(VolumeId::of_disk) {
            self.change_on(node, id, by);
        }
    }

    /// Applies a change that may affect the volumes behind these claims, and recounts their users.
    fn with_claims(&mut self, keys: &[ClaimKey], change: impl FnOnce(&mut Self)) {
        let stand_for = |this: &Self| -> Vec<(NodeIdx, VolumeId, i64)> {
            let users = keys.iter().filter_map(|key| Some((key, this.users.get(key)?)));
            let each = users.flat_map(|(key, users)| users.iter().map(move |user| (key, user)));
            each.filter_map(|(key, ((node, owner), pods))| {
                Some((*node, this.volume_of(key, owner.as_ref())?, i64::from(*pods)))
            })
            .collect()
        };
        let before = stand_for(self);
        change(self);
        let after = stand_for(self);
        if before == after {
            return;
        }
        for (node, id, pods) in before {
            self.change_on(node, id, -pods);
        }
        for (node, id, pods) in after {
            self.change_on(node, id, pods);
        }
    }

    fn claim_changed(&mut self, key: ClaimKey, new: Option<ClaimFacts>) {
        let old = self.claims.get(&key).cloned();
        if old == new {
            return;
        }
        self.with_claims(std::slice::from_ref(&key), |this| {
            let named = |facts: &Option<ClaimFacts>| facts.as_ref().map(|f| f.volume.clone());
            if let Some(volume) = named(&old).filter(|v| !v.is_empty()) {
                this.depend(volume, |on| on.claims.remove(&key));
            }
            if let Some(volume) = named(&new).filter(|v| !v.is_empty()) {
                this.depend(volume, |on| on.claims.insert(key.clone()));
            }
            match new {
                Some(facts) => drop(this.claims.insert(key.clone(), facts)),
                None => drop(this.claims.remove(&key)),
            }
        });
    }

    fn depend(&mut self, volume: Name, change: impl FnOnce(&mut Dependants) -> bool) {
        let mut dependants = self.by_volume.remove(&volume).unwrap_or_default();
        let all = Arc::make_mut(&mut dependants);
        change(all);
        if !all.claims.is_empty() || !all.attachments.is_empty() {
            self.by_volume.insert(volume, dependants);
        }
    }

    fn volume_changed(&mut self, name: &Name, known: bool, new: Option<&CsiVolume>) {
        // A volume without CSI counts as nothing but exists, so the claim does not fall back to its class.
        let nothing = || CsiVolume { driver: "".into(), handle: "".into(), migrated_from: None };
        let new = known.then(|| new.cloned().unwrap_or_else(nothing));
        if self.volumes.get(name) == new.as_ref() {
            return;
        }
        let dependants = self.by_volume.get(name).cloned().unwrap_or_default();
        let claims: Vec<ClaimKey> = dependants.claims.iter().cloned().collect();
        let attachments: Vec<Name> = dependants.attachments.iter().cloned().collect();
        for attachment in &attachments {
            self.attach(attachment, -1);
        }
        self.with_claims(&claims, |this| match new {
            Some(csi) => drop(this.volumes.insert(name.clone(), csi)),
            None => drop(this.volumes.remove(name)),
        });
        for attachment in &attachments {
            self.attach(attachment, 1);
        }
    }

    fn class_changed(&mut self, name: &Name, new: Option<&Name>) {
        if self.provisioners.get(name) == new {
            return;
        }
        let of_class = self.claims.iter().filter(|(_, facts)| facts.class.as_ref() == Some(name));
        let claims: Vec<ClaimKey> = of_class.map(|(key, _)| key.clone()).collect();
        self.with_claims(&claims, |this| match new {
            Some(provisioner) => drop(this.provisioners.insert(name.clone(), provisioner.clone())),
            None => drop(this.provisioners.remove(name)),
        });
    }

    fn attachment_changed(&mut self, name: &Name, new: Option<&VolumeAttachment>) {
        self.attach(name, -1);
        if let Some(old) = self.attachments.remove(name) {
            self.depend(old.volume, |on| on.attachments.remove(name));
        }
        if let Some(new) = new.filter(|a| !a.driver.is_empty() && !a.volume.is_empty()) {
            self.depend(new.volume.clone(), |on| on.attachments.insert(name.clone()));
            self.attachments.insert(name.clone(), new.clone());
        }
        self.attach(name, 1);
    }

    /// Counts an attachment on its node, or removes it. Attachments of in-tree volumes do not count, because their
    /// handle depends on the node. (kube-scheduler also considers only CSI volumes here.)
    fn attach(&mut self, name: &Name, by: i64) {
        let Some(attachment) = self.attachments.get(name) else { return };
        let Some(csi) = self.volumes.get(&attachment.volume) else { return };
        if csi.migrated_from.is_some() || csi.driver.is_empty() {
            return;
        }
        let (node, driver) = (attachment.node.clone(), attachment.driver.clone());
        let handle = Handle::Volume(csi.handle.clone());
        let mut on = self.attached.remove(&node).unwrap_or_default();
        let drivers = Arc::make_mut(&mut on);
        let handles = drivers.entry(driver.clone()).or_default();
        count(handles, handle, by);
        if handles.is_empty() {
            drivers.remove(&driver);
        }
        if !drivers.is_empty() {
            self.attached.insert(node, on);
        }
    }
}

impl DerivedState for VolumesOnNodes {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn pod_added(&mut self, placed: &Placed<'_>) {
        let (node, pod) = (placed.node, placed.pod);
        if !pod.spec.volumes.is_empty() {
            self.change_pod(node, pod, 1);
        }
    }

    fn pod_removed(&mut self, placed: &Placed<'_>) {
        let (node, pod) = (placed.node, placed.pod);
        if !pod.spec.volumes.is_empty() {
            self.change_pod(node, pod, -1);
        }
    }

    fn object_changed(&mut self, old: Option<&Object>, new: Option<&Object>) -> Touched {
        let Some(object) = new.or(old) else { return Touched::Nothing };
        let is_there = new.is_some();
        match object {
            Object::PersistentVolumeClaim(claim) => {
                let key = (claim.namespace.clone(), claim.name.clone());
                self.claim_changed(key, is_there.then(|| ClaimFacts::of(claim)));
            }
            Object::PersistentVolume(volume) => {
                self.volume_changed(&volume.name, is_there, volume.csi.as_ref());
            }
            Object::StorageClass(class) => {
                self.class_changed(&class.name, is_there.then_some(&class.provisioner));
            }
            Object::VolumeAttachment(attachment) => {
                self.attachment_changed(&attachment.name, is_there.then_some(attachment));
            }
            _ => {}
        }
        Touched::Nothing
    }
}
