//! Configuration files: what is made of them, and what is said about those that are refused.
//!
//! Each file of `tests/data/config/{accepted,refused}` has a text beside it with what must come out. With
//! `PELLUCID_BLESS=1` the texts are written anew; read the difference before keeping it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pellucid::config::{self, Configuration};
use pellucid::framework::endpoint::Endpoint;
use pellucid::framework::plugin::{ArgsError, Nodes, Permitted};
use pellucid::framework::{
    Bind, CycleValue, Filter, Plugin, PluginFactory, PreEnqueue, PreFilter, PreFiltered, PreScore, PreScored,
    QueueSort, Reads, Reserve, Score, View,
};
use pellucid::framework::{Cause, Permit};
use pellucid::model::{NodeIdx, Pod, PodSpec};
use serde_json::{Value, json};

// === plugins that do nothing, at the points of their namesakes ===

#[derive(Clone)]
struct Fake {
    name: &'static str,
    points: &'static [&'static str],
    weight: i64,
    args: Value,
}

impl Fake {
    fn at(&self, point: &str) -> Option<&Self> {
        self.points.contains(&point).then_some(self)
    }
}

impl PreEnqueue for Fake {
    fn pre_enqueue(&self, _: &Pod) -> Result<(), Cause> {
        Ok(())
    }
}
impl QueueSort for Fake {
    fn rank(&self, _: &Pod) -> i64 {
        0
    }
}
impl PreFilter for Fake {
    fn reads(&self) -> Reads {
        Reads::Node
    }
    fn pre_filter(&self, _: View<'_>, _: &PodSpec) -> PreFiltered {
        PreFiltered::Skip
    }
}
impl Filter for Fake {
    fn reads(&self) -> Reads {
        Reads::Node
    }
    fn filter(&self, _: View<'_>, _: &PodSpec, _: &CycleValue, _: &mut Nodes<'_>) {}
}
impl PreScore for Fake {
    fn reads(&self) -> Reads {
        Reads::Node
    }
    fn pre_score(&self, _: View<'_>, _: &PodSpec) -> PreScored {
        PreScored::Skip
    }
}
impl Score for Fake {
    fn reads(&self) -> Reads {
        Reads::Node
    }
    fn score(&self, _: View<'_>, _: &PodSpec, _: &CycleValue, _: &[NodeIdx], _: &mut [i64]) {}
}
impl Reserve for Fake {
    fn reserve(&self, _: View<'_>, _: &Pod, _: NodeIdx) -> Result<(), Cause> {
        Ok(())
    }
}
impl Permit for Fake {
    fn permit(&self, _: View<'_>, _: &Pod, _: NodeIdx) -> Permitted {
        Permitted::Yes
    }
}
impl Bind for Fake {
    fn binds(&self, _: &Pod) -> bool {
        true
    }
}

impl Plugin for Fake {
    fn name(&self) -> &'static str {
        self.name
    }
    fn args(&self) -> Value {
        self.args.clone()
    }
    fn pre_enqueue(&self) -> Option<&dyn PreEnqueue> {
        Some(self.at("preEnqueue")?)
    }
    fn queue_sort(&self) -> Option<&dyn QueueSort> {
        Some(self.at("queueSort")?)
    }
    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        Some(self.at("preFilter")?)
    }
    fn filter(&self) -> Option<&dyn Filter> {
        Some(self.at("filter")?)
    }
    fn pre_score(&self) -> Option<&dyn PreScore> {
        Some(self.at("preScore")?)
    }
    fn score(&self) -> Option<&dyn Score> {
        Some(self.at("score")?)
    }
    fn reserve(&self) -> Option<&dyn Reserve> {
        Some(self.at("reserve")?)
    }
    fn permit(&self) -> Option<&dyn Permit> {
        Some(self.at("permit")?)
    }
    fn bind(&self) -> Option<&dyn Bind> {
        Some(self.at("bind")?)
    }
}

impl PluginFactory for Fake {
    fn name(&self) -> &'static str {
        self.name
    }
    fn summary(&self) -> &'static str {
        "Does nothing"
    }
    fn default_weight(&self) -> i64 {
        self.weight
    }
    /// Only `NodeResourcesFit` takes arguments: `strategy`, and a list `resources` of objects with a weight.
    fn make(&self, args: &Value) -> Result<Arc<dyn Plugin>, Vec<ArgsError>> {
        let mut made = self.clone();
        let mut errors = Vec::new();
        let error = |field: String, problem: &str, value: &Value| ArgsError {
            field,
            problem: problem.to_owned(),
            value: value.to_string(),
        };
        for (field, value) in args.as_object().into_iter().flatten() {
            match (self.name, field.as_str()) {
                ("NodeResourcesFit", "strategy") if value == "MostAllocated" || value == "LeastAllocated" => {
                    made.args["strategy"] = value.clone();
                }
                ("NodeResourcesFit", "strategy") => {
                    errors.push(error("strategy".to_owned(), "is not a strategy", value));
                }
                ("NodeResourcesFit", "resources") => {
                    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                        if item["weight"].as_i64() < Some(1) {
                            let field = format!("resources[{i}].weight");
                            errors.push(error(field, "must be 1 or more", &item["weight"]));
                        }
                    }
                }
                _ => errors.push(error(field.clone(), "there is no such argument", value)),
            }
        }
        if errors.is_empty() { Ok(Arc::new(made)) } else { Err(errors) }
    }
    fn args_schema(&self) -> Value {
        json!({})
    }
    fn endpoints(&self) -> Vec<Endpoint> {
        Vec::new()
    }
}

fn registry() -> Vec<Box<dyn PluginFactory>> {
    let fake = |name, points, weight| -> Box<dyn PluginFactory> {
        let args =
            if name == "NodeResourcesFit" { json!({ "strategy": "LeastAllocated" }) } else { json!({}) };
        Box::new(Fake { name, points, weight, args })
    };
    vec![
        fake("SchedulingGates", &["preEnqueue"], 0),
        fake("PrioritySort", &["queueSort"], 0),
        fake("NodeName", &["filter"], 0),
        fake("TaintToleration", &["filter", "preScore", "score"], 3),
        fake("NodePorts", &["preFilter", "filter"], 0),
        fake("NodeResourcesFit", &["preFilter", "filter", "preScore", "score"], 1),
        fake("ImageLocality", &["score"], 1),
        fake("DefaultBinder", &["bind"], 0),
    ]
}

// === the table ===

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/config").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml" || e == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn parse(file: &Path) -> Result<Configuration, config::Problems> {
    let name = file.file_name().unwrap().to_str().unwrap();
    config::parse(&std::fs::read_to_string(file).unwrap(), name, &registry())
}

fn check(file: &Path, actual: &str) {
    let expected = file.with_extension("txt");
    if std::env::var_os("PELLUCID_BLESS").is_some() {
        std::fs::write(&expected, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&expected).unwrap_or_default();
    assert_eq!(actual, expected, "{}", file.display());
}

/// Renders what matters, in lines.
fn rendered(configuration: &Configuration) -> String {
    let mut out = String::new();
    let c = configuration;
    let (initial, max) = (c.initial_backoff.as_secs(), c.max_backoff.as_secs());
    writeln!(out, "backoff {initial} to {max} s, qps {}, burst {}", c.client.qps, c.client.burst).unwrap();
    if let Some(path) = &c.client.kubeconfig {
        writeln!(out, "kubeconfig {}", path.display()).unwrap();
    }
    for profile in &c.profiles {
        let percentage = profile.percentage_of_nodes_to_score;
        writeln!(out, "profile {}, percentage {percentage}", profile.scheduler_name.as_str()).unwrap();
        for (point, enabled) in profile.points() {
            let entry = |e: &pellucid::framework::profile::Enabled| {
                assert_eq!(profile.plugins[e.index].name(), e.plugin.name());
                if e.weight == 0 {
                    e.plugin.name().to_owned()
                } else {
                    format!("{}*{}", e.plugin.name(), e.weight)
                }
            };
            let entries: Vec<String> = enabled.iter().map(entry).collect();
            writeln!(out, "  {point}: {}", entries.join(" ")).unwrap();
        }
        for plugin in profile.plugins.iter().filter(|plugin| plugin.args() != json!({})) {
            writeln!(out, "  {} {}", plugin.name(), plugin.args()).unwrap();
        }
    }
    for note in &c.notes {
        writeln!(out, "note: {note}").unwrap();
    }
    out
}

#[test]
fn accepted_files_give_the_expected_profiles() {
    for file in files("accepted") {
        let configuration = parse(&file).unwrap_or_else(|problems| panic!("{problems}"));
        check(&file, &rendered(&configuration));
    }
}

#[test]
fn refused_files_name_every_problem_with_its_place() {
    for file in files("refused") {
        let Err(problems) = parse(&file) else { panic!("{} was accepted", file.display()) };
        check(&file, &format!("{problems}\n"));
    }
}

#[test]
fn the_effective_document_read_again_gives_itself() {
    for file in files("accepted") {
        let first = parse(&file).unwrap();
        let again = config::parse(&first.effective.to_string(), "effective", &registry());
        let again = again.unwrap_or_else(|problems| panic!("{}: {problems}", file.display()));
        assert_eq!(first.effective, again.effective, "{}", file.display());
    }
}

#[test]
fn without_a_file_there_is_one_profile_with_everything() {
    let configuration = config::default(&registry()).unwrap();
    assert!(configuration.notes.is_empty());
    let empty = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let from_empty_file = config::parse(empty, "empty", &registry()).unwrap();
    assert_eq!(configuration.effective, from_empty_file.effective);
    assert_eq!(configuration.profiles[0].scheduler_name.as_str(), "pellucid");
    let effective = &configuration.effective;
    assert_eq!(effective["podMaxBackoffSeconds"], 10);
    assert_eq!(effective["clientConnection"]["qps"], 50.0);
    assert_eq!(effective["leaderElection"]["leaderElect"], false);
    let plugins = &effective["profiles"][0]["plugins"];
    assert_eq!(plugins["score"]["enabled"][0], json!({ "name": "TaintToleration", "weight": 3 }));
    let args = &effective["profiles"][0]["pluginConfig"][0];
    assert_eq!(args["name"], "NodeResourcesFit");
    assert_eq!(args["args"]["strategy"], "LeastAllocated");
}

#[test]
fn a_registry_that_cannot_schedule_has_no_default() {
    let few: Vec<Box<dyn PluginFactory>> = registry().into_iter().skip(2).take(3).collect();
    let Err(problems) = config::default(&few) else { panic!("accepted") };
    let text = problems.to_string();
    assert!(text.contains("exactly one plugin sorts the queue, got none"), "{text}");
    assert!(text.contains("at least one plugin must bind, got none"), "{text}");
}

#[test]
fn the_plugins_of_this_binary_make_a_default_profile() {
    let registry = pellucid::plugins::registry();
    if registry.iter().any(|factory| factory.name() == "DefaultBinder") {
        let configuration = config::default(&registry).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(configuration.profiles[0].plugins.len(), registry.len());
    }
}
