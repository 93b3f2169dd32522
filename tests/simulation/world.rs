//! The world of one seed: the scheduler, the API server, and an agenda of future actions.
//!
//! Nothing blocks and nothing is concurrent. An action that takes time is a later entry of the agenda, with a random
//! delay; the clock jumps from entry to entry, and to the scheduler's own deadlines. Every interleaving of watches,
//! responses, kubelets and users can thus occur, and can be reproduced.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::{Cluster, Input};
use pellucid::cycle::scheduler::Step;
use pellucid::model::effect::{BindOrder, EffectReport, EvictOrder, ObjectOrder, StatusOrder};
use pellucid::model::{Name, Pod, PodKey};

use crate::api::{Api, FollowUp, Stream};
use crate::checks::Checks;
use crate::common::driver::Core;
use crate::common::rng::Rng;
use crate::nature::Nature;
use crate::trace::Trace;
use crate::workload::Workload;

/// A pending entry of the agenda.
pub(crate) enum Action {
    /// A watch delivers an event.
    Watch {
        stream: Stream,
        epoch: u32,
        input: Input,
    },
    /// The scheduling thread plans.
    Plan,
    /// A Binding reaches the API server; the number counts the tries.
    Bind(BindOrder, u32),
    /// The pod is read because the outcome of its Binding is unknown; the flag says whether there was a conflict.
    ReadBound(BindOrder, u32, bool),
    Evict(EvictOrder),
    /// The newest status order of a pod is written.
    WriteStatus(Arc<str>),
    /// A write of an object reaches the API server; the number counts the tries, and the flag says whether an
    /// earlier one may have been carried out.
    WriteObject(ObjectOrder, u32, bool),
    Report(EffectReport),
    /// A consequence of a write.
    Follow(FollowUp),
    /// Others make a change.
    Happen,
    /// A node comes back.
    NodeReturns(Box<pellucid::model::Node>),
    /// A pod can be read again.
    ReadableAgain(PodKey),
}

/// The world of one seed.
pub(crate) struct World {
    pub(crate) core: Core,
    pub(crate) api: Api,
    pub(crate) rng: Rng,
    pub(crate) nature: Nature,
    pub(crate) workload: Workload,
    pub(crate) trace: Trace,
    pub(crate) checks: Checks,
    /// Unwritten status orders by UID.
    pub(crate) statuses: BTreeMap<Arc<str>, StatusOrder>,
    agenda: BTreeMap<(Duration, u64), Action>,
    n_actions: u64,
    watches: BTreeMap<Stream, Watch>,
    is_planning: bool,
}

#[derive(Default)]
struct Watch {
    /// Number of restarts: undelivered events of an older watch are lost.
    epoch: u32,
    /// Time at which the last event arrives: later events arrive after it.
    last: Duration,
}

impl World {
    pub(crate) fn new(seed: u64, reuse: bool, is_kept: bool) -> Self {
        let mut rng = Rng::new(seed);
        let nature = Nature::of(&mut rng);
        let core = crate::under_test::core(&nature);
        core.switches.set_reuse(reuse);
        let mut api = Api::default();
        let mut workload = Workload::new(&mut rng, nature.others);
        workload.begin(&mut api, &mut rng);
        let mut world = Self {
            core,
            api,
            rng,
            nature,
            workload,
            trace: Trace::new(is_kept),
            checks: Checks::default(),
            statuses: BTreeMap::new(),
            agenda: BTreeMap::new(),
            n_actions: 0,
            watches: Stream::ALL.into_iter().map(|s| (s, Watch::default())).collect(),
            is_planning: false,
        };
        world.note(|w| format!("{:?}", w.nature));
        world.api.told.clear();
        for stream in Stream::ALL {
            world.relist(stream);
        }
        world.drain_api();
        world
    }

    /// Runs a round of changes and failures, and then a calm.
    pub(crate) fn round(&mut self) {
        let (usual, within) = (self.nature.clone(), self.nature.length.as_millis() as i64);
        for _ in 0..self.nature.happenings {
            let at = self.rng.millis(0, within);
            self.put(at, Action::Happen);
        }
        let until = self.now() + self.nature.length;
        while self.turn(until) {}
        self.calm_down();
        self.settle();
        self.nature = usual;
    }

    pub(crate) fn now(&self) -> Duration {
        self.core.now.monotonic
    }

    pub(crate) fn note(&mut self, what: impl FnOnce(&Self) -> String) {
        let line = what(self);
        self.trace.add(self.now(), &line);
    }

    /// Adds an action to the agenda after a delay.
    pub(crate) fn put(&mut self, later: Duration, action: Action) {
        self.n_actions += 1;
        assert!(self.n_actions < 100_000, "no end: something goes round in circles");
        self.agenda.insert((self.now() + later, self.n_actions), action);
    }

    /// Returns the delay of a message.
    pub(crate) fn delay(&mut self) -> Duration {
        if self.rng.chance(self.nature.slow) { self.rng.millis(500, 8000) } else { self.rng.millis(1, 80) }
    }

    pub(crate) fn goes_wrong(&mut self) -> bool {
        self.rng.chance(self.nature.faults)
    }

    /// Executes the next action due until a time. Returns whether there was one.
    pub(crate) fn turn(&mut self, until: Duration) -> bool {
        let due = self.agenda.first_key_value().map(|((at, _), _)| *at);
        let deadline = self.core.scheduler.next_deadline();
        let Some(at) = due.into_iter().chain(deadline).min().filter(|at| *at <= until) else { return false };
        let pause = at.saturating_sub(self.now());
        self.core.now.monotonic += pause;
        self.core.now.wall += pause;
        if deadline == Some(at) || deadline.is_some_and(|d| d < at) {
            self.core.scheduler.tick(self.core.now);
            let next = self.core.scheduler.next_deadline();
            assert!(next.is_none_or(|next| next > self.now()), "a deadline that does not pass");
            self.after_scheduler("tick");
        } else if let Some((_, action)) = self.agenda.pop_first() {
            self.act(action);
        }
        true
    }

    /// Returns whether the agenda is empty.
    pub(crate) fn is_agenda_empty(&self) -> bool {
        self.agenda.is_empty()
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Watch { stream, epoch, input } => {
                if self.watches[&stream].epoch == epoch {
                    self.note(|_| format!("watch {}", told(&input)));
                    self.apply(input);
                }
            }
            Action::Plan => self.plan(),
            Action::Bind(order, tries) => self.post_binding(order, tries),
            Action::ReadBound(order, tries, conflict) => self.read_bound(order, tries, conflict),
            Action::Evict(order) => self.post_eviction(order),
            Action::WriteStatus(uid) => self.write_status(&uid),
            Action::WriteObject(order, tries, unsure) => self.write_object(order, tries, unsure),
            Action::Report(report) => {
                self.note(|_| format!("report {report:?}"));
                self.checks.reported(&report);
                self.apply(Input::Report(report));
            }
            Action::Follow(what) => self.follow(what),
            Action::Happen => self.happen(),
            Action::NodeReturns(node) => {
                self.note(|_| format!("api: node {} is back", node.name));
                self.api.put_node(*node);
            }
            Action::ReadableAgain(key) => {
                self.api.change(&key, |s| s.is_unreadable = false);
            }
        }
        self.drain_api();
    }

    fn apply(&mut self, input: Input) {
        self.core.apply(input);
        self.after_scheduler("apply");
    }

    /// Plans a few units; other actions due at the same time come in between.
    fn plan(&mut self) {
        self.is_planning = false;
        for _ in 0..1 + self.rng.below(3) {
            let before = self.checks.before_step(&self.core.scheduler);
            let Some(step) = self.core.step() else { break };
            let said = describe(self.core.scheduler.cluster(), &step);
            self.note(|_| said);
            self.checks.step(&self.core.scheduler, &step, &before);
            self.after_scheduler("step");
        }
        self.want_to_plan();
    }

    /// Takes the effects and checks the invariants.
    fn after_scheduler(&mut self, what: &str) {
        self.core.scheduler.order_due_writes(self.core.now);
        for effect in self.core.scheduler.take_effects() {
            self.checks.effect(&self.core.scheduler, &effect);
            self.take_order(effect);
        }
        self.checks.always(&self.core.scheduler, what);
        self.want_to_plan();
    }

    fn want_to_plan(&mut self) {
        if self.core.scheduler.has_work() && !self.is_planning {
            self.is_planning = true;
            let soon = self.rng.millis(0, 15);
            self.put(soon, Action::Plan);
        }
    }

    /// Schedules the events and consequences of writes at the API server.
    pub(crate) fn drain_api(&mut self) {
        for (stream, input) in std::mem::take(&mut self.api.told) {
            self.send(stream, input);
        }
        for what in std::mem::take(&mut self.api.follow_ups) {
            let later = match what {
                FollowUp::Start(..) | FollowUp::Recount(_) => self.rng.millis(5, 1500),
                FollowUp::End(..) => self.rng.millis(10, 12_000),
                FollowUp::Provision(..) => self.rng.millis(50, 6000),
                FollowUp::CollectGarbage(_) => self.rng.millis(8000, 20_000),
            };
            self.put(later, Action::Follow(what));
        }
        if !self.nature.others {
            self.checks.truth(&self.api);
        }
    }

    fn send(&mut self, stream: Stream, input: Input) {
        let (now, delay) = (self.now(), self.delay());
        let watch = self.watches.get_mut(&stream).expect("there is one of each");
        watch.last = watch.last.max(now + delay);
        let (later, epoch) = (watch.last - now, watch.epoch);
        self.put(later, Action::Watch { stream, epoch, input });
    }

    /// Restarts a watch: undelivered events are lost, and the complete list is delivered.
    pub(crate) fn relist(&mut self, stream: Stream) {
        self.note(|_| format!("watch of {stream:?} restarts"));
        // Writes that were not yet delivered are in the list.
        self.api.told.retain(|(of, _)| *of != stream);
        self.watches.get_mut(&stream).expect("there is one of each").epoch += 1;
        for input in self.api.list(stream) {
            self.send(stream, input);
        }
    }

    // === what follows from writes ===

    fn follow(&mut self, what: FollowUp) {
        match what {
            FollowUp::Start(key, uid) => {
                let Some(stored) = self.api.pods.get(&key) else { return };
                let pod = &stored.pod;
                let has_node = pod.node_name.as_ref().is_some_and(|n| self.api.nodes.contains_key(n));
                if pod.uid == uid && has_node && pod.started.is_none() && !pod.phase.is_terminal() {
                    let started = Some(self.core.now.monotonic.as_secs() as i64);
                    self.api.change(&key, |s| {
                        s.pod.started = started;
                        s.pod.phase = pellucid::model::pod::PodPhase::Running;
                    });
                }
            }
            FollowUp::End(key, uid) => {
                if self.api.pods.get(&key).is_some_and(|s| s.pod.uid == uid && !s.is_stubborn) {
                    self.note(|_| format!("api: {key} is gone"));
                    self.api.remove(&key);
                }
            }
            FollowUp::Recount(namespace) => self.recount(&namespace),
            FollowUp::Provision(namespace, name) => self.provision(namespace, name),
            FollowUp::CollectGarbage(node) => {
                if self.api.nodes.contains_key(&node) {
                    return;
                }
                let on_node = self.api.pods.iter().filter(|(_, s)| s.pod.node_name.as_ref() == Some(&node));
                let gone: Vec<PodKey> =
                    on_node.filter(|(_, s)| !s.is_stubborn).map(|(k, _)| k.clone()).collect();
                for key in gone {
                    self.note(|_| format!("api: {key} was on {node}, which is gone"));
                    self.api.remove(&key);
                }
            }
        }
    }

    /// Acts as the controller of budgets: recounts how many disruptions each allows.
    fn recount(&mut self, namespace: &Name) {
        let budgets = self.api.budgets.values().filter(|g| g.budget.namespace == *namespace);
        let budgets: Vec<_> = budgets.cloned().collect();
        for mut guarded in budgets {
            let counts = |p: &Pod| {
                p.key.namespace == *namespace
                    && crate::api::takes_room(p)
                    && !p.deleting
                    && guarded.budget.selector.as_ref().is_some_and(|s| s.matches(&p.labels))
            };
            let healthy = self.api.pods.values().filter(|s| counts(&s.pod)).count() as i32;
            let allowed = (healthy - guarded.min_available).max(0);
            if allowed != guarded.budget.allowed {
                guarded.budget.allowed = allowed;
                self.api.put_budget(guarded);
            }
        }
    }

    /// Provisions a volume for a claim with a chosen node; or it fails, and the node is chosen anew.
    fn provision(&mut self, namespace: Name, name: Name) {
        let goes_wrong = self.goes_wrong();
        let Some(mut claim) = self.api.claims.get(&(namespace, name)).cloned() else { return };
        if claim.selected_node.is_none() || !claim.volume.is_empty() {
            return;
        }
        if goes_wrong {
            claim.selected_node = None;
            return self.api.put_claim(claim);
        }
        let volume = Name::new(&format!("pv-{}", claim.uid));
        self.api.put_volume(pellucid::model::storage::PersistentVolume {
            name: volume.clone(),
            uid: format!("uid-{volume}").into(),
            capacity: claim.requested,
            class: claim.class.clone().unwrap_or_default(),
            claim: Some(pellucid::model::storage::ClaimRef {
                namespace: claim.namespace.clone(),
                name: claim.name.clone(),
                uid: claim.uid.clone(),
            }),
            ..pellucid::model::storage::PersistentVolume::default()
        });
        claim.volume = volume;
        claim.phase = pellucid::model::storage::ClaimPhase::Bound;
        claim.bind_completed = true;
        self.api.put_claim(claim);
    }
}

fn describe(cluster: &Cluster, step: &Step) -> String {
    use pellucid::recording::Outcome;
    let outcome = match &step.verdict.outcome {
        Outcome::Placed(placement) => {
            let node = cluster.node_name(placement.node);
            format!("to {node} {:?} {}", placement.score, placement.feasible)
        }
        Outcome::Refused(refusal) | Outcome::Gated(refusal) => format!("refused: {}", refusal.message()),
    };
    let found = step.verdict.plan.as_ref().and_then(|plan| plan.candidates.first());
    let victims = found.map(|c| {
        let keys: Vec<String> = c.victims.iter().map(|v| v.key.to_string()).collect();
        format!(" evicts {} from {}", keys.join(", "), c.name)
    });
    format!("step {} ({}) {outcome}{}", step.pod.key, step.pod.priority, victims.unwrap_or_default())
}

fn told(input: &Input) -> String {
    match input {
        Input::PodApplied(p) => format!(
            "pod {} {} node {:?} nominated {:?} {:?} deleting {}",
            p.key, p.uid, p.node_name, p.nominated_node, p.phase, p.deleting
        ),
        Input::PodDeleted(key) => format!("pod {key} deleted"),
        Input::PodsReset { pods, quarantined } => format!("{} pods, {} bad", pods.len(), quarantined.len()),
        Input::NodeApplied(n) => format!("node {} {:?}", n.name, n.allocatable),
        Input::NodeDeleted(name) => format!("node {name} deleted"),
        Input::NodesReset { nodes, .. } => format!("{} nodes", nodes.len()),
        Input::ObjectsReset { kind, objects, .. } => format!("{} {kind:?}", objects.len()),
        Input::ObjectApplied(object) => format!("object {:?} {:?}", object.kind(), object.key()),
        Input::ObjectDeleted(kind, key) => format!("object {kind:?} {key:?} deleted"),
        Input::CustomApplied(object) => format!("{object:?}"),
        Input::CustomDeleted(kind, key) => format!("{kind:?} {key:?} deleted"),
        Input::CustomReset { kind, objects, .. } => format!("{} {kind:?}", objects.len()),
        Input::Quarantined(q) => format!("pod {}/{} unreadable", q.namespace, q.name),
        Input::Report(report) => format!("{report:?}"),
        Input::Leading(is_leading) => format!("leading {is_leading}"),
    }
}
