//! Garbage collection: dependents of deleted owners, and the contents of deleted namespaces.

use crate::api::Api;
use crate::options::DeleteOptions;
use crate::store::Key;

/// Deletes the dependents of a deleted owner, except those with another owner.
pub(super) fn collect(api: &Api, owner: &str) {
    for (table, key) in api.store.dependents(owner) {
        let (Some(kind), Some(object)) = (api.kind_of(&table), api.store.get(&table, &key)) else { continue };
        if object.owners.iter().all(|other| **other == *owner) {
            let how = DeleteOptions { uid: Some(object.uid.to_string()), ..DeleteOptions::controller() };
            // It may be deleted already.
            let _ = api.delete(&kind, &key, &how);
        }
    }
}

/// Deletes the contents of a deleted namespace, then the namespace.
pub(super) fn empty(api: &Api, name: &str) {
    let key: Key = ("".into(), name.into());
    let Some(namespace) = api.store.get("namespaces", &key).filter(|n| n.is_deleting) else { return };
    let now = DeleteOptions { grace: Some(0), ..DeleteOptions::controller() };
    let kinds = api.kinds.load_full();
    let mut is_empty = true;
    for kind in kinds.iter().filter(|kind| kind.namespaced) {
        for object in api.store.list(&kind.storage, name).items {
            let deleted = api.delete(kind, &object.key, &now);
            is_empty &= deleted.is_ok_and(|deleted| deleted.is_gone);
        }
    }
    if let (true, Some(kind)) = (is_empty, api.kind_of("namespaces")) {
        api.finish(&kind, &key, &namespace.uid);
    }
}
