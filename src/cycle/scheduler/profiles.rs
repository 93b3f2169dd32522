//! The profiles, and what persists for each between attempts.

use std::sync::Arc;

use pellucid_cluster::ShapeId;
use pellucid_cluster::shapes::Shapes;
use pellucid_framework::profile::Profile;
use pellucid_model::Name;
use pellucid_model::collections::FxHashMap;

use crate::attempt::chain::PluginTally;
use crate::attempt::global_plugins::OneNode;
use crate::attempt::node_result_cache::NodeResultCache;

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
    /// Buffers of all attempts.
    pub(crate) scratch: OneNode,
}

impl Profiles {
    /// Creates the profiles. In shadow mode the first one decides for all pods of the other scheduler.
    pub(crate) fn new(all: Arc<[Arc<Profile>]>, shadow_of: Option<&Name>) -> Self {
        let by_name = match shadow_of {
            Some(name) => FxHashMap::from_iter([(name.clone(), 0)]),
            None => all.iter().enumerate().map(|(i, p)| (p.scheduler_name.clone(), i)).collect(),
        };
        Self {
            by_name,
            results: CacheByShape::default(),
            tally: all.iter().map(|p| vec![PluginTally::default(); p.plugins.len()]).collect(),
            starts: vec![0; all.len()],
            scratch: OneNode::default(),
            all,
        }
    }
}

/// Maximum number of cached node shapes; the least recently used one is dropped first. At 5,000 nodes one takes about
/// 200 kB.
const SHAPES_KEPT: usize = 256;

struct CachedShape {
    results: NodeResultCache,
    generation: u32,
    used: u64,
}

/// The node results of the most recently used node shapes.
#[derive(Default)]
pub(crate) struct CacheByShape {
    results: FxHashMap<(usize, ShapeId), Box<CachedShape>>,
}

impl CacheByShape {
    /// Returns the results for a profile and a shape, shared with all shapes of its node shape. They are empty if the
    /// cached ones belong to an earlier node shape with the same id.
    pub(crate) fn of(
        &mut self,
        (profile, shape): (usize, ShapeId),
        shapes: &Shapes,
        cycle: u64,
    ) -> &mut NodeResultCache {
        let (node_shape, generation) = shapes.node_shape(shape);
        let key = (profile, node_shape);
        if self.results.len() >= SHAPES_KEPT && !self.results.contains_key(&key) {
            let oldest = self.results.iter().min_by_key(|(_, c)| c.used).map(|(k, _)| *k);
            if let Some(oldest) = oldest {
                self.results.remove(&oldest);
            }
        }
        let anew = || Box::new(CachedShape { results: NodeResultCache::default(), generation, used: cycle });
        let cached = self.results.entry(key).or_insert_with(anew);
        if cached.generation != generation {
            *cached = anew();
        }
        cached.used = cycle;
        &mut cached.results
    }
}
