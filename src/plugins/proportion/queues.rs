//! The state: Queues and PodGroups as declared, what the pods of each queue request and hold, and what each deserves.
//!
//! Pods are counted when they come, are placed and leave, whether or not there are Queues. What queues deserve is worked
//! out before the next decision (`shares`), once for many changes, and only while there is a Queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid_api::keys::kube_batch;
use pellucid_cluster::derived::{DerivedState, HookContext, Placed, Touched};
use pellucid_model::gang::{PodGroup, Queue};
use pellucid_model::{CowMap, GangKey, Name, Node, NodeIdx, Now, Object, ObjectKind, Pod, PodId, PodSpec};

use super::amounts::{Amounts, of_list, of_model};
use super::shares::Stale;

/// The queue of PodGroups that name none, and of shadow groups. It exists without an object.
pub(super) const DEFAULT: &str = "default";

/// The kinds of PodGroups that are in queues, by API group in order of precedence.
pub(super) const POD_GROUPS: [ObjectKind; 2] = [ObjectKind::PodGroupIncubator, ObjectKind::PodGroupSigsDev];

/// The group that decides about a pod's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Member {
    /// The PodGroup that the pod names.
    Group(GangKey),
    /// A shadow group, which is in the default queue.
    Shadow,
}

/// Finds the group of a pod.
pub(super) struct Keys {
    group_name: Name,
    default: Name,
}

impl Default for Keys {
    fn default() -> Self {
        Self { group_name: kube_batch::GROUP_NAME.into(), default: DEFAULT.into() }
    }
}

impl Keys {
    /// Returns the group of a pod, `None` for a pod that no queue concerns.
    pub(super) fn member(&self, spec: &PodSpec) -> Option<Member> {
        match spec.annotations.get(&self.group_name).filter(|name| !name.is_empty()) {
            Some(name) => {
                let (namespace, name) = (spec.namespace.clone(), name.clone());
                Some(Member::Group(GangKey { namespace, name }))
            }
            None => spec.has_shadow_group.then_some(Member::Shadow),
        }
    }
}

/// How a pod counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// From when it may be placed until it has ended.
    Requested,
    /// While it has a place, from Reserve on, also in trials.
    Allocated,
}

/// What pods add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) requested: Amounts,
    pub(super) allocated: Amounts,
    /// Number of pods in `requested`.
    pub(super) pods: i64,
    /// Number of pods in `allocated`.
    pub(super) placed: i64,
}

impl Sums {
    fn count(&mut self, spec: &PodSpec, part: Part, times: i64) {
        let (amounts, number) = match part {
            Part::Requested => (&mut self.requested, &mut self.pods),
            Part::Allocated => (&mut self.allocated, &mut self.placed),
        };
        *number += times;
        for (resource, amount) in of_list(&spec.requests.list) {
            amounts.add(&resource, amount * i128::from(times));
        }
    }

    fn add(&mut self, other: &Self, times: i64) {
        self.requested.add_all(&other.requested, times.into());
        self.allocated.add_all(&other.allocated, times.into());
        self.pods += other.pods * times;
        self.placed += other.placed * times;
    }

    fn is_empty(&self) -> bool {
        self.pods == 0 && self.placed == 0
    }
}

/// A PodGroup, or one that pods name and that does not exist yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Job {
    /// The queue that each PodGroup of this name is in, by API group in order of precedence.
    queues: [Option<Name>; 2],
    pub(super) sums: Sums,
}

impl Job {
    /// Returns its queue, `None` without a PodGroup.
    pub(super) fn queue(&self) -> Option<&Name> {
        self.queues.iter().flatten().next()
    }

    /// Returns the place of the PodGroup that counts in the order of precedence of API groups.
    pub(super) fn declared_at(&self) -> Option<usize> {
        self.queues.iter().position(Option::is_some)
    }

    fn is_unused(&self) -> bool {
        self.queue().is_none() && self.sums.is_empty()
    }
}

/// The Queues of one name, by API group in order of precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Declared(pub(super) [Option<Queue>; 2]);

impl Declared {
    /// Returns the one that counts.
    pub(super) fn counting(&self) -> Option<&Queue> {
        self.0.iter().flatten().next()
    }
}

/// A queue as its pods add up, whether or not it exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tenant {
    pub(super) sums: Sums,
    pub(super) deserved: Amounts,
}

/// All queues.
#[derive(Clone, Default)]
pub(super) struct Queues {
    keys: Arc<Keys>,
    pub(super) declared: Arc<BTreeMap<Name, Declared>>,
    /// The queues that exist, sorted: those declared and the default one.
    pub(super) existing: Arc<[Name]>,
    pub(super) jobs: CowMap<GangKey, Arc<Job>>,
    pub(super) tenants: CowMap<Name, Arc<Tenant>>,
    /// What all nodes offer.
    pub(super) total: Arc<Amounts>,
    pub(super) stale: Stale,
}

impl Queues {
    /// Returns whether there is a Queue. Without one the plugin decides nothing.
    pub(super) fn is_active(&self) -> bool {
        !self.declared.is_empty()
    }

    pub(super) fn default_queue(&self) -> &Name {
        &self.keys.default
    }

    pub(super) fn member(&self, spec: &PodSpec) -> Option<Member> {
        self.keys.member(spec)
    }

    /// Returns the queue of a pod, which may not exist; `None` for a pod that is in none.
    pub(super) fn queue_of(&self, spec: &PodSpec) -> Option<&Name> {
        match self.member(spec)? {
            Member::Group(key) => self.jobs.get(&key)?.queue(),
            Member::Shadow => Some(self.default_queue()),
        }
    }

    pub(super) fn exists(&self, queue: &Name) -> bool {
        queue == self.default_queue() || self.declared.contains_key(queue)
    }

    /// Returns the weight of a queue, 0 or more.
    pub(super) fn weight(&self, queue: &Name) -> i64 {
        let declared = self.declared.get(queue).and_then(Declared::counting);
        declared.and_then(|queue| queue.weight).unwrap_or(1).max(0)
    }

    /// Returns the most that a queue may hold of a resource.
    pub(super) fn capability(&self, queue: &Name, resource: &Name) -> Option<i128> {
        let declared = self.declared.get(queue)?.counting()?;
        let limit = declared.capability.iter().find(|(known, _)| known == resource)?;
        Some(of_model(resource, limit.1))
    }

    /// Counts a pod in its group and queue, `times` 1 or -1.
    pub(super) fn count(&mut self, spec: &PodSpec, part: Part, times: i64) {
        let Some(member) = self.member(spec) else { return };
        let queue = match &member {
            Member::Shadow => Some(self.keys.default.clone()),
            Member::Group(key) => self.change_job(key, |job| {
                job.sums.count(spec, part, times);
                job.queue().cloned()
            }),
        };
        let Some(queue) = queue else { return };
        self.change_tenant(&queue, |sums| sums.count(spec, part, times));
        if part == Part::Requested && self.is_active() {
            of_list(&spec.requests.list).for_each(|(resource, _)| self.stale.add(&resource));
        }
    }

    fn change_job<T>(&mut self, key: &GangKey, change: impl FnOnce(&mut Job) -> T) -> T {
        if self.jobs.get(key).is_none() {
            self.jobs.insert(key.clone(), Arc::default());
        }
        let mut unknown = Arc::default();
        let job = Arc::make_mut(self.jobs.get_mut(key).unwrap_or(&mut unknown));
        let answer = change(job);
        if job.is_unused() {
            self.jobs.remove(key);
        }
        answer
    }

    fn change_tenant(&mut self, queue: &Name, change: impl FnOnce(&mut Sums)) {
        if self.tenants.get(queue).is_none() {
            self.tenants.insert(queue.clone(), Arc::default());
        }
        let Some(tenant) = self.tenants.get_mut(queue) else { return };
        let tenant = Arc::make_mut(tenant);
        change(&mut tenant.sums);
        // A share that is not 0 is taken back when shares are worked out.
        if tenant.sums.is_empty() && tenant.deserved.is_empty() {
            self.tenants.remove(queue);
        }
    }

    /// Moves a PodGroup with its pods to another queue, or to none when it was deleted.
    pub(super) fn move_group(&mut self, group: &PodGroup, exists: bool) -> Touched {
        let Some(at) = POD_GROUPS.iter().position(|kind| *kind == group.kind) else {
            return Touched::Nothing;
        };
        let named = if group.queue.is_empty() { &self.keys.default } else { &group.queue };
        let named = exists.then(|| named.clone());
        let (before, now, sums) = self.change_job(&group.key, |job| {
            let before = job.queue().cloned();
            job.queues[at] = named;
            (before, job.queue().cloned(), job.sums.clone())
        });
        if before == now || sums.is_empty() {
            return Touched::Nothing;
        }
        for (queue, times) in [(before, -1), (now, 1)] {
            if let Some(queue) = queue {
                self.change_tenant(&queue, |of_queue| of_queue.add(&sums, times));
            }
        }
        self.change_everything()
    }

    /// Takes a Queue of the API group at a place in the order of precedence, or that it is gone. What queues deserve is
    /// stale then.
    pub(super) fn become_declared(&mut self, at: usize, queue: &Queue, exists: bool) {
        let declared = Arc::make_mut(&mut self.declared);
        let of_name = declared.entry(queue.name.clone()).or_default();
        of_name.0[at] = exists.then(|| queue.clone());
        if of_name.counting().is_none() {
            declared.remove(&queue.name);
        }
        let mut existing: Vec<Name> = self.declared.keys().cloned().collect();
        if let Err(at) = existing.binary_search(&self.keys.default) {
            existing.insert(at, self.keys.default.clone());
        }
        self.existing = existing.into();
        self.stale.add_everything();
    }

    fn declare(&mut self, at: usize, queue: &Queue, exists: bool) -> Touched {
        self.become_declared(at, queue, exists);
        // With the last Queue the refusals go as well.
        Touched::Attempts
    }

    fn change_everything(&mut self) -> Touched {
        if !self.is_active() {
            return Touched::Nothing;
        }
        self.stale.add_everything();
        Touched::Attempts
    }
}

/// Whether a pod asks for room. One with scheduling gates does not yet.
fn is_asking(pod: &Pod) -> bool {
    pod.gates.is_empty()
}

impl DerivedState for Queues {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn plugin(&self) -> &'static str {
        super::NAME
    }

    fn pod_came(&mut self, _cx: &HookContext<'_>, _id: PodId, pod: &Pod) -> Touched {
        if is_asking(pod) {
            self.count(&pod.spec, Part::Requested, 1);
        }
        Touched::Nothing
    }

    fn pod_changed(&mut self, cx: &HookContext<'_>, id: PodId, old: &Pod, new: &Pod) -> Touched {
        if Arc::ptr_eq(&old.spec, &new.spec) && is_asking(old) == is_asking(new) {
            return Touched::Nothing;
        }
        let _ = self.pod_left(cx, id, old);
        self.pod_came(cx, id, new)
    }

    fn pod_left(&mut self, _cx: &HookContext<'_>, _id: PodId, pod: &Pod) -> Touched {
        if is_asking(pod) {
            self.count(&pod.spec, Part::Requested, -1);
        }
        Touched::Nothing
    }

    fn pod_withdrawn(&mut self, _id: PodId, pod: &Pod) {
        if is_asking(pod) {
            self.count(&pod.spec, Part::Requested, -1);
        }
    }

    fn pod_returned(&mut self, _id: PodId, pod: &Pod) {
        if is_asking(pod) {
            self.count(&pod.spec, Part::Requested, 1);
        }
    }

    fn pod_added(&mut self, placed: &Placed<'_>) {
        self.count(&placed.pod.spec, Part::Allocated, 1);
    }

    fn pod_removed(&mut self, placed: &Placed<'_>) {
        self.count(&placed.pod.spec, Part::Allocated, -1);
    }

    fn node_changed(&mut self, _node: NodeIdx, old: Option<&Node>, new: Option<&Node>) -> Touched {
        let (before, after) = (old.map(|node| &node.allocatable), new.map(|node| &node.allocatable));
        if before == after {
            return Touched::Nothing;
        }
        let total = Arc::make_mut(&mut self.total);
        for (list, times) in [(before, -1), (after, 1)] {
            for (resource, amount) in list.into_iter().flat_map(of_list) {
                total.add(&resource, amount * times);
                self.stale.add(&resource);
            }
        }
        Touched::Nothing
    }

    fn object_changed(&mut self, old: Option<&Object>, new: Option<&Object>) -> Touched {
        let exists = new.is_some();
        match new.or(old) {
            Some(Object::QueueIncubator(queue)) => self.declare(0, queue, exists),
            Some(Object::QueueSigsDev(queue)) => self.declare(1, queue, exists),
            Some(Object::PodGroup(group)) => self.move_group(group, exists),
            _ => Touched::Nothing,
        }
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn next_deadline(&self, now: Now) -> Option<Duration> {
        (self.is_active() && !self.stale.is_empty()).then_some(now.monotonic)
    }

    fn expire(&mut self, _now: Now) -> Touched {
        if self.settle() { Touched::Attempts } else { Touched::Nothing }
    }
}
