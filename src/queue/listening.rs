//! The table of the events that each plugin listens to, which the queue reads instead of asking plugins.

use std::sync::Arc;

use pellucid_cluster::EventKinds;

use super::RefusedBy;

/// The event kinds that each plugin listens to, by profile and plugin. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Listening(Arc<[Vec<EventKinds>]>);

impl Listening {
    /// Every kind that a plugin can listen to. As in kube-scheduler, a plugin that registers nothing listens to all of
    /// them, and so does a unit that no plugin refused.
    pub const ALL: EventKinds = EventKinds(!EventKinds::OTHER.0);

    /// Makes the table from the kinds of each plugin, per profile and in the order of its plugins.
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

    /// Returns the kinds that a plugin listens to; an unknown plugin listens to all.
    #[inline]
    pub fn of(&self, profile: usize, plugin: usize) -> EventKinds {
        self.0.get(profile).and_then(|plugins| plugins.get(plugin.min(63))).copied().unwrap_or(Self::ALL)
    }

    /// Returns the kinds that at least one of the plugins listens to; without plugins, all.
    #[inline]
    pub fn of_any(&self, profile: usize, plugins: RefusedBy) -> EventKinds {
        if plugins.is_empty() {
            return Self::ALL;
        }
        EventKinds::union(plugins.iter().map(|plugin| self.of(profile, plugin)))
    }

    /// Returns the plugins of the set that listen to one of the kinds.
    #[inline]
    pub fn asked(&self, profile: usize, plugins: RefusedBy, kinds: EventKinds) -> RefusedBy {
        let mut asked = RefusedBy::default();
        for plugin in plugins.iter().filter(|plugin| self.of(profile, *plugin).any(kinds)) {
            asked.insert(plugin);
        }
        asked
    }
}
