//! Profiles, plugins and reasons as bodies.

use pellucid_api::reason::{REGISTRY, ReasonCode, STATES};
use pellucid_api::rest::profiles::{
    EnabledPlugin, PluginBody, PluginConfig, PluginCounters, PluginKind, PluginSchema, PluginStats, Plugins,
    ProfileBody, ReasonEntryBody, ReasonExample, Reasons, StateEntryBody,
};
use pellucid_cycle::Snapshot;
use pellucid_framework::PluginFactory;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::plugin::Plugin;
use pellucid_model::Now;
use pellucid_model::custom::CustomKind;

use crate::meta::of_snapshot;
use crate::reads::reads;

pub(crate) fn plugins(snapshot: &Snapshot, now: Now) -> Plugins {
    let profile = |p: &std::sync::Arc<pellucid_framework::profile::Profile>| ProfileBody {
        scheduler_name: p.scheduler_name.to_string(),
        percentage_of_nodes_to_score: p.percentage_of_nodes_to_score,
        points: p
            .points()
            .iter()
            .map(|(point, enabled)| {
                let plugin = |e: &pellucid_framework::profile::Enabled| EnabledPlugin {
                    name: e.plugin.name().into(),
                    weight: e.weight,
                };
                ((*point).to_string(), enabled.iter().map(plugin).collect())
            })
            .collect(),
    };
    let paths: Vec<String> = reads(&snapshot.registry).into_iter().map(|read| read.path).collect();
    let plugin = |f: &dyn PluginFactory| {
        let below = format!("/apis/v1/plugins/{}/", f.name());
        let mut endpoints: Vec<String> = paths.iter().filter(|p| p.starts_with(&below)).cloned().collect();
        endpoints.sort();
        let kinds = f.kinds().into_iter().map(kind).collect();
        PluginBody { name: f.name().into(), summary: f.summary().into(), endpoints, kinds }
    };
    Plugins {
        meta: of_snapshot(snapshot, now),
        profiles: snapshot.profiles.iter().map(profile).collect(),
        plugins: snapshot.registry.iter().map(|f| plugin(&**f)).collect(),
    }
}

fn kind(kind: &CustomKind) -> PluginKind {
    let texts = |verbs: Vec<&str>| -> Vec<String> { verbs.into_iter().map(str::to_owned).collect() };
    PluginKind {
        name: kind.qualified.into(),
        api_version: format!("{}/{}", kind.group, kind.version),
        required: kind.is_required,
        rights: kind.rights().into_iter().map(|(resource, verbs)| (resource, texts(verbs))).collect(),
    }
}

pub(crate) fn config(snapshot: &Snapshot, name: &str, now: Now) -> PluginConfig {
    let enabled = snapshot.profiles.iter().filter_map(|profile| {
        let plugin = profile.plugins.iter().find(|p| p.name() == name)?;
        Some((profile.scheduler_name.to_string(), plugin.args()))
    });
    PluginConfig { meta: of_snapshot(snapshot, now), plugin: name.into(), profiles: enabled.collect() }
}

pub(crate) fn stats(snapshot: &Snapshot, name: &str, now: Now) -> PluginStats {
    let profiles = snapshot.profiles.iter().zip(&snapshot.tally).filter_map(|(profile, tally)| {
        let tally = tally[profile.plugins.iter().position(|p| p.name() == name)?];
        let counters = PluginCounters {
            pods_refused: tally.pods_refused,
            filter_calls: tally.filter_calls,
            nodes_filtered: tally.nodes_filtered,
            nodes_refused: tally.nodes_refused,
            score_calls: tally.score_calls,
            nodes_scored: tally.nodes_scored,
            micros: tally.nanos / 1_000,
        };
        Some((profile.scheduler_name.to_string(), counters))
    });
    PluginStats { meta: of_snapshot(snapshot, now), plugin: name.into(), profiles: profiles.collect() }
}

/// Returns a plugin's extension points and arguments. Fails when the plugin is unknown.
pub(crate) fn schema(snapshot: &Snapshot, name: &str) -> Result<PluginSchema, ReadError> {
    let unknown = || ReadError::NotFound { code: "PluginNotFound", message: format!("no plugin {name}") };
    let factory = snapshot.registry.iter().find(|f| f.name() == name).ok_or_else(unknown)?;
    let plugin = factory.make(&serde_json::Value::Null).map_err(|_| unknown())?;
    Ok(PluginSchema {
        plugin: name.into(),
        summary: factory.summary().into(),
        points: points(&*plugin).into_iter().map(String::from).collect(),
        args: factory.args_schema(),
    })
}

/// Returns the extension points that a plugin implements, under kube-scheduler's names.
fn points(plugin: &dyn Plugin) -> Vec<&'static str> {
    let all = [
        ("preEnqueue", plugin.pre_enqueue().is_some()),
        ("queueSort", plugin.queue_sort().is_some()),
        ("preFilter", plugin.pre_filter().is_some()),
        ("filter", plugin.filter().is_some()),
        ("postFilter", plugin.post_filter().is_some()),
        ("preScore", plugin.pre_score().is_some()),
        ("score", plugin.score().is_some()),
        ("reserve", plugin.reserve().is_some()),
        ("permit", plugin.permit().is_some()),
        ("preBind", plugin.pre_bind().is_some()),
        ("bind", plugin.bind().is_some()),
        ("postBind", plugin.post_bind().is_some()),
    ];
    all.into_iter().filter(|(_, works)| *works).map(|(point, _)| point).collect()
}

fn example(of: pellucid_api::reason::Example) -> ReasonExample {
    ReasonExample { subject: of.subject.into(), message: of.message.into(), situation: of.situation.into() }
}

/// Returns the built-in reasons, then those of the plugins in the order of the registry.
pub(crate) fn reasons(snapshot: &Snapshot) -> Reasons {
    let of_plugins = snapshot.registry.iter().flat_map(|factory| factory.reasons());
    let of_plugins = of_plugins.map(|reason| ReasonCode::Plugin(reason).entry());
    let body = |e: pellucid_api::reason::ReasonEntry| ReasonEntryBody {
        code: e.code.as_str().into(),
        plugin: e.plugin.into(),
        message: e.message.into(),
        meaning: e.meaning.into(),
        remedy: e.remedy.into(),
        resolver: e.resolver.as_str().into(),
        terminal_for: e.code.terminal_for().as_str().into(),
        example: example(e.code.example()),
    };
    let state = |e: &pellucid_api::reason::StateEntry| StateEntryBody {
        code: e.code.into(),
        where_seen: e.where_seen.into(),
        meaning: e.meaning.into(),
        status: e.status,
    };
    Reasons {
        reasons: REGISTRY.iter().copied().chain(of_plugins).map(body).collect(),
        states: STATES.iter().map(state).collect(),
    }
}
