//! The cluster of a simulated week: an API server, kubelets and users, as a calendar of what happens when.
//!
//! Time passes in seconds. Each second what is due happens, the scheduler plans until it has no work, its effects come
//! back a second later, and a snapshot is published in place of the last one, as in the scheduling thread.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::cluster::input::Quarantined;
use pellucid::cycle::Snapshot;
use pellucid::cycle::scheduler::Counters;
use pellucid::model::effect::{BindOutcome, Effect, EffectReport, EvictOutcome, StatusOrder};
use pellucid::model::pod::{PodPhase, ScheduledCondition};
use pellucid::model::{Name, Node, Object, Pod, PodKey};

use crate::common::driver::Core;
use crate::common::driver::{default_profile, settings};
use crate::common::made::refused;
use crate::common::rng::Rng;
use crate::jobs::{self, SCHEDULER};

/// Seconds between two changes of a node.
const NODE_CHANGE: u64 = 60;
/// Percentage of Bindings that the API server refuses.
const REFUSED_BINDINGS: u64 = 1;

/// Size of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) jobs_per_hour: u64,
    /// Bound of the flight recorder: so small that it is full after an hour.
    pub(crate) recorder_bytes: usize,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Changes of pods that the watch reported.
    pub(crate) pod_events: u64,
    pub(crate) gangs: u64,
    pub(crate) victims: u64,
    pub(crate) nodes: u64,
    pub(crate) ended: u64,
    pub(crate) refused_bindings: u64,
    pub(crate) given_up: u64,
    pub(crate) unreadable: u64,
}

impl Counts {
    pub(crate) fn assert_all_happened(&self) {
        let Self { pod_events, gangs, victims, nodes, ended, refused_bindings, given_up, unreadable } = *self;
        let all = [pod_events, gangs, victims, nodes, ended, refused_bindings, given_up, unreadable];
        assert!(all.iter().all(|count| *count > 0), "something never happened: {self:?}");
    }
}

/// Something that is due at a time.
pub(crate) enum Action {
    Create(Box<Pod>),
    Unreadable(Quarantined),
    Ungate(PodKey),
    Bound(PodKey, Name),
    Run(PodKey),
    End(PodKey),
    Delete(PodKey),
    /// A pod that cannot be read is deleted.
    Gone(PodKey),
    /// Its user deletes a pod that is still pending.
    GiveUp(PodKey),
    Status(StatusOrder),
    Report(EffectReport),
    Object(Input),
}

/// A pod at the API server, and how long it runs.
struct Stored {
    pod: Arc<Pod>,
    seconds: u64,
}

/// The cluster and its scheduler.
pub(crate) struct World {
    core: Core,
    snapshot: Option<Snapshot>,
    size: Size,
    pub(crate) rng: Rng,
    second: u64,
    /// Number of actions so far, which orders those of a second.
    actions: u64,
    calendar: BTreeMap<(u64, u64), Action>,
    pods: BTreeMap<PodKey, Stored>,
    nodes: VecDeque<Node>,
    jobs: u64,
    pub(crate) counts: Counts,
}

impl World {
    pub(crate) fn new(size: Size) -> Self {
        let settings = settings(default_profile(SCHEDULER));
        settings.switches.set_recorder_bytes(size.recorder_bytes);
        let mut world = Self {
            core: Core::new(settings),
            snapshot: None,
            size,
            rng: Rng::new(7),
            second: 0,
            actions: 0,
            calendar: BTreeMap::new(),
            pods: BTreeMap::new(),
            nodes: VecDeque::new(),
            jobs: 0,
            counts: Counts::default(),
        };
        for _ in 0..size.nodes {
            world.add_node();
        }
        world
    }

    pub(crate) fn n_pods(&self) -> usize {
        self.pods.len()
    }

    pub(crate) fn n_pending(&self) -> usize {
        self.pods.values().filter(|stored| stored.pod.node_name.is_none()).count()
    }

    /// Returns the name of the node that was added last.
    pub(crate) fn newest_node(&self) -> Name {
        self.nodes.back().map(|node| node.name.clone()).unwrap_or_default()
    }

    pub(crate) fn counters(&self) -> Counters {
        self.snapshot.as_ref().map(|snapshot| snapshot.counters).unwrap_or_default()
    }

    /// Plans an action for some seconds from now.
    pub(crate) fn after(&mut self, seconds: u64, action: Action) {
        self.actions += 1;
        self.calendar.insert((self.second + seconds, self.actions), action);
    }

    /// Lets a second pass.
    pub(crate) fn second(&mut self) {
        self.second += 1;
        self.core.wait(Duration::from_secs(1));
        let due = self.second * self.size.jobs_per_hour / 3600;
        while self.jobs < due {
            self.jobs += 1;
            jobs::submit(self, self.jobs);
        }
        if self.second.is_multiple_of(NODE_CHANGE) {
            self.change_node();
        }
        while let Some(first) = self.calendar.first_entry()
            && first.key().0 <= self.second
        {
            let action = first.remove();
            self.act(action);
        }
        while self.core.step().is_some() {}
        self.core.scheduler.order_due_writes(self.core.now);
        for effect in self.core.scheduler.take_effects() {
            self.take_effect(effect);
        }
        self.snapshot = Some(self.core.scheduler.publish(self.core.now));
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Create(pod) => self.create(*pod),
            Action::Unreadable(pod) => {
                self.counts.unreadable += 1;
                self.see(Input::Quarantined(pod));
            }
            Action::Ungate(key) => self.change(&key, |pod| pod.gates = Box::default()),
            Action::Bound(key, node) => self.bound(&key, node),
            Action::Run(key) => self.run(&key),
            Action::End(key) => {
                self.counts.ended += 1;
                self.change(&key, |pod| pod.phase = PodPhase::Succeeded);
                self.after(60, Action::Delete(key));
            }
            Action::Delete(key) => self.delete(key),
            Action::Gone(key) => self.see(Input::PodDeleted(key)),
            Action::GiveUp(key) => {
                if self.pods.get(&key).is_some_and(|stored| stored.pod.node_name.is_none()) {
                    self.counts.given_up += 1;
                    self.delete(key);
                }
            }
            Action::Status(order) => self.change(&order.pod.key, |pod| patch(pod, &order)),
            Action::Report(report) => self.core.apply(Input::Report(report)),
            Action::Object(input) => self.core.apply(input),
        }
    }

    /// Applies a change of a pod, as a watch reports it.
    fn see(&mut self, input: Input) {
        self.counts.pod_events += 1;
        self.core.apply(input);
    }

    fn create(&mut self, pod: Pod) {
        let seconds = self.rng.between(600, 3000) as u64;
        let pod = Arc::new(pod);
        self.pods.insert(pod.key.clone(), Stored { pod: pod.clone(), seconds });
        self.see(Input::PodApplied(pod));
    }

    /// Changes a pod, if it still exists.
    fn change(&mut self, key: &PodKey, change: impl FnOnce(&mut Pod)) {
        let Some(stored) = self.pods.get_mut(key) else { return };
        let mut pod = (*stored.pod).clone();
        change(&mut pod);
        stored.pod = Arc::new(pod);
        let seen = stored.pod.clone();
        self.see(Input::PodApplied(seen));
    }

    fn bound(&mut self, key: &PodKey, node: Name) {
        let second = self.second as i64;
        self.change(key, |pod| {
            pod.node_name = Some(node);
            let (reason, message) = ("".into(), "".into());
            pod.scheduled = Some(ScheduledCondition { is_true: true, reason, message });
            pod.scheduled_at = Some(second);
        });
        self.after(2, Action::Run(key.clone()));
    }

    fn run(&mut self, key: &PodKey) {
        let second = self.second as i64;
        self.change(key, |pod| (pod.phase, pod.started) = (PodPhase::Running, Some(second)));
        if let Some(stored) = self.pods.get(key) {
            self.after(stored.seconds, Action::End(key.clone()));
        }
    }

    fn delete(&mut self, key: PodKey) {
        if self.pods.remove(&key).is_some() {
            self.see(Input::PodDeleted(key));
        }
    }

    // === effects ===

    fn take_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Bind(order) => {
                let (id, uid) = (order.id, order.pod.uid.clone());
                let outcome = if !self.pods.contains_key(&order.pod.key) {
                    BindOutcome::Gone
                } else if self.rng.chance(REFUSED_BINDINGS) {
                    self.counts.refused_bindings += 1;
                    refused()
                } else {
                    self.after(1, Action::Bound(order.pod.key.clone(), (*order.node).clone()));
                    BindOutcome::Bound
                };
                self.core.apply(Input::Report(EffectReport::BindSent { id, uid: uid.clone() }));
                self.after(1, Action::Report(EffectReport::BindDone { id, uid, outcome }));
            }
            Effect::Evict(order) => {
                let (id, uid) = (order.id, order.victim.uid.clone());
                let is_there = self.pods.contains_key(&order.victim.key);
                if is_there {
                    self.counts.victims += 1;
                    self.change(&order.victim.key, |pod| pod.deleting = true);
                    self.after(10, Action::Delete(order.victim.key));
                }
                let outcome = if is_there { EvictOutcome::Deleted } else { EvictOutcome::Gone };
                self.after(1, Action::Report(EffectReport::EvictDone { id, uid, outcome }));
            }
            Effect::Status(order) => self.after(1, Action::Status(order)),
            Effect::Object(order) => unreachable!("no plugin of the default profile writes {}", order.write),
            Effect::Event(_) | Effect::GroupStatus(_) => {}
        }
    }

    // === nodes ===

    fn add_node(&mut self) {
        self.counts.nodes += 1;
        let node = jobs::node(self.counts.nodes);
        self.core.see_node(&node);
        self.nodes.push_back(node);
    }

    /// Replaces the oldest node by a new one, as autoscalers do, or relabels and cordons it for a while.
    fn change_node(&mut self) {
        let Some(mut node) = self.nodes.pop_front() else { return };
        if self.rng.chance(80) {
            node.unschedulable = !node.unschedulable;
            let stamp = format!("t{}", self.second);
            node.labels = jobs::node_labels(&node.name, &stamp);
            self.core.see_node(&node);
            return self.nodes.push_back(node);
        }
        self.core.apply(Input::NodeDeleted(node.name.clone()));
        let on_it = |stored: &Stored| stored.pod.node_name.as_ref() == Some(&node.name);
        let lost: Vec<PodKey> =
            self.pods.iter().filter(|(_, s)| on_it(s)).map(|(key, _)| key.clone()).collect();
        for key in lost {
            self.after(30, Action::Delete(key));
        }
        self.add_node();
    }
}

fn patch(pod: &mut Pod, order: &StatusOrder) {
    if let Some(condition) = &order.condition {
        let (reason, message) = (condition.reason.into(), condition.message.clone());
        pod.scheduled = Some(ScheduledCondition { is_true: false, reason, message });
    }
    if let Some(node) = &order.nomination {
        pod.nominated_node = node.clone();
    }
}

/// Makes the input of an object's creation.
pub(crate) fn applied(object: Object) -> Input {
    Input::ObjectApplied(Arc::new(object))
}
