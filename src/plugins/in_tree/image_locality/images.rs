//! Image sizes, and the nodes that have each image.
//!
//! Nodes may report different sizes for one name, but one size applies everywhere. kube-scheduler uses the first that
//! it observes; this state uses that of the oldest node with the image (by creation, then by arrival), so that the
//! result does not depend on the order of later updates.

use std::sync::Arc;

use pellucid_cluster::DerivedState;
use pellucid_cluster::derived::Touched;
use pellucid_model::node::NodeImage;
use pellucid_model::{CowMap, Name, Node, NodeIdx, Pages};

use super::super::node_mask::NodeMask;

/// An image that at least one node has.
#[derive(Clone, Debug)]
pub struct Image {
    size: i64,
    /// The node that determines the size.
    from: NodeIdx,
    nodes: NodeMask,
}

impl Image {
    /// Returns the size in bytes.
    pub fn size(&self) -> i64 {
        self.size
    }

    /// Returns the number of nodes with the image.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether a node has the image.
    pub fn is_on(&self, node: NodeIdx) -> bool {
        self.nodes.contains(node)
    }
}

/// The images of a node, and its age.
#[derive(Clone, Debug, Default)]
struct OnNode {
    images: Arc<[NodeImage]>,
    /// Creation time, then arrival number.
    age: (i64, u64),
}

/// Holds the images of all nodes, as derived state of the cluster.
#[derive(Clone, Default)]
pub struct Images {
    by_name: CowMap<Name, Arc<Image>>,
    nodes: Pages<Option<OnNode>>,
    arrivals: u64,
}

impl Images {
    /// Returns an image by name.
    pub fn get(&self, name: &Name) -> Option<&Image> {
        self.by_name.get(name).map(|image| &**image)
    }

    /// Iterates over all images, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Image)> {
        self.by_name.iter().map(|(name, image)| (name, &**image))
    }

    fn age(&self, node: NodeIdx) -> (i64, u64) {
        self.nodes.get(node.index()).and_then(Option::as_ref).map_or((i64::MAX, u64::MAX), |n| n.age)
    }

    /// Returns the size that a node reports for a name, from the first entry with it.
    fn size_on(&self, node: NodeIdx, name: &Name) -> i64 {
        let images = self.nodes.get(node.index()).and_then(Option::as_ref).map_or(&[][..], |n| &n.images);
        images.iter().find(|i| i.names.contains(name)).map_or(0, |i| i.size)
    }

    fn add(&mut self, node: NodeIdx, name: &Name) {
        let size = self.size_on(node, name);
        // Remove and reinsert the entry, so that it is copied only when a published snapshot still shares it.
        let mut image = self
            .by_name
            .remove(name)
            .unwrap_or_else(|| Arc::new(Image { size, from: node, nodes: NodeMask::default() }));
        let takes_over = self.age(node) < self.age(image.from);
        let changed = Arc::make_mut(&mut image);
        changed.nodes.set(node, true);
        if takes_over {
            (changed.size, changed.from) = (size, node);
        }
        self.by_name.insert(name.clone(), image);
    }

    fn remove(&mut self, node: NodeIdx, name: &Name) {
        let Some(mut image) = self.by_name.remove(name) else { return };
        let changed = Arc::make_mut(&mut image);
        changed.nodes.set(node, false);
        if changed.from == node {
            let Some(oldest) = changed.nodes.iter().min_by_key(|n| self.age(*n)) else { return };
            (changed.size, changed.from) = (self.size_on(oldest, name), oldest);
        }
        if changed.nodes.is_empty() {
            return;
        }
        self.by_name.insert(name.clone(), image);
    }
}

fn names(images: &[NodeImage]) -> impl Iterator<Item = &Name> {
    images.iter().flat_map(|i| i.names.iter())
}

impl DerivedState for Images {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn node_changed(&mut self, node: NodeIdx, old: Option<&Node>, new: Option<&Node>) -> Touched {
        let (before, after) = (old.map(|n| &n.images), new.map(|n| &n.images));
        if before.is_some() && before == after {
            return Touched::Nothing;
        }
        // Remove names while the node's old images are still stored, because sizes may be determined anew.
        for name in before.into_iter().flat_map(|images| names(images)) {
            self.remove(node, name);
        }
        let Some(new) = new else {
            if let Some(slot) = self.nodes.get_mut(node.index()) {
                *slot = None;
            }
            return Touched::Nothing;
        };
        let age = match self.nodes.get(node.index()).and_then(Option::as_ref) {
            Some(known) if old.is_some() => (new.created, known.age.1),
            _ => {
                self.arrivals += 1;
                (new.created, self.arrivals)
            }
        };
        self.nodes.set(node.index(), Some(OnNode { images: new.images.clone(), age }));
        for name in names(&new.images) {
            self.add(node, name);
        }
        Touched::Nothing
    }
}
