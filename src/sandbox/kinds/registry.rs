//! Kinds of objects, and the registry that finds a kind by path.
//!
//! A built-in kind is one row in `catalog.rs`; a custom kind is built from its definition by `crd.rs`. Nothing else
//! depends on which of the two it is: all rules are fields of [`Kind`].

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::errors::FieldError;
use crate::kinds::schema::Schema;
use crate::kinds::{meta, printers};

/// A string that is static for built-in kinds and owned for custom ones.
pub(crate) type Text = Cow<'static, str>;

pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

pub(crate) const STATUS_VERBS: &[&str] = &["get", "patch", "update"];

/// A subresource, served at a path below an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subresource {
    /// The last segment of the path.
    pub name: &'static str,
    /// Group and version of the body, if they differ from the resource's.
    pub body: Option<(&'static str, &'static str)>,
    /// Kind of the body, empty if it is the resource's.
    pub kind: &'static str,
    pub verbs: &'static [&'static str],
}

/// A field that field selectors can use.
#[derive(Clone, Debug)]
pub(crate) struct Selectable {
    /// The name of the field in selectors.
    pub label: Text,
    /// Names of the fields on the way to the value.
    pub path: Vec<Text>,
    /// The value if the field is absent.
    pub default: Text,
}

/// A column of `kubectl get`.
#[derive(Clone)]
pub(crate) struct Column {
    pub name: Text,
    /// The type: `string`, `integer`, `date`, …
    pub kind: Text,
    /// The format: `name` for the first column, otherwise empty.
    pub format: Text,
    pub about: Text,
    /// 0 if the column is always shown, 1 if only with `-o wide`.
    pub priority: i64,
    /// How the cell of an object is computed.
    pub cell: Cell,
}

/// Computes the cell of one object.
#[derive(Clone)]
pub(crate) enum Cell {
    /// The rule of a built-in kind.
    BuiltIn(&'static printers::Column),
    /// The JSON path of a column in `additionalPrinterColumns` of a custom kind.
    Path(String),
}

/// How the served form of an object relates to the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The served form is the stored one.
    Plain,
    /// Stored as a core/v1 Event, served as an events.k8s.io/v1 Event.
    Event,
}

/// Decodes an object into its type: removes unknown fields and returns their paths, or why decoding fails.
pub(crate) type Decode = fn(&mut Value) -> Result<Vec<String>, String>;

/// Validates an object; the second argument is the stored object if this is an update.
pub(crate) type Validate = fn(&Value, Option<&Value>) -> Vec<FieldError>;

/// One version of a kind, with its rules.
#[derive(Clone)]
pub(crate) struct Kind {
    /// API group, empty for the core group.
    pub group: Text,
    pub version: Text,
    pub kind: Text,
    /// The resource's name in paths.
    pub plural: Text,
    /// The singular name, which kubectl accepts.
    pub singular: Text,
    /// Short names, such as `po`.
    pub short_names: Vec<Text>,
    /// Categories, such as `all`.
    pub categories: Vec<Text>,
    pub namespaced: bool,
    /// The table in the store. Kinds that are views of the same objects share one.
    pub storage: Text,
    pub verbs: &'static [&'static str],
    pub subresources: Vec<Subresource>,
    /// Whether `metadata.generation` counts changes of the spec.
    pub generation: bool,
    /// Whether the served form differs from the stored one.
    pub form: Form,
    /// Decodes an object into its Kubernetes type, if there is one.
    pub decode: Option<Decode>,
    pub defaults: fn(&mut Value),
    pub validate: Validate,
    /// Fields that field selectors can use, after `metadata.name` and `metadata.namespace`.
    pub selectable: Vec<Selectable>,
    pub columns: Vec<Column>,
    /// The object in a bookmark, apart from its metadata.
    pub empty: Value,
    /// The schema of a custom kind.
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

    /// Returns whether the kind comes from a CustomResourceDefinition.
    pub(crate) fn is_custom(&self) -> bool {
        self.schema.is_some()
    }

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

    /// Returns the values of an object's selectable fields.
    pub(crate) fn field_values(&self, object: &Value) -> Box<[Box<str>]> {
        let meta = ["name", "namespace"].map(|field| meta::text(object, field).into());
        let text = |field: &Selectable| -> Box<str> {
            match field.path.iter().try_fold(object, |value, name| value.get(&**name)) {
                Some(Value::String(text)) => text.as_str().into(),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string().into(),
                _ => (*field.default).into(),
            }
        };
        meta.into_iter().chain(self.selectable.iter().map(text)).collect()
    }

    /// Returns an object with its kind and apiVersion.
    pub(crate) fn typed(&self, mut object: Value) -> Value {
        object["kind"] = json!(self.kind);
        object["apiVersion"] = self.api_version().into();
        object
    }

    /// Returns the bytes that, put in place of a stored body's `{`, add kind and apiVersion.
    pub(crate) fn prefix(&self) -> String {
        format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", self.kind, self.api_version())
    }
}

/// All kinds that are currently served, in the order of registration. It is replaced as a whole when a definition
/// changes.
#[derive(Clone, Default)]
pub(crate) struct Registry(Vec<Arc<Kind>>);

impl Registry {
    pub(crate) fn insert(&mut self, kind: Arc<Kind>) {
        self.0.push(kind);
    }

    /// Replaces the versions of a custom resource and keeps their place in the order, by which clients choose between
    /// groups.
    pub(crate) fn replace(&mut self, group: &str, plural: &str, kinds: Vec<Arc<Kind>>) {
        let is_old = |kind: &Arc<Kind>| kind.group == group && kind.plural == plural;
        let place = self.0.iter().position(is_old).unwrap_or(self.0.len());
        self.remove(group, plural);
        self.0.splice(place..place, kinds);
    }

    /// Removes all versions of a custom resource.
    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        self.0.retain(|k| k.group != group || k.plural != plural);
    }

    /// Returns the kind at a path.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.0.iter().find(|k| k.plural == plural && k.group == group && k.version == version)
    }

    /// Returns the kind with an object's apiVersion and kind.
    pub(crate) fn find_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.0.iter().find(|k| k.kind == kind && k.api_version() == api_version)
    }

    /// Returns the kind that serves a table's objects in their stored form.
    pub(crate) fn find_storage(&self, storage: &str) -> Option<&Arc<Kind>> {
        self.0.iter().find(|k| k.storage == storage && k.form == Form::Plain)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.0.iter()
    }

    /// Returns whether any kind is served in a group and version.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.0.iter().any(|k| k.group == group && k.version == version)
    }
}
