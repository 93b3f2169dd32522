//! Discovery of groups, versions and resources, in the plain and the aggregated form.

use serde_json::{Value, json};

use crate::kinds::meta;
use crate::kinds::registry::{Kind, Registry, Subresource};

/// Returns the body of `/version`: the API level that the sandbox follows.
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35", "gitVersion": "v1.36.0+sandbox", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "sandbox/any"
    })
}

/// Returns the body of `/api`.
pub(crate) fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    })
}

/// Returns the body of `/apis`.
pub(crate) fn groups(kinds: &Registry) -> Value {
    let groups: Vec<Value> = group_names(kinds).into_iter().map(|name| group(kinds, name)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Returns the body of `/apis/{group}`, if the group is served.
pub(crate) fn one_group(kinds: &Registry, name: &str) -> Option<Value> {
    if !group_names(kinds).contains(&name) {
        return None;
    }
    let mut body = group(kinds, name);
    body["kind"] = "APIGroup".into();
    body["apiVersion"] = "v1".into();
    Some(body)
}

fn group(kinds: &Registry, name: &str) -> Value {
    let versions: Vec<Value> = versions(kinds, name)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions[0]})
}

fn group_names(kinds: &Registry) -> Vec<&str> {
    distinct(kinds.iter().map(|kind| &*kind.group).filter(|group| !group.is_empty()))
}

/// Returns the versions of a group, the preferred one first.
fn versions<'a>(kinds: &'a Registry, group: &str) -> Vec<&'a str> {
    let mut versions = distinct(kinds.iter().filter(|k| k.group == group).map(|kind| &*kind.version));
    versions.sort_by_key(|version| std::cmp::Reverse(rank(version)));
    versions
}

fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// Orders versions: v2 > v1 > v1beta1 > v1alpha1.
fn rank(version: &str) -> (u8, u32, u32) {
    let number = |text: &str| text.parse::<u32>().unwrap_or_default();
    let body = version.strip_prefix('v').unwrap_or(version);
    for (level, word) in [(1, "beta"), (0, "alpha")] {
        if let Some((major, minor)) = body.split_once(word) {
            return (level, number(major), number(minor));
        }
    }
    (2, number(body), 0)
}

fn kinds_of<'a>(kinds: &'a Registry, group: &'a str, version: &'a str) -> Vec<&'a Kind> {
    let mut found: Vec<&Kind> =
        kinds.iter().map(AsRef::as_ref).filter(|k| k.group == group && k.version == version).collect();
    found.sort_by(|a, b| a.plural.cmp(&b.plural));
    found
}

/// Returns the body of `/api/v1` or `/apis/{group}/{version}`, if the version is served.
pub(crate) fn resources(kinds: &Registry, group: &str, version: &str) -> Option<Value> {
    if !kinds.serves(group, version) {
        return None;
    }
    let mut list = Vec::new();
    for kind in kinds_of(kinds, group, version) {
        let mut entry = json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind,
            "verbs": kind.verbs, "storageVersionHash": storage_hash(kind),
        });
        names(kind, &mut entry);
        list.push(entry);
        for sub in &kind.subresources {
            let mut entry = json!({
                "name": format!("{}/{}", kind.plural, sub.name), "singularName": "", "namespaced": kind.namespaced,
                "kind": sub_kind(kind, sub), "verbs": sub.verbs,
            });
            if let Some((group, version)) = sub.body {
                entry["group"] = group.into();
                entry["version"] = version.into();
            }
            list.push(entry);
        }
    }
    let mut body = json!({"kind": "APIResourceList", "resources": list});
    // The list of the core group has no apiVersion, unlike the others.
    if group.is_empty() {
        body["groupVersion"] = version.into();
    } else {
        body["apiVersion"] = "v1".into();
        body["groupVersion"] = format!("{group}/{version}").into();
    }
    Some(body)
}

fn names(kind: &Kind, entry: &mut Value) {
    if !kind.short_names.is_empty() {
        entry["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        entry["categories"] = json!(kind.categories);
    }
}

fn sub_kind<'a>(kind: &'a Kind, sub: &'a Subresource) -> &'a str {
    if sub.kind.is_empty() { &kind.kind } else { sub.kind }
}

/// Returns the storage version hash, an opaque string. Here it is a hash of the table's name.
fn storage_hash(kind: &Kind) -> String {
    format!("{:.11}=", format!("{:016x}", meta::hash(&kind.storage)))
}

/// Returns the aggregated form of `/api` or `/apis`.
pub(crate) fn aggregated(kinds: &Registry, is_core: bool, version: &str) -> Value {
    let names = if is_core { vec![""] } else { group_names(kinds) };
    let items: Vec<Value> = names
        .iter()
        .map(|group| {
            let metadata = if is_core { json!({}) } else { json!({"name": group}) };
            let versions: Vec<Value> = versions(kinds, group)
                .into_iter()
                .map(|version| {
                    let resources: Vec<Value> =
                        kinds_of(kinds, group, version).into_iter().map(aggregated_resource).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {},
        "items": items
    })
}

fn aggregated_resource(kind: &Kind) -> Value {
    let body =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    // An empty group and version stand for those of the list.
    let mut entry = json!({
        "resource": kind.plural, "responseKind": body("", "", &kind.kind), "singularResource": kind.singular,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" }, "verbs": kind.verbs,
    });
    names(kind, &mut entry);
    if !kind.subresources.is_empty() {
        let subresources: Vec<Value> = kind
            .subresources
            .iter()
            .map(|sub| {
                let (group, version) = sub.body.unwrap_or_default();
                let response = body(group, version, sub_kind(kind, sub));
                json!({"subresource": sub.name, "responseKind": response, "verbs": sub.verbs})
            })
            .collect();
        entry["subresources"] = subresources.into();
    }
    entry
}
