//! The volumes on one node by driver, with the number of pods that use each.

use std::collections::BTreeMap;

use pellucid_model::Name;
use pellucid_model::collections::FxHashMap;
use pellucid_model::storage::CsiNode;

use super::volume_id::{Handle, VolumeId, is_migrated};

/// Number of users per handle of a driver.
pub(super) type Handles = FxHashMap<Handle, u32>;

/// The volumes of a driver that pods on a node use.
#[derive(Clone, Debug, Default)]
pub(super) struct OfDriver {
    /// CSI volumes, and claims that will become such volumes.
    native: Handles,
    /// In-tree volumes, by plugin and handle.
    migrated: FxHashMap<(Name, Handle), u32>,
}

/// The volumes that pods on a node use.
#[derive(Clone, Debug, Default)]
pub(super) struct OnNode {
    drivers: BTreeMap<Name, OfDriver>,
}

/// Adds `by` to a count and removes the entry at 0.
pub(super) fn count<K: Eq + std::hash::Hash>(counts: &mut FxHashMap<K, u32>, key: K, by: i64) {
    let new = i64::from(counts.get(&key).copied().unwrap_or(0)) + by;
    match u32::try_from(new) {
        Ok(0) | Err(_) => drop(counts.remove(&key)),
        Ok(new) => drop(counts.insert(key, new)),
    }
}

impl OnNode {
    /// Adds `by` to the number of pods that use a volume.
    pub(super) fn change(&mut self, id: VolumeId, by: i64) {
        let of = self.drivers.entry(id.driver.clone()).or_default();
        match id.migrated_from {
            None => count(&mut of.native, id.handle, by),
            Some(plugin) => count(&mut of.migrated, (plugin, id.handle), by),
        }
        if of.native.is_empty() && of.migrated.is_empty() {
            self.drivers.remove(&id.driver);
        }
    }

    /// Returns whether no pod on the node uses a volume.
    pub(super) fn is_empty(&self) -> bool {
        self.drivers.is_empty()
    }

    /// Iterates over the drivers in order of their names.
    pub(super) fn drivers(&self) -> impl Iterator<Item = &Name> {
        self.drivers.keys()
    }
}

/// The number of a driver's volumes on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fill {
    /// Volumes that pods use.
    pub(super) used: usize,
    /// Volumes that are attached but used by no pod.
    pub(super) attached_only: usize,
}

/// The volumes of a driver on a node, counted as the node's CSINode requires.
#[derive(Clone, Copy)]
pub(super) struct DriverView<'a> {
    of: Option<&'a OfDriver>,
    attached: Option<&'a Handles>,
    csi_node: Option<&'a CsiNode>,
}

impl<'a> DriverView<'a> {
    pub(super) fn new(
        on: Option<&'a OnNode>,
        attached: Option<&'a Handles>,
        csi_node: Option<&'a CsiNode>,
        driver: &Name,
    ) -> Self {
        Self { of: on.and_then(|on| on.drivers.get(driver)), attached, csi_node }
    }

    /// Returns whether a pod uses the volume, natively or migrated.
    pub(super) fn is_used(self, handle: &Handle) -> bool {
        self.of.is_some_and(|of| of.native.contains_key(handle) || self.is_migrated(of, handle))
    }

    fn is_migrated(self, of: &OfDriver, handle: &Handle) -> bool {
        of.migrated.keys().any(|(plugin, known)| known == handle && is_migrated(plugin, self.csi_node))
    }

    /// Counts the volumes, each once.
    pub(super) fn fill(self) -> Fill {
        let used = self.of.map_or(0, |of| of.native.len() + self.extra(of));
        let attached = self.attached.into_iter().flat_map(|handles| handles.keys());
        Fill { used, attached_only: attached.filter(|handle| !self.is_used(handle)).count() }
    }

    /// Counts migrated volumes that are not also mounted natively.
    fn extra(self, of: &OfDriver) -> usize {
        let counts = |(plugin, handle): &&(Name, Handle)| {
            is_migrated(plugin, self.csi_node) && !of.native.contains_key(handle)
        };
        of.migrated.keys().filter(counts).count()
    }
}
