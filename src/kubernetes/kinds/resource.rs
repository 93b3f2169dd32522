//! What an entry of the registry says.

use std::collections::BTreeMap;

use pellucid_model::Object;
use pellucid_model::custom::{self, CustomKind};

use crate::decode::Item;

/// Where a kind is served, and what the scheduler needs of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version; for a kind that is discovered, the one of Kubernetes 1.36.
    pub version: &'static str,
    /// Plural name, as in paths.
    pub plural: &'static str,
    /// Whether its objects have a namespace.
    pub is_namespaced: bool,
    /// Whether nothing is decided before the API server serves the kind. A kind that is not required has no objects
    /// where it is not served.
    pub is_required: bool,
    /// Whether decisions read its objects. Another kind has no objects while it may not be listed.
    pub is_decisive: bool,
    /// Whether the version is found by discovery (`watches::served`).
    pub is_discovered: bool,
    /// What must be allowed besides `list` and `watch`, as in [`CustomKind::verbs`].
    pub verbs: &'static [&'static str],
}

impl Resource {
    /// Describes a namespaced kind that is served in one version, is not required, and is only listed and watched.
    pub(crate) const fn new(group: &'static str, version: &'static str, plural: &'static str) -> Self {
        Self {
            group,
            version,
            plural,
            is_namespaced: true,
            is_required: false,
            is_decisive: true,
            is_discovered: false,
            verbs: &[],
        }
    }

    /// Describes a kind that a plugin brings.
    pub(crate) fn of_plugin(kind: &CustomKind) -> Self {
        Self {
            is_namespaced: kind.is_namespaced,
            is_required: kind.is_required,
            is_decisive: kind.is_decisive,
            verbs: kind.verbs,
            ..Self::new(kind.group, kind.version, kind.plural)
        }
    }

    /// Returns the verbs that must be allowed, by resource, such as `pods/status`.
    pub fn rights(&self) -> BTreeMap<String, Vec<&'static str>> {
        custom::rights(self.plural, self.verbs)
    }
}

/// A built-in kind.
pub(crate) struct BuiltIn<T = Object> {
    /// Where it is served, and what the scheduler needs of it.
    pub(crate) resource: Resource,
    /// Reads the text of an object. Fails when it is no JSON.
    pub(crate) read: fn(&[u8]) -> serde_json::Result<Item<T>>,
}
