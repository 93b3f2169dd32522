//! Reads `KubeSchedulerConfiguration` files and makes profiles of them.
//!
//! kube-scheduler's public file format, version `kubescheduler.config.k8s.io/v1`, YAML or JSON, with
//! kube-scheduler's merge rules and bounds. Reading is strict and complete: an unknown field is an error, and
//! all errors are reported at once, each with its line, path and value. The one different default: without a
//! name a profile is called [`DEFAULT_SCHEDULER_NAME`], so that a cluster's own scheduler is not disturbed.
//! Pure: the text comes in as an argument and what is worth telling a person goes out as notes.
//! Reading order: `tree`, `reader`, `file`, `merge`, `build`, `effective`.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::framework::PluginFactory;
use crate::framework::profile::Profile;

mod build;
mod effective;
mod file;
mod merge;
mod names;
mod problem;
mod reader;
mod tree;

use file::{File, FileProfile};
use reader::{Found, Place};
use tree::Tree;

pub use problem::{Problem, Problems};

/// Scheduler name of a profile that gives none.
pub const DEFAULT_SCHEDULER_NAME: &str = "pellucid";

const DEFAULT_PARALLELISM: i64 = 16;
const DEFAULT_QPS: f64 = 50.0;
const DEFAULT_BURST: i64 = 100;
const INITIAL_BACKOFF_SECONDS: i64 = 1;
const MAX_BACKOFF_SECONDS: i64 = 10;

/// A configuration in force.
#[derive(Clone)]
pub struct Configuration {
    /// The profiles, with different scheduler names; one or more.
    pub profiles: Vec<Profile>,
    /// Wait after the first failed attempt.
    pub initial_backoff: Duration,
    /// The longest wait after a failed attempt.
    pub max_backoff: Duration,
    /// How to reach the API server, when the file says.
    pub kubeconfig: Option<PathBuf>,
    /// Requests per second to the API server.
    pub qps: f64,
    /// Requests to the API server that may come at once.
    pub burst: u32,
    /// What was accepted but has no effect, and other things a person should know.
    pub notes: Vec<String>,
    /// The document that `/configz` shows.
    pub effective: Value,
}

/// Reads a configuration. `source_name` stands before each problem, as a file name does.
pub fn parse(
    text: &str,
    source_name: &str,
    registry: &[Box<dyn PluginFactory>],
) -> Result<Configuration, Problems> {
    let mut found = Found::default();
    let configuration = match Tree::parse(text) {
        Ok(tree) => {
            if !file::is_read(&tree, &mut found) {
                return Err(problems(found, source_name));
            }
            let file = File::read(&tree, &mut found);
            configure(&file, registry, &mut found)
        }
        Err(error) => {
            let line = error.location().map(|location| location.line()).filter(|line| *line > 0);
            let shown = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
            let message = format!("not readable as YAML or JSON: {shown}");
            found.add(&Place { path: String::new(), line }, message);
            return Err(problems(found, source_name));
        }
    };
    if found.0.is_empty() { Ok(configuration) } else { Err(problems(found, source_name)) }
}

/// Returns the configuration of an empty file: one profile with all plugins of the registry.
pub fn default(registry: &[Box<dyn PluginFactory>]) -> Result<Configuration, Problems> {
    let mut found = Found::default();
    let configuration = configure(&File::default(), registry, &mut found);
    if found.0.is_empty() { Ok(configuration) } else { Err(problems(found, "the default configuration")) }
}

fn problems(found: Found, source_name: &str) -> Problems {
    let mut problems = found.0;
    problems.sort_by_key(|problem| problem.line.unwrap_or(0));
    Problems { source: source_name.to_owned(), problems }
}

fn configure(file: &File<'_>, registry: &build::Registry, found: &mut Found) -> Configuration {
    let mut notes = notes(file);
    let initial = file.initial_backoff.unwrap_or(INITIAL_BACKOFF_SECONDS);
    let max = file.max_backoff.unwrap_or(MAX_BACKOFF_SECONDS);
    if max < initial {
        let at = Place::default().below("podMaxBackoffSeconds");
        found.add(&at, format!("must not be less than podInitialBackoffSeconds, {initial}, got {max}"));
    }
    let unnamed = [FileProfile::default()];
    let listed = if file.profiles.is_empty() { &unnamed[..] } else { &file.profiles[..] };
    check_names(listed, found);
    let profiles: Vec<Profile> = listed
        .iter()
        .map(|profile| {
            let name = match &profile.scheduler_name {
                Some(name) => name,
                None => DEFAULT_SCHEDULER_NAME,
            };
            let percentage = profile.percentage_of_nodes_to_score.or(file.percentage_of_nodes_to_score);
            let built = build::profile(profile, registry, found, &mut notes);
            build::finish(built, name, percentage.unwrap_or(0))
        })
        .collect();
    check_queue_sort(&profiles, listed, found);
    Configuration {
        effective: effective::document(file, &profiles),
        profiles,
        initial_backoff: Duration::from_secs(initial.unsigned_abs()),
        max_backoff: Duration::from_secs(max.unsigned_abs()),
        kubeconfig: file.kubeconfig.as_ref().map(PathBuf::from),
        qps: file.qps.unwrap_or(DEFAULT_QPS),
        burst: u32::try_from(file.burst.unwrap_or(DEFAULT_BURST)).unwrap_or(u32::MAX),
        notes,
    }
}

fn notes(file: &File<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if file.parallelism.is_some() {
        notes.push("parallelism is not used: one thread looks at all nodes".to_owned());
    }
    if file.leader_election.iter().any(|(name, value)| name == "leaderElect" && *value != false) {
        notes.push("leaderElection has no effect yet: run one instance".to_owned());
    }
    if let [FileProfile { scheduler_name: None, .. }] = file.profiles.as_slice() {
        notes.push(format!("profiles[0] has no schedulerName: it is called {DEFAULT_SCHEDULER_NAME}"));
    }
    notes
}

fn check_names(profiles: &[FileProfile<'_>], found: &mut Found) {
    for (index, profile) in profiles.iter().enumerate() {
        let at = profile.at.below("schedulerName");
        let earlier = &profiles[..index];
        match &profile.scheduler_name {
            None if profiles.len() > 1 => found.add(&at, "every one of several profiles needs a name"),
            Some(name) if earlier.iter().any(|p| p.scheduler_name.as_ref() == Some(name)) => {
                found.add(&at, format!("two profiles have this name, got {name:?}"));
            }
            _ => {}
        }
    }
}

/// All pods wait in one queue, so it is sorted in one way.
fn check_queue_sort(profiles: &[Profile], listed: &[FileProfile<'_>], found: &mut Found) {
    let sorts = |profile: &Profile| match profile.queue_sort.as_slice() {
        [one] => Some((one.plugin.name(), one.plugin.args())),
        _ => None,
    };
    let Some(first) = profiles.first().and_then(sorts) else { return };
    for (profile, file) in profiles.iter().zip(listed).skip(1) {
        if let Some(own) = sorts(profile)
            && own != first
        {
            let at = file.at.below("plugins.queueSort");
            found.add(
                &at,
                format!("all profiles share one queue and must sort it with the same plugin and arguments, got {} here and {} in the first", own.0, first.0),
            );
        }
    }
}
