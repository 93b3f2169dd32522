//! The objects of kinds that plugins bring, by kind and name.

use std::sync::Arc;

use pellucid_model::{CowMap, CustomKindRef, CustomObject};

use crate::objects::ObjectKey;

/// All objects of plugins' kinds. Cheap to clone: clones share what did not change.
#[derive(Clone, Default)]
pub struct CustomObjects {
    by_kind: Vec<(CustomKindRef, CowMap<ObjectKey, Arc<CustomObject>>)>,
}

impl CustomObjects {
    fn of(&self, kind: CustomKindRef) -> Option<&CowMap<ObjectKey, Arc<CustomObject>>> {
        self.by_kind.iter().find(|(known, _)| *known == kind).map(|(_, objects)| objects)
    }

    /// Returns an object by its kind and key.
    pub fn get(&self, kind: CustomKindRef, key: &ObjectKey) -> Option<&Arc<CustomObject>> {
        self.of(kind)?.get(key)
    }

    /// Iterates over the objects of a kind in no particular order; callers that show or decide must sort.
    pub fn iter(&self, kind: CustomKindRef) -> impl Iterator<Item = &Arc<CustomObject>> {
        self.of(kind).into_iter().flat_map(CowMap::iter).map(|(_, object)| object)
    }

    /// Iterates over the kinds that have had objects.
    pub fn kinds(&self) -> impl Iterator<Item = CustomKindRef> {
        self.by_kind.iter().map(|(kind, _)| *kind)
    }

    pub(super) fn insert(&mut self, object: Arc<CustomObject>) -> Option<Arc<CustomObject>> {
        let at = self.by_kind.iter().position(|(known, _)| *known == object.kind).unwrap_or_else(|| {
            self.by_kind.push((object.kind, CowMap::default()));
            self.by_kind.len() - 1
        });
        let key = (object.namespace.clone(), object.name.clone());
        self.by_kind[at].1.insert(key, object)
    }

    pub(super) fn remove(&mut self, kind: CustomKindRef, key: &ObjectKey) -> Option<Arc<CustomObject>> {
        self.by_kind.iter_mut().find(|(known, _)| *known == kind)?.1.remove(key)
    }
}
