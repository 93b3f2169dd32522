//! Parses `KubeSchedulerConfiguration` files and builds profiles from them. Start with [`parse`].
//!
//! Reads kube-scheduler's public format `kubescheduler.config.k8s.io/v1`, and the older v1beta3 and v1beta2, which are
//! converted; YAML or JSON, with kube-scheduler's merge rules and bounds. Parsing is strict and complete: an unknown
//! field is an error, and all errors are reported at once, each with its line, path and value. One default differs from
//! kube-scheduler: an unnamed profile is called [`DEFAULT_SCHEDULER_NAME`], so that a cluster's own scheduler is not
//! disturbed.
//!
//! PURE: the text is an argument, and everything worth telling the user is returned as notes. The crate does not open
//! files.
//!
//! Modules in reading order:
//! - `tree` parses a document into a tree with line numbers;
//! - `reader` reads typed values from the tree and collects problems (`problem`);
//! - `version` knows the versions of the format and their differences;
//! - `file` reads all fields, with `client` and `leader` for two of the objects;
//! - `merge` implements the merge rules for plugin sets;
//! - `names` knows the plugin names of other schedulers;
//! - `known` looks plugin names up in the registry;
//! - `profiles` builds and checks profiles;
//! - `effective` renders the effective configuration.

use std::path::Path;
use std::time::Duration;

use pellucid_framework::profile::Profile;
use pellucid_framework::{Controller, PluginFactory};
use pellucid_model::Name;
use serde_json::Value;

mod client;
mod effective;
mod file;
mod known;
mod leader;
mod merge;
mod names;
mod problem;
mod profiles;
mod reader;
mod tree;
mod version;

use file::{File, FileProfile};
use reader::{Diagnostics, Location};
use tree::Tree;

pub use client::ClientConnection;
pub use leader::LeaderElection;
pub use problem::{Problem, Problems};

/// Scheduler name of a profile without a name.
pub const DEFAULT_SCHEDULER_NAME: &str = "pellucid";

/// A complete configuration with all defaults applied.
#[derive(Clone)]
pub struct Configuration {
    /// The profiles: one or more, with unique scheduler names.
    pub profiles: Vec<Profile>,
    /// Backoff after the first failed attempt.
    pub initial_backoff: Duration,
    /// Maximum backoff after a failed attempt.
    pub max_backoff: Duration,
    /// Connection to the API server.
    pub client: ClientConnection,
    /// Leader election among several instances.
    pub leader_election: LeaderElection,
    /// Fields that were accepted without effect, and other information for the user.
    pub notes: Vec<String>,
    /// The effective configuration as a v1 document in which every default is explicit.
    pub effective: Value,
    /// Maximum size of the flight recorder in bytes. The command line sets it, not the file.
    pub recorder_bytes: usize,
    /// The controllers that write objects. The command line names them, not the file.
    pub controllers: Vec<&'static Controller>,
}

/// Default maximum size of the flight recorder, in bytes.
pub const DEFAULT_RECORDER_BYTES: usize = 16 << 20;

impl Configuration {
    /// Replaces the kubeconfig path from the file.
    pub fn set_kubeconfig(&mut self, path: &Path) {
        self.client.kubeconfig = Some(path.to_owned());
        self.effective["clientConnection"] = self.client.document();
    }

    /// Replaces the parameters of leader election from the file. Fails with the first parameter that does not fit,
    /// unless leaders are not elected.
    pub fn set_leader_election(&mut self, leader_election: LeaderElection) -> Result<(), String> {
        let problems = leader_election.problems().into_iter();
        let problem = problems.take_while(|_| leader_election.leader_elect != Some(false)).next();
        if let Some((field, message)) = problem {
            return Err(format!("leaderElection.{field}: {message}"));
        }
        self.leader_election = leader_election;
        self.effective["leaderElection"] = self.leader_election.document();
        Ok(())
    }

    /// Decides whether leaders are elected: as asked, else if the scheduler runs in a cluster. A scheduler that writes
    /// nothing (`writes` is false) needs no leader.
    pub fn settle_leader_election(&mut self, is_in_cluster: bool, writes: bool) {
        let asked = self.leader_election.leader_elect;
        if asked == Some(true) && !writes {
            self.notes
                .push("leaderElection.leaderElect: not used in shadow mode, which writes nothing".into());
        }
        self.leader_election.leader_elect = Some(writes && asked.unwrap_or(is_in_cluster));
        self.effective["leaderElection"] = self.leader_election.document();
    }

    /// Returns what `/configz` shows: the effective document, with the notes if there are any.
    pub fn configz(&self) -> Value {
        let mut shown = self.effective.clone();
        if !self.notes.is_empty() {
            shown[file::NOTES] = self.notes.iter().map(String::as_str).collect();
        }
        shown
    }

    /// Returns the effective document as YAML, with the notes as comments.
    pub fn to_yaml(&self) -> Result<String, String> {
        effective::yaml(&self.effective, &self.notes)
    }
}

/// Parses a configuration. `source_name`, for example a file name, prefixes each problem. Fails with every problem
/// found.
pub fn parse(
    text: &str,
    source_name: &str,
    registry: &[Box<dyn PluginFactory>],
) -> Result<Configuration, Problems> {
    let mut diagnostics = Diagnostics::default();
    let tree = match Tree::parse(text) {
        Ok(tree) => tree,
        Err(error) => {
            let line = error.location().map(|location| location.line()).filter(|line| *line > 0);
            let shown = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
            let message = format!("not readable as YAML or JSON: {shown}");
            diagnostics.add(&Location { path: String::new(), line }, message);
            return Err(problems(diagnostics, source_name));
        }
    };
    check_repeated(&tree, &mut diagnostics);
    let Some(version) = file::version(&tree, &mut diagnostics) else {
        return Err(problems(diagnostics, source_name));
    };
    let file = File::read(&tree, version, &mut diagnostics);
    configure(&file, registry, diagnostics).map_err(|diagnostics| problems(diagnostics, source_name))
}

/// Returns the configuration of an empty file: one profile with all plugins of the registry.
pub fn default(registry: &[Box<dyn PluginFactory>]) -> Result<Configuration, Problems> {
    let configured = configure(&File::default(), registry, Diagnostics::default());
    configured.map_err(|diagnostics| problems(diagnostics, "the default configuration"))
}

fn problems(diagnostics: Diagnostics, source_name: &str) -> Problems {
    let mut problems = diagnostics.problems;
    problems.sort_by_key(|problem| problem.line.unwrap_or(0));
    Problems { source: source_name.to_owned(), problems }
}

fn configure(
    file: &File<'_>,
    registry: &known::Registry,
    mut diagnostics: Diagnostics,
) -> Result<Configuration, Diagnostics> {
    let unnamed = [FileProfile::default()];
    let listed = if file.profiles.is_empty() { &unnamed[..] } else { &file.profiles[..] };
    check_names(listed, &mut diagnostics);
    if let [only @ FileProfile { scheduler_name: None, .. }] = file.profiles.as_slice() {
        diagnostics
            .note(&only.at, format_args!("has no schedulerName: it is called {DEFAULT_SCHEDULER_NAME}"));
    }
    let profiles: Vec<Profile> = listed
        .iter()
        .map(|profile| {
            let percentage = profile.percentage_of_nodes_to_score.or(file.percentage_of_nodes_to_score);
            let mut built = profiles::profile(profile, file.version, registry, &mut diagnostics);
            built.scheduler_name =
                Name::new(profile.scheduler_name.as_deref().unwrap_or(DEFAULT_SCHEDULER_NAME));
            built.percentage_of_nodes_to_score = percentage.and_then(|n| u8::try_from(n).ok()).unwrap_or(0);
            built
        })
        .collect();
    check_queue_sort(&profiles, listed, &mut diagnostics);
    if !diagnostics.problems.is_empty() {
        return Err(diagnostics);
    }
    Ok(Configuration {
        effective: effective::document(file, &profiles),
        profiles,
        initial_backoff: Duration::from_secs(file.initial_backoff().unsigned_abs()),
        max_backoff: Duration::from_secs(file.max_backoff().unsigned_abs()),
        client: file.client.clone(),
        leader_election: file.leader_election.clone(),
        notes: diagnostics.notes,
        recorder_bytes: DEFAULT_RECORDER_BYTES,
        controllers: Vec::new(),
    })
}

/// Reports fields that occur twice in an object: it is unclear which value was meant.
fn check_repeated(tree: &Tree, diagnostics: &mut Diagnostics) {
    tree.repeated("", &mut |path, name, value| {
        let at = Location { path: tree::join(path, name), line: value.line };
        diagnostics.add(&at, "stands here a second time");
    });
}

fn check_names(profiles: &[FileProfile<'_>], diagnostics: &mut Diagnostics) {
    for (index, profile) in profiles.iter().enumerate() {
        let at = profile.at.below("schedulerName");
        let earlier = &profiles[..index];
        match &profile.scheduler_name {
            None if profiles.len() > 1 => diagnostics.add(&at, "every one of several profiles needs a name"),
            Some(name) if earlier.iter().any(|p| p.scheduler_name.as_ref() == Some(name)) => {
                diagnostics.add(&at, format!("two profiles have this name, got {name:?}"));
            }
            _ => {}
        }
    }
}

/// Checks that all profiles sort the queue alike, because they share one queue.
fn check_queue_sort(profiles: &[Profile], listed: &[FileProfile<'_>], diagnostics: &mut Diagnostics) {
    let sorts = |profile: &Profile| match profile.queue_sort.as_slice() {
        [one] => Some((one.plugin.name(), one.plugin.args())),
        _ => None,
    };
    let Some(first) = profiles.first().and_then(sorts) else { return };
    for (profile, file) in profiles.iter().zip(listed).skip(1) {
        if let Some(own) = sorts(profile)
            && own != first
        {
            let text = "all profiles share one queue and must sort it with the same plugin and arguments";
            let message = format!("{text}, got {} here and {} in the first", own.0, first.0);
            diagnostics.add(&file.at.below("plugins.queueSort"), message);
        }
    }
}
