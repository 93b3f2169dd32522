//! How watch events change the objects beside pods and nodes, and what new selectors mean for pods.

use std::sync::Arc;

use super::event::ClusterEvent;
use super::input::Quarantined;
use super::objects::ObjectKey;
use super::state::Cluster;
use crate::model::collections::FxHashSet;
use crate::model::{Object, ObjectKind, Pod, PodId};

impl Cluster {
    /// An object was added or changed.
    pub fn apply_object(&mut self, object: Arc<Object>, out: &mut Vec<ClusterEvent>) {
        let (namespace, name) = object.key();
        self.forget_quarantined(object.kind().as_str(), &namespace, &name);
        if self.objects.get(object.kind(), &(namespace, name)).is_some_and(|known| *known == object) {
            return;
        }
        if self.selected.add(object.pod_selector().into_iter()) {
            self.project_all(out);
        }
        let old = self.objects.insert(object.clone());
        for derived in &mut self.derived {
            derived.object_changed(old.as_deref(), Some(&object));
        }
        self.heed_gang_object(old.as_deref(), Some(&object));
        out.push(ClusterEvent::ObjectChanged { old, new: Some(object) });
    }

    /// An object is gone.
    pub fn delete_object(&mut self, kind: ObjectKind, key: &ObjectKey, out: &mut Vec<ClusterEvent>) {
        self.forget_quarantined(kind.as_str(), &key.0, &key.1);
        let Some(old) = self.objects.remove(kind, key) else { return };
        for derived in &mut self.derived {
            derived.object_changed(Some(&old), None);
        }
        self.heed_gang_object(Some(&old), None);
        out.push(ClusterEvent::ObjectChanged { old: Some(old), new: None });
    }

    /// These are all objects of a kind there are.
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

    /// Leaves the labels in a pod's spec that some selector reads, its own selectors included.
    pub(super) fn project(&mut self, pod: &mut Arc<Pod>, out: &mut Vec<ClusterEvent>) {
        if self.selected.add(pod.spec.pod_selectors()) {
            self.project_all(out);
        }
        if !self.selected.fits(pod) {
            self.selected.fit(pod);
        }
    }

    /// A selector reads a key that none read before: shapes are made anew where the label is there.
    fn project_all(&mut self, out: &mut Vec<ClusterEvent>) {
        let all: Vec<PodId> = self.pods().map(|(id, _)| id).collect();
        for id in all {
            let Some(record) = self.pod(id) else { continue };
            if self.selected.fits(&record.pod) {
                continue;
            }
            let (mut pod, node, stage) = (record.pod.clone(), record.node, record.stage);
            self.selected.fit(&mut pod);
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
