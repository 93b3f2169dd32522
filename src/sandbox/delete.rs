//! Deletion: preconditions, grace periods, finalizers and dependents.
//!
//! A pod on a node is only marked for deletion; its kubelet removes it (`kubelet.rs`). The garbage collector removes
//! dependents and the contents of a namespace (`controllers/garbage.rs`).

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::Api;
use crate::clock::{later, seconds};
use crate::errors::{ApiError, ApiResult};
use crate::kinds::meta;
use crate::kinds::pods;
use crate::kinds::registry::Kind;
use crate::options::DeleteOptions;
use crate::store::{Key, Object};
use crate::webhooks::{Operation, Write};

/// The result of a delete.
pub(super) struct Deleted {
    /// The object's last state.
    pub object: Arc<Object>,
    /// Whether the object is gone. If not, its deletion has begun.
    pub is_gone: bool,
}

impl Api {
    /// Deletes an object, or marks it for deletion if something must happen first.
    pub(super) fn delete(&self, kind: &Kind, key: &Key, options: &DeleteOptions) -> ApiResult<Deleted> {
        loop {
            let current = self.get(kind, key)?;
            preconditions(kind, &current, options)?;
            let mut value = current.value();
            self.admit_delete(kind, key, &value, options)?;
            if options.propagation == "Orphan" && !options.dry_run {
                self.orphan(&current.uid);
            }
            let grace = pods::grace(kind, &value, options.grace);
            // A namespace is removed only after its contents.
            let holds_contents = &*kind.storage == "namespaces";
            let waits = grace.is_some_and(|g| g > 0) || meta::has_finalizers(&value) || holds_contents;
            if options.dry_run {
                return Ok(Deleted { object: current, is_gone: !waits });
            }
            let shown = value["metadata"]["deletionGracePeriodSeconds"].as_i64();
            let is_marked = current.is_deleting && shown.unwrap_or_default() <= grace.unwrap_or_default();
            if waits && is_marked {
                return Ok(Deleted { object: current, is_gone: false });
            }
            let mut revision = current.revision;
            if (waits || grace.is_some()) && !is_marked {
                mark(self, &mut value, grace);
                match self.store.put(kind, Some(revision), value.clone()) {
                    Some(object) if waits => return Ok(Deleted { object, is_gone: false }),
                    Some(object) => revision = object.revision,
                    None => continue,
                }
            }
            if let Some(object) = self.store.remove(kind, revision, value.clone()) {
                if &*kind.storage == "customresourcedefinitions.apiextensions.k8s.io" {
                    self.delete_custom(&value);
                }
                return Ok(Deleted { object, is_gone: true });
            }
        }
    }

    /// Asks the webhooks about a delete.
    fn admit_delete(&self, kind: &Kind, key: &Key, object: &Value, options: &DeleteOptions) -> ApiResult<()> {
        let Some(requester) = &options.requester else { return Ok(()) };
        let write = Write {
            kind,
            subresource: "",
            operation: Operation::Delete,
            namespace: &key.0,
            name: if options.of_collection { "" } else { &key.1 },
            dry_run: options.dry_run,
            requester,
        };
        self.mutate(&write, None, Some(object))?;
        self.validate(&write, None, Some(object))
    }

    /// Removes an object that is marked for deletion, unless a finalizer holds it.
    pub(super) fn finish(&self, kind: &Kind, key: &Key, uid: &str) {
        while let Some(current) = self.store.get(&kind.storage, key) {
            let mut value = current.value();
            if *current.uid != *uid || !current.is_deleting {
                return;
            }
            let is_held = meta::has_finalizers(&value);
            if pods::is_pod(kind) && value["metadata"]["deletionGracePeriodSeconds"] != 0 {
                let fields = meta::metadata(&mut value);
                fields.insert("deletionGracePeriodSeconds".into(), 0.into());
                let now = seconds(self.clock.now());
                fields.insert("deletionTimestamp".into(), now.into());
                if self.store.put(kind, Some(current.revision), value).is_some() && is_held {
                    return;
                }
                continue;
            }
            if is_held || self.store.remove(kind, current.revision, value).is_some() {
                return;
            }
        }
    }

    /// Removes an owner from the owner references of its dependents.
    fn orphan(&self, owner: &str) {
        for (table, key) in self.store.dependents(owner) {
            let Some(kind) = self.kind_of(&table) else { continue };
            while let Some(object) = self.store.get(&table, &key) {
                let mut value = object.value();
                if let Some(owners) = value["metadata"]["ownerReferences"].as_array_mut() {
                    owners.retain(|reference| reference["uid"] != owner);
                }
                if value["metadata"]["ownerReferences"].as_array().is_some_and(Vec::is_empty) {
                    meta::metadata(&mut value).remove("ownerReferences");
                }
                if self.store.put(&kind, Some(object.revision), value).is_some() {
                    break;
                }
            }
        }
    }

    /// Removes the objects of a deleted definition, then its kinds.
    fn delete_custom(&self, definition: &Value) {
        let storage = meta::text(definition, "name");
        if let Some(kind) = self.kind_of(storage) {
            for object in self.store.list(storage, "").items {
                self.store.remove(&kind, object.revision, object.value());
            }
        }
        self.withdraw_definition(definition);
    }

    /// Returns the Status for a delete after which the object is gone.
    pub(super) fn deleted_status(kind: &Kind, object: &Object) -> Value {
        let mut details = json!({"name": &*object.key.1, "kind": kind.plural, "uid": object.uid});
        if !kind.group.is_empty() {
            details["group"] = json!(kind.group);
        }
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
    }
}

fn preconditions(kind: &Kind, object: &Object, options: &DeleteOptions) -> ApiResult<()> {
    let again = "The object might have been deleted and then recreated";
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != &*object.uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). {again}",
            object.uid
        );
        return Err(ApiError::conflict(&kind.group, &kind.kind, &object.key.1, &why));
    }
    let own = object.revision.to_string();
    if let Some(revision) = options.revision.as_deref().filter(|revision| *revision != own) {
        let why = format!(
            "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record ({own}). \
             The object might have been modified"
        );
        return Err(ApiError::conflict(&kind.group, &kind.kind, &object.key.1, &why));
    }
    Ok(())
}

/// Marks an object for deletion.
fn mark(api: &Api, value: &mut Value, grace: Option<i64>) {
    let is_first = !meta::is_deleting(value);
    // A shorter grace period counts from the start of the deletion.
    let began = began(value).unwrap_or_else(|| api.clock.now());
    if value["spec"]["finalizers"] == json!(["kubernetes"]) {
        value["status"]["phase"] = "Terminating".into();
    }
    let ends = later(began, std::time::Duration::from_secs(grace.unwrap_or(0).max(0) as u64));
    let fields = meta::metadata(value);
    fields.insert("deletionTimestamp".into(), seconds(ends).into());
    fields.insert("deletionGracePeriodSeconds".into(), grace.unwrap_or(0).into());
    if let (true, Some(generation)) = (is_first, fields.get("generation").and_then(Value::as_i64)) {
        fields.insert("generation".into(), (generation + 1).into());
    }
}

/// Returns when the deletion of an object began, or `None` if it is not being deleted.
fn began(value: &Value) -> Option<Timestamp> {
    let ends: Timestamp = meta::text(value, "deletionTimestamp").parse().ok()?;
    let grace = value["metadata"]["deletionGracePeriodSeconds"].as_i64()?;
    ends.checked_sub(SignedDuration::from_secs(grace)).ok()
}
