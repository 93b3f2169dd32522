//! CustomResourceDefinitions: their defaults and validation, and the kinds that they define.
//!
//! Conversion between versions changes only the apiVersion (`strategy: None`).

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::Api;
use crate::clock::seconds;
use crate::errors::FieldError;
use crate::fields::{self, add, list};
use crate::kinds::catalog::{self, BASE, STATUS};
use crate::kinds::registry::{Cell, Column, Kind, Registry, Selectable, Text};
use crate::kinds::schema::Schema;
use crate::kinds::validate::among;
use crate::store::Key;

/// The annotation with which a definition in a protected group of the Kubernetes community links its approval.
const API_APPROVED: &str = "api-approved.kubernetes.io";

fn is_protected(group: &str) -> bool {
    [".k8s.io", ".kubernetes.io"].iter().any(|suffix| group.ends_with(suffix))
}

/// Sets the defaults of a definition.
pub(crate) fn defaults(object: &mut Value) {
    let kind = fields::text(&object["spec"]["names"]["kind"]).to_owned();
    let spec = &mut object["spec"];
    add(&mut spec["names"], "singular", kind.to_lowercase().into());
    add(&mut spec["names"], "listKind", format!("{kind}List").into());
    add(spec, "conversion", json!({"strategy": "None"}));
    let stored = list(&spec["versions"]).iter().find(|v| v["storage"] == true);
    let stored = stored.map(|v| v["name"].clone()).unwrap_or_default();
    add(object, "status", json!({}));
    let status = &mut object["status"];
    add(status, "conditions", Value::Null);
    add(status, "acceptedNames", json!({"plural": "", "kind": ""}));
    add(status, "storedVersions", json!([stored]));
}

/// Returns the group and the plural name of a definition's resource.
pub(crate) fn resource(definition: &Value) -> (&str, &str) {
    let spec = &definition["spec"];
    (fields::text(&spec["group"]), fields::text(&spec["names"]["plural"]))
}

/// Validates a definition.
pub(crate) fn validate(object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    let (group, plural) = resource(object);
    if object["metadata"]["name"] != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &object["metadata"]["name"], why));
    }
    let approval = fields::text(&object["metadata"]["annotations"][API_APPROVED]);
    let is_approval = approval.starts_with("https://") || approval.starts_with("unapproved");
    if is_protected(group) && !is_approval {
        let field = format!("metadata.annotations[{API_APPROVED}]");
        errors.push(if approval.is_empty() {
            FieldError::required(field, "protected groups must have approval annotation")
        } else {
            let why = "protected groups must have approval annotation with a URL or \"unapproved\"";
            FieldError::invalid(field, &approval.into(), why)
        });
    }
    errors.extend(among(&spec["scope"], "spec.scope", &["Cluster", "Namespaced"]));
    let versions = list(&spec["versions"]);
    if versions.iter().filter(|v| v["storage"] == true).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", &spec["versions"], why));
    }
    for (index, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(field, "schemas are required"));
        }
    }
    errors
}

/// Returns the status of a definition with accepted names.
pub(crate) fn established(object: &Value, now: &str) -> Value {
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message});
    let mut names = object["spec"]["names"].clone();
    if let Some(fields) = names.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    json!({
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "acceptedNames": names,
        "storedVersions": object["status"]["storedVersions"],
    })
}

/// Returns the kinds of a definition, one per served version.
pub(crate) fn kinds(object: &Value) -> Vec<Arc<Kind>> {
    let versions = list(&object["spec"]["versions"]).iter();
    versions.filter(|v| v["served"] == true).map(|v| Arc::new(kind(&object["spec"], v))).collect()
}

impl Api {
    /// Serves the kinds of a CustomResourceDefinition and sets its status.
    pub(crate) fn serve_definition(&self, kind: &Kind, key: &Key) {
        let _one_at_a_time = self.definitions.lock();
        let Some(current) = self.store.get(&kind.storage, key) else { return };
        let definition = current.value();
        let mut registry = Registry::clone(&self.kinds.load());
        let (group, plural) = resource(&definition);
        registry.replace(group, plural, kinds(&definition));
        self.kinds.store(Arc::new(registry));
        if definition["status"]["conditions"].is_null() {
            let mut new = definition.clone();
            new["status"] = established(&definition, &seconds(self.clock.now()));
            // If the definition has changed meanwhile, that write serves it again.
            self.store.put(kind, Some(current.revision), new);
        }
    }

    /// Stops serving the kinds of a CustomResourceDefinition.
    pub(crate) fn withdraw_definition(&self, definition: &Value) {
        let _one_at_a_time = self.definitions.lock();
        let mut registry = Registry::clone(&self.kinds.load());
        let (group, plural) = resource(definition);
        registry.remove(group, plural);
        self.kinds.store(Arc::new(registry));
    }
}

fn text(value: &Value) -> Text {
    fields::text(value).to_owned().into()
}

fn texts(value: &Value) -> Vec<Text> {
    list(value).iter().map(text).collect()
}

fn kind(spec: &Value, version: &Value) -> Kind {
    let names = &spec["names"];
    let has_status = version["subresources"]["status"].is_object();
    Kind {
        group: text(&spec["group"]),
        version: text(&version["name"]),
        kind: text(&names["kind"]),
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        storage: format!("{}.{}", text(&names["plural"]), text(&spec["group"])).into(),
        subresources: if has_status { vec![STATUS] } else { Vec::new() },
        generation: true,
        selectable: selectable(version),
        columns: columns(version),
        schema: Some(Arc::new(Schema::new(version["schema"].get("openAPIV3Schema")))),
        ..catalog::kind(&BASE)
    }
}

fn selectable(version: &Value) -> Vec<Selectable> {
    let fields = list(&version["selectableFields"]).iter();
    fields
        .filter_map(|field| field["jsonPath"].as_str())
        .map(|path| Selectable {
            label: path.trim_start_matches('.').to_owned().into(),
            path: path.split('.').skip(1).map(|name| name.to_owned().into()).collect(),
            default: "".into(),
        })
        .collect()
}

fn columns(version: &Value) -> Vec<Column> {
    let name = json!({
        "name": "Name", "type": "string", "format": "name", "description": "Name of the object.",
        "jsonPath": ".metadata.name"
    });
    let age = json!({
        "name": "Age", "type": "date", "description": "Time since creation.", "jsonPath": ".metadata.creationTimestamp"
    });
    let own = list(&version["additionalPrinterColumns"]);
    let rest = if own.is_empty() { std::slice::from_ref(&age) } else { own };
    std::iter::once(&name).chain(rest).map(column).collect()
}

fn column(column: &Value) -> Column {
    Column {
        name: text(&column["name"]),
        kind: text(&column["type"]),
        format: text(&column["format"]),
        about: text(&column["description"]),
        priority: column["priority"].as_i64().unwrap_or_default(),
        cell: Cell::Path(fields::text(&column["jsonPath"]).to_owned()),
    }
}
