//! Applies watch events for kinds other than pods and nodes, and re-projects pods when the selectors change.

use std::sync::Arc;

use pellucid_model::collections::FxHashSet;
use pellucid_model::{Object, ObjectKind, Pod, PodId, PodSpec};

use super::custom::report_touched;
use crate::event::ClusterEvent;
use crate::input::Quarantined;
use crate::objects::ObjectKey;
use crate::selected_keys::KeyCounts;
use crate::shapes::NodeKeys;
use crate::state::Cluster;

impl Cluster {
    /// Applies an object that was added or changed.
    pub fn apply_object(&mut self, object: Arc<Object>, out: &mut Vec<ClusterEvent>) {
        let (namespace, name) = object.key();
        self.forget_quarantined(object.kind().as_str(), &namespace, &name);
        if self.objects.get(object.kind(), &(namespace, name)).is_some_and(|known| *known == object) {
            return;
        }
        if self.key_counts.add(&mut self.selected, object.pod_selector().into_iter()) {
            self.project_all(out);
        }
        let old = self.objects.insert(object.clone());
        let selector = old.as_ref().and_then(|old| old.pod_selector());
        KeyCounts::remove(&mut self.selected, selector.into_iter());
        self.settle_keys(out);
        let touched = self.notify_plugins(|state, _| state.object_changed(old.as_deref(), Some(&object)));
        report_touched(touched, out);
        self.update_gangs_for_object(old.as_deref(), Some(&object));
        out.push(ClusterEvent::ObjectChanged { old, new: Some(object) });
    }

    /// Applies the deletion of an object.
    pub fn delete_object(&mut self, kind: ObjectKind, key: &ObjectKey, out: &mut Vec<ClusterEvent>) {
        self.forget_quarantined(kind.as_str(), &key.0, &key.1);
        let Some(old) = self.objects.remove(kind, key) else { return };
        KeyCounts::remove(&mut self.selected, old.pod_selector().into_iter());
        self.settle_keys(out);
        let touched = self.notify_plugins(|state, _| state.object_changed(Some(&old), None));
        report_touched(touched, out);
        self.update_gangs_for_object(Some(&old), None);
        out.push(ClusterEvent::ObjectChanged { old: Some(old), new: None });
    }

    /// Applies a complete list of objects of one kind: objects that are not in it are deleted.
    pub fn reset_objects(
        &mut self,
        kind: ObjectKind,
        objects: Vec<Arc<Object>>,
        bad: Vec<Quarantined>,
        out: &mut Vec<ClusterEvent>,
    ) {
        let live: FxHashSet<ObjectKey> = objects.iter().map(|o| o.key()).collect();
        let known = self.objects.iter(kind).map(|o| o.key());
        let mut gone: Vec<ObjectKey> = known.filter(|key| !live.contains(key)).collect();
        gone.sort();
        for key in &gone {
            self.delete_object(kind, key, out);
        }
        for object in objects {
            self.apply_object(object, out);
        }
        self.reset_quarantined(kind.as_str(), bad, out);
    }

    /// Sets the keys of pods that plugins read: what decides about nodes, and labels that do not. Must be called before there
    /// are pods.
    pub fn declare_keys(&mut self, of_nodes: NodeKeys, wide_labels: &[&'static str]) {
        debug_assert!(self.pods.is_empty());
        self.selected.declare(&of_nodes.labels, wide_labels);
        self.shapes.declare(of_nodes);
    }

    /// Removes the labels that no selector reads from a pod's spec; the pod's own selectors count as well, until
    /// [`Self::project_end`] is called.
    pub(crate) fn project(&mut self, pod: &mut Arc<Pod>, out: &mut Vec<ClusterEvent>) {
        if self.key_counts.add(&mut self.selected, pod.spec.pod_selectors()) {
            self.project_all(out);
        }
        self.selected.fit(pod);
    }

    /// Ends what [`Self::project`] began: the projected pod is in the state now, or never will be.
    pub(crate) fn project_end(&mut self, spec: &PodSpec, out: &mut Vec<ClusterEvent>) {
        KeyCounts::remove(&mut self.selected, spec.pod_selectors());
        self.settle_keys(out);
    }

    /// Counts the labels and selectors of a pod that enters the state.
    pub(crate) fn count_labels(&mut self, pod: &Pod) {
        self.key_counts.carry(&pod.labels, true);
        self.key_counts.add(&mut self.selected, pod.spec.pod_selectors());
    }

    /// The inverse of [`Self::count_labels`].
    pub(crate) fn uncount_labels(&mut self, pod: &Pod) {
        self.key_counts.carry(&pod.labels, false);
        KeyCounts::remove(&mut self.selected, pod.spec.pod_selectors());
    }

    /// Drops the label keys that no selector reads any more, once enough has changed to pay for the walk.
    pub(crate) fn settle_keys(&mut self, out: &mut Vec<ClusterEvent>) {
        let n_pods = self.pods.len() - self.free_pods.len().min(self.pods.len());
        if self.key_counts.settle(&mut self.selected, n_pods) {
            self.project_all(out);
        }
    }

    /// Recomputes the spec and shape of every pod whose labels are affected, after the set of selected label keys
    /// changed.
    fn project_all(&mut self, out: &mut Vec<ClusterEvent>) {
        let all: Vec<PodId> = self.pods().map(|(id, _)| id).collect();
        for id in all {
            let Some(record) = self.pod(id) else { continue };
            let (mut pod, node, stage) = (record.pod.clone(), record.node, record.stage);
            if !self.selected.fit(&mut pod) {
                continue;
            }
            match node {
                Some(node) => self.replace_in_place(id, node, stage, pod),
                None => {
                    let old = self.replace_object(id, pod);
                    out.push(ClusterEvent::PendingUpdated { id, old });
                }
            }
        }
    }
}
