//! Reads, changes and deletes objects without HTTP, and so without faults.
//!
//! This is for drivers of long tests, whose own requests must not meet the faults that they inject. The rules are the
//! same as for requests. Creating objects is in `handle.rs`, because a sandbox starts with objects.

use std::sync::Arc;

use serde_json::Value;

use crate::api::Part;
use crate::handle::{Handle, StartError};
use crate::kinds::pods::NODE_NAME;
use crate::kinds::registry::Kind;
use crate::options::{DeleteOptions, Options};
use crate::requests::patch::{self, PatchKind};
use crate::store::Key;

impl Handle {
    /// Returns an object of a table (`pods`, `jobs.batch`), if it exists. `namespace` is empty for cluster-scoped
    /// objects.
    pub fn read(&self, table: &str, namespace: &str, name: &str) -> Option<Value> {
        self.server.api.store.get(table, &key(namespace, name)).map(|object| object.value())
    }

    /// Returns the node that a pod is bound to, if any. Cheaper than [`Handle::read`].
    pub fn node_of(&self, namespace: &str, name: &str) -> Option<String> {
        let pod = self.server.api.store.get("pods", &key(namespace, name))?;
        let node = pod.field(NODE_NAME);
        (!node.is_empty()).then(|| node.to_owned())
    }

    /// Returns the namespace and name of all objects of a table.
    pub fn names(&self, table: &str) -> Vec<(String, String)> {
        let items = self.server.api.store.list(table, "").items;
        items.iter().map(|object| (object.key.0.to_string(), object.key.1.to_string())).collect()
    }

    /// Applies a merge patch to an object, and to its status if the patch has one.
    pub fn merge(&self, table: &str, namespace: &str, name: &str, patch: &Value) -> Result<(), StartError> {
        let kind = self.kind(table, name)?;
        let parts: &[Part] = match (patch.get("status"), kind.subresource("status")) {
            (Some(_), Some(_)) => &[Part::Main, Part::Status],
            _ => &[Part::Main],
        };
        for part in parts {
            let merged = |old: &Value| patch::apply(PatchKind::Merge, old, patch, kind.is_custom());
            let written =
                self.server.api.update(&kind, &key(namespace, name), *part, &Options::default(), merged);
            written.map_err(|error| refused(&kind.kind, name, error.message))?;
        }
        Ok(())
    }

    /// Deletes an object with a grace period in seconds, or with the kind's own.
    pub fn delete(
        &self,
        table: &str,
        namespace: &str,
        name: &str,
        grace: Option<i64>,
    ) -> Result<(), StartError> {
        let kind = self.kind(table, name)?;
        let options = DeleteOptions { grace, ..DeleteOptions::default() };
        let deleted = self.server.api.delete(&kind, &key(namespace, name), &options);
        deleted.map(drop).map_err(|error| refused(&kind.kind, name, error.message))
    }

    fn kind(&self, table: &str, name: &str) -> Result<Arc<Kind>, StartError> {
        let why = || format!("there is no table {table:?}; tables are named such as pods or jobs.batch");
        self.server.api.kind_of(table).ok_or_else(|| refused(table, name, why()))
    }
}

fn key(namespace: &str, name: &str) -> Key {
    (namespace.into(), name.into())
}

fn refused(kind: &str, name: &str, message: String) -> StartError {
    StartError::Object { kind: kind.to_owned(), name: name.to_owned(), message }
}
