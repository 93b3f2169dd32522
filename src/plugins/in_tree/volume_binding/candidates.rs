//! The volumes that fit a claim, indexed so that the best one for a node is found quickly.
//!
//! Node-independent conditions (size, class, modes, selector, ownership) are checked once. The rest is looked up per
//! node: local volumes name their node by one label, so they are indexed by its value, and a cluster with a disk per
//! node costs one lookup per node instead of a scan of all disks.

use std::sync::Arc;

use pellucid_framework::View;
use pellucid_model::collections::FxHashMap;
use pellucid_model::selector::{Labels, Operator, Requirement};
use pellucid_model::storage::{PersistentVolume, PersistentVolumeClaim};
use pellucid_model::{Name, Object, ObjectKind};

use super::super::claims::reaches;
use super::assumed::{Assumed, Ownership};

/// A volume, kept alive by its shared object.
#[derive(Clone, Debug)]
pub(super) struct Volume(Arc<Object>);

impl Volume {
    pub(super) fn new(object: &Arc<Object>) -> Option<Self> {
        matches!(&**object, Object::PersistentVolume(_)).then(|| Self(object.clone()))
    }

    pub(super) fn get(&self) -> Option<&PersistentVolume> {
        if let Object::PersistentVolume(volume) = &*self.0 { Some(volume) } else { None }
    }

    fn name(&self) -> Option<&Name> {
        self.get().map(|v| &v.name)
    }

    /// Returns whether nodes with these labels can reach the volume.
    pub(super) fn is_reached(&self, labels: &Labels) -> bool {
        self.get().is_some_and(|v| reaches(v.node_affinity.as_deref(), labels))
    }
}

/// Order of preference: smallest first, then by name.
fn rank(volume: &Volume) -> Option<(i64, &Name)> {
    volume.get().map(|v| (v.capacity, &v.name))
}

/// The volumes that fit a claim.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Volumes reserved for this claim. If there is one, no other volume may be used.
    own: Vec<Volume>,
    /// Free volumes without a simple affinity, smallest first.
    others: Vec<Volume>,
    /// Free volumes with a simple affinity, by label key and value, smallest first.
    by_label: FxHashMap<Name, FxHashMap<Name, Vec<Volume>>>,
}

/// Returns the only requirement of an affinity that consists of one `In` requirement.
fn simple(volume: &PersistentVolume) -> Option<&Requirement> {
    let [term] = volume.node_affinity.as_deref()? else { return None };
    let [only] = &*term.expressions else { return None };
    (term.fields.is_empty() && only.operator == Operator::In).then_some(only)
}

impl Candidates {
    /// Collects the volumes that fit a claim. Scans all volumes, once per attempt at a pod with such a claim.
    pub(super) fn collect(view: View<'_>, claim: &PersistentVolumeClaim) -> Self {
        let mut made = Self::default();
        let nothing = Assumed::default();
        let assumed = view.state::<Assumed>().unwrap_or(&nothing);
        for object in view.cluster().objects().iter(ObjectKind::PersistentVolume) {
            let Some(volume) = Volume::new(object) else { continue };
            let Some(v) = volume.get() else { continue };
            if !fits(v, claim) {
                continue;
            }
            match assumed.ownership(v, claim) {
                Ownership::Ours => made.own.push(volume),
                Ownership::Nobodys if may_take(v, claim) => match simple(v) {
                    Some(requirement) => {
                        let values = made.by_label.entry(requirement.key.clone()).or_default();
                        for value in &requirement.values {
                            values.entry(value.clone()).or_default().push(volume.clone());
                        }
                    }
                    None => made.others.push(volume),
                },
                Ownership::Nobodys | Ownership::Anothers => {}
            }
        }
        made.own.sort_by(|a, b| a.name().cmp(&b.name()));
        let by_label = made.by_label.values_mut().flat_map(|values| values.values_mut());
        for list in by_label.chain([&mut made.others]) {
            list.sort_by(|a, b| rank(a).cmp(&rank(b)));
        }
        made
    }

    /// Returns the best volume for a node that is not in `chosen`, the volumes of the pod's other claims.
    pub(super) fn best(&self, labels: &Labels, chosen: &[&Volume]) -> Option<&Volume> {
        let is_left = |volume: &&Volume| chosen.iter().all(|c| c.name() != volume.name());
        if let Some(own) = self.own.iter().find(is_left) {
            return Some(own).filter(|own| own.is_reached(labels));
        }
        let lists =
            self.by_label.iter().filter_map(|(key, values)| values.get(labels.get(key)?)).map(Vec::as_slice);
        let first = |list: &'_ [Volume]| list.iter().position(|v| is_left(&v) && v.is_reached(labels));
        let firsts = lists.chain([self.others.as_slice()]).filter_map(|list| list.get(first(list)?));
        firsts.min_by(|a, b| rank(a).cmp(&rank(b)))
    }
}

/// Conditions for every volume, even one reserved for the claim.
fn fits(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    claim.class.as_ref().is_some_and(|class| *class == volume.class)
        && claim.attributes_class == volume.attributes_class
        && volume.capacity >= claim.requested
        && volume.is_block == claim.is_block
        && !volume.deleting
}

/// Additional conditions for a volume that belongs to no claim.
fn may_take(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    volume.is_free
        && volume.access_modes.contains(claim.access_modes)
        && claim.selector.as_ref().is_none_or(|selector| selector.matches(&volume.labels))
}
