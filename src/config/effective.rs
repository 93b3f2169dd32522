//! The configuration in force as a document of the public form, for `/configz`.
//!
//! Every plugin stands explicitly at its points and `multiPoint` is empty, so reading the document again
//! gives the same configuration whatever the defaults of that day are.

use serde_json::{Map, Value, json};

use super::file::{API_VERSION, File, KIND, MULTI_POINT};
use super::{DEFAULT_BURST, DEFAULT_PARALLELISM, DEFAULT_QPS, INITIAL_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS};
use crate::framework::profile::{Enabled, Profile};

/// Renders the configuration.
pub(super) fn document(file: &File<'_>, profiles: &[Profile]) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "parallelism": file.parallelism.unwrap_or(DEFAULT_PARALLELISM),
        "leaderElection": leader_election(file),
        "clientConnection": {
            "kubeconfig": file.kubeconfig.clone().unwrap_or_default(),
            "qps": file.qps.unwrap_or(DEFAULT_QPS),
            "burst": file.burst.unwrap_or(DEFAULT_BURST),
        },
        "enableProfiling": file.enable_profiling.unwrap_or(true),
        "enableContentionProfiling": file.enable_contention_profiling.unwrap_or(true),
        "delayCacheUntilActive": file.delay_cache_until_active.unwrap_or(false),
        "percentageOfNodesToScore": file.percentage_of_nodes_to_score.unwrap_or(0),
        "podInitialBackoffSeconds": file.initial_backoff.unwrap_or(INITIAL_BACKOFF_SECONDS),
        "podMaxBackoffSeconds": file.max_backoff.unwrap_or(MAX_BACKOFF_SECONDS),
        "profiles": profiles.iter().map(profile).collect::<Value>(),
    })
}

/// Election is not in force yet, whatever the file says.
fn leader_election(file: &File<'_>) -> Value {
    let defaults = [
        ("leaseDuration", "15s"),
        ("renewDeadline", "10s"),
        ("retryPeriod", "2s"),
        ("resourceLock", "leases"),
        ("resourceName", "pellucid"),
        ("resourceNamespace", "kube-system"),
    ];
    let mut fields: Map<String, Value> =
        defaults.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    fields.extend(file.leader_election.iter().cloned());
    fields.insert("leaderElect".to_owned(), false.into());
    Value::Object(fields)
}

fn profile(profile: &Profile) -> Value {
    let mut plugins: Map<String, Value> = Map::new();
    for (point, enabled) in profile.points() {
        plugins.insert(point.to_owned(), json!({ "enabled": enabled.iter().map(entry).collect::<Value>() }));
    }
    plugins.insert(MULTI_POINT.to_owned(), json!({ "disabled": [{ "name": "*" }] }));
    let args = profile.plugins.iter().filter_map(|plugin| {
        let Value::Object(own) = plugin.args() else { return None };
        if own.is_empty() {
            return None;
        }
        let mut args = Map::new();
        args.insert("apiVersion".to_owned(), API_VERSION.into());
        args.insert("kind".to_owned(), format!("{}Args", plugin.name()).into());
        args.extend(own);
        Some(json!({ "name": plugin.name(), "args": args }))
    });
    json!({
        "schedulerName": profile.scheduler_name.as_str(),
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": plugins,
        "pluginConfig": args.collect::<Value>(),
    })
}

fn entry(enabled: &Enabled) -> Value {
    match enabled.weight {
        0 => json!({ "name": enabled.plugin.name() }),
        weight => json!({ "name": enabled.plugin.name(), "weight": weight }),
    }
}
