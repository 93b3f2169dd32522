//! A node as the scheduler sees it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::requests::ResourceList;
use crate::selector::Labels;
use crate::taint::Taint;

/// The stable number of a node slot, which indexes the columns. Its value never decides anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeIdx(pub u32);

impl NodeIdx {
    /// Returns the number as an array index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A container image on a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeImage {
    /// All names of the image, as the node reports them.
    pub names: Box<[Name]>,
    /// Size in bytes.
    pub size: i64,
}

/// A node object, immutable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// `metadata.name`.
    pub name: Name,
    /// uid of the object.
    pub uid: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// Annotations that a plugin declares, see `framework::DeclaredKeys`.
    pub annotations: Labels,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Taints in the object's order: messages name the first one that is not tolerated.
    pub taints: Arc<[Taint]>,
    /// `status.allocatable`.
    pub allocatable: ResourceList,
    /// `status.declaredFeatures`, sorted.
    pub declared_features: Box<[Name]>,
    /// `status.images`.
    pub images: Arc<[NodeImage]>,
    /// Whether condition Ready is True. Only displayed; decisions use the taints of the node controller.
    pub ready: bool,
    /// Creation, in seconds since 1970.
    pub created: i64,
}
