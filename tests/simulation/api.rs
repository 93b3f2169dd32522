//! An API server as values: objects, the verbs that the scheduler and others use, and the events of watches.
//!
//! It responds as a real one does where that matters here: every write has the UID as a precondition; a pod is bound
//! at most once, and not while it is gated or being deleted; a Binding clears `nominatedNodeName`; a pod without a
//! node is deleted at once, and one with a node when its kubelet is done. There is no I/O and no time: consequences
//! of a write are left in [`Api::follow_ups`] for the owner of the clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::model::effect::{PodRef, StatusOrder};
use pellucid::model::object::{Budget, ObjectKind};
use pellucid::model::pod::{PodPhase, ScheduledCondition};
use pellucid::model::storage::{PersistentVolume, PersistentVolumeClaim, StorageClass};
use pellucid::model::{Name, Node, Object, Pod, PodKey};
use serde_json::Value;

use crate::common::made::unreadable;

/// A pod, and what the scheduler does not see of it.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) pod: Pod,
    /// Whether it has a finalizer that nobody removes.
    pub(crate) is_stubborn: bool,
    /// Whether a field of it cannot be read.
    pub(crate) is_unreadable: bool,
}

/// A budget, and the parameter of its controller.
#[derive(Clone, Debug)]
pub(crate) struct Guarded {
    pub(crate) budget: Budget,
    pub(crate) min_available: i32,
}

/// A watch. Invariant: the events of a stream keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stream {
    Pods,
    Nodes,
    Objects,
}

impl Stream {
    pub(crate) const ALL: [Self; 3] = [Self::Pods, Self::Nodes, Self::Objects];
}

/// A delayed consequence of a write.
#[derive(Clone, Debug)]
pub(crate) enum FollowUp {
    /// The kubelet starts the pod.
    Start(PodKey, Arc<str>),
    /// The kubelet has terminated a pod that is being deleted.
    End(PodKey, Arc<str>),
    /// Pods of the namespace came or went: the controller recounts budgets.
    Recount(Name),
    /// A claim has its node: a volume is provisioned for it.
    Provision(Name, Name),
    /// Pods on a deleted node are removed.
    CollectGarbage(Name),
}

/// Why a Binding was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotBound {
    Gone,
    Conflict,
}

/// The result of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletion {
    Accepted,
    Gone,
}

/// The API server.
#[derive(Default)]
pub(crate) struct Api {
    pub(crate) pods: BTreeMap<PodKey, Stored>,
    pub(crate) nodes: BTreeMap<Name, Node>,
    pub(crate) budgets: BTreeMap<(Name, Name), Guarded>,
    pub(crate) claims: BTreeMap<(Name, Name), PersistentVolumeClaim>,
    pub(crate) volumes: BTreeMap<Name, PersistentVolume>,
    pub(crate) classes: Vec<StorageClass>,
    /// Manifests of notices, by namespace and name.
    pub(crate) notices: BTreeMap<(Name, Name), Value>,
    /// Pending watch events, in the order of the writes.
    pub(crate) told: Vec<(Stream, Input)>,
    pub(crate) follow_ups: Vec<FollowUp>,
    version: u64,
    uids: u64,
}

impl Api {
    pub(crate) fn uid(&mut self) -> Arc<str> {
        self.uids += 1;
        format!("u{}", self.uids).into()
    }

    pub(crate) fn next_version(&mut self) -> Arc<str> {
        self.version += 1;
        self.version.to_string().into()
    }

    /// Returns the pod if it has this UID.
    pub(crate) fn pod(&self, of: &PodRef) -> Option<&Stored> {
        self.pods.get(&of.key).filter(|s| s.pod.uid == of.uid)
    }

    // === pods ===

    /// Creates a pod and assigns its UID.
    pub(crate) fn create(&mut self, mut pod: Pod) {
        pod.uid = self.uid();
        let key = pod.key.clone();
        if pod.node_name.is_some() {
            self.follow_ups.push(FollowUp::Start(key.clone(), pod.uid.clone()));
        }
        self.pods.insert(key.clone(), Stored { pod, is_stubborn: false, is_unreadable: false });
        self.pod_changed(&key);
        self.follow_ups.push(FollowUp::Recount(key.namespace));
    }

    /// Changes a pod. Returns whether it exists.
    pub(crate) fn change(&mut self, key: &PodKey, change: impl FnOnce(&mut Stored)) -> bool {
        let Some(stored) = self.pods.get_mut(key) else { return false };
        change(stored);
        self.pod_changed(key);
        true
    }

    fn pod_changed(&mut self, key: &PodKey) {
        if let Some(stored) = self.pods.get(key) {
            let input = if stored.is_unreadable {
                Input::Quarantined(unreadable(&stored.pod))
            } else {
                Input::PodApplied(Arc::new(stored.pod.clone()))
            };
            self.told.push((Stream::Pods, input));
        }
    }

    /// Handles `pods/binding`.
    pub(crate) fn bind(&mut self, of: &PodRef, node: &Name) -> Result<(), NotBound> {
        let stored = self.pod(of).ok_or(NotBound::Gone)?;
        let pod = &stored.pod;
        let is_refused =
            pod.node_name.is_some() || pod.deleting || !pod.gates.is_empty() || pod.phase.is_terminal();
        if is_refused {
            return Err(NotBound::Conflict);
        }
        self.change(&of.key, |s| {
            s.pod.node_name = Some(node.clone());
            s.pod.nominated_node = None;
            s.pod.scheduled = None;
        });
        self.follow_ups.push(FollowUp::Start(of.key.clone(), of.uid.clone()));
        if !self.nodes.contains_key(node) {
            self.follow_ups.push(FollowUp::CollectGarbage(node.clone()));
        }
        Ok(())
    }

    /// Handles `pods/status` as the scheduler patches it.
    pub(crate) fn patch_status(&mut self, order: &StatusOrder) {
        if self.pod(&order.pod).is_none() {
            return;
        }
        self.change(&order.pod.key, |stored| {
            if let Some(c) = &order.condition {
                let (reason, message) = (c.reason.into(), c.message.clone());
                stored.pod.scheduled = Some(ScheduledCondition { is_true: false, reason, message });
            }
            if let Some(node) = &order.nomination {
                stored.pod.nominated_node = node.clone();
            }
        });
    }

    /// Handles `delete` with the pod's own grace period.
    pub(crate) fn delete(&mut self, of: &PodRef) -> Deletion {
        let Some(stored) = self.pod(of) else { return Deletion::Gone };
        let (is_bound, is_stubborn) = (stored.pod.node_name.is_some(), stored.is_stubborn);
        let is_terminal = stored.pod.phase.is_terminal();
        if !is_stubborn && (!is_bound || is_terminal) {
            self.remove(&of.key);
            return Deletion::Accepted;
        }
        if !stored.pod.deleting {
            self.change(&of.key, |s| s.pod.deleting = true);
            self.follow_ups.push(FollowUp::Recount(of.key.namespace.clone()));
        }
        if is_bound {
            self.follow_ups.push(FollowUp::End(of.key.clone(), of.uid.clone()));
        }
        Deletion::Accepted
    }

    /// Removes the object.
    pub(crate) fn remove(&mut self, key: &PodKey) {
        if self.pods.remove(key).is_some() {
            self.told.push((Stream::Pods, Input::PodDeleted(key.clone())));
            self.follow_ups.push(FollowUp::Recount(key.namespace.clone()));
        }
    }

    // === nodes ===

    pub(crate) fn put_node(&mut self, node: Node) {
        self.told.push((Stream::Nodes, Input::NodeApplied(Arc::new(node.clone()))));
        self.nodes.insert(node.name.clone(), node);
    }

    pub(crate) fn delete_node(&mut self, name: &Name) {
        if self.nodes.remove(name).is_some() {
            self.told.push((Stream::Nodes, Input::NodeDeleted(name.clone())));
            self.follow_ups.push(FollowUp::CollectGarbage(name.clone()));
        }
    }

    // === other objects ===

    pub(crate) fn put_budget(&mut self, guarded: Guarded) {
        self.tell_object(Object::PodDisruptionBudget(guarded.budget.clone()));
        let key = (guarded.budget.namespace.clone(), guarded.budget.name.clone());
        self.budgets.insert(key, guarded);
    }

    pub(crate) fn put_claim(&mut self, mut claim: PersistentVolumeClaim) {
        claim.resource_version = self.next_version();
        self.tell_object(Object::PersistentVolumeClaim(claim.clone()));
        self.claims.insert((claim.namespace.clone(), claim.name.clone()), claim);
    }

    pub(crate) fn put_volume(&mut self, mut volume: PersistentVolume) {
        volume.resource_version = self.next_version();
        self.tell_object(Object::PersistentVolume(volume.clone()));
        self.volumes.insert(volume.name.clone(), volume);
    }

    fn tell_object(&mut self, object: Object) {
        self.told.push((Stream::Objects, Input::ObjectApplied(Arc::new(object))));
    }

    /// Returns complete lists of a stream's objects.
    pub(crate) fn list(&self, stream: Stream) -> Vec<Input> {
        match stream {
            Stream::Pods => {
                let (bad, good): (Vec<_>, Vec<_>) = self.pods.values().partition(|s| s.is_unreadable);
                let pods = good.iter().map(|s| Arc::new(s.pod.clone())).collect();
                let quarantined = bad.iter().map(|s| unreadable(&s.pod)).collect();
                vec![Input::PodsReset { pods, quarantined }]
            }
            Stream::Nodes => {
                let nodes = self.nodes.values().cloned().map(Arc::new).collect();
                vec![Input::NodesReset { nodes, quarantined: Vec::new() }]
            }
            Stream::Objects => {
                let list = |kind| Input::ObjectsReset {
                    kind,
                    objects: self.objects(kind).into_iter().map(Arc::new).collect(),
                    quarantined: Vec::new(),
                };
                ObjectKind::ALL.into_iter().map(list).chain([self.list_notices()]).collect()
            }
        }
    }

    fn objects(&self, kind: ObjectKind) -> Vec<Object> {
        match kind {
            ObjectKind::PodDisruptionBudget => {
                self.budgets.values().map(|g| Object::PodDisruptionBudget(g.budget.clone())).collect()
            }
            ObjectKind::PersistentVolumeClaim => {
                self.claims.values().cloned().map(Object::PersistentVolumeClaim).collect()
            }
            ObjectKind::PersistentVolume => {
                self.volumes.values().cloned().map(Object::PersistentVolume).collect()
            }
            ObjectKind::StorageClass => self.classes.iter().cloned().map(Object::StorageClass).collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns whether a pod uses resources of a node.
pub(crate) fn takes_room(pod: &Pod) -> bool {
    pod.node_name.is_some() && !pod.phase.is_terminal()
}

/// Returns whether a pod is pending without a node.
pub(crate) fn waits(pod: &Pod) -> bool {
    pod.node_name.is_none() && !pod.deleting && pod.phase == PodPhase::Pending
}
