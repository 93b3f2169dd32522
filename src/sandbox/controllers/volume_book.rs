//! The volume controller's index of volumes: by name, by class and size, and by claim.
//!
//! It is updated from the changes of the store, so that the smallest suitable volume for a claim is found without
//! reading all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pellucid_model::quantity;
use serde_json::Value;

use crate::fields;
use crate::kinds::storage::{BOUND_BY_CONTROLLER, class_of};
use crate::selectors::LabelSelector;
use crate::store::{Key, Object};

/// The properties of a volume that binding depends on.
#[derive(Debug)]
pub(super) struct Volume {
    pub name: Arc<str>,
    /// The name of its StorageClass, empty for none.
    pub class: String,
    /// The claim in `spec.claimRef` with its uid, which is empty if the reference has none.
    pub claim: Option<(Key, String)>,
    pub phase: String,
    pub is_deleting: bool,
    /// Whether its reclaim policy is Delete.
    pub goes_with_claim: bool,
    /// Whether a controller or scheduler, not the user, named the claim.
    pub is_bound_by_controller: bool,
    labels: Vec<(Box<str>, Box<str>)>,
    capacity: i64,
    modes: Vec<String>,
    mode: String,
}

impl Volume {
    fn new(object: &Object) -> Self {
        let value = object.value();
        let spec = &value["spec"];
        let text = |value: &Value| fields::text(value).to_owned();
        let reference = &spec["claimRef"];
        let claim = reference.is_object().then(|| {
            let key = (text(&reference["namespace"]).into(), text(&reference["name"]).into());
            (key, text(&reference["uid"]))
        });
        Self {
            name: object.key.1.clone(),
            class: class_of(&value).unwrap_or_default().to_owned(),
            claim,
            phase: text(&value["status"]["phase"]),
            is_deleting: object.is_deleting,
            goes_with_claim: spec["persistentVolumeReclaimPolicy"] == "Delete",
            is_bound_by_controller: value["metadata"]["annotations"][BOUND_BY_CONTROLLER].is_string(),
            labels: object.labels.clone(),
            capacity: bytes(&spec["capacity"]["storage"]),
            modes: texts(&spec["accessModes"]),
            mode: text(&spec["volumeMode"]),
        }
    }

    /// Returns whether any claim may be bound to it.
    pub(super) fn is_free(&self) -> bool {
        self.claim.is_none() && self.phase == "Available" && !self.is_deleting
    }

    /// Returns whether the volume names this claim, and not another one of the same name.
    pub(super) fn is_for(&self, key: &Key, uid: &str) -> bool {
        let names = |(own, own_uid): &(Key, String)| own == key && (own_uid.is_empty() || own_uid == uid);
        self.claim.as_ref().is_some_and(names)
    }

    /// Returns whether the volume has the size, access modes and volume mode that a claim requests.
    pub(super) fn is_enough(&self, wish: &Wish) -> bool {
        self.capacity >= wish.size
            && self.mode == wish.mode
            && wish.modes.iter().all(|mode| self.modes.contains(mode))
    }
}

/// What a claim requests.
pub(super) struct Wish {
    /// The name of the StorageClass, empty for none.
    pub class: String,
    size: i64,
    modes: Vec<String>,
    mode: String,
    selector: Option<LabelSelector>,
}

impl Wish {
    /// Reads the request of a claim.
    pub(super) fn new(claim: &Value) -> Self {
        let spec = &claim["spec"];
        Self {
            class: class_of(claim).unwrap_or_default().to_owned(),
            size: bytes(&spec["resources"]["requests"]["storage"]),
            modes: texts(&spec["accessModes"]),
            mode: spec["volumeMode"].as_str().unwrap_or_default().to_owned(),
            selector: LabelSelector::from_object(&spec["selector"]),
        }
    }
}

fn texts(list: &Value) -> Vec<String> {
    fields::list(list).iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

/// Parses a number of bytes. A malformed one counts as 0.
fn bytes(amount: &Value) -> i64 {
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    quantity::units(&text).unwrap_or_default()
}

/// All volumes, with their indexes.
#[derive(Default)]
pub(super) struct Book {
    volumes: BTreeMap<Arc<str>, Volume>,
    /// Class → free volumes, ordered by size.
    free: BTreeMap<String, BTreeSet<(i64, Arc<str>)>>,
    /// Claim → volumes that name it.
    claimed: BTreeMap<Key, BTreeSet<Arc<str>>>,
}

impl Book {
    pub(super) fn put(&mut self, object: &Object) {
        self.remove(&object.key.1);
        let volume = Volume::new(object);
        if volume.is_free() {
            let entry = (volume.capacity, volume.name.clone());
            self.free.entry(volume.class.clone()).or_default().insert(entry);
        }
        if let Some((claim, _)) = &volume.claim {
            self.claimed.entry(claim.clone()).or_default().insert(volume.name.clone());
        }
        self.volumes.insert(volume.name.clone(), volume);
    }

    pub(super) fn remove(&mut self, name: &str) {
        let Some(volume) = self.volumes.remove(name) else { return };
        if let Some(free) = self.free.get_mut(&volume.class) {
            free.remove(&(volume.capacity, volume.name.clone()));
        }
        if let Some((claim, _)) = &volume.claim
            && let Some(names) = self.claimed.get_mut(claim)
        {
            names.remove(name);
            if names.is_empty() {
                self.claimed.remove(claim);
            }
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Volume> {
        self.volumes.get(name)
    }

    /// Returns the volumes that name a claim.
    pub(super) fn of_claim(&self, claim: &Key) -> impl Iterator<Item = &Volume> {
        let names = self.claimed.get(claim).into_iter().flatten();
        names.filter_map(|name| self.volumes.get(name))
    }

    /// Returns the volume for a claim: one that names it, else the smallest free one that fits, unless binding waits
    /// for a pod.
    pub(super) fn find(&self, key: &Key, uid: &str, wish: &Wish, waits: bool) -> Option<&Volume> {
        let is_named = |volume: &&Volume| volume.is_for(key, uid) && !volume.is_deleting;
        let named = self.of_claim(key).filter(is_named).find(|volume| volume.is_enough(wish));
        if named.is_some() || waits {
            return named;
        }
        let large_enough = self.free.get(&wish.class)?.range((wish.size, Arc::from(""))..);
        let mut large_enough = large_enough.filter_map(|(_, name)| self.volumes.get(name));
        large_enough.find(|volume| {
            let is_chosen = wish.selector.as_ref().is_none_or(|s| s.matches(&volume.labels));
            is_chosen && volume.is_enough(wish)
        })
    }
}
