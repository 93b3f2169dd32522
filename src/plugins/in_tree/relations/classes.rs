//! Label classes: groups of pods that no selector can distinguish, with their number per node.
//!
//! A class is a namespace, the labels that selectors read, and whether its pods are being deleted. An index by label
//! finds the classes for a selector, so a query costs the number of candidate classes, not the number of pods.

use std::sync::Arc;

use pellucid_model::selector::{LabelSelector, Labels, Operator};
use pellucid_model::{CowMap, Name, NodeIdx, Pages, Pod};

use super::counts::NodeCounts;

type ClassId = u32;

/// Pods that every selector treats alike.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    /// Namespace of the pods.
    pub(crate) namespace: Name,
    /// The labels that at least one selector reads.
    pub(crate) labels: Labels,
    /// Whether the pods are being deleted.
    pub(crate) terminating: bool,
    /// Number of pods per node slot.
    pub(crate) counts: NodeCounts,
}

type ClassKey = (Name, Labels, bool);

/// Holds all classes that have pods, with their indexes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    all: Pages<Option<Arc<Class>>>,
    free: Vec<ClassId>,
    ids: CowMap<ClassKey, ClassId>,
    by_namespace: CowMap<Name, Arc<Vec<ClassId>>>,
    by_label: CowMap<(Name, Name, Name), Arc<Vec<ClassId>>>,
    /// The last class looked up: equal pods often arrive in a row.
    last: Option<(ClassKey, ClassId)>,
}

impl Classes {
    /// Counts a pod that was placed on a node, creating its class if needed.
    pub(super) fn add(&mut self, node: NodeIdx, pod: &Pod) {
        let id = self.find(pod).unwrap_or_else(|| self.make(pod));
        if let Some(class) = &mut self.all[id as usize] {
            Arc::make_mut(class).counts.add(node);
        }
    }

    /// Stops counting a pod on a node. Removes its class when no pod is left.
    pub(super) fn remove(&mut self, node: NodeIdx, pod: &Pod) {
        let Some(id) = self.find(pod) else { return };
        let Some(class) = &mut self.all[id as usize] else { return };
        let class = Arc::make_mut(class);
        class.counts.remove(node);
        if class.counts.total() == 0 {
            self.forget(id);
        }
    }

    fn find(&mut self, pod: &Pod) -> Option<ClassId> {
        let (namespace, labels, terminating) = (&pod.spec.namespace, &pod.spec.labels, pod.deleting);
        if let Some((key, id)) = &self.last
            && key.0 == *namespace
            && key.2 == terminating
            && key.1 == *labels
        {
            return Some(*id);
        }
        let key = (namespace.clone(), labels.clone(), terminating);
        let id = *self.ids.get(&key)?;
        self.last = Some((key, id));
        Some(id)
    }

    fn make(&mut self, pod: &Pod) -> ClassId {
        let id = self.free.pop().unwrap_or(self.all.len() as ClassId);
        let (namespace, labels) = (pod.spec.namespace.clone(), pod.spec.labels.clone());
        insert(&mut self.by_namespace, namespace.clone(), id);
        for (key, value) in labels.iter() {
            insert(&mut self.by_label, (namespace.clone(), key.clone(), value.clone()), id);
        }
        self.ids.insert((namespace.clone(), labels.clone(), pod.deleting), id);
        let counts = NodeCounts::default();
        let class = Class { namespace, labels, terminating: pod.deleting, counts };
        self.all.set(id as usize, Some(Arc::new(class)));
        id
    }

    fn forget(&mut self, id: ClassId) {
        let Some(class) = self.all[id as usize].take() else { return };
        self.last = None;
        let Class { namespace, labels, terminating, .. } = &*class;
        remove(&mut self.by_namespace, namespace, id);
        for (key, value) in labels.iter() {
            remove(&mut self.by_label, &(namespace.clone(), key.clone(), value.clone()), id);
        }
        self.ids.remove(&(namespace.clone(), labels.clone(), *terminating));
        self.free.push(id);
    }

    /// Iterates over the namespaces that have placed pods, in no particular order.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &Name> {
        self.by_namespace.iter().map(|(namespace, _)| namespace)
    }

    /// Calls `with` for every class of a namespace that matches a selector, in no particular order.
    pub(crate) fn matching<'a>(
        &'a self,
        namespace: &Name,
        selector: &LabelSelector,
        mut with: impl FnMut(&'a Class),
    ) {
        let mut visit = |ids: Option<&Arc<Vec<ClassId>>>| {
            for id in ids.into_iter().flat_map(|ids| ids.iter()) {
                if let Some(class) = &self.all[*id as usize]
                    && selector.matches(&class.labels)
                {
                    with(class);
                }
            }
        };
        let listed = selector.requirements().iter().filter(|r| r.operator == Operator::In);
        match listed.min_by_key(|r| r.values.len()) {
            Some(requirement) => {
                for (at, value) in requirement.values.iter().enumerate() {
                    // A class has one value per key, so it is visited once unless the list contains duplicates.
                    if !requirement.values[..at].contains(value) {
                        let key = (namespace.clone(), requirement.key.clone(), value.clone());
                        visit(self.by_label.get(&key));
                    }
                }
            }
            None => visit(self.by_namespace.get(namespace)),
        }
    }
}

/// Adds an id to the list of a key in an index.
pub(crate) fn insert<K: Eq + std::hash::Hash + Clone>(index: &mut CowMap<K, Arc<Vec<u32>>>, key: K, id: u32) {
    let mut ids = index.remove(&key).unwrap_or_default();
    Arc::make_mut(&mut ids).push(id);
    index.insert(key, ids);
}

/// Removes an id from the list of a key in an index, and the key when its list becomes empty.
pub(crate) fn remove<K: Eq + std::hash::Hash + Clone>(
    index: &mut CowMap<K, Arc<Vec<u32>>>,
    key: &K,
    id: u32,
) {
    let Some(mut ids) = index.remove(key) else { return };
    let list = Arc::make_mut(&mut ids);
    if let Some(at) = list.iter().position(|known| *known == id) {
        list.swap_remove(at);
    }
    if !list.is_empty() {
        index.insert(key.clone(), ids);
    }
}

#[cfg(test)]
mod tests {
    use pellucid_model::PodSpec;
    use pellucid_model::selector::Requirement;

    use super::*;

    fn pod(namespace: &str, app: &str, deleting: bool) -> Pod {
        let labels = Labels::new([("app".into(), app.into())]);
        let spec = PodSpec { namespace: namespace.into(), labels, ..PodSpec::default() };
        Pod { spec: Arc::new(spec), deleting, ..Pod::default() }
    }

    fn selector(operator: Operator, values: &[&str]) -> LabelSelector {
        let values = values.iter().map(|v| Name::new(v)).collect();
        LabelSelector::new([Requirement { key: "app".into(), operator, values }])
    }

    fn found(classes: &Classes, namespace: &str, selector: &LabelSelector) -> usize {
        let mut n = 0;
        classes.matching(&namespace.into(), selector, |class| n += class.counts.total());
        n
    }

    #[test]
    fn a_selector_finds_its_classes_in_one_namespace() {
        let mut classes = Classes::default();
        let pods =
            [pod("x", "web", false), pod("x", "web", true), pod("x", "db", false), pod("y", "web", false)];
        for pod in &pods {
            classes.add(NodeIdx(1), pod);
            classes.add(NodeIdx(70), pod);
        }
        for (operator, values, want) in [
            (Operator::In, &["web"][..], 4),
            (Operator::In, &["web", "web", "db"], 6),
            (Operator::In, &["none"], 0),
            (Operator::NotIn, &["web"], 2),
            (Operator::Exists, &[], 6),
        ] {
            assert_eq!(found(&classes, "x", &selector(operator, values)), want, "{operator:?} {values:?}");
        }
        assert_eq!(found(&classes, "x", &LabelSelector::default()), 6);
        let seen = classes.clone();
        for pod in &pods {
            classes.remove(NodeIdx(1), pod);
            classes.remove(NodeIdx(70), pod);
        }
        assert_eq!(found(&classes, "x", &LabelSelector::default()), 0);
        assert!(classes.ids.is_empty() && classes.by_namespace.is_empty() && classes.by_label.is_empty());
        assert_eq!(found(&seen, "x", &LabelSelector::default()), 6);
        classes.add(NodeIdx(1), &pods[2]);
        assert_eq!(found(&classes, "x", &selector(Operator::In, &["db"])), 1);
    }
}
