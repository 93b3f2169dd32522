//! Builds profiles from their entries in the file: creates plugins with their arguments, fills the extension points,
//! and rejects invalid combinations.

use std::sync::Arc;

use pellucid_framework::plugin::MAX_SCORE;
use pellucid_framework::profile::{Enabled, Profile};
use pellucid_framework::{Plugin, PluginFactory};
use serde_json::Value;

use super::file::{Entry, FileArgs, FileProfile, MULTI_POINT, POINTS, PluginSet};
use super::known::Registry;
use super::names::{GANGS, unused_args, worked_elsewhere};
use super::reader::{Diagnostics, Location, shown};
use super::version::Version;
use super::{known, merge};

const QUEUE_SORT: &str = "queueSort";
/// The only extension point with weights.
const SCORE: &str = "score";

/// An extension point that this scheduler runs.
struct Point {
    name: &'static str,
    works: fn(&dyn Plugin) -> bool,
    list: fn(&mut Profile) -> &mut Vec<Enabled>,
}

impl Point {
    /// Returns the entries that are enabled here. `multi` are those of `multiPoint`, if the file's version has it.
    fn entries(
        &self,
        set: &PluginSet,
        defaults: &[Entry],
        multi: Option<&[Entry]>,
        made: &[Arc<dyn Plugin>],
    ) -> Vec<Entry> {
        let works = |name: &str| {
            made.iter().find(|plugin| plugin.name() == name).is_some_and(|p| {
                // Of the plugins that can sort the queue, only one is enabled by default.
                let must_be_named =
                    self.name == QUEUE_SORT && p.queue_sort().is_some_and(|q| q.only_when_named());
                let is_named = || set.enabled.iter().any(|e| e.name == name);
                (self.works)(p.as_ref()) && (!must_be_named || is_named())
            })
        };
        let mut merged = match multi {
            Some(multi) => merge::at_point(set, multi, works),
            None => {
                let here: Vec<Entry> = defaults.iter().filter(|e| works(&e.name)).cloned().collect();
                merge::into_defaults(&here, set)
            }
        };
        merged.retain(|entry| works(&entry.name));
        merged
    }
}

/// The extension points that this scheduler runs. A file can name the other [`POINTS`], but they are not run.
static RUN: &[Point] = &[
    Point { name: "preEnqueue", works: |p| p.pre_enqueue().is_some(), list: |p| &mut p.pre_enqueue },
    Point { name: QUEUE_SORT, works: |p| p.queue_sort().is_some(), list: |p| &mut p.queue_sort },
    Point { name: "preFilter", works: |p| p.pre_filter().is_some(), list: |p| &mut p.pre_filter },
    Point { name: "filter", works: |p| p.filter().is_some(), list: |p| &mut p.filter },
    Point { name: "postFilter", works: |p| p.post_filter().is_some(), list: |p| &mut p.post_filter },
    Point { name: "preScore", works: |p| p.pre_score().is_some(), list: |p| &mut p.pre_score },
    Point { name: SCORE, works: |p| p.score().is_some(), list: |p| &mut p.score },
    Point { name: "reserve", works: |p| p.reserve().is_some(), list: |p| &mut p.reserve },
    Point { name: "permit", works: |p| p.permit().is_some(), list: |p| &mut p.permit },
    Point { name: "preBind", works: |p| p.pre_bind().is_some(), list: |p| &mut p.pre_bind },
    Point { name: "bind", works: |p| p.bind().is_some(), list: |p| &mut p.bind },
    Point { name: "postBind", works: |p| p.post_bind().is_some(), list: |p| &mut p.post_bind },
];

/// Builds one profile. Adds problems to `diagnostics`; if there are any, the caller must discard the profile.
pub(super) fn profile(
    file: &FileProfile<'_>,
    version: Version,
    registry: &Registry,
    diagnostics: &mut Diagnostics,
) -> Profile {
    let sets = POINTS.map(|point| (point, known::entries(file.set(point), registry, diagnostics)));
    let set = |point: &str| &sets.iter().find(|(name, _)| *name == point).expect("a name of POINTS").1;
    let defaults = defaults(registry, version);
    let multi = merge::into_defaults(&defaults, set(MULTI_POINT));
    let args = known::args(file, registry, diagnostics);
    let wanted = |name: &str| {
        let named = sets.iter().flat_map(|(_, set)| &set.enabled).chain(&multi).any(|e| e.name == name);
        named || args.iter().any(|a| a.name == name)
    };
    let chosen = registry.iter().filter(|factory| wanted(factory.name()));
    let made: Vec<Arc<dyn Plugin>> =
        chosen.filter_map(|factory| make(factory.as_ref(), file, &args, diagnostics)).collect();
    let plugin = |name: &str| made.iter().find(|plugin| plugin.name() == name);

    let mut profile = Profile::default();
    let multi = version.has_multi_point().then_some(&multi[..]);
    let at_point = |point: &'static Point| (point, point.entries(set(point.name), &defaults, multi, &made));
    let enabled: Vec<(&Point, Vec<Entry>)> = RUN.iter().map(at_point).collect();
    for (point, set) in sets.iter().filter(|(point, _)| *point != MULTI_POINT) {
        for entry in &set.enabled {
            if let Some(plugin) = plugin(&entry.name) {
                check_works(point, plugin.as_ref(), entry, diagnostics);
            }
        }
    }
    let is_used = |name: &str| enabled.iter().any(|(_, entries)| entries.iter().any(|e| e.name == name));
    profile.plugins = made.iter().filter(|p| is_used(p.name())).cloned().collect();
    for (point, entries) in &enabled {
        *(point.list)(&mut profile) =
            entries.iter().filter_map(|e| place(e, point, &profile.plugins)).collect();
    }
    profile.topology_hints = everywhere(&profile.plugins, |plugin| plugin.topology_hints().is_some());
    // Where others choose from what is free, the room in which the pod is to stand must be known.
    profile.reserve.sort_by_key(|enabled| enabled.plugin.node_overrides().is_none());
    profile.concerns = everywhere(&profile.plugins, |plugin| plugin.concern().is_some());
    profile.node_overrides = everywhere(&profile.plugins, |plugin| plugin.node_overrides().is_some());
    profile.victim_guards = everywhere(&profile.plugins, |plugin| plugin.victim_guard().is_some());
    for args in args.iter().filter(|args| !is_used(&args.name)) {
        diagnostics
            .note(&args.at, format_args!("{} is not enabled, its arguments have no effect", args.name));
    }
    note_weights(&enabled, &defaults, diagnostics);
    note_gangs(&profile, file, registry, diagnostics);
    // A point with rejected entries is not checked, because its remaining entries are incomplete.
    let is_whole = |point: &str| set(point).enabled.len() == file.set(point).enabled.len();
    check(&profile, file, is_whole, diagnostics);
    profile
}

/// Returns every plugin of the registry with its default weight in the file's version.
fn defaults(registry: &Registry, version: Version) -> Vec<Entry> {
    let entries = registry.iter().filter(|factory| factory.is_default()).map(|factory| Entry {
        name: factory.name().to_owned(),
        weight: Some(version.default_weight(factory.name(), factory.default_weight())),
        at: Location::default(),
    });
    entries.collect()
}

/// Creates a plugin with its arguments from the file. Returns `None` if even the default arguments are invalid.
fn make(
    factory: &dyn PluginFactory,
    file: &FileProfile<'_>,
    args: &[&FileArgs<'_>],
    diagnostics: &mut Diagnostics,
) -> Option<Arc<dyn Plugin>> {
    let given = args.iter().find(|args| args.name == factory.name());
    let cursor = given.and_then(|args| args.args.as_ref());
    let value = cursor.map_or(Value::Null, |cursor| {
        check_kind(factory.name(), cursor.tree, &cursor.at, diagnostics);
        let value = without_kind(cursor.tree.to_value());
        for (field, why) in unused_args(factory.name()).filter(|(field, _)| value.get(field).is_some()) {
            diagnostics.note(&cursor.at.below(field), format_args!("accepted and not used: {why}"));
        }
        value
    });
    let errors = match factory.make(&value) {
        Ok(plugin) => return Some(plugin),
        Err(errors) => errors,
    };
    for error in errors {
        let message = format!("{}, got {}", error.problem, error.value);
        match cursor {
            Some(cursor) => {
                let line = cursor.tree.nearest(&error.field).line;
                let at = cursor.at.below(&error.field);
                diagnostics.add(&Location { line: line.or(at.line), ..at }, message);
            }
            None => {
                let at = file.at.below("pluginConfig").below(&format!("[{}]", factory.name()));
                diagnostics.add(&at.below("args").below(&error.field), message);
            }
        }
    }
    // Fall back to the default arguments, so that the extension points are still checked.
    given.and_then(|_| factory.make(&Value::Null).ok())
}

/// Checks `kind` and `apiVersion` of plugin arguments, which are optional. As in kube-scheduler, the version may differ
/// from the file's, because arguments are the same in all versions.
fn check_kind(plugin: &str, tree: &super::tree::Tree, at: &Location, diagnostics: &mut Diagnostics) {
    let value = tree.to_value();
    let mut check = |field: &str, wanted: String, is_right: &dyn Fn(&str) -> bool| {
        if value.get(field).is_some_and(|given| !given.as_str().is_some_and(is_right)) {
            let given = tree.nearest(field);
            let at = Location { line: given.line, ..at.below(field) };
            diagnostics.add(&at, format!("must be {wanted}, got {}", shown(given)));
        }
    };
    let kind = format!("{plugin}Args");
    check("kind", kind.clone(), &|given| given == kind);
    let versions = Version::ALL.map(Version::api_version).join(" or ");
    check("apiVersion", versions, &|given| Version::of(given).is_some());
}

fn without_kind(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    value
}

fn check_works(point: &str, plugin: &dyn Plugin, entry: &Entry, diagnostics: &mut Diagnostics) {
    let works_at: Vec<&str> = RUN.iter().filter(|p| (p.works)(plugin)).map(|p| p.name).collect();
    let (name, at) = (&entry.name, &entry.at);
    if works_at.contains(&point) {
        if point != SCORE && entry.weight.unwrap_or(0) > 0 {
            diagnostics
                .note(at, format_args!("the weight of {name} has no effect at {point}, only at {SCORE}"));
        }
    } else if worked_elsewhere(name, point) {
        diagnostics.note(at, format_args!("accepted and not used: {name} has nothing to do at {point} here"));
    } else {
        let works_at = works_at.join(", ");
        diagnostics.add(at, format!("{name} does not work at {point}; it works at {works_at}"));
    }
}

fn place(entry: &Entry, point: &Point, plugins: &[Arc<dyn Plugin>]) -> Option<Enabled> {
    let index = plugins.iter().position(|plugin| plugin.name() == entry.name)?;
    let weight = match point.name {
        SCORE => entry.weight.unwrap_or(0).max(1),
        _ => 0,
    };
    Some(Enabled { plugin: plugins[index].clone(), weight, index })
}

/// Returns the plugins of a kind that has no point in the configuration: they take part wherever they are enabled.
fn everywhere(plugins: &[Arc<dyn Plugin>], is_one: impl Fn(&dyn Plugin) -> bool) -> Vec<Enabled> {
    let all = plugins.iter().enumerate().filter(|(_, plugin)| is_one(plugin.as_ref()));
    all.map(|(index, plugin)| Enabled { plugin: plugin.clone(), weight: 0, index }).collect()
}

/// Notes plugins that are enabled without a weight: their weight becomes 1 instead of the default.
fn note_weights(enabled: &[(&Point, Vec<Entry>)], defaults: &[Entry], diagnostics: &mut Diagnostics) {
    let scoring = enabled.iter().filter(|(point, _)| point.name == SCORE);
    for entry in scoring.flat_map(|(_, entries)| entries) {
        let default = defaults.iter().find(|default| default.name == entry.name);
        let default = default.and_then(|default| default.weight).unwrap_or(1);
        if entry.weight.unwrap_or(0) == 0 && default > 1 {
            let name = &entry.name;
            let text = "is enabled without a weight and scores with 1, not with its default";
            diagnostics.note(&entry.at, format_args!("{name} {text} {default}"));
        }
    }
}

/// Notes a profile without the gang plugin at Permit. Its gangs are then scheduled as independent pods, which is not
/// visible on the pods.
fn note_gangs(profile: &Profile, file: &FileProfile<'_>, registry: &Registry, diagnostics: &mut Diagnostics) {
    let is_there = registry.iter().any(|factory| factory.name() == GANGS);
    let is_asked = profile.permit.iter().any(|enabled| enabled.plugin.name() == GANGS);
    if is_there && !is_asked {
        let text = "is not enabled at permit: pods that declare a gang are scheduled one by one, and a part of \
                    a gang may run while the rest waits";
        diagnostics.note(&file.at.below("plugins"), format_args!("{GANGS} {text}"));
    }
}

/// Checks the profile as a whole: one queue sort plugin, a bind plugin, preparation points, and weights that cannot
/// overflow a total score.
fn check(
    profile: &Profile,
    file: &FileProfile<'_>,
    is_whole: impl Fn(&str) -> bool,
    diagnostics: &mut Diagnostics,
) {
    let at = |point: &str| file.at.below("plugins").below(point);
    if profile.queue_sort.len() != 1 && is_whole("queueSort") {
        let names = names(&profile.queue_sort);
        diagnostics.add(&at("queueSort"), format!("exactly one plugin sorts the queue, got {names}"));
    }
    if profile.bind.is_empty() && is_whole("bind") {
        diagnostics.add(&at("bind"), "at least one plugin must bind, got none");
    }
    let has = |list: &[Enabled], name: &str| list.iter().any(|enabled| enabled.plugin.name() == name);
    for Enabled { plugin, .. } in &profile.filter {
        if plugin.pre_filter().is_some() && !has(&profile.pre_filter, plugin.name()) {
            diagnostics.add(&at("filter"), needs(plugin.name(), "filter", "preFilter"));
        }
    }
    for Enabled { plugin, .. } in &profile.score {
        if plugin.pre_score().is_some() && !has(&profile.pre_score, plugin.name()) {
            diagnostics.add(&at("score"), needs(plugin.name(), "score", "preScore"));
        }
    }
    let total =
        profile.score.iter().try_fold(0i64, |sum, e| sum.checked_add(e.weight.checked_mul(MAX_SCORE)?));
    if total.is_none() {
        diagnostics.add(&at("score"), "the weights are so great that a total score could overflow");
    }
}

fn needs(plugin: &str, point: &str, before: &str) -> String {
    format!(
        "{plugin} is enabled here but not at {before}, where it prepares; enable both or disable it at {point}"
    )
}

fn names(list: &[Enabled]) -> String {
    match list.is_empty() {
        true => "none".to_owned(),
        false => list.iter().map(|enabled| enabled.plugin.name()).collect::<Vec<_>>().join(", "),
    }
}
