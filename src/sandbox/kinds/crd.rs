//! CustomResourceDefinitions: their defaults and validation, and the kinds that they define.
//!
//! Conversion between versions changes only the apiVersion (`strategy: None`).

use std::sync::Arc;

use serde_json::{Value, json};

use crate::errors::FieldError;
use crate::kinds::registry::{
    ALL_VERBS, Cells, Column, Form, Kind, STATUS_VERBS, Selectable, Subresource, Text,
};
use crate::kinds::schema::Schema;

/// The annotation with which a definition in a protected group of the Kubernetes community links its approval.
const API_APPROVED: &str = "api-approved.kubernetes.io";

fn is_protected(group: &str) -> bool {
    [".k8s.io", ".kubernetes.io"].iter().any(|suffix| group.ends_with(suffix))
}

/// Sets the defaults of a definition.
pub(crate) fn defaults(object: &mut Value) {
    let kind = object["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    let spec = &mut object["spec"];
    set(&mut spec["names"], "singular", kind.to_lowercase().into());
    set(&mut spec["names"], "listKind", format!("{kind}List").into());
    set(spec, "conversion", json!({"strategy": "None"}));
    let stored = spec["versions"].as_array().into_iter().flatten().find(|v| v["storage"] == true);
    let stored = stored.map(|v| v["name"].clone()).unwrap_or_default();
    set(object, "status", json!({}));
    let status = &mut object["status"];
    set(status, "conditions", Value::Null);
    set(status, "acceptedNames", json!({"plural": "", "kind": ""}));
    set(status, "storedVersions", json!([stored]));
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.entry(key).or_insert(value);
    }
}

/// Validates a definition.
pub(crate) fn validate(object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let wanted = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    if object["metadata"]["name"] != wanted.as_str() {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &object["metadata"]["name"], why));
    }
    let group = spec["group"].as_str().unwrap_or_default();
    let approval = object["metadata"]["annotations"][API_APPROVED].as_str().unwrap_or_default();
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
    if !matches!(spec["scope"].as_str(), Some("Namespaced" | "Cluster")) {
        errors.push(FieldError::unsupported("spec.scope", &spec["scope"], &["Cluster", "Namespaced"]));
    }
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
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
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    versions.filter(|v| v["served"] == true).map(|v| Arc::new(kind(&object["spec"], v))).collect()
}

fn text(value: &Value) -> Text {
    value.as_str().unwrap_or_default().to_owned().into()
}

fn texts(value: &Value) -> Vec<Text> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn kind(spec: &Value, version: &Value) -> Kind {
    let names = &spec["names"];
    let has_status = version["subresources"]["status"].is_object();
    let status = Subresource { name: "status", body: None, kind: "", verbs: STATUS_VERBS };
    let (columns, paths) = columns(version);
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
        verbs: ALL_VERBS,
        subresources: if has_status { vec![status] } else { Vec::new() },
        generation: true,
        form: Form::Plain,
        decode: None,
        defaults: crate::kinds::defaults::nothing,
        validate: crate::kinds::validate::nothing,
        selectable: selectable(version),
        columns,
        cells: Cells::Paths(paths),
        empty: json!({}),
        schema: Some(Arc::new(Schema::new(version["schema"].get("openAPIV3Schema")))),
    }
}

fn selectable(version: &Value) -> Vec<Selectable> {
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    fields
        .filter_map(|field| field["jsonPath"].as_str())
        .map(|path| Selectable {
            label: path.trim_start_matches('.').to_owned().into(),
            pointer: path.replace('.', "/").into(),
            default: "".into(),
        })
        .collect()
}

fn columns(version: &Value) -> (Vec<Column>, Vec<String>) {
    let name = Column {
        name: "Name".into(),
        kind: "string".into(),
        format: "name".into(),
        about: "Name of the object.".into(),
        priority: 0,
    };
    let (mut columns, mut paths) = (vec![name], vec![".metadata.name".to_owned()]);
    for column in version["additionalPrinterColumns"].as_array().into_iter().flatten() {
        columns.push(Column {
            name: text(&column["name"]),
            kind: text(&column["type"]),
            format: text(&column["format"]),
            about: text(&column["description"]),
            priority: column["priority"].as_i64().unwrap_or_default(),
        });
        paths.push(text(&column["jsonPath"]).into_owned());
    }
    if columns.len() == 1 {
        columns.push(Column {
            name: "Age".into(),
            kind: "date".into(),
            format: "".into(),
            about: "Time since creation.".into(),
            priority: 0,
        });
        paths.push(".metadata.creationTimestamp".to_owned());
    }
    (columns, paths)
}
