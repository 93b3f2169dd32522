//! Admission of claims: the default StorageClass.

use serde_json::Value;

use super::{CLAIMS, CLASSES, class_of};
use crate::api::Api;
use crate::kinds::meta;
use crate::kinds::registry::Kind;

const IS_DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// Returns whether a class is the default for claims without one.
pub(crate) fn is_default(class: &Value) -> bool {
    IS_DEFAULT.iter().any(|key| class["metadata"]["annotations"][*key] == "true")
}

/// Sets the default class on a new claim without one. Of several, the youngest counts, then the first by name.
pub(crate) fn admit(api: &Api, kind: &Kind, object: &mut Value) {
    if &*kind.storage != CLAIMS || class_of(object).is_some() || !object["spec"].is_object() {
        return;
    }
    let classes = api.store.list(CLASSES, "").items.into_iter().map(|class| class.value()).filter(is_default);
    let age = |class: &Value| meta::text(class, "creationTimestamp").to_owned();
    if let Some(class) = classes.reduce(|best, next| if age(&next) > age(&best) { next } else { best }) {
        object["spec"]["storageClassName"] = class["metadata"]["name"].clone();
    }
}
