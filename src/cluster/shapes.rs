//! Shapes: one number for all pods with equal specs.
//!
//! A spec holds every pod field that a plugin reads, so what a plugin finds out about one pod of a shape holds for the
//! others.

use std::sync::Arc;

use pellucid_model::collections::HashMap;
use pellucid_model::{Pages, PodSpec};

/// Number of a shape. Reused after the shape's last pod is gone; [`Shapes::generation`] tells the uses apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeId(pub u32);

#[derive(Clone, Debug, Default)]
struct Entry {
    spec: Option<Arc<PodSpec>>,
    pods: u32,
    /// Counts how often the number was given out.
    generation: u32,
}

/// The table of shapes in use, part of [`Cluster`](super::Cluster).
#[derive(Debug, Default)]
pub struct Shapes {
    entries: Pages<Entry>,
    index: HashMap<Arc<PodSpec>, ShapeId>,
    free: Vec<ShapeId>,
}

impl Clone for Shapes {
    /// Copies what readers need. The copy has no index, so it cannot take new pods.
    #[inline]
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), index: HashMap::default(), free: Vec::new() }
    }
}

impl Shapes {
    /// Counts one more pod with this spec. Returns its shape, and the spec that the shape's pods share.
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

    /// Counts one pod fewer of a shape.
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

    /// Returns how often the number was given out; caches keyed by shape compare it.
    #[inline]
    pub fn generation(&self, shape: ShapeId) -> u32 {
        self.entries.get(shape.0 as usize).map_or(0, |e| e.generation)
    }

    /// Returns the number of shapes in use.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.iter().filter(|e| e.spec.is_some()).count()
    }

    /// Returns whether no shape is in use.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
