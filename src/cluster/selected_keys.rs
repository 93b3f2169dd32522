//! The label keys that some selector over pods reads.
//!
//! Two pods that differ only in labels nobody selects by are alike to every plugin. So a pod's spec holds
//! these labels alone, and the thousand workers of a job, each with its index in a label, are one shape. A
//! key that was read once stays: keys come with new selectors, seldom, and each costs a walk over all pods.

use std::sync::Arc;

use crate::model::collections::FxHashSet;
use crate::model::selector::{LabelSelector, Labels};
use crate::model::{Name, Pod};

/// With more keys than this all labels count: nobody should be able to make us walk over all pods at will.
const MOST: usize = 256;

/// The keys.
#[derive(Clone, Debug, Default)]
pub struct SelectedKeys {
    keys: FxHashSet<Name>,
    all: bool,
}

impl SelectedKeys {
    /// Adds the keys a selector reads. Returns whether pods must be projected anew.
    pub(super) fn add<'a>(&mut self, selectors: impl Iterator<Item = &'a LabelSelector>) -> bool {
        if self.all {
            return false;
        }
        let mut grown = false;
        for key in selectors.flat_map(LabelSelector::keys) {
            if !self.keys.contains(key) {
                grown |= self.keys.insert(key.clone());
            }
        }
        self.all = self.keys.len() > MOST;
        grown
    }

    /// Whether a label with this key is kept.
    pub fn contains(&self, key: &Name) -> bool {
        self.all || self.keys.contains(key)
    }

    /// Returns the labels that some selector reads.
    pub fn project(&self, labels: &Labels) -> Labels {
        if labels.iter().all(|(key, _)| self.contains(key)) {
            return labels.clone();
        }
        Labels::new(labels.iter().filter(|(key, _)| self.contains(key)).cloned())
    }

    /// Whether a pod's spec holds what it should of the pod.
    pub(super) fn fits(&self, pod: &Pod) -> bool {
        let (spec, labels) = (&pod.spec, pod.labels.iter().filter(|(key, _)| self.contains(key)));
        spec.namespace == pod.key.namespace && spec.priority == pod.priority && spec.labels.iter().eq(labels)
    }

    /// Makes a pod's spec hold that.
    pub(super) fn fit(&self, pod: &mut Arc<Pod>) {
        let labels = self.project(&pod.labels);
        let pod = Arc::make_mut(pod);
        let spec = Arc::make_mut(&mut pod.spec);
        spec.labels = labels;
        spec.namespace = pod.key.namespace.clone();
        spec.priority = pod.priority;
    }
}
