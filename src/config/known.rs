//! Looks plugin names up in the registry. The message for an unknown name says whether the plugin is unsupported,
//! removed or misspelt.

use pellucid_model::nearest::nearest;
use pellucid_framework::PluginFactory;

use super::file::{FileArgs, FileProfile, PluginSet};
use super::names::{Foreign, foreign};
use super::reader::Found;

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
            match nearest(name, known.iter().copied()) {
                Some(meant) => format!("no plugin is called {name:?}; did you mean {meant}?"),
                None => format!("no plugin is called {name:?}; known are {}", known.join(", ")),
            }
        }
    }
}

/// Returns the set without entries that are unknown or repeated, which are reported.
pub(super) fn entries(set: &PluginSet, registry: &Registry, found: &mut Found) -> PluginSet {
    let mut kept = PluginSet::default();
    for entry in &set.enabled {
        if entry.name == "*" {
            found.add(&entry.at, "\"*\" stands for all plugins under disabled only");
        } else if !is_known(&entry.name, registry) {
            found.add(&entry.at, refusal(&entry.name, registry));
        } else if kept.enabled.iter().any(|have| have.name == entry.name) {
            found.add(&entry.at, format!("{} is enabled twice here", entry.name));
        } else {
            kept.enabled.push(entry.clone());
        }
    }
    for entry in &set.disabled {
        let is_known = entry.name == "*" || is_known(&entry.name, registry);
        if is_known || foreign(&entry.name) != Foreign::Unknown {
            kept.disabled.push(entry.clone());
        } else {
            found.add(&entry.at, refusal(&entry.name, registry));
        }
    }
    kept
}

/// Returns the arguments without those of unknown or repeated plugins, which are reported.
pub(super) fn args<'f, 'a>(
    file: &'f FileProfile<'a>,
    registry: &Registry,
    found: &mut Found,
) -> Vec<&'f FileArgs<'a>> {
    let mut kept: Vec<&FileArgs<'_>> = Vec::new();
    for args in &file.args {
        if !is_known(&args.name, registry) {
            found.add(&args.at, refusal(&args.name, registry));
        } else if kept.iter().any(|have| have.name == args.name) {
            found.add(&args.at, format!("{} is configured twice", args.name));
        } else {
            kept.push(args);
        }
    }
    kept
}
