//! What the scheduler must be allowed at the API server, as rules of a ClusterRole.
//!
//! Most of it follows from the registry of kinds; the rest is written without being watched. The roles in `deploy/` are
//! generated from here, and `tests/kubernetes/rights.rs` compares them with the calls that are made.

use std::collections::{BTreeMap, BTreeSet};

use pellucid_framework::Controller;
use pellucid_model::CustomKindRef;

use crate::kinds::resources;

/// A rule of a role: these verbs on these resources of one API group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Resources and subresources, such as `pods/status`, sorted.
    pub resources: Vec<String>,
    /// Verbs, sorted.
    pub verbs: Vec<&'static str>,
}

/// What is written without being watched: events, and the questions who the users of the REST API are and what they may.
const WRITTEN: [(&str, &str, &[&str]); 3] = [
    ("authentication.k8s.io", "tokenreviews", &["create"]),
    ("authorization.k8s.io", "subjectaccessreviews", &["create"]),
    ("events.k8s.io", "events", &["create", "patch"]),
];

/// Returns the fewest rules that allow the calls in all namespaces, sorted. `custom` are the kinds that plugins bring.
pub fn cluster_rules(custom: &[CustomKindRef]) -> Vec<Rule> {
    let mut verbs: BTreeMap<(&'static str, String), BTreeSet<&'static str>> = BTreeMap::new();
    for (_, kind) in resources(custom) {
        for (resource, of_kind) in kind.rights() {
            verbs.entry((kind.group, resource)).or_default().extend(of_kind);
        }
    }
    for (group, resource, written) in WRITTEN {
        verbs.entry((group, resource.to_owned())).or_default().extend(written);
    }
    merged(verbs)
}

/// Returns the fewest rules that allow what controllers write besides, sorted.
pub fn controller_rules(controllers: &[&'static Controller]) -> Vec<Rule> {
    let mut verbs: BTreeMap<(&'static str, String), BTreeSet<&'static str>> = BTreeMap::new();
    for right in controllers.iter().flat_map(|controller| controller.rights) {
        verbs.entry((right.group, right.resource.to_owned())).or_default().extend(right.verbs);
    }
    merged(verbs)
}

/// Joins resources of one group with equal verbs.
fn merged(verbs: BTreeMap<(&'static str, String), BTreeSet<&'static str>>) -> Vec<Rule> {
    let mut rules: BTreeMap<(&'static str, Vec<&'static str>), Vec<String>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs {
        rules.entry((group, verbs.into_iter().collect())).or_default().push(resource);
    }
    let mut rules: Vec<Rule> =
        rules.into_iter().map(|((group, verbs), resources)| Rule { group, resources, verbs }).collect();
    rules.sort();
    rules
}
