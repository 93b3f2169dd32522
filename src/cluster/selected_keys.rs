//! The label keys that some pod selector reads.
//!
//! Two pods that differ only in labels that no selector reads are equal for every plugin. So a pod's spec holds only
//! selected labels, and the thousand workers of a job, each with its index in a label, share one shape. Each key counts
//! the selectors that name it. A new key costs a walk over all pods, if any pod carries it. A key that is no longer
//! named stays until as many pods and objects have been added, changed or deleted as there are pods. The walk that
//! removes such keys then costs each of these changes next to nothing, and nobody can trigger walks at will.

use std::sync::Arc;

use pellucid_model::collections::FxHashMap;
use pellucid_model::selector::{LabelSelector, Labels};
use pellucid_model::{Name, Pod};

/// Maximum number of keys that pods carry. Beyond it all labels count as selected, because each new key costs a walk.
const MOST: usize = 4096;

/// The selected label keys, shared with readers.
#[derive(Clone, Debug, Default)]
pub struct SelectedKeys {
    /// Number of selectors that name each key; a key that nobody names any more stays with zero until the next walk.
    users: Arc<FxHashMap<Name, u32>>,
    /// Number of keys in `users` that no selector names any more.
    unused: usize,
    /// Prefixes of keys that plugins declare.
    prefixes: Arc<[&'static str]>,
    /// Keys of the labels that say nothing about nodes, which plugins declare.
    wide: Arc<[Name]>,
}

impl SelectedKeys {
    /// Returns whether a pod's spec includes labels with this key.
    pub fn contains(&self, key: &Name) -> bool {
        self.users.contains_key(key)
            || self.keeps_all()
            || self.prefixes.iter().any(|prefix| key.starts_with(prefix))
    }

    /// Returns the number of keys that some selector reads.
    pub fn len(&self) -> usize {
        self.users.len() - self.unused
    }

    /// Returns whether no selector reads any label.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the subset of `labels` that some selector reads.
    pub fn project(&self, labels: &Labels) -> Labels {
        if labels.iter().all(|(key, _)| self.contains(key)) {
            return labels.clone();
        }
        Labels::new(labels.iter().filter(|(key, _)| self.contains(key)).cloned())
    }

    /// Returns the subset of `labels` that says nothing about nodes.
    fn wide<'a>(&'a self, labels: &'a Labels) -> impl Iterator<Item = &'a (Name, Name)> {
        let wide = &self.wide;
        let all = (!wide.is_empty()).then(|| labels.iter()).into_iter().flatten();
        all.filter(move |(key, _)| wide.contains(key))
    }

    /// Adds keys that plugins declare, permanently: those that may decide about nodes, and the others. A key that ends in
    /// `*` stands for all keys with that prefix; of the others each is whole.
    pub(super) fn declare(&mut self, keys: &[&'static str], wide: &[&'static str]) {
        self.wide = wide.iter().map(|key| Name::new(key)).collect();
        let mut prefixes = self.prefixes.to_vec();
        for key in keys {
            match key.strip_suffix('*') {
                Some(prefix) => prefixes.push(prefix),
                None => *Arc::make_mut(&mut self.users).entry(Name::new(key)).or_default() += 1,
            }
        }
        self.prefixes = prefixes.into();
    }

    fn keeps_all(&self) -> bool {
        self.users.len() > MOST
    }

    /// Returns whether a pod's spec holds the right labels, namespace and priority.
    fn fits(&self, pod: &Pod) -> bool {
        let (spec, labels) = (&pod.spec, pod.labels.iter().filter(|(key, _)| self.contains(key)));
        spec.namespace == pod.key.namespace
            && spec.priority == pod.priority
            && spec.labels.iter().eq(labels)
            && spec.wide_labels.iter().eq(self.wide(&pod.labels))
    }

    /// Corrects a pod's spec so that [`Self::fits`] holds. Returns whether it changed.
    pub(super) fn fit(&self, pod: &mut Arc<Pod>) -> bool {
        if self.fits(pod) {
            return false;
        }
        let labels = self.project(&pod.labels);
        let wide_labels = Labels::new(self.wide(&pod.labels).cloned());
        let pod = Arc::make_mut(pod);
        let spec = Arc::make_mut(&mut pod.spec);
        (spec.labels, spec.wide_labels) = (labels, wide_labels);
        spec.namespace = pod.key.namespace.clone();
        spec.priority = pod.priority;
        true
    }
}

/// Counts that decide when keys are added and removed. Owned by the writer, and not copied for readers.
#[derive(Debug)]
pub(super) struct KeyCounts {
    /// Number of pods that carry each label key; `None` when unknown, so any key may be carried.
    carried: Option<FxHashMap<Name, u32>>,
    /// Pods and objects added, changed or deleted since the last walk over all pods.
    since: usize,
}

impl Default for KeyCounts {
    /// Makes counts for an empty state, which will see every pod.
    fn default() -> Self {
        Self { carried: Some(FxHashMap::default()), since: 0 }
    }
}

impl KeyCounts {
    /// Makes counts for a state whose pods were not counted.
    pub(super) fn unknown() -> Self {
        Self { carried: None, since: 0 }
    }

    fn carries(&self, key: &Name) -> bool {
        self.carried.as_ref().is_none_or(|carried| carried.contains_key(key))
    }

    /// Counts the labels of a pod that enters (`is_there`) or leaves the state.
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

    /// Adds the keys of selectors. Returns whether all pods must be projected anew.
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

    /// Removes selectors. Keys that nobody names any more stay until [`Self::settle`] removes them.
    pub(super) fn remove<'a>(to: &mut SelectedKeys, selectors: impl Iterator<Item = &'a LabelSelector>) {
        for key in selectors.flat_map(LabelSelector::keys) {
            if let Some(n) = Arc::make_mut(&mut to.users).get_mut(key).filter(|n| **n > 0) {
                *n -= 1;
                to.unused += usize::from(*n == 0);
            }
        }
    }

    /// Counts one change, and removes unused keys when enough changes have been seen. Returns whether all pods must be
    /// projected anew.
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
