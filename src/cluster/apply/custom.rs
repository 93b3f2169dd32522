//! Applies objects of plugins' kinds, changes of placed pods that only plugins see, and deadlines of plugins.

use std::sync::Arc;
use std::time::Duration;

use pellucid_model::collections::FxHashSet;
use pellucid_model::{CustomKindRef, CustomObject, NodeIdx, Now, Pod, PodId};

use crate::derived::{DerivedState, HookContext, Placed, Told, Touched};
use crate::event::ClusterEvent;
use crate::input::Quarantined;
use crate::objects::ObjectKey;
use crate::state::Cluster;

impl Cluster {
    /// Applies an object of a plugin's kind that was added or changed.
    pub fn apply_custom(&mut self, object: Arc<CustomObject>, out: &mut Vec<ClusterEvent>) {
        let key = (object.namespace.clone(), object.name.clone());
        self.forget_quarantined(object.kind.0.qualified, &key.0, &key.1);
        if self.custom.get(object.kind, &key).is_some_and(|known| *known == object) {
            return;
        }
        let old = self.custom.insert(object.clone());
        self.notify_plugins(|state, cx| state.custom_changed(cx, old.as_deref(), Some(&object)));
        self.settle_given();
        match &object.pod {
            Some(Ok(pod)) => self.apply_pod(pod.clone(), out),
            Some(Err(_)) => self.delete_stand_in(old.as_deref(), out),
            None => {}
        }
        out.push(ClusterEvent::CustomChanged { old, new: Some(object) });
    }

    /// Applies the deletion of an object of a plugin's kind.
    pub fn delete_custom(&mut self, kind: CustomKindRef, key: &ObjectKey, out: &mut Vec<ClusterEvent>) {
        self.forget_quarantined(kind.0.qualified, &key.0, &key.1);
        let Some(old) = self.custom.remove(kind, key) else { return };
        self.notify_plugins(|state, cx| state.custom_changed(cx, Some(&old), None));
        self.delete_stand_in(Some(&old), out);
        out.push(ClusterEvent::CustomChanged { old: Some(old), new: None });
    }

    /// Removes the pod that stood for an object.
    fn delete_stand_in(&mut self, object: Option<&CustomObject>, out: &mut Vec<ClusterEvent>) {
        if let Some(Ok(pod)) = object.and_then(|object| object.pod.as_ref()) {
            let key = pod.key.clone();
            self.delete_pod(&key, out);
        }
    }

    /// Returns what a change of an object, which was applied, means for its history.
    pub fn told(&self, old: Option<&CustomObject>, new: Option<&CustomObject>) -> Vec<Told> {
        self.derived.iter().flat_map(|state| state.told(old, new)).collect()
    }

    /// Tells the plugins that a pod which stands for an object was refused.
    pub fn stand_in_refused(&mut self, pod: &Pod, message: &Arc<str>) {
        self.notify_plugins(|state, cx| {
            state.stand_in_refused(cx, pod, message);
            Touched::Nothing
        });
    }

    /// Tells the plugins that a pod which stands for an object is evicted.
    pub fn stand_in_evicted(&mut self, pod: &Pod, message: &Arc<str>) {
        self.notify_plugins(|state, cx| {
            state.stand_in_evicted(cx, pod, message);
            Touched::Nothing
        });
    }

    /// Applies a complete list of objects of a plugin's kind: objects that are not in it are deleted.
    pub fn reset_custom(
        &mut self,
        kind: CustomKindRef,
        objects: Vec<Arc<CustomObject>>,
        bad: Vec<Quarantined>,
        out: &mut Vec<ClusterEvent>,
    ) {
        let key = |object: &Arc<CustomObject>| (object.namespace.clone(), object.name.clone());
        let live: FxHashSet<ObjectKey> = objects.iter().map(key).collect();
        let mut gone: Vec<ObjectKey> =
            self.custom.iter(kind).map(key).filter(|k| !live.contains(k)).collect();
        gone.sort();
        for key in &gone {
            self.delete_custom(kind, key, out);
        }
        for object in objects {
            self.apply_custom(object, out);
        }
        self.reset_quarantined(kind.0.qualified, bad, out);
    }

    /// Notifies plugins that the object of a placed pod changed while its spec did not.
    pub(super) fn notify_placed_pod_changed(&mut self, id: PodId, old: &Pod) {
        let Some(record) = self.pod(id) else { return };
        let (Some(node), record) = (record.node, record.clone()) else { return };
        let placed = Placed::of(id, &record, node);
        self.notify_plugins(|state, _| state.placed_pod_changed(&placed, old));
    }

    /// Returns when a plugin's state changes by time alone, on the monotonic clock.
    pub fn next_plugin_deadline(&self, now: Now) -> Option<Duration> {
        self.state_index.timed.iter().filter_map(|at| self.derived[*at].next_deadline(now)).min()
    }

    /// Returns the wall time up to which deadlines of plugins have been handled.
    pub fn plugin_time(&self) -> Duration {
        self.plugin_time
    }

    /// Handles the deadlines of plugins up to now. Never called while an overlay is open.
    pub fn expire_plugin_state(&mut self, now: Now, out: &mut Vec<ClusterEvent>) {
        (self.now, self.plugin_time) = (now, self.plugin_time.max(now.wall));
        let touched = self.notify_plugins(|state, _| state.expire(now));
        report_touched(touched, out);
    }

    /// Calls a hook of every plugin's state, and invalidates the results of touched nodes. Returns these nodes,
    /// ascending, or `None` if nothing was touched.
    pub(super) fn notify_plugins(
        &mut self,
        mut hook: impl FnMut(&mut dyn DerivedState, &HookContext<'_>) -> Touched,
    ) -> Option<Vec<NodeIdx>> {
        let cx = HookContext { now: self.now, nodes: &self.node_index };
        let mut all = None;
        for state in &mut self.derived {
            let touched = hook(state.as_mut(), &cx);
            // Most states have nothing to say of most changes.
            if matches!(touched, Touched::Nothing) {
                continue;
            }
            self.changes.push_touched(&touched);
            let all = all.get_or_insert_with(Vec::new);
            match touched {
                Touched::Nothing | Touched::Attempts => {}
                Touched::Nodes(nodes) => all.extend(nodes),
                Touched::All => all.extend(self.present.iter().copied()),
            }
        }
        all.map(|mut nodes| {
            nodes.sort_unstable();
            nodes.dedup();
            nodes
        })
    }
}

/// Reports a change of plugins' states as an event, if anything was touched.
pub(super) fn report_touched(touched: Option<Vec<NodeIdx>>, out: &mut Vec<ClusterEvent>) {
    if let Some(nodes) = touched {
        out.push(ClusterEvent::PluginStateChanged { nodes: nodes.into() });
    }
}
