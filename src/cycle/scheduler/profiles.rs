//! The profiles, and what persists for each between attempts.

use std::sync::Arc;

use pellucid_framework::profile::Profile;
use pellucid_model::Name;
use pellucid_model::collections::FxHashMap;

use crate::attempt::cache_by_shape::CacheByShape;
use crate::attempt::chain::PluginTally;

/// Owns what attempts need besides the state and the queue. A profile is known by its index in the configuration.
pub(crate) struct Profiles {
    pub(crate) all: Arc<[Arc<Profile>]>,
    /// Index of the profile that serves a `spec.schedulerName`.
    pub(crate) by_name: FxHashMap<Name, usize>,
    /// Node results per profile and pod shape.
    pub(crate) results: CacheByShape,
    /// Counters since the start, per profile and plugin.
    pub(crate) tally: Vec<Vec<PluginTally>>,
    /// Position in tie order at which the next sampled search begins (`percentageOfNodesToScore`), per profile.
    pub(crate) starts: Vec<usize>,
}

impl Profiles {
    /// Creates the profiles. In shadow mode the first one decides for all pods of the other scheduler.
    pub(crate) fn new(profiles: Vec<Profile>, shadow_of: Option<&Name>) -> Self {
        let all: Arc<[Arc<Profile>]> = profiles.into_iter().map(Arc::new).collect();
        let by_name = match shadow_of {
            Some(name) => FxHashMap::from_iter([(name.clone(), 0)]),
            None => all.iter().enumerate().map(|(i, p)| (p.scheduler_name.clone(), i)).collect(),
        };
        Self {
            by_name,
            results: CacheByShape::default(),
            tally: all.iter().map(|p| vec![PluginTally::default(); p.plugins.len()]).collect(),
            starts: vec![0; all.len()],
            all,
        }
    }
}
