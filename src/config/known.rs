//! Looks plugin names up in the registry. The message for an unknown name says whether the plugin is unsupported,
//! removed or misspelt.

use pellucid_framework::PluginFactory;
use pellucid_model::similar::similar;

use super::file::{FileArgs, FileProfile, PluginSet};
use super::names::{Foreign, foreign};
use super::reader::Diagnostics;

pub(super) type Registry = [Box<dyn PluginFactory>];

fn is_known(name: &str, registry: &Registry) -> bool {
    registry.iter().any(|factory| factory.name() == name)
}

/// Returns the message for a name that is not in the registry.
fn refusal(name: &str, registry: &Registry) -> String {
    match foreign(name) {
        Foreign::NotYet => format!(
            "{name} is a plugin of kube-scheduler that this version does not have yet; it may stand under \
             disabled only"
        ),
        Foreign::SchedulerPlugins => format!(
            "{name} is a plugin of the scheduler-plugins project that this version does not have; it may \
             stand under disabled only"
        ),
        Foreign::Removed(instead) => format!("{name} was removed from Kubernetes; {instead}"),
        Foreign::Unknown => {
            let known: Vec<&str> = registry.iter().map(|factory| factory.name()).collect();
            match similar(name, known.iter().copied()) {
                Some(meant) => format!("no plugin is called {name:?}; did you mean {meant}?"),
                None => format!("no plugin is called {name:?}; known are {}", known.join(", ")),
            }
        }
    }
}

/// Returns the set without entries that are unknown or repeated, which are reported.
pub(super) fn entries(set: &PluginSet, registry: &Registry, diagnostics: &mut Diagnostics) -> PluginSet {
    let mut kept = PluginSet::default();
    for entry in &set.enabled {
        if entry.name == "*" {
            diagnostics.add(&entry.at, "\"*\" stands for all plugins under disabled only");
        } else if !is_known(&entry.name, registry) {
            diagnostics.add(&entry.at, refusal(&entry.name, registry));
        } else if kept.enabled.iter().any(|have| have.name == entry.name) {
            diagnostics.add(&entry.at, format!("{} is enabled twice here", entry.name));
        } else {
            kept.enabled.push(entry.clone());
        }
    }
    for entry in &set.disabled {
        let is_known = entry.name == "*" || is_known(&entry.name, registry);
        if is_known || foreign(&entry.name) != Foreign::Unknown {
            kept.disabled.push(entry.clone());
        } else {
            diagnostics.add(&entry.at, refusal(&entry.name, registry));
        }
    }
    kept
}

/// Returns the arguments without those of unknown or repeated plugins, which are reported.
pub(super) fn args<'f, 'a>(
    file: &'f FileProfile<'a>,
    registry: &Registry,
    diagnostics: &mut Diagnostics,
) -> Vec<&'f FileArgs<'a>> {
    let mut kept: Vec<&FileArgs<'_>> = Vec::new();
    for args in &file.args {
        if !is_known(&args.name, registry) {
            diagnostics.add(&args.at, refusal(&args.name, registry));
        } else if kept.iter().any(|have| have.name == args.name) {
            diagnostics.add(&args.at, format!("{} is configured twice", args.name));
        } else {
            kept.push(args);
        }
    }
    kept
}
