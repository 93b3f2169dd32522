//! Owners of a reservation: which pods may stand in its room.
//!
//! The fields of one entry must all match, and any entry is enough. `apiVersion`, and fields of the status, are not
//! compared.

use pellucid_framework::manifest::{Field, FieldError};
use pellucid_model::Pod;
use pellucid_model::selector::LabelSelector;

/// One entry of `spec.owners`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnerTerm {
    pub(super) object: Option<Reference>,
    pub(super) controller: Option<Reference>,
    pub(super) selector: Option<LabelSelector>,
}

/// A pod, or a pod's controller, by what is known of it. An empty field matches anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reference {
    kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

impl Reference {
    fn read(field: &Field<'_>) -> Result<Option<Self>, FieldError> {
        if field.is_absent() {
            return Ok(None);
        }
        let text = |name| Ok::<String, FieldError>(field.get(name)?.text()?.unwrap_or_default().to_owned());
        let (kind, namespace) = (text("kind")?, text("namespace")?);
        Ok(Some(Self { kind, namespace, name: text("name")?, uid: text("uid")? }))
    }

    fn is_in(&self, namespace: &str) -> bool {
        self.namespace.is_empty() || self.namespace == namespace
    }

    fn names(&self, name: &str, uid: &str) -> bool {
        let is = |wanted: &str, text: &str| wanted.is_empty() || wanted == text;
        is(&self.name, name) && is(&self.uid, uid)
    }

    fn is_pod(&self, pod: &Pod) -> bool {
        self.is_in(&pod.key.namespace) && self.names(&pod.key.name, &pod.uid)
    }

    fn controls(&self, pod: &Pod) -> bool {
        self.is_in(&pod.key.namespace)
            && pod.controller.as_ref().is_some_and(|of| {
                self.names(&of.name, &of.uid) && (self.kind.is_empty() || *self.kind == *of.kind)
            })
    }
}

impl OwnerTerm {
    /// Reads one entry. Fails with the first field that cannot be read, or when nothing stands in it.
    fn read(field: &Field<'_>) -> Result<Self, FieldError> {
        let term = Self {
            object: Reference::read(&field.get("object")?)?,
            controller: Reference::read(&field.get("controller")?)?,
            selector: field.get("labelSelector")?.selector()?,
        };
        if term == Self::default() {
            return Err(field.error("must have object, controller or labelSelector"));
        }
        Ok(term)
    }

    /// Returns whether a pod matches all of the entry.
    fn matches(&self, pod: &Pod) -> bool {
        self.object.as_ref().is_none_or(|of| of.is_pod(pod))
            && self.controller.as_ref().is_none_or(|of| of.controls(pod))
            && self.selector.as_ref().is_none_or(|selector| selector.matches(&pod.labels))
    }
}

/// Reads `spec.owners`.
pub(super) fn read(field: &Field<'_>) -> Result<Vec<OwnerTerm>, FieldError> {
    let all: Vec<OwnerTerm> =
        field.elements()?.iter().map(OwnerTerm::read).collect::<Result<_, FieldError>>()?;
    if all.is_empty() {
        return Err(field.error("must name who may use the reservation"));
    }
    Ok(all)
}

/// Returns whether a pod is an owner.
pub(super) fn matches(owners: &[OwnerTerm], pod: &Pod) -> bool {
    owners.iter().any(|term| term.matches(pod))
}

#[cfg(test)]
mod tests {
    use pellucid_model::PodKey;
    use pellucid_model::gang::Controller;
    use pellucid_model::selector::Labels;
    use serde_json::{Value, json};

    use super::*;

    fn pod() -> Pod {
        Pod {
            key: PodKey::new("team", "web-1"),
            uid: "u1".into(),
            labels: Labels::new([("app".into(), "web".into())]),
            controller: Some(Controller { uid: "c1".into(), kind: "ReplicaSet".into(), name: "web".into() }),
            ..Pod::default()
        }
    }

    fn owned_by(owners: &Value) -> bool {
        matches(&read(&Field::root(owners)).expect("owners"), &pod())
    }

    #[test]
    fn all_fields_of_any_entry_must_match() {
        for (owner, is_owner) in [
            (json!({"object": {"namespace": "team", "name": "web-1"}}), true),
            (json!({"object": {"namespace": "team", "name": "web-2"}}), false),
            (json!({"object": {"uid": "u1"}}), true),
            (json!({"controller": {"kind": "ReplicaSet", "name": "web", "uid": ""}}), true),
            (json!({"controller": {"name": "web", "namespace": "other"}}), false),
            (json!({"labelSelector": {"matchLabels": {"app": "web"}}}), true),
            (json!({"labelSelector": {}}), true),
            (json!({"object": {"namespace": "other"}, "labelSelector": {}}), false),
        ] {
            assert_eq!(owned_by(&json!([owner])), is_owner, "{owner}");
            assert!(owned_by(&json!([owner, {"labelSelector": {}}])));
        }
    }

    #[test]
    fn an_entry_without_anything_is_an_error_that_names_it() {
        let owners = json!([{"labelSelector": {}}, {}]);
        let error = read(&Field::root(&owners)).expect_err("an empty entry");
        assert_eq!(error.to_string(), "[1]: must have object, controller or labelSelector ({})");
    }
}
