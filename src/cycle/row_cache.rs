//! The rows that are kept from one attempt to the next, per profile and shape.

use pellucid_cluster::ShapeId;
use pellucid_model::collections::FxHashMap;

use super::rows::Rows;

/// Shapes whose rows are kept; the least recently used ones go first. At 5,000 nodes a shape takes about 200 kB.
const SHAPES_KEPT: usize = 256;

struct CachedRows {
    rows: Rows,
    generation: u32,
    used: u64,
}

/// See the module.
#[derive(Default)]
pub(super) struct RowCache {
    rows: FxHashMap<(usize, ShapeId), CachedRows>,
}

impl RowCache {
    /// Returns the rows of a shape, empty ones when those that are kept are of an earlier shape of that number.
    pub(super) fn of(&mut self, key: (usize, ShapeId), generation: u32, cycle: u64) -> &mut Rows {
        self.make_room(key);
        let anew = || CachedRows { rows: Rows::default(), generation, used: cycle };
        let cached = self.rows.entry(key).or_insert_with(anew);
        if cached.generation != generation {
            *cached = anew();
        }
        cached.used = cycle;
        &mut cached.rows
    }

    fn make_room(&mut self, key: (usize, ShapeId)) {
        if self.rows.len() >= SHAPES_KEPT && !self.rows.contains_key(&key) {
            let oldest = self.rows.iter().min_by_key(|(_, c)| c.used).map(|(k, _)| *k);
            if let Some(oldest) = oldest {
                self.rows.remove(&oldest);
            }
        }
    }
}
