//! The label keys that some selector over pods reads.
//!
//! Two pods that differ only in labels nobody selects by are alike to every plugin. So a pod's spec holds these labels
//! alone, and the thousand workers of a job, each with its index in a label, are one shape. A key is counted by the
//! selectors that name it. One that is new costs a walk over all pods, if any carries it. One that nobody names any more
//! stays until as many pods and objects have come, changed or gone as there are pods: then the walk that takes such keys
//! out costs each of them next to nothing, and nobody can have us walk at will.

use std::sync::Arc;

use pellucid_model::collections::FxHashMap;
use pellucid_model::selector::{LabelSelector, Labels};
use pellucid_model::{Name, Pod};

/// With more keys than this that pods carry all labels count, until there are fewer: each new one costs a walk.
const MOST: usize = 4096;

/// The keys.
#[derive(Clone, Debug, Default)]
pub struct SelectedKeys {
    /// Keys by the selectors that name them. Shared with readers.
    users: Arc<FxHashMap<Name, u32>>,
    /// Keys in the table that nobody names.
    unused: usize,
}

impl SelectedKeys {
    /// Whether a label with this key is kept.
    pub fn contains(&self, key: &Name) -> bool {
        self.users.contains_key(key) || self.keeps_all()
    }

    /// Returns the number of keys that some selector reads.
    pub fn len(&self) -> usize {
        self.users.len() - self.unused
    }

    /// Whether no selector reads any label.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the labels that some selector reads.
    pub fn project(&self, labels: &Labels) -> Labels {
        if labels.iter().all(|(key, _)| self.contains(key)) {
            return labels.clone();
        }
        Labels::new(labels.iter().filter(|(key, _)| self.contains(key)).cloned())
    }

    fn keeps_all(&self) -> bool {
        self.users.len() > MOST
    }

    /// Whether a pod's spec holds what it should of the pod.
    fn fits(&self, pod: &Pod) -> bool {
        let (spec, labels) = (&pod.spec, pod.labels.iter().filter(|(key, _)| self.contains(key)));
        spec.namespace == pod.key.namespace && spec.priority == pod.priority && spec.labels.iter().eq(labels)
    }

    /// Makes a pod's spec hold that. Returns whether it did not.
    pub(super) fn fit(&self, pod: &mut Arc<Pod>) -> bool {
        if self.fits(pod) {
            return false;
        }
        let labels = self.project(&pod.labels);
        let pod = Arc::make_mut(pod);
        let spec = Arc::make_mut(&mut pod.spec);
        spec.labels = labels;
        spec.namespace = pod.key.namespace.clone();
        spec.priority = pod.priority;
        true
    }
}

/// Counts what makes keys come and go. The writer's own: a copy for readers starts anew.
#[derive(Debug, Default)]
pub(super) struct KeyCounts {
    /// Pods by the label keys that they carry; `None`: not known, so any key may be carried.
    carried: Option<FxHashMap<Name, u32>>,
    /// Pods and objects that came, changed or went since the last walk over all pods.
    since: usize,
}

impl KeyCounts {
    /// Counts from the start.
    pub(super) fn complete() -> Self {
        Self { carried: Some(FxHashMap::default()), since: 0 }
    }

    fn carries(&self, key: &Name) -> bool {
        self.carried.as_ref().is_none_or(|carried| carried.contains_key(key))
    }

    /// A pod is in the state, or (`false`) is not any more.
    pub(super) fn carry(&mut self, labels: &Labels, is_there: bool) {
        let Some(carried) = &mut self.carried else { return };
        for (key, _) in labels.iter() {
            if is_there {
                *carried.entry(key.clone()).or_default() += 1;
            } else if let Some(n) = carried.get_mut(key) {
                *n -= 1;
                if *n == 0 {
                    carried.remove(key);
                }
            }
        }
    }

    /// Selectors come. Returns whether pods must be projected anew.
    pub(super) fn add<'a>(
        &mut self,
        to: &mut SelectedKeys,
        selectors: impl Iterator<Item = &'a LabelSelector>,
    ) -> bool {
        let (kept_all, mut is_new) = (to.keeps_all(), false);
        for key in selectors.flat_map(LabelSelector::keys) {
            let users = Arc::make_mut(&mut to.users);
            match users.get_mut(key) {
                Some(n) => {
                    to.unused -= usize::from(*n == 0);
                    *n += 1;
                }
                None => {
                    users.insert(key.clone(), 1);
                    is_new |= self.carries(key);
                }
            }
        }
        let must = !kept_all && (is_new || to.keeps_all());
        if must {
            self.since = 0;
        }
        must
    }

    /// Selectors go. Keys that nobody names any more stay until the next walk over the pods.
    pub(super) fn remove<'a>(to: &mut SelectedKeys, selectors: impl Iterator<Item = &'a LabelSelector>) {
        for key in selectors.flat_map(LabelSelector::keys) {
            if let Some(n) = Arc::make_mut(&mut to.users).get_mut(key).filter(|n| **n > 0) {
                *n -= 1;
                to.unused += usize::from(*n == 0);
            }
        }
    }

    /// Something came, changed or went. Lets unused keys go when it is time. Returns whether pods must be projected
    /// anew.
    pub(super) fn settle(&mut self, of: &mut SelectedKeys, n_pods: usize) -> bool {
        self.since += 1;
        if of.unused == 0 || self.since < n_pods {
            return false;
        }
        let kept_all = of.keeps_all();
        let mut must = false;
        Arc::make_mut(&mut of.users).retain(|key, n| {
            must |= *n == 0 && self.carries(key);
            *n > 0
        });
        of.unused = 0;
        must |= kept_all && !of.keeps_all();
        if must {
            self.since = 0;
        }
        must && !of.keeps_all()
    }
}
