//! Writes of objects that plugins order, as data: on which object, on what condition, and what came of it.

use std::fmt::{Display, Formatter};
use std::sync::Arc;

use serde_json::Value;

use crate::custom::CustomKind;
use crate::effect::{EffectId, PodRef};
use crate::{Name, merge_patch};

/// An object at the API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version, such as `v1`.
    pub version: &'static str,
    /// Plural of the kind, as in paths.
    pub plural: &'static str,
    /// Namespace; `None` for a kind without namespaces.
    pub namespace: Option<Name>,
    /// Name of the object.
    pub name: Name,
}

impl ObjectRef {
    /// Makes the reference to an object of a plugin's kind. `namespace` is ignored for a kind without namespaces.
    pub fn custom(kind: &CustomKind, namespace: &Name, name: &Name) -> Self {
        Self {
            group: kind.group,
            version: kind.version,
            plural: kind.plural,
            namespace: kind.is_namespaced.then(|| namespace.clone()),
            name: name.clone(),
        }
    }
}

impl Display for ObjectRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.plural)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{}", self.name)
    }
}

/// What must be so at the API server for a write to take effect. An absent part is not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// uid of the object.
    pub uid: Option<Arc<str>>,
    /// The object's `resourceVersion`. A write with it takes effect at most once.
    pub resource_version: Option<Arc<str>>,
}

impl Precondition {
    /// Makes the condition that the object has this uid.
    pub fn uid(uid: Arc<str>) -> Self {
        Self { uid: Some(uid), resource_version: None }
    }

    /// Makes the condition that the object has this `resourceVersion`.
    pub fn resource_version(resource_version: Arc<str>) -> Self {
        Self { uid: None, resource_version: Some(resource_version) }
    }
}

/// The part of an object that a patch changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectPart {
    /// Everything but the status.
    Main,
    /// The status, through subresource `status`.
    Status,
}

/// A write of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectWrite {
    /// Changes fields of an object.
    Patch {
        /// The object.
        object: ObjectRef,
        /// The part that is changed.
        part: ObjectPart,
        /// The condition on the object.
        precondition: Precondition,
        /// A JSON merge patch, without the precondition. Must be the same after it was carried out twice.
        patch: Arc<Value>,
    },
    /// Creates an object.
    Create {
        /// The object. Its name is not generated.
        object: ObjectRef,
        /// The manifest, with `apiVersion`, `kind`, name and namespace.
        body: Arc<Value>,
    },
    /// Deletes an object. An object that is gone already counts as written.
    Delete {
        /// The object.
        object: ObjectRef,
        /// The condition on the object.
        precondition: Precondition,
    },
    /// Evicts a pod: writes condition `DisruptionTarget`, then deletes the pod with its own grace period. A pod that is
    /// gone already counts as written.
    Evict {
        /// The pod; its uid is a precondition.
        pod: PodRef,
        /// Reason of the condition, in CamelCase.
        reason: &'static str,
        /// Message of the condition.
        message: Arc<str>,
    },
}

impl ObjectWrite {
    /// Returns the field that this patch and another set differently; `None` unless both change one part of one
    /// object.
    pub fn clash(&self, other: &Self) -> Option<String> {
        let (first, second) = self.beside(other)?;
        merge_patch::join(first, second).err()
    }

    /// Returns one patch that does what this and another do; `None` unless both change one part of one object on equal
    /// preconditions, and do not clash.
    pub fn joined(&self, other: &Self) -> Option<Self> {
        let (first, second) = self.beside(other)?;
        let (
            Self::Patch { object, part, precondition, .. },
            Self::Patch { precondition: other_precondition, .. },
        ) = (self, other)
        else {
            return None;
        };
        if precondition != other_precondition {
            return None;
        }
        let patch = Arc::new(merge_patch::join(first, second).ok()?);
        Some(Self::Patch { object: object.clone(), part: *part, precondition: precondition.clone(), patch })
    }

    /// Returns both patches if both change one part of one object.
    fn beside<'a>(&'a self, other: &'a Self) -> Option<(&'a Value, &'a Value)> {
        match (self, other) {
            (
                Self::Patch { object, part, patch, .. },
                Self::Patch { object: other_object, part: other_part, patch: other_patch, .. },
            ) if object == other_object && part == other_part => Some((patch, other_patch)),
            _ => None,
        }
    }
}

impl Display for ObjectWrite {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Patch { object, part: ObjectPart::Main, patch, .. } => write!(f, "patch {object} {patch}"),
            Self::Patch { object, part: ObjectPart::Status, patch, .. } => {
                write!(f, "patch status of {object} {patch}")
            }
            Self::Create { object, .. } => write!(f, "create {object}"),
            Self::Delete { object, .. } => write!(f, "delete {object}"),
            Self::Evict { pod, .. } => write!(f, "evict pod {}", pod.key),
        }
    }
}

/// An order for an [`ObjectWrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectOrder {
    /// Number of this effect.
    pub id: EffectId,
    /// The pod for which the write is made, if there is one.
    pub pod: Option<PodRef>,
    /// Name of the plugin that wants the write; the first of several whose patches were joined.
    pub plugin: &'static str,
    /// The write to make.
    pub write: ObjectWrite,
}

/// The outcome of an object order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The write succeeded. The watch delivers the changed object, if its kind is watched.
    Written,
    /// There was an object with the name of the one to create, and it was not made by this order.
    AlreadyExists,
    /// The API server refused the write (409: the object has changed), or could not be reached.
    Refused {
        /// HTTP status; 0 when there was no response.
        status: u16,
        /// `Status.message`.
        message: Arc<str>,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patch(name: &str, version: &str, patch: Value) -> ObjectWrite {
        let object = ObjectRef {
            group: "",
            version: "v1",
            plural: "pods",
            namespace: Some("ns".into()),
            name: name.into(),
        };
        let precondition = Precondition::resource_version(version.into());
        ObjectWrite::Patch { object, part: ObjectPart::Main, precondition, patch: Arc::new(patch) }
    }

    #[test]
    fn only_patches_of_one_object_on_equal_preconditions_are_joined() {
        let (a, b) = (json!({"spec": {"a": 1}}), json!({"spec": {"b": 2}}));
        let both = patch("p", "1", json!({"spec": {"a": 1, "b": 2}}));
        assert_eq!(patch("p", "1", a.clone()).joined(&patch("p", "1", b.clone())), Some(both));
        assert_eq!(patch("p", "1", a.clone()).joined(&patch("p", "2", b.clone())), None);
        assert_eq!(patch("p", "1", a.clone()).joined(&patch("q", "1", b)), None);
        let other = json!({"spec": {"a": 3}});
        assert_eq!(patch("p", "1", a.clone()).joined(&patch("p", "1", other.clone())), None);
        assert_eq!(patch("p", "1", a.clone()).clash(&patch("p", "2", other.clone())), Some("spec.a".into()));
        assert_eq!(patch("p", "1", a).clash(&patch("q", "1", other)), None);
    }
}
