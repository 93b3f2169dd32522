//! The objects other than pods and nodes, by kind and name.

use std::sync::Arc;

use pellucid_model::object::{Budget, Namespace};
use pellucid_model::selector::Labels;
use pellucid_model::storage::{CsiDriver, CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass};
use pellucid_model::{CowMap, Name, Object, ObjectKind};

/// Namespace (empty for cluster-scoped kinds) and name.
pub type ObjectKey = (Name, Name);

/// All objects, by kind. Cheap to clone: clones share what did not change.
#[derive(Clone, Default)]
pub struct Objects {
    by_kind: [CowMap<ObjectKey, Arc<Object>>; ObjectKind::ALL.len()],
}

/// Defines typed lookups by name.
macro_rules! lookups {
    ($($(#[$doc:meta])* $name:ident($($key:ident),*) -> $kind:ident;)*) => { $(
        $(#[$doc])*
        pub fn $name(&self, $($key: &Name),*) -> Option<&$kind> {
            match self.get(ObjectKind::$kind, &lookups!(@key $($key),*))?.as_ref() {
                Object::$kind(object) => Some(object),
                _ => None,
            }
        }
    )* };
    (@key $name:ident) => { (Name::default(), $name.clone()) };
    (@key $namespace:ident, $name:ident) => { ($namespace.clone(), $name.clone()) };
}

impl Objects {
    /// Returns an object of a kind by its key.
    #[inline]
    pub fn get(&self, kind: ObjectKind, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.by_kind[kind as usize].get(key)
    }

    /// Iterates over the objects of a kind in no particular order; callers that show or decide must sort.
    #[inline]
    pub fn iter(&self, kind: ObjectKind) -> impl Iterator<Item = &Arc<Object>> {
        self.by_kind[kind as usize].iter().map(|(_, object)| object)
    }

    lookups! {
        /// Returns a Namespace.
        namespace(name) -> Namespace;
        /// Returns a PersistentVolume.
        volume(name) -> PersistentVolume;
        /// Returns a PersistentVolumeClaim.
        claim(namespace, name) -> PersistentVolumeClaim;
        /// Returns a StorageClass.
        class(name) -> StorageClass;
        /// Returns a node's CSINode, which lists its CSI drivers.
        csi_node(name) -> CsiNode;
        /// Returns a CSIDriver.
        csi_driver(name) -> CsiDriver;
    }

    /// Returns the labels of a namespace, or no labels when the namespace is unknown.
    #[inline]
    pub fn namespace_labels(&self, name: &Name) -> Labels {
        self.namespace(name).map_or_else(Labels::default, |n| n.labels.clone())
    }

    /// Returns all PodDisruptionBudgets, sorted by namespace and name.
    #[inline]
    pub fn all_budgets(&self) -> Vec<&Budget> {
        let mut budgets: Vec<&Budget> = self
            .iter(ObjectKind::PodDisruptionBudget)
            .filter_map(|o| if let Object::PodDisruptionBudget(b) = o.as_ref() { Some(b) } else { None })
            .collect();
        budgets.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        budgets
    }

    pub(super) fn insert(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        self.by_kind[object.kind() as usize].insert(object.key(), object)
    }

    pub(super) fn remove(&mut self, kind: ObjectKind, key: &ObjectKey) -> Option<Arc<Object>> {
        self.by_kind[kind as usize].remove(key)
    }
}
