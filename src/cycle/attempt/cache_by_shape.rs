//! Keeps node results between attempts, per profile and pod shape.

use pellucid_cluster::ShapeId;
use pellucid_model::collections::FxHashMap;

use crate::attempt::node_result_cache::NodeResultCache;

/// Maximum number of cached shapes; the least recently used one is dropped first. At 5,000 nodes a shape takes about
/// 200 kB.
const SHAPES_KEPT: usize = 256;

struct CachedShape {
    results: NodeResultCache,
    generation: u32,
    used: u64,
}

/// The node results of the most recently used shapes.
#[derive(Default)]
pub(crate) struct CacheByShape {
    results: FxHashMap<(usize, ShapeId), CachedShape>,
}

impl CacheByShape {
    /// Returns the results of a shape. They are empty if the cached ones belong to an earlier shape with the same id.
    pub(crate) fn of(&mut self, key: (usize, ShapeId), generation: u32, cycle: u64) -> &mut NodeResultCache {
        self.make_room(key);
        let anew = || CachedShape { results: NodeResultCache::default(), generation, used: cycle };
        let cached = self.results.entry(key).or_insert_with(anew);
        if cached.generation != generation {
            *cached = anew();
        }
        cached.used = cycle;
        &mut cached.results
    }

    fn make_room(&mut self, key: (usize, ShapeId)) {
        if self.results.len() >= SHAPES_KEPT && !self.results.contains_key(&key) {
            let oldest = self.results.iter().min_by_key(|(_, c)| c.used).map(|(k, _)| *k);
            if let Some(oldest) = oldest {
                self.results.remove(&oldest);
            }
        }
    }
}
