//! The profiles, and what is kept of each from one attempt to the next.

use std::sync::Arc;

use pellucid_framework::profile::Profile;
use pellucid_model::Name;
use pellucid_model::collections::FxHashMap;

use crate::attempt::cache_by_shape::CacheByShape;
use crate::attempt::chain::PluginTally;

/// Owns what attempts need besides the state and the queue. Profiles are known by their place in the configuration.
pub(crate) struct Profiles {
    pub(crate) all: Arc<[Arc<Profile>]>,
    /// Place of the profile that serves a `spec.schedulerName`.
    pub(crate) by_name: FxHashMap<Name, usize>,
    /// Results per profile and shape of pod.
    pub(crate) results: CacheByShape,
    /// What plugins did since the start, per profile and plugin.
    pub(crate) tally: Vec<Vec<PluginTally>>,
    /// Where the next sampled search begins (`percentageOfNodesToScore`), per profile.
    pub(crate) starts: Vec<usize>,
}

impl Profiles {
    /// In shadow mode the first profile decides for all pods of the other scheduler.
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
