//! What the sandbox knows about a kind of object, and the registry that finds kinds by path.
//!
//! A built-in kind is one row in `catalog.rs`; a custom kind is built from its definition by `crd.rs`. After
//! that nobody asks which of the two it is: rules hang on the fields of [`Kind`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::errors::FieldError;
use crate::kinds::schema::Schema;

/// A text that is a constant for built-in kinds and owned for custom ones.
pub(crate) type Text = Cow<'static, str>;

/// The verbs of an ordinary resource.
pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The verbs of a status subresource.
pub(crate) const STATUS_VERBS: &[&str] = &["get", "patch", "update"];

/// A path below an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subresource {
    /// The last segment of the path.
    pub name: &'static str,
    /// Group and version of the body, when they are not the resource's.
    pub body: Option<(&'static str, &'static str)>,
    /// Kind of the body, empty when it is the resource's.
    pub kind: &'static str,
    /// What can be done with it.
    pub verbs: &'static [&'static str],
}

/// A field that a field selector may name.
#[derive(Clone, Debug)]
pub(crate) struct Selectable {
    /// The name in selectors.
    pub label: Text,
    /// Where the value stands in the object, as a JSON pointer.
    pub pointer: Text,
    /// The value of an absent field.
    pub default: Text,
}

/// A column of `kubectl get`.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// The heading.
    pub name: Text,
    /// `string`, `integer`, `date`, …
    pub kind: Text,
    /// `name` for the first column.
    pub format: Text,
    /// What it shows.
    pub about: Text,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: i64,
}

/// Computes the cells of one object.
#[derive(Clone)]
pub(crate) enum Cells {
    /// A function of a built-in kind.
    Function(fn(&Value, Timestamp) -> Vec<Value>),
    /// Paths from `additionalPrinterColumns`.
    Paths(Vec<String>),
}

/// How the stored form differs from what the kind shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Stored as shown.
    Plain,
    /// Stored as a core/v1 Event, shown as an events.k8s.io/v1 Event.
    Event,
}

/// A typed reading of an object: takes out and names what it does not know, or says why it cannot be read.
pub(crate) type Decode = fn(&mut Value) -> Result<Vec<String>, String>;

/// Validation of an object; the second is the stored one when this is an update.
pub(crate) type Validate = fn(&Value, Option<&Value>) -> Vec<FieldError>;

/// Everything the server needs to know about one version of a kind.
#[derive(Clone)]
pub(crate) struct Kind {
    /// API group, empty for core.
    pub group: Text,
    /// API version.
    pub version: Text,
    /// The kind's name.
    pub kind: Text,
    /// The resource's name in paths.
    pub plural: Text,
    /// One of it.
    pub singular: Text,
    /// Abbreviations for people.
    pub short_names: Vec<Text>,
    /// Groups for people, such as `all`.
    pub categories: Vec<Text>,
    /// Whether objects stand in namespaces.
    pub namespaced: bool,
    /// The table in the store; kinds that are views of each other share one.
    pub storage: Text,
    /// What can be done with it.
    pub verbs: &'static [&'static str],
    /// The paths below an object.
    pub subresources: Vec<Subresource>,
    /// Whether `metadata.generation` counts changes of the spec.
    pub generation: bool,
    /// How it is shown.
    pub form: Form,
    /// The typed reading, if there is one.
    pub decode: Option<Decode>,
    /// Fills in what the client left out.
    pub defaults: fn(&mut Value),
    /// Checks an object.
    pub validate: Validate,
    /// What field selectors may name, after metadata.name and metadata.namespace.
    pub selectable: Vec<Selectable>,
    /// Columns of `kubectl get`.
    pub columns: Vec<Column>,
    /// Values of those columns.
    pub cells: Cells,
    /// The body of a bookmark beside its metadata.
    pub empty: Value,
    /// The schema, for a custom kind.
    pub schema: Option<Arc<Schema>>,
}

impl Kind {
    /// Returns `v1` or `group/version`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the kind of a list of it.
    pub(crate) fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// Says whether the kind came from a CustomResourceDefinition.
    pub(crate) fn is_custom(&self) -> bool {
        self.schema.is_some()
    }

    /// Returns the subresource of that name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Returns the position of a selectable field in an object's field values.
    pub(crate) fn field_position(&self, label: &str) -> Option<usize> {
        match label {
            "metadata.name" => Some(0),
            "metadata.namespace" => Some(1),
            _ => self.selectable.iter().position(|s| s.label == label).map(|at| at + 2),
        }
    }

    /// Reads an object's selectable values.
    pub(crate) fn field_values(&self, object: &Value) -> Box<[Box<str>]> {
        let text = |pointer: &str, default: &str| -> Box<str> {
            match object.pointer(pointer) {
                Some(Value::String(text)) => text.as_str().into(),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string().into(),
                _ => default.into(),
            }
        };
        let meta = [text("/metadata/name", ""), text("/metadata/namespace", "")];
        meta.into_iter().chain(self.selectable.iter().map(|s| text(&s.pointer, &s.default))).collect()
    }

    /// Returns the bytes that turn a stored body into an object with kind and apiVersion.
    pub(crate) fn prefix(&self) -> String {
        format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", self.kind, self.api_version())
    }
}

/// All kinds that are served at a moment. Replaced as a whole when a definition changes.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    kinds: BTreeMap<(Text, Text, Text), Arc<Kind>>,
    order: Vec<Arc<Kind>>,
}

impl Registry {
    /// Adds a kind, or replaces the one at its path.
    pub(crate) fn insert(&mut self, kind: Arc<Kind>) {
        self.order
            .retain(|k| (&k.group, &k.version, &k.plural) != (&kind.group, &kind.version, &kind.plural));
        self.order.push(kind.clone());
        self.kinds.insert((kind.group.clone(), kind.version.clone(), kind.plural.clone()), kind);
    }

    /// Puts the versions of a custom resource in the place of those before; clients that have a choice of groups
    /// go by the order.
    pub(crate) fn replace(&mut self, group: &str, plural: &str, kinds: Vec<Arc<Kind>>) {
        let is_old = |kind: &Arc<Kind>| kind.group == group && kind.plural == plural;
        let place = self.order.iter().position(is_old).unwrap_or(self.order.len());
        self.remove(group, plural);
        for (index, kind) in kinds.into_iter().enumerate() {
            self.order.insert(place + index, kind.clone());
            self.kinds.insert((kind.group.clone(), kind.version.clone(), kind.plural.clone()), kind);
        }
    }

    /// Takes away all versions of a custom resource.
    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        self.kinds.retain(|(g, _, p), _| g != group || p != plural);
        self.order.retain(|k| k.group != group || k.plural != plural);
    }

    /// Finds a kind by its path.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        let key =
            (Cow::Owned(group.to_owned()), Cow::Owned(version.to_owned()), Cow::Owned(plural.to_owned()));
        self.kinds.get(&key)
    }

    /// Finds a kind by the apiVersion and kind of an object.
    pub(crate) fn find_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.order.iter().find(|k| k.kind == kind && k.api_version() == api_version)
    }

    /// Returns the kind whose objects stand in a table as they are stored.
    pub(crate) fn find_storage(&self, storage: &str) -> Option<&Arc<Kind>> {
        self.order.iter().find(|k| k.storage == storage && k.form == Form::Plain)
    }

    /// Returns all kinds, in order of registration.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.order.iter()
    }

    /// Says whether any kind is served at that group and version.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.order.iter().any(|k| k.group == group && k.version == version)
    }
}
