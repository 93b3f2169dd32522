//! Rows of the catalogue for webhook configurations and admission policies, with their defaults and their validation.
//!
//! `crate::webhooks` calls the webhooks that these objects register.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1 as admission;
use serde_json::{Value, json};

use crate::errors::FieldError;
use crate::fields::{list, text};
use crate::kinds::catalog::{BASE, Row, STATUS};
use crate::kinds::decode;
use crate::kinds::defaults::fill;
use crate::kinds::printers::{AGE, Column, NAME, count};
use crate::kinds::validate::{among, among_if_set, required_text};

pub(crate) const GROUP: &str = "admissionregistration.k8s.io";
pub(crate) const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
pub(crate) const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

const COLUMNS: &[Column] = &[NAME, count("Webhooks", "/webhooks", "Number of webhooks."), AGE];
const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];

pub(crate) const ROWS: &[Row] = &[
    Row {
        group: GROUP,
        kind: "MutatingWebhookConfiguration",
        plural: "mutatingwebhookconfigurations",
        categories: &["api-extensions"],
        namespaced: false,
        generation: true,
        decode: Some(decode::typed::<admission::MutatingWebhookConfiguration>),
        defaults: mutating_defaults,
        validate: mutating,
        columns: COLUMNS,
        ..BASE
    },
    Row {
        group: GROUP,
        kind: "ValidatingWebhookConfiguration",
        plural: "validatingwebhookconfigurations",
        categories: &["api-extensions"],
        namespaced: false,
        generation: true,
        decode: Some(decode::typed::<admission::ValidatingWebhookConfiguration>),
        defaults: validating_defaults,
        validate: validating,
        columns: COLUMNS,
        ..BASE
    },
    // Policies are stored and served. Nothing evaluates them: the sandbox has no CEL.
    Row {
        group: GROUP,
        kind: "ValidatingAdmissionPolicy",
        plural: "validatingadmissionpolicies",
        categories: &["api-extensions"],
        namespaced: false,
        subresources: &[STATUS],
        generation: true,
        decode: Some(decode::typed::<admission::ValidatingAdmissionPolicy>),
        ..BASE
    },
    Row {
        group: GROUP,
        kind: "ValidatingAdmissionPolicyBinding",
        plural: "validatingadmissionpolicybindings",
        categories: &["api-extensions"],
        namespaced: false,
        generation: true,
        decode: Some(decode::typed::<admission::ValidatingAdmissionPolicyBinding>),
        ..BASE
    },
];

fn mutating_defaults(object: &mut Value) {
    validating_defaults(object);
    for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
        fill(webhook, json!({"reinvocationPolicy": "Never"}));
    }
}

fn validating_defaults(object: &mut Value) {
    let Some(webhooks) = object.get_mut("webhooks").and_then(Value::as_array_mut) else { return };
    for webhook in webhooks {
        fill(
            webhook,
            json!({
                "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
                "namespaceSelector": {}, "objectSelector": {}
            }),
        );
        if webhook["clientConfig"]["service"].is_object() {
            fill(&mut webhook["clientConfig"]["service"], json!({"port": 443}));
        }
        for rule in webhook.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten() {
            fill(rule, json!({"scope": "*"}));
        }
    }
}

fn mutating(object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = validating(object, None);
    for (index, webhook) in list(&object["webhooks"]).iter().enumerate() {
        let field = format!("webhooks[{index}].reinvocationPolicy");
        errors.extend(among_if_set(&webhook["reinvocationPolicy"], field, &["IfNeeded", "Never"]));
    }
    errors
}

fn validating(object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let webhooks = list(&object["webhooks"]);
    let mut errors = Vec::new();
    for (index, webhook) in webhooks.iter().enumerate() {
        let here = format!("webhooks[{index}]");
        errors.extend(self::webhook(webhook, &here));
        if webhooks.iter().take(index).any(|other| other["name"] == webhook["name"]) {
            errors.push(FieldError::duplicate(format!("{here}.name"), &webhook["name"]));
        }
    }
    errors
}

fn webhook(webhook: &Value, here: &str) -> Vec<FieldError> {
    let field = |name: &str| format!("{here}.{name}");
    let mut errors: Vec<FieldError> = required_text(&webhook["name"], field("name")).into_iter().collect();
    let name = text(&webhook["name"]);
    if !name.is_empty() && name.split('.').filter(|segment| !segment.is_empty()).count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(field("name"), &webhook["name"], why));
    }
    errors.extend(among(&webhook["sideEffects"], field("sideEffects"), &["None", "NoneOnDryRun"]));
    errors.extend(among_if_set(&webhook["failurePolicy"], field("failurePolicy"), &["Fail", "Ignore"]));
    errors.extend(among_if_set(&webhook["matchPolicy"], field("matchPolicy"), &["Equivalent", "Exact"]));
    if !list(&webhook["admissionReviewVersions"]).iter().any(|version| version == "v1") {
        let (versions, why) = (&webhook["admissionReviewVersions"], "must include at least one of v1");
        errors.push(FieldError::invalid(field("admissionReviewVersions"), versions, why));
    }
    if webhook["timeoutSeconds"].as_i64().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(field("timeoutSeconds"), &webhook["timeoutSeconds"], why));
    }
    if !list(&webhook["matchConditions"]).is_empty() {
        errors.push(FieldError::forbidden(field("matchConditions"), "the sandbox evaluates no CEL"));
    }
    errors.extend(client_config(&webhook["clientConfig"], &field("clientConfig")));
    for (index, rule) in list(&webhook["rules"]).iter().enumerate() {
        errors.extend(self::rule(rule, &format!("{here}.rules[{index}]")));
    }
    errors
}

fn client_config(config: &Value, here: &str) -> Vec<FieldError> {
    let (url, service) = (&config["url"], &config["service"]);
    if url.is_string() == service.is_object() {
        return vec![FieldError::required(here, "exactly one of url or service is required")];
    }
    let mut errors = Vec::new();
    if let Some(url_text) = url.as_str() {
        let why = match url_text.parse::<http::Uri>() {
            Err(_) => Some("url must be a valid URL"),
            Ok(uri) if uri.scheme_str() != Some("https") => Some("'https' is the only allowed URL scheme"),
            Ok(uri) if uri.authority().is_none() => Some("host must be specified"),
            Ok(uri) if uri.query().is_some() => Some("query parameters are not permitted in the URL"),
            Ok(_) => None,
        };
        errors.extend(why.map(|why| FieldError::invalid(format!("{here}.url"), url, why)));
    } else {
        for key in ["namespace", "name"] {
            errors.extend(required_text(&service[key], format!("{here}.service.{key}")));
        }
    }
    if let Err(error) = serde_json::from_value::<Option<ByteString>>(config["caBundle"].clone()) {
        errors.push(FieldError::wrong_type(
            format!("{here}.caBundle"),
            &config["caBundle"],
            &error.to_string(),
        ));
    }
    errors
}

fn rule(rule: &Value, here: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["operations", "apiGroups", "apiVersions", "resources"] {
        if list(&rule[key]).is_empty() {
            errors.push(FieldError::required(format!("{here}.{key}"), ""));
        }
    }
    for (index, operation) in list(&rule["operations"]).iter().enumerate() {
        errors.extend(among(operation, format!("{here}.operations[{index}]"), OPERATIONS));
    }
    errors.extend(among_if_set(&rule["scope"], format!("{here}.scope"), SCOPES));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: Value) -> Vec<String> {
        let mut object = json!({"webhooks": [{
            "name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1/x"},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
        }]});
        mutating_defaults(&mut object);
        json_patch::merge(&mut object["webhooks"][0], &change);
        mutating(&object, None).into_iter().map(|e| format!("{}: {}", e.field, e.message)).collect()
    }

    #[test]
    fn bad_configurations_are_refused_field_by_field() {
        assert_eq!(refused(json!({})), [""; 0]);
        for (change, expected) in [
            (json!({"name": "a.b"}), "webhooks[0].name: Invalid value: \"a.b\": should be a domain"),
            (json!({"sideEffects": "Some"}), "webhooks[0].sideEffects: Unsupported value: \"Some\""),
            (json!({"failurePolicy": "x"}), "webhooks[0].failurePolicy: Unsupported value: \"x\""),
            (json!({"reinvocationPolicy": "x"}), "webhooks[0].reinvocationPolicy: Unsupported"),
            (json!({"timeoutSeconds": 31}), "webhooks[0].timeoutSeconds: Invalid value: 31"),
            (json!({"admissionReviewVersions": ["v1beta1"]}), "webhooks[0].admissionReviewVersions: Invalid"),
            (json!({"clientConfig": {"url": null}}), "webhooks[0].clientConfig: Required value: exactly one"),
            (json!({"clientConfig": {"url": "http://a/"}}), "webhooks[0].clientConfig.url: Invalid value"),
            (json!({"clientConfig": {"caBundle": "%"}}), "webhooks[0].clientConfig.caBundle: Invalid value"),
            (json!({"rules": [{}]}), "webhooks[0].rules[0].operations: Required value"),
            (json!({"matchConditions": [{"name": "x"}]}), "webhooks[0].matchConditions: Forbidden"),
        ] {
            let errors = refused(change.clone());
            assert!(errors.first().is_some_and(|e| e.starts_with(expected)), "{change}: {errors:?}");
        }
    }
}
