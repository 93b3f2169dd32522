//! Shapes: one number for all pods with equal specs.
//!
//! What a plugin finds out about one pod of a shape holds for the others, because a spec holds every
//! field a plugin reads.

use std::sync::Arc;

use pellucid_model::collections::HashMap;
use pellucid_model::{Pages, PodSpec};

/// The number of a shape. Reused after its last pod is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeId(pub u32);

#[derive(Clone, Debug, Default)]
struct Entry {
    spec: Option<Arc<PodSpec>>,
    pods: u32,
    /// Tells users of the number apart over time.
    generation: u32,
}

/// The table of shapes in use.
#[derive(Debug, Default)]
pub struct Shapes {
    entries: Pages<Entry>,
    index: HashMap<Arc<PodSpec>, ShapeId>,
    free: Vec<ShapeId>,
}

impl Clone for Shapes {
    /// Copies what readers need; a copy cannot take new pods.
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), index: HashMap::default(), free: Vec::new() }
    }
}

impl Shapes {
    /// Counts one more pod with this spec.
    pub(super) fn acquire(&mut self, spec: &Arc<PodSpec>) -> (ShapeId, Arc<PodSpec>) {
        if let Some(&shape) = self.index.get(spec) {
            let entry = &mut self.entries[shape.0 as usize];
            entry.pods += 1;
            let shared = entry.spec.clone().unwrap_or_else(|| spec.clone());
            return (shape, shared);
        }
        let shape = self.free.pop().unwrap_or(ShapeId(self.entries.len() as u32));
        self.entries.grow(shape.0 as usize + 1);
        let entry = &mut self.entries[shape.0 as usize];
        *entry = Entry { spec: Some(spec.clone()), pods: 1, generation: entry.generation + 1 };
        self.index.insert(spec.clone(), shape);
        (shape, spec.clone())
    }

    /// Counts one pod less.
    pub(super) fn release(&mut self, shape: ShapeId) {
        let entry = &mut self.entries[shape.0 as usize];
        entry.pods -= 1;
        if entry.pods == 0 {
            if let Some(spec) = entry.spec.take() {
                self.index.remove(&spec);
            }
            self.free.push(shape);
        }
    }

    /// Returns the spec of a shape.
    pub fn spec(&self, shape: ShapeId) -> Option<&Arc<PodSpec>> {
        self.entries.get(shape.0 as usize).and_then(|e| e.spec.as_ref())
    }

    /// Returns how often the number was given out: caches keyed by it compare this.
    pub fn generation(&self, shape: ShapeId) -> u32 {
        self.entries.get(shape.0 as usize).map_or(0, |e| e.generation)
    }

    /// Returns how many shapes are in use.
    pub fn len(&self) -> usize {
        self.entries.iter().filter(|e| e.spec.is_some()).count()
    }

    /// Whether no shape is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
