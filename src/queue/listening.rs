//! Which events each plugin listens to, as a table: the queue looks plugins up here and asks none.

use std::sync::Arc;

use pellucid_cluster::EventKinds;

use super::RefusedBy;

/// Per profile and plugin the kinds of events it listens to. Cheap to copy.
#[derive(Clone, Debug, Default)]
pub struct Listening(Arc<[Vec<EventKinds>]>);

impl Listening {
    /// Every kind that somebody could listen to. A plugin that registers nothing listens to all of them, as
    /// with kube-scheduler, and so does a unit that no plugin refused.
    pub const ALL: EventKinds = EventKinds(!EventKinds::OTHER.0);

    /// Makes the table: per profile, in the order of its plugins, what each listens to.
    pub fn new(profiles: impl IntoIterator<Item = Vec<EventKinds>>) -> Self {
        let table = profiles.into_iter().map(|plugins| {
            // Plugins beyond the 63rd share a bit, hence an entry.
            let mut kinds = vec![EventKinds::NONE; plugins.len().min(64)];
            for (i, plugin) in plugins.into_iter().enumerate() {
                kinds[i.min(63)] = kinds[i.min(63)].with(plugin);
            }
            kinds
        });
        Self(table.collect())
    }

    /// Returns what a plugin listens to.
    pub fn of(&self, profile: usize, plugin: usize) -> EventKinds {
        self.0.get(profile).and_then(|plugins| plugins.get(plugin.min(63))).copied().unwrap_or(Self::ALL)
    }

    /// Returns what some of the plugins listen to.
    pub fn of_any(&self, profile: usize, plugins: RefusedBy) -> EventKinds {
        if plugins.is_empty() {
            return Self::ALL;
        }
        plugins.iter().fold(EventKinds::NONE, |all, plugin| all.with(self.of(profile, plugin)))
    }

    /// Returns those of the plugins that listen to one of the kinds.
    pub fn asked(&self, profile: usize, plugins: RefusedBy, kinds: EventKinds) -> RefusedBy {
        let mut asked = RefusedBy::default();
        for plugin in plugins.iter().filter(|plugin| self.of(profile, *plugin).any(kinds)) {
            asked.insert(plugin);
        }
        asked
    }
}
