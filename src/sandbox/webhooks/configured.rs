//! Webhooks as the webhook configurations state them.

use std::time::Duration;

use serde_json::Value;

use crate::fields::{list, text};
use crate::selectors::LabelSelector;
use crate::store::Store;

/// One webhook of a configuration.
pub(super) struct Webhook {
    pub(super) name: String,
    pub(super) rules: Vec<Rule>,
    pub(super) namespaces: LabelSelector,
    pub(super) objects: LabelSelector,
    /// Whether rules also match the resource's other versions and groups.
    pub(super) matches_equivalents: bool,
    pub(super) ignores_failures: bool,
    pub(super) timeout: Duration,
    pub(super) may_be_reinvoked: bool,
    pub(super) client_config: Value,
}

/// Operations on resources. `*` stands for any.
pub(super) struct Rule {
    pub(super) operations: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) versions: Vec<String>,
    /// Plural names, with the subresource behind a slash.
    pub(super) resources: Vec<String>,
    /// `*`, `Cluster` or `Namespaced`.
    pub(super) scope: String,
}

/// Returns the webhooks of all configurations in a table, in the order in which they are called.
pub(super) fn read(store: &Store, table: &str) -> Vec<Webhook> {
    if store.len(table) == 0 {
        return Vec::new();
    }
    let configurations = store.list(table, "").items;
    let webhooks = configurations.iter().flat_map(|configuration| {
        let value = configuration.value();
        list(&value["webhooks"]).iter().map(webhook).collect::<Vec<_>>()
    });
    webhooks.collect()
}

/// Reads a webhook that was defaulted and validated.
pub(super) fn webhook(webhook: &Value) -> Webhook {
    let selector = |key: &str| LabelSelector::from_object(&webhook[key]).unwrap_or_default();
    Webhook {
        name: text(&webhook["name"]).to_owned(),
        rules: list(&webhook["rules"]).iter().map(rule).collect(),
        namespaces: selector("namespaceSelector"),
        objects: selector("objectSelector"),
        matches_equivalents: webhook["matchPolicy"] != "Exact",
        ignores_failures: webhook["failurePolicy"] == "Ignore",
        timeout: Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(10)),
        may_be_reinvoked: webhook["reinvocationPolicy"] == "IfNeeded",
        client_config: webhook["clientConfig"].clone(),
    }
}

fn rule(rule: &Value) -> Rule {
    let texts = |key: &str| list(&rule[key]).iter().map(|item| text(item).to_owned()).collect();
    Rule {
        operations: texts("operations"),
        groups: texts("apiGroups"),
        versions: texts("apiVersions"),
        resources: texts("resources"),
        scope: text(&rule["scope"]).to_owned(),
    }
}
