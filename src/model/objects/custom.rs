//! Kinds that plugins bring, and their objects.
//!
//! A plugin declares its kinds as statics. What it reads of an object is a value of its own type, which no other room
//! looks into.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::manifest::FieldError;
use crate::{Name, Pod, merge_patch};

/// What a plugin read of an object.
pub type CustomValue = Arc<dyn Any + Send + Sync>;

/// A kind that a plugin brings.
pub struct CustomKind {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// `kind` of its objects.
    pub kind: &'static str,
    /// Plural name, as in paths.
    pub plural: &'static str,
    /// Kind and group, joined by a dot: the name in logs, metrics and answers.
    pub qualified: &'static str,
    /// Whether its objects have a namespace.
    pub is_namespaced: bool,
    /// Whether nothing is decided before the API server serves the kind. Otherwise it has no objects where it is not
    /// served.
    pub is_required: bool,
    /// Whether decisions read its objects. Of a kind that only answers read, a list that the API server refuses (403)
    /// holds no decision back: the kind has no objects until it may be listed.
    pub is_decisive: bool,
    /// What the scheduler must be allowed besides `list` and `watch`: verbs, those on a subresource with its name before
    /// them, as in `status/patch`. Patches, creates and deletes need `get` too, to settle those that had no answer.
    pub verbs: &'static [&'static str],
    /// Reads a manifest. Fails with the first field that cannot be read; the object is then quarantined.
    pub decode: fn(&Value) -> Result<CustomValue, FieldError>,
    /// Makes the manifest of the pod that stands for an object which is scheduled as a pod is: bound once the object has
    /// its node, ended once it needs no room. Its name is [`stand_in_name`], whose colon no pod's name has. `None` for a kind
    /// whose objects are not scheduled. May be called with a manifest that `decode` cannot read.
    pub pod: Option<fn(&Value) -> Value>,
    /// Writes what was read as a manifest that `decode` reads alike, for dumps. Of `metadata` it has what `decode` reads.
    pub encode: fn(&CustomValue) -> Value,
}

impl CustomKind {
    /// Returns the verbs that must be allowed, by resource, such as `things/status`.
    pub fn rights(&self) -> BTreeMap<String, Vec<&'static str>> {
        rights(self.plural, self.verbs)
    }
}

/// Returns the name of the pod that stands for an object, by the object's kind and name, such as `reservation:web`.
pub fn stand_in_name(kind: &str, object: &str) -> String {
    format!("{}:{object}", kind.to_lowercase())
}

/// Returns the verbs that must be allowed on a watched kind, by resource; `verbs` is as in [`CustomKind::verbs`].
pub fn rights(plural: &str, verbs: &[&'static str]) -> BTreeMap<String, Vec<&'static str>> {
    let mut rights = BTreeMap::from([(plural.to_owned(), vec!["list", "watch"])]);
    for &verb in verbs {
        let (resource, verb) = match verb.split_once('/') {
            Some((part, verb)) => (format!("{plural}/{part}"), verb),
            None => (plural.to_owned(), verb),
        };
        rights.entry(resource).or_default().push(verb);
    }
    rights
}

/// A reference to a [`CustomKind`], compared and ordered by the qualified name.
#[derive(Clone, Copy)]
pub struct CustomKindRef(pub &'static CustomKind);

impl PartialEq for CustomKindRef {
    fn eq(&self, other: &Self) -> bool {
        self.0.qualified == other.0.qualified
    }
}

impl Eq for CustomKindRef {}

impl PartialOrd for CustomKindRef {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CustomKindRef {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.qualified.cmp(other.0.qualified)
    }
}

impl std::hash::Hash for CustomKindRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.qualified.hash(state);
    }
}

impl fmt::Debug for CustomKindRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.qualified)
    }
}

/// An object of a plugin's kind.
#[derive(Clone)]
pub struct CustomObject {
    /// The kind.
    pub kind: CustomKindRef,
    /// Namespace; empty for a kind without namespaces.
    pub namespace: Name,
    /// Name of the object.
    pub name: Name,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`. Objects with equal versions are equal.
    pub resource_version: Arc<str>,
    /// What the plugin read of it.
    pub value: CustomValue,
    /// The pod that stands for it, if its kind is scheduled.
    pub pod: Option<StandIn>,
}

/// The pod that stands for an object, or the first field of it that cannot be read, with what is wrong.
pub type StandIn = Result<Arc<Pod>, Arc<str>>;

impl CustomObject {
    /// Returns the plugin's value, or `None` when it is of another type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.value.downcast_ref()
    }

    /// Returns the plugin's value as a shared one, or `None` when it is of another type.
    pub fn shared<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.value.clone().downcast().ok()
    }

    /// Returns it as it is read once a merge patch was carried out on it, or `None` when it cannot be read then. The pod that
    /// stands for it gets its node and its marks.
    pub fn patched(&self, patch: &Value) -> Option<Self> {
        let kind = self.kind.0;
        let mut manifest = (kind.encode)(&self.value);
        merge_patch::apply(patch, &mut manifest);
        let value = (kind.decode)(&manifest).ok()?;
        let made = kind.pod.map(|pod| pod(&manifest)).unwrap_or_default();
        let node = made["spec"]["nodeName"].as_str().map(Name::new);
        let pod = |pod: Arc<Pod>| {
            Arc::new(Pod { node_name: node.or_else(|| pod.node_name.clone()), ..pod.marked(patch) })
        };
        let pod = self.pod.clone().map(|known| known.map(pod));
        Some(Self { resource_version: Arc::default(), value, pod, ..self.clone() })
    }
}

impl PartialEq for CustomObject {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.namespace, &self.name, &self.uid, &self.resource_version)
            == (other.kind, &other.namespace, &other.name, &other.uid, &other.resource_version)
            && (!self.resource_version.is_empty() || Arc::ptr_eq(&self.value, &other.value))
    }
}

impl Eq for CustomObject {}

impl fmt::Debug for CustomObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.0.qualified, self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_those_of_the_watch_and_those_that_are_named_with_subresources_apart() {
        let own = ("pools".to_owned(), vec!["list", "watch", "get", "delete"]);
        let status = ("pools/status".to_owned(), vec!["patch"]);
        let found = rights("pools", &["get", "status/patch", "delete"]);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [own, status]);
    }
}
