//! A node as the scheduler sees it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::requests::ResourceList;
use crate::selector::Labels;
use crate::taint::Taint;

/// The stable number of a node slot. Columns are indexed by it; it never decides anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeIdx(pub u32);

impl NodeIdx {
    /// Returns it as an index.
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
    /// Name.
    pub name: Name,
    /// uid of the object.
    pub uid: Arc<str>,
    /// Labels.
    pub labels: Labels,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Taints in the order of the object: the first untolerated one is the one that is named.
    pub taints: Arc<[Taint]>,
    /// `status.allocatable`.
    pub allocatable: ResourceList,
    /// `status.declaredFeatures`, sorted.
    pub declared_features: Box<[Name]>,
    /// `status.images`.
    pub images: Arc<[NodeImage]>,
    /// Whether condition Ready is True; shown, never decided on (the node controller taints).
    pub ready: bool,
    /// Creation, seconds since 1970.
    pub created: i64,
}
