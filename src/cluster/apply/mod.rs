//! Applies watch events (apply, delete, reset) for pods and nodes to the state; `object` and `custom` apply other
//! kinds, `slots` gives out the slots of nodes.
//!
//! Every function appends what changed to a list of [`ClusterEvent`]s. A reset is applied as a difference: an equal
//! object costs one comparison and causes no event. Never called while an overlay is open.

mod custom;
mod object;
mod slots;
mod writes;

pub use writes::{DueWrite, StateId};

use std::sync::Arc;
use std::time::Duration;

use pellucid_model::collections::{FxHashSet, HashSet};
use pellucid_model::requests::ResourceList;
use pellucid_model::{Name, Node, NodeIdx, ObjectKind, Pod, PodId, PodKey};
use smallvec::SmallVec;

use self::custom::report_touched;
use crate::changes::Changed;
use crate::columns::ResourceIdx;
use crate::content_hash::NodeHash;
use crate::event::{ClusterEvent, NodeChange};
use crate::input::{Input, Quarantined};
use crate::stage::Stage;
use crate::state::{Cluster, PodRecord};

impl Cluster {
    /// Applies what a watch says. Inputs that are no objects change nothing here.
    pub fn apply(&mut self, input: Input, out: &mut Vec<ClusterEvent>) {
        match input {
            Input::PodApplied(pod) => self.apply_pod(pod, out),
            Input::PodDeleted(key) => self.delete_pod(&key, out),
            Input::PodsReset { pods, quarantined } => self.reset_pods(pods, quarantined, out),
            Input::NodeApplied(node) => self.apply_node(node, out),
            Input::NodeDeleted(name) => self.delete_node(&name, out),
            Input::NodesReset { nodes, quarantined } => self.reset_nodes(nodes, quarantined, out),
            Input::ObjectApplied(object) => self.apply_object(object, out),
            Input::ObjectDeleted(kind, key) => self.delete_object(kind, &key, out),
            Input::ObjectsReset { kind, objects, quarantined } => {
                self.reset_objects(kind, objects, quarantined, out);
            }
            Input::CustomApplied(object) => self.apply_custom(object, out),
            Input::CustomDeleted(kind, key) => self.delete_custom(kind, &key, out),
            Input::CustomReset { kind, objects, quarantined } => {
                self.reset_custom(kind, objects, quarantined, out);
            }
            Input::Quarantined(object) => self.quarantine(object, out),
            Input::Report(_) | Input::Leading(_) => {}
        }
    }

    /// Applies a pod that was added or changed.
    pub fn apply_pod(&mut self, mut pod: Arc<Pod>, out: &mut Vec<ClusterEvent>) {
        self.forget_quarantined("Pod", &pod.key.namespace, &pod.key.name);
        self.project(&mut pod, out);
        let spec = pod.spec.clone();
        self.apply_projected(pod, out);
        self.project_end(&spec, out);
    }

    fn apply_projected(&mut self, pod: Arc<Pod>, out: &mut Vec<ClusterEvent>) {
        if let Some(id) = self.find_pod(&pod.key) {
            let same_uid = self.pods[id.index()].as_ref().is_some_and(|r| r.pod.uid == pod.uid);
            if same_uid && !pod.phase.is_terminal() {
                return self.update_pod(id, pod, out);
            }
            self.remove_pod(id, out);
        }
        if pod.phase.is_terminal() {
            self.outside.note(&pod);
            return self.record_ended(&pod);
        }
        self.forget_ended(&pod.key);
        self.outside.forget(&pod.key);
        match &pod.node_name {
            Some(node) => {
                let node = self.slot_of(node);
                let id = self.insert_pod(pod);
                self.place_bound(id, node);
                out.push(ClusterEvent::PodBound { id, node });
            }
            None if self.is_ours(&pod.scheduler_name) && !pod.deleting => {
                let id = self.insert_pod(pod);
                out.push(ClusterEvent::PendingAdded(id));
            }
            None => self.outside.note(&pod),
        }
    }

    /// Applies the deletion of a pod.
    pub fn delete_pod(&mut self, key: &PodKey, out: &mut Vec<ClusterEvent>) {
        self.forget_quarantined("Pod", &key.namespace, &key.name);
        self.forget_ended(key);
        self.outside.forget(key);
        if let Some(id) = self.find_pod(key) {
            self.remove_pod(id, out);
        }
        self.settle_keys(out);
    }

    /// Applies a complete list of pods: pods that are not in it are deleted.
    pub fn reset_pods(&mut self, pods: Vec<Arc<Pod>>, bad: Vec<Quarantined>, out: &mut Vec<ClusterEvent>) {
        let unreadable = bad.iter().map(|q| PodKey { namespace: q.namespace.clone(), name: q.name.clone() });
        let live: HashSet<PodKey> = pods.iter().map(|p| p.key.clone()).chain(unreadable).collect();
        // Pods that stand for objects come and go with these.
        let listed = self.pods().filter(|(_, r)| r.pod.stands_for.is_none());
        let known = listed.map(|(_, r)| &r.pod.key).chain(self.ended.keys()).chain(self.outside.keys());
        let mut gone: Vec<PodKey> = known.filter(|key| !live.contains(*key)).cloned().collect();
        gone.sort();
        gone.dedup();
        for key in &gone {
            self.delete_pod(key, out);
        }
        for pod in pods {
            self.apply_pod(pod, out);
        }
        self.reset_quarantined("Pod", bad, out);
    }

    /// Applies a node that was added or changed.
    pub fn apply_node(&mut self, node: Arc<Node>, out: &mut Vec<ClusterEvent>) {
        self.forget_quarantined("Node", &Name::default(), &node.name);
        let idx = self.slot_of(&node.name);
        let slot = &mut self.nodes[idx.index()];
        slot.hash = NodeHash::default();
        let old = slot.node.replace(node.clone());
        let Some(old) = old else {
            let at = self.present.partition_point(|n| *n < idx);
            Arc::make_mut(&mut self.present).insert(at, idx);
            let at = self.by_name.partition_point(|n| *self.node_name(*n) < node.name);
            Arc::make_mut(&mut self.by_name).insert(at, idx);
            self.set_allocatable(idx, &ResourceList::default(), &node.allocatable, out);
            self.node_derived(idx, None, Some(&node), out);
            self.changes.push_all();
            out.push(ClusterEvent::NodeAdded(idx));
            return;
        };
        let change = node_change(&old, &node);
        if change == NodeChange::default() {
            return;
        }
        let version = self.columns.version();
        if change.any(NodeChange::ALLOCATABLE) {
            self.set_allocatable(idx, &old.allocatable, &node.allocatable, out);
        }
        self.node_derived(idx, Some(&old), Some(&node), out);
        // Image scores depend on all nodes; a column that comes or goes changes what resource names resolve to.
        if change.any(NodeChange::IMAGES) || self.columns.version() != version {
            self.changes.push_all();
        } else {
            self.changes.push(idx, Changed::Object);
        }
        out.push(ClusterEvent::NodeUpdated { node: idx, change, old });
    }

    /// Changes a node's offer from `old` to `list`. When a resource gets its first offer, the requests for it are
    /// counted from now on, on all nodes. When a resource loses its last offer, its column goes to a resource that had
    /// none.
    fn set_allocatable(
        &mut self,
        node: NodeIdx,
        old: &ResourceList,
        list: &ResourceList,
        out: &mut Vec<ClusterEvent>,
    ) {
        let mut new = self.columns.set_allocatable(node, old, list);
        while let Some(name) = self.columns.admit() {
            new.extend(self.admit_resource(&name, out));
        }
        if new.is_empty() {
            return;
        }
        for record in self.pods.iter().flatten() {
            if let Some(node) = record.node {
                self.columns.take_new(node, &record.taken(), &new);
            }
        }
    }

    /// Gives a column to a resource that was left out. For pods, its nodes offer the resource from now on.
    fn admit_resource(&mut self, name: &Name, out: &mut Vec<ClusterEvent>) -> Option<ResourceIdx> {
        let mut new = None;
        for node in self.present.iter().copied() {
            let Some(object) = &self.nodes[node.index()].node else { continue };
            let amount = object.allocatable.scalar(name);
            if amount == 0 {
                continue;
            }
            new = self.columns.offer(node, name, amount).or(new);
            let mut before = Node::clone(object);
            let others = before.allocatable.scalars.iter().filter(|(offered, _)| offered != name);
            before.allocatable.scalars = others.cloned().collect();
            let (change, old) = (NodeChange::ALLOCATABLE, Arc::new(before));
            out.push(ClusterEvent::NodeUpdated { node, change, old });
        }
        new
    }

    /// Applies the deletion of a node. Pods on it stay placed until they are deleted themselves.
    pub fn delete_node(&mut self, name: &Name, out: &mut Vec<ClusterEvent>) {
        self.forget_quarantined("Node", &Name::default(), name);
        let Some(idx) = self.find_node(name) else { return };
        let Some(old) = self.nodes[idx.index()].node.take() else { return };
        Arc::make_mut(&mut self.present).retain(|n| *n != idx);
        Arc::make_mut(&mut self.by_name).retain(|n| *n != idx);
        self.set_allocatable(idx, &old.allocatable, &ResourceList::default(), out);
        self.node_derived(idx, Some(&old), None, out);
        self.changes.push_all();
        self.free_ghost(idx);
        out.push(ClusterEvent::NodeRemoved(idx, name.clone()));
    }

    /// Applies a complete list of nodes: nodes that are not in it are deleted.
    pub fn reset_nodes(&mut self, nodes: Vec<Arc<Node>>, bad: Vec<Quarantined>, out: &mut Vec<ClusterEvent>) {
        let live: FxHashSet<Name> = nodes.iter().map(|n| n.name.clone()).collect();
        let mut gone: Vec<Name> =
            self.present.iter().map(|n| self.node_name(*n).clone()).filter(|n| !live.contains(n)).collect();
        gone.sort();
        for name in &gone {
            self.delete_node(name, out);
        }
        for node in nodes {
            self.apply_node(node, out);
        }
        self.reset_quarantined("Node", bad, out);
    }

    /// Applies an object that cannot be read. A bound pod stays placed with its last readable version, because its
    /// containers keep running; a pod that is not bound is no longer scheduled; a node takes no new pods.
    pub fn quarantine(&mut self, object: Quarantined, out: &mut Vec<ClusterEvent>) {
        let custom = self.custom.kinds().find(|kind| kind.0.qualified == object.kind);
        if object.kind == "Node" {
            self.delete_node(&Name::new(&object.name), out);
        } else if let Some(kind) = custom {
            self.delete_custom(kind, &(object.namespace.clone(), Name::new(&object.name)), out);
        } else if let Some(kind) = ObjectKind::ALL.into_iter().find(|k| k.as_str() == object.kind) {
            self.delete_object(kind, &(object.namespace.clone(), Name::new(&object.name)), out);
        } else if object.kind == "Pod" {
            let key = PodKey { namespace: object.namespace.clone(), name: object.name.clone() };
            self.outside.forget(&key);
            if let Some(id) = self.find_pod(&key) {
                let bound = self.pod(id).is_some_and(|r| r.stage == Stage::Bound && r.pod.uid == object.uid);
                if !bound {
                    self.remove_pod(id, out);
                }
            }
        }
        let key = (object.kind, object.namespace.clone(), object.name.clone());
        Arc::make_mut(&mut self.quarantined).insert(key, object);
    }

    fn update_pod(&mut self, id: PodId, pod: Arc<Pod>, out: &mut Vec<ClusterEvent>) {
        let Some(record) = self.pod(id).cloned() else { return };
        let target = pod.node_name.as_ref().map(|name| self.slot_of(name));
        match (record.node, target) {
            (None, None) if pod.deleting => {
                self.remove_pod(id, out);
                self.outside.note(&pod);
            }
            (None, None) => {
                let old = self.replace_object(id, pod);
                out.push(ClusterEvent::PendingUpdated { id, old });
            }
            (None, Some(node)) => {
                let old = self.replace_object(id, pod);
                self.place_bound(id, node);
                out.push(ClusterEvent::PendingRemoved { id, pod: old });
                out.push(ClusterEvent::PodBound { id, node });
            }
            // The pod is assumed, and its Binding is not confirmed. If the pod is being deleted, no kubelet may start
            // it any more.
            (Some(_), None) if pod.deleting => {
                self.remove_pod(id, out);
                self.outside.note(&pod);
            }
            (Some(node), None) => self.replace_placed(id, pod, node, record.stage, out),
            (Some(node), Some(now)) => {
                if record.stage != Stage::Bound {
                    out.push(ClusterEvent::PodBound { id, node: now });
                }
                if node == now {
                    self.replace_placed(id, pod, now, Stage::Bound, out);
                } else {
                    self.release(id);
                    out.push(ClusterEvent::PodReleased { pod: record.pod, node });
                    self.replace_object(id, pod);
                    self.place_bound(id, now);
                }
            }
        }
    }

    /// Replaces the object of a pod that stays on its node, and recounts its usage if the spec changed.
    fn replace_placed(
        &mut self,
        id: PodId,
        pod: Arc<Pod>,
        node: NodeIdx,
        stage: Stage,
        out: &mut Vec<ClusterEvent>,
    ) {
        let Some(old) = self.pod(id).map(|r| r.pod.clone()) else { return };
        if old.spec == pod.spec && old.deleting == pod.deleting {
            self.replace_object(id, pod);
            self.notify_placed_pod_changed(id, &old);
            self.set_stage(id, stage);
            return self.report_holds(id, out);
        }
        let shrunk = shrinks(&old.spec.requests.list, &pod.spec.requests.list);
        // In an overlay, so that a slot without a node object is not freed in between.
        self.replace_in_place(id, node, stage, pod.clone());
        self.report_holds(id, out);
        if shrunk {
            out.push(ClusterEvent::PodShrunk { pod: old.clone(), node });
        }
        let (before, after) = (&old.spec, &pod.spec);
        let has_other_labels = before.labels != after.labels || before.wide_labels != after.wide_labels;
        if has_other_labels || old.deleting != pod.deleting {
            out.push(ClusterEvent::PodChanged { id, old, node });
        }
    }

    /// Replaces the object of a placed pod and recounts everything derived from it.
    pub(crate) fn replace_in_place(&mut self, id: PodId, node: NodeIdx, stage: Stage, pod: Arc<Pod>) {
        let overlay = self.begin();
        let place = self.displace(id);
        self.replace_object(id, pod);
        if let Some(place) = place {
            self.put_back(id, place.moved(node, stage));
        }
        self.commit(overlay);
    }

    fn insert_pod(&mut self, pod: Arc<Pod>) -> PodId {
        let id = self.free_pods.pop().unwrap_or(PodId(self.pods.len() as u32));
        let (pod, shape) = self.with_shared_spec(pod);
        self.count_labels(&pod);
        self.pod_index.insert(&pod.key, id.0);
        self.pods.set(
            id.index(),
            Some(PodRecord {
                pod,
                shape,
                node: None,
                stage: Stage::Pending,
                since: Duration::ZERO,
                holds: SmallVec::new(),
                given: None,
                host: None,
            }),
        );
        self.join_gang(id);
        if let Some(pod) = self.pod(id).map(|record| record.pod.clone()) {
            self.notify_plugins(|state, cx| state.pod_came(cx, id, &pod));
        }
        self.settle_given();
        id
    }

    /// Replaces the object of a pod that is not placed, or whose usage does not change. Returns the old object.
    pub(crate) fn replace_object(&mut self, id: PodId, pod: Arc<Pod>) -> Arc<Pod> {
        self.returned(id);
        let (pod, shape) = self.with_shared_spec(pod);
        let Some(record) = self.pods[id.index()].as_mut() else { return pod };
        let old_shape = std::mem::replace(&mut record.shape, shape);
        let owner_changed = pod.gang.is_some() && record.pod.controller != pod.controller;
        let (stage, changes_gang) = (record.stage, record.pod.gang != pod.gang || owner_changed);
        // The status of the PodGroup counts running pods, whatever their stage in the state.
        let shown_by = pod.member_of().filter(|_| record.pod.phase != pod.phase).cloned();
        let new = pod.clone();
        let old = std::mem::replace(&mut record.pod, pod);
        self.shapes.release(old_shape);
        if !Arc::ptr_eq(&old.spec, &new.spec) || old.labels != new.labels {
            self.count_labels(&new);
            self.uncount_labels(&old);
        }
        if changes_gang && self.stays_in_gang(id, &old) {
            // The gang is defined anew; what is known of the member stays.
        } else if changes_gang {
            self.leave_gang(id, &old, stage);
            self.join_gang(id);
        } else if let Some(gang) = shown_by {
            self.gangs.update(&gang, |_| ());
        }
        self.notify_plugins(|state, cx| state.pod_changed(cx, id, &old, &new));
        old
    }

    fn with_shared_spec(&mut self, mut pod: Arc<Pod>) -> (Arc<Pod>, crate::shapes::ShapeId) {
        let (shape, spec) = self.shapes.acquire(&pod.spec);
        if !Arc::ptr_eq(&spec, &pod.spec) {
            Arc::make_mut(&mut pod).spec = spec;
        }
        (pod, shape)
    }

    fn remove_pod(&mut self, id: PodId, out: &mut Vec<ClusterEvent>) {
        let Some(stage) = self.pod(id).map(|record| record.stage) else { return };
        let node = self.release(id);
        self.returned(id);
        let Some(record) = self.pods[id.index()].take() else { return };
        self.forget_host(&record);
        self.uncount_labels(&record.pod);
        self.pod_index.remove(&record.pod.key, id.0);
        self.shapes.release(record.shape);
        self.free_pods.push(id);
        self.leave_gang(id, &record.pod, Stage::Pending);
        if stage != Stage::Bound {
            out.push(ClusterEvent::PendingRemoved { id, pod: record.pod.clone() });
        }
        if let Some(node) = node {
            out.push(ClusterEvent::PodReleased { pod: record.pod.clone(), node });
        }
        let touched = self.notify_plugins(|state, cx| state.pod_left(cx, id, &record.pod));
        self.settle_given();
        report_touched(touched, out);
        out.push(ClusterEvent::PodForgotten { id, pod: record.pod });
    }

    fn node_derived(
        &mut self,
        idx: NodeIdx,
        old: Option<&Node>,
        new: Option<&Node>,
        out: &mut Vec<ClusterEvent>,
    ) {
        let touched = self.notify_plugins(|state, _| state.node_changed(idx, old, new));
        report_touched(touched, out);
    }

    pub(crate) fn forget_quarantined(&mut self, kind: &'static str, namespace: &Name, name: &str) {
        if !self.quarantined.is_empty() {
            Arc::make_mut(&mut self.quarantined).remove(&(kind, namespace.clone(), name.into()));
        }
    }

    pub(crate) fn reset_quarantined(
        &mut self,
        kind: &'static str,
        bad: Vec<Quarantined>,
        out: &mut Vec<ClusterEvent>,
    ) {
        if self.quarantined.keys().any(|key| key.0 == kind) {
            Arc::make_mut(&mut self.quarantined).retain(|key, _| key.0 != kind);
        }
        for object in bad {
            self.quarantine(object, out);
        }
    }
}

fn node_change(old: &Node, new: &Node) -> NodeChange {
    let changes = [
        (NodeChange::ALLOCATABLE, old.allocatable != new.allocatable),
        (NodeChange::LABELS, old.labels != new.labels),
        (NodeChange::TAINTS, old.taints != new.taints || old.unschedulable != new.unschedulable),
        (NodeChange::IMAGES, old.images != new.images),
        (NodeChange::ANNOTATIONS, old.annotations != new.annotations),
        (NodeChange::DECLARED_FEATURES, old.declared_features != new.declared_features),
    ];
    NodeChange(changes.iter().filter(|(_, is_changed)| *is_changed).fold(0, |all, (what, _)| all | what.0))
}

fn shrinks(old: &ResourceList, new: &ResourceList) -> bool {
    old.milli_cpu > new.milli_cpu
        || old.memory > new.memory
        || old.ephemeral_storage > new.ephemeral_storage
        || old.scalars.iter().any(|(name, amount)| *amount > new.scalar(name))
}
