//! The volumes that would do for a claim, sorted so that the best one for a node is found quickly.
//!
//! What does not depend on the node is asked once: size, class, modes, selector, whose it is. What is left is
//! looked up by node: local volumes name their node by one label, so they are kept by its value, and a cluster
//! with a disk per node costs one lookup per node instead of a look at every disk.

use std::sync::Arc;

use pellucid_framework::View;
use pellucid_model::collections::FxHashMap;
use pellucid_model::selector::{Labels, Operator, Requirement};
use pellucid_model::storage::{PersistentVolume, PersistentVolumeClaim};
use pellucid_model::{Name, Object, ObjectKind};

use super::super::claims::reaches;
use super::assumed::{Assumed, Ownership};

/// A volume, kept alive together with the object it is in.
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

    /// Whether nodes with these labels reach it.
    pub(super) fn is_reached(&self, labels: &Labels) -> bool {
        self.get().is_some_and(|v| reaches(v.node_affinity.as_deref(), labels))
    }
}

/// The order of preference: the smallest, then by name.
fn rank(volume: &Volume) -> Option<(i64, &Name)> {
    volume.get().map(|v| (v.capacity, &v.name))
}

/// The volumes that would do for a claim.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Set aside for this very claim: no other one will do then.
    own: Vec<Volume>,
    /// Free ones without a simple affinity, the smallest first.
    others: Vec<Volume>,
    /// Free ones that ask for one of some values of one label, by label and value, the smallest first.
    by_label: FxHashMap<Name, FxHashMap<Name, Vec<Volume>>>,
}

/// The one requirement of an affinity that asks for values of a label and for nothing else.
fn simple(volume: &PersistentVolume) -> Option<&Requirement> {
    let [term] = volume.node_affinity.as_deref()? else { return None };
    let [only] = &*term.expressions else { return None };
    (term.fields.is_empty() && only.operator == Operator::In).then_some(only)
}

impl Candidates {
    /// Collects them. A look at every volume there is, once per attempt at a pod with such a claim.
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

    /// Returns the best one for a node that is not among those chosen for the pod's other claims.
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

/// What even a volume that was set aside for the claim must satisfy.
fn fits(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    claim.class.as_ref().is_some_and(|class| *class == volume.class)
        && volume.capacity >= claim.requested
        && volume.is_block == claim.is_block
        && !volume.deleting
}

/// What a volume that belongs to nobody must satisfy besides.
fn may_take(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    volume.is_free
        && volume.access_modes.contains(claim.access_modes)
        && claim.selector.as_ref().is_none_or(|selector| selector.matches(&volume.labels))
}
