//! Whether a webhook is asked about a write, and as which resource.
//!
//! The rules and the selectors must both match. Configurations of webhooks are never reviewed by webhooks, so that a
//! broken one can be repaired.

use std::sync::Arc;

use serde_json::Value;

use super::Write;
use super::configured::{Rule, Webhook};
use crate::api::Api;
use crate::kinds::meta;
use crate::kinds::registry::{Form, Kind};
use crate::kinds::webhooks::GROUP;
use crate::store::Key;

impl Api {
    /// Returns the kind as which a webhook is asked about a write, or `None` if it is not asked. It is another version or
    /// group of the written kind if only that matches the webhook's rules.
    pub(super) fn asked_as(
        &self,
        webhook: &Webhook,
        write: &Write<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Option<Arc<Kind>> {
        if write.kind.group == GROUP {
            return None;
        }
        let kinds = self.kinds.load();
        let matches = |kind: &Kind| webhook.rules.iter().any(|rule| rule.matches(kind, write));
        let own = kinds.find(&write.kind.group, &write.kind.version, &write.kind.plural)?;
        let kind = if matches(own) {
            own
        } else {
            // Kinds in another form would have to be converted, which the sandbox does for versions of custom kinds alone.
            let is_equivalent = |kind: &Kind| {
                kind.storage == own.storage && kind.form == Form::Plain && own.form == Form::Plain
            };
            kinds.iter().find(|kind| webhook.matches_equivalents && is_equivalent(kind) && matches(kind))?
        };
        let is_selected = |object: &Value| webhook.objects.matches(&meta::labels(object));
        let are_objects_selected =
            webhook.objects.is_empty() || object.is_some_and(is_selected) || old.is_some_and(is_selected);
        let is_asked = are_objects_selected && self.is_namespace_selected(webhook, write, object.or(old));
        is_asked.then(|| kind.clone())
    }

    fn is_namespace_selected(&self, webhook: &Webhook, write: &Write<'_>, object: Option<&Value>) -> bool {
        if webhook.namespaces.is_empty() {
            return true;
        }
        if &*write.kind.storage == "namespaces" {
            return object.is_some_and(|namespace| webhook.namespaces.matches(&meta::labels(namespace)));
        }
        let key: Key = ("".into(), write.namespace.into());
        // Cluster-scoped objects are in every selection. Objects of an unknown namespace are refused later.
        let namespace = self.store.get("namespaces", &key);
        write.namespace.is_empty() || namespace.is_some_and(|found| webhook.namespaces.matches(&found.labels))
    }
}

impl Rule {
    fn matches(&self, kind: &Kind, write: &Write<'_>) -> bool {
        let is_any = |all: &[String], wanted: &str| all.iter().any(|one| one == "*" || one == wanted);
        let is_namespaced = !write.namespace.is_empty() && &*kind.storage != "namespaces";
        let is_in_scope = match self.scope.as_str() {
            "Namespaced" => is_namespaced,
            "Cluster" => !is_namespaced,
            _ => true,
        };
        is_in_scope
            && is_any(&self.operations, write.operation.name())
            && is_any(&self.groups, &kind.group)
            && is_any(&self.versions, &kind.version)
            && self.resources.iter().any(|resource| matches(resource, &kind.plural, write.subresource))
    }
}

/// Returns whether a rule's resource, such as `pods`, `*/status` or `*`, is a resource and its subresource.
fn matches(rule: &str, plural: &str, subresource: &str) -> bool {
    let (resource, rest) = rule.split_once('/').unwrap_or((rule, ""));
    (resource == "*" || resource == plural) && (rest == subresource || rest == "*")
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn resources_and_subresources_match_as_documented() {
        for (rule, resource, subresource, expected) in [
            ("pods", "pods", "", true),
            ("pods", "pods", "status", false),
            ("pods/status", "pods", "status", true),
            ("pods/status", "pods", "", false),
            ("pods/*", "pods", "", true),
            ("pods/*", "pods", "binding", true),
            ("*", "nodes", "", true),
            ("*", "nodes", "status", false),
            ("*/status", "nodes", "status", true),
            ("*/status", "nodes", "", false),
            ("*/*", "nodes", "status", true),
            ("*/*", "nodes", "", true),
            ("nodes", "pods", "", false),
        ] {
            assert_eq!(matches(rule, resource, subresource), expected, "{rule} {resource}/{subresource}");
        }
    }
}
