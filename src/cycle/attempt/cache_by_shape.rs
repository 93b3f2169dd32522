//! The rows that are kept from one attempt to the next, per profile and shape.

use pellucid_cluster::ShapeId;
use pellucid_model::collections::FxHashMap;

use crate::attempt::node_result_cache::NodeResultCache;

/// Shapes whose rows are kept; the least recently used ones go first. At 5,000 nodes a shape takes about 200 kB.
const SHAPES_KEPT: usize = 256;

struct CachedShape {
    results: NodeResultCache,
    generation: u32,
    used: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct CacheByShape {
    results: FxHashMap<(usize, ShapeId), CachedShape>,
}

impl CacheByShape {
    /// Returns the rows of a shape, empty ones when those that are kept are of an earlier shape of that number.
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
