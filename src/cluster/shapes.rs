//! Shapes: one number for all pods with equal specs.
//!
//! A spec holds every pod field that a plugin reads, so what a plugin finds out about one pod of a shape holds for the
//! others. Which quota a pod uses is such a field too, and says nothing about nodes. So each shape also has a *node shape*:
//! that of its spec without the labels and annotations that no filter or score of a single node reads
//! ([`NodeKeys`]). Shapes of one node shape share what is known about nodes.

use std::sync::Arc;

use pellucid_model::collections::{HashMap, Lasting};
use pellucid_model::selector::Labels;
use pellucid_model::{Name, Pages, PodSpec};

/// Number of a shape. Reused after the shape's last pod is gone; of node shapes [`Shapes::node_shape`] tells the uses apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeId(pub u32);

/// The labels and annotations of pods that decide about nodes. A key that ends in `*` stands for all that begin so.
#[derive(Clone, Debug, Default)]
pub struct NodeKeys {
    /// Keys of labels.
    pub labels: Arc<[&'static str]>,
    /// Keys of annotations.
    pub annotations: Arc<[&'static str]>,
}

impl NodeKeys {
    /// Returns the spec without what says nothing about nodes.
    fn project(&self, spec: &Arc<PodSpec>) -> Arc<PodSpec> {
        let labels = kept(&spec.labels, &self.labels);
        let annotations = kept(&spec.annotations, &self.annotations);
        if labels.is_none() && annotations.is_none() && spec.wide_labels.is_empty() {
            return spec.clone();
        }
        let mut projected = PodSpec { wide_labels: Labels::default(), ..PodSpec::clone(spec) };
        projected.labels = labels.unwrap_or(projected.labels);
        projected.annotations = annotations.unwrap_or(projected.annotations);
        Arc::new(projected)
    }
}

/// Returns the entries with these keys, `None` for all.
fn kept(all: &Labels, keys: &[&str]) -> Option<Labels> {
    let names = |key: &&str, name: &Name| match key.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name.as_str() == *key,
    };
    let is_kept = |name: &Name| keys.iter().any(|key| names(key, name));
    let is_whole = all.iter().all(|(name, _)| is_kept(name));
    (!is_whole).then(|| Labels::new(all.iter().filter(|(name, _)| is_kept(name)).cloned()))
}

#[derive(Clone, Debug, Default)]
struct Entry {
    spec: Option<Arc<PodSpec>>,
    users: u32,
    /// Counts how often the number was given out.
    generation: u32,
}

/// Specs with numbers.
#[derive(Debug, Default)]
struct Table {
    entries: Pages<Entry>,
    index: HashMap<Arc<PodSpec>, ShapeId>,
    free: Vec<ShapeId>,
}

impl Clone for Table {
    /// Copies what readers need. The copy has no index, so it gives equal specs numbers of their own.
    #[inline]
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), index: HashMap::default(), free: Vec::new() }
    }
}

impl Table {
    /// Counts one more user of a spec. Returns its number, and the spec that its users share.
    fn acquire(&mut self, spec: &Arc<PodSpec>) -> (ShapeId, Arc<PodSpec>) {
        if let Some(&shape) = self.index.get(spec) {
            let entry = &mut self.entries[shape.0 as usize];
            entry.users += 1;
            let shared = entry.spec.clone().unwrap_or_else(|| spec.clone());
            return (shape, shared);
        }
        let shape = self.free.pop().unwrap_or(ShapeId(self.entries.len() as u32));
        self.entries.grow(shape.0 as usize + 1);
        let entry = &mut self.entries[shape.0 as usize];
        *entry = Entry { spec: Some(spec.clone()), users: 1, generation: entry.generation + 1 };
        self.index.make_room();
        self.index.insert(spec.clone(), shape);
        (shape, spec.clone())
    }

    /// Counts one user fewer. Returns whether it was the last.
    fn release(&mut self, shape: ShapeId) -> bool {
        let entry = &mut self.entries[shape.0 as usize];
        entry.users -= 1;
        if entry.users > 0 {
            return false;
        }
        if let Some(spec) = entry.spec.take() {
            self.index.remove(&spec);
            self.index.give_back();
        }
        self.free.push(shape);
        true
    }

    fn users(&self, shape: ShapeId) -> u32 {
        self.entries.get(shape.0 as usize).map_or(0, |entry| entry.users)
    }

    fn generation(&self, shape: ShapeId) -> u32 {
        self.entries.get(shape.0 as usize).map_or(0, |entry| entry.generation)
    }
}

/// The table of shapes in use, part of [`Cluster`](super::Cluster).
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    all: Table,
    /// Node shapes, used by shapes.
    nodes: Table,
    /// The node shape of each shape.
    node_shapes: Pages<ShapeId>,
    keys: NodeKeys,
}

impl Shapes {
    /// Sets the keys that decide about nodes. Must be called before there are pods.
    pub(super) fn declare(&mut self, keys: NodeKeys) {
        debug_assert!(self.is_empty());
        self.keys = keys;
    }

    /// Counts one more pod with this spec. Returns its shape, and the spec that the shape's pods share.
    pub(super) fn acquire(&mut self, spec: &Arc<PodSpec>) -> (ShapeId, Arc<PodSpec>) {
        let (shape, shared) = self.all.acquire(spec);
        if self.all.users(shape) == 1 {
            let (node_shape, _) = self.nodes.acquire(&self.keys.project(&shared));
            self.node_shapes.set(shape.0 as usize, node_shape);
        }
        (shape, shared)
    }

    /// Counts one pod fewer of a shape.
    pub(super) fn release(&mut self, shape: ShapeId) {
        if self.all.release(shape) {
            self.nodes.release(self.node_shapes[shape.0 as usize]);
        }
    }

    /// Returns a shape's node shape, and how often the number was given out; caches keyed by node shape compare it.
    #[inline]
    pub fn node_shape(&self, shape: ShapeId) -> (ShapeId, u32) {
        let node_shape = self.node_shapes.get(shape.0 as usize).copied().unwrap_or_default();
        (node_shape, self.nodes.generation(node_shape))
    }

    /// Returns the spec of a shape without what says nothing about nodes.
    #[inline]
    pub fn node_spec(&self, shape: ShapeId) -> Option<&PodSpec> {
        let node_shape = self.node_shapes.get(shape.0 as usize)?;
        self.nodes.entries.get(node_shape.0 as usize)?.spec.as_deref()
    }

    /// Returns the number of shapes in use.
    #[inline]
    pub fn len(&self) -> usize {
        self.all.entries.iter().filter(|e| e.spec.is_some()).count()
    }

    /// Returns whether no shape is in use.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(label: (&str, &str), milli_cpu: i64) -> Arc<PodSpec> {
        let mut spec =
            PodSpec { labels: Labels::new([(label.0.into(), label.1.into())]), ..PodSpec::default() };
        spec.requests.list.milli_cpu = milli_cpu;
        Arc::new(spec)
    }

    #[test]
    fn what_says_nothing_about_nodes_leaves_the_node_shape_alone() {
        let mut shapes = Shapes::default();
        shapes.declare(NodeKeys { labels: ["class", "of.nodes/*"].into(), annotations: [].into() });
        let mut of = |label, milli_cpu| {
            let (shape, _) = shapes.acquire(&spec(label, milli_cpu));
            (shape, shapes.node_shape(shape))
        };
        let (a, b) = (of(("quota", "a"), 1), of(("quota", "b"), 1));
        assert!(a.0 != b.0 && a.1 == b.1);
        assert_ne!(of(("quota", "a"), 2).1, a.1);
        assert_ne!(of(("class", "a"), 1).1, of(("class", "b"), 1).1);
        assert_ne!(of(("of.nodes/x", "a"), 1).1, a.1);
        // Other shapes keep the node shape, and a number that is given out again is told apart.
        shapes.release(a.0);
        assert_eq!(shapes.node_shape(b.0), b.1);
        shapes.release(b.0);
        let (shape, _) = shapes.acquire(&spec(("quota", "c"), 9));
        assert_ne!(shapes.node_shape(shape), b.1);
    }
}
