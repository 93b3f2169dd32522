//! Renders the effective configuration in the public format, for `/configz` and as a file.
//!
//! Every plugin is listed explicitly at its extension points and `multiPoint` is empty, so reading the document again
//! yields the same configuration even when the defaults change.

use pellucid_framework::profile::{Enabled, Profile};
use serde_json::{Map, Value, json};

use super::file::{File, KIND, MULTI_POINT};
use super::version::Version;

/// Default of `parallelism`. The value has no effect.
const DEFAULT_PARALLELISM: i64 = 16;

pub(super) fn document(file: &File<'_>, profiles: &[Profile]) -> Value {
    json!({
        "apiVersion": Version::V1.api_version(),
        "kind": KIND,
        "parallelism": file.parallelism.unwrap_or(DEFAULT_PARALLELISM),
        "leaderElection": file.leader_election.document(),
        "clientConnection": file.client.document(),
        "enableProfiling": file.enable_profiling.unwrap_or(true),
        "enableContentionProfiling": file.enable_contention_profiling.unwrap_or(true),
        "delayCacheUntilActive": file.delay_cache_until_active.unwrap_or(false),
        "percentageOfNodesToScore": file.percentage_of_nodes_to_score.unwrap_or(0),
        "podInitialBackoffSeconds": file.initial_backoff(),
        "podMaxBackoffSeconds": file.max_backoff(),
        "profiles": profiles.iter().map(profile).collect::<Value>(),
    })
}

/// Renders the document as YAML, preceded by the notes as comments.
pub(super) fn yaml(document: &Value, notes: &[String]) -> Result<String, String> {
    let mut text = String::new();
    for note in notes {
        // A name in a note may contain a line break, which would end the comment.
        text += &format!("# {}\n", note.replace(char::is_control, " "));
    }
    text.push_str(&serde_saphyr::to_string(document).map_err(|error| error.to_string())?);
    Ok(text)
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
        args.insert("apiVersion".to_owned(), Version::V1.api_version().into());
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
