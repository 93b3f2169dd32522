//! The scheduling thread: takes inputs, plans units, hands out effects, publishes snapshots.
//!
//! *Invariant:* only this thread owns the state. It blocks only when there is nothing to do, until the next input or
//! deadline. [`Publishing`] says when what has changed is published.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use pellucid_cluster::Input;
use pellucid_cycle::Scheduler;
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::Step;
use pellucid_cycle::scheduler::turn::Advance;
use pellucid_kubernetes::writes::effect_queues::EffectQueues;
use pellucid_model::collections::FxHashMap;
use pellucid_model::effect::Effect;
use pellucid_model::{CustomKindRef, GangKey, Now, ObjectKind};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::clock::{Clock, Stopwatch};
use crate::log::attempts::{RecordedLines, log};
use crate::metrics::Metrics;
use crate::progress::Progress;
use crate::quantiles::Durations;
use crate::traces::CoreTraces;

/// Time between publications while the state changes. Each one costs twice: when the state is forked, and when what
/// the snapshot shares is changed next and so is copied.
const PUBLISH_EVERY: Duration = Duration::from_millis(10);
/// Time without inputs after which what has changed is published.
const QUIET: Duration = Duration::from_millis(1);
/// While inputs come faster than this, they are awaited together: to be woken for each costs its sender and this thread more
/// than most of them do.
const LINGER: Duration = Duration::from_micros(300);
/// How long units are planned before the next check for inputs.
const ROUND: Duration = Duration::from_millis(2);
/// Most inputs taken in one round, before units are planned again.
const INPUTS_PER_ROUND: usize = 4096;

/// The state of the scheduling thread.
pub struct CoreLoop {
    /// Cluster state, queue and plugins; makes the decisions.
    pub scheduler: Scheduler,
    /// Inputs from the cluster.
    pub inputs: mpsc::Receiver<Input>,
    /// Queues of effects for the API writers.
    pub queues: Arc<EffectQueues>,
    /// The scheduler's clock.
    pub clock: Clock,
    /// The published snapshot.
    pub snapshot: Arc<ArcSwap<Snapshot>>,
    /// Announces the generation of each published snapshot.
    pub published: watch::Sender<u64>,
    /// Counts attempts and their durations.
    pub metrics: Arc<Metrics>,
    /// Collects the duration of every decision, if a report needs them.
    pub decisions: Option<Arc<Durations>>,
    /// Which initial lists have arrived.
    pub lists: InitialLists,
    /// Conditions and events held back until the next publication.
    pub held_back: Vec<Effect>,
    /// Traces attempts and Bindings, if traces are exported.
    pub traces: Option<CoreTraces>,
    /// Progress of this thread, for the health check.
    pub progress: Arc<Progress>,
    /// Time spent so far on gang attempts that are paused, by gang.
    pub paused: FxHashMap<GangKey, Duration>,
    /// Ends the loop.
    pub stop: CancellationToken,
}

/// Tracks which initial lists have arrived. Nothing is planned before all have: a pod could be refused for lack of
/// nodes that are not listed yet, placed on capacity that unlisted pods use, or placed away from its volume.
#[derive(Clone, Debug, Default)]
pub struct InitialLists {
    pods: bool,
    nodes: bool,
    objects: [bool; ObjectKind::ALL.len()],
    /// Kinds that plugins bring and whose list has not arrived.
    custom: Vec<CustomKindRef>,
}

impl InitialLists {
    /// Creates the set of lists to wait for: those of all built-in kinds and of `custom`, the kinds of plugins.
    pub fn with(custom: &[CustomKindRef]) -> Self {
        Self { custom: custom.to_vec(), ..Self::default() }
    }

    fn record(&mut self, input: &Input) {
        match input {
            Input::PodsReset { .. } => self.pods = true,
            Input::NodesReset { .. } => self.nodes = true,
            Input::ObjectsReset { kind, .. } => self.objects[*kind as usize] = true,
            Input::CustomReset { kind, .. } => self.custom.retain(|waited| waited != kind),
            _ => {}
        }
    }

    fn are_complete(&self) -> bool {
        self.pods && self.nodes && self.objects.iter().all(|listed| *listed) && self.custom.is_empty()
    }
}

/// When what has changed is published: when nothing more comes for [`QUIET`], and every [`PUBLISH_EVERY`] while changes go
/// on. A pause of the loop is no reason to: beside a busy API server there are thousands a second.
struct Publishing {
    is_changed: bool,
    /// Not before this time, by the monotonic clock.
    next: Duration,
}

impl Publishing {
    fn is_due(&self, now: Duration) -> bool {
        self.is_changed && now >= self.next
    }
}

impl CoreLoop {
    /// Runs until stopped, on the calling thread.
    pub fn run(mut self) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let stopwatch = Stopwatch::start();
        let mut publishing = Publishing { is_changed: true, next: Duration::ZERO };
        let mut are_quick = false;
        while !self.stop.is_cancelled() {
            publishing.is_changed |= self.take_inputs();
            let now = (self.clock)();
            self.progress.working(now.monotonic);
            publishing.is_changed |= self.scheduler.tick(now);
            publishing.is_changed |= self.plan(&stopwatch);
            self.push_effects();
            let now = (self.clock)();
            if publishing.is_due(now.monotonic) {
                self.publish();
                publishing = Publishing { is_changed: false, next: now.monotonic + PUBLISH_EVERY };
            }
            if !self.can_plan() && self.inputs.is_empty() {
                match self.wait(&runtime, publishing.is_changed.then_some(QUIET), &mut are_quick) {
                    // Published with what comes of it.
                    Waited::Input => publishing.is_changed = true,
                    // Nothing has come, so what has changed is due.
                    Waited::Deadline => publishing.next = Duration::ZERO,
                    Waited::End => break,
                }
            }
        }
        self.publish();
        Ok(())
    }

    fn can_plan(&self) -> bool {
        self.lists.are_complete() && self.scheduler.has_work() && self.queues.room() > 0
    }

    fn take_inputs(&mut self) -> bool {
        let mut any = false;
        for _ in 0..INPUTS_PER_ROUND {
            let Ok(input) = self.inputs.try_recv() else { break };
            self.take(input);
            any = true;
        }
        any
    }

    fn take(&mut self, input: Input) {
        let now = (self.clock)();
        self.lists.record(&input);
        if let Some(traces) = &mut self.traces {
            traces.reported(&input, now);
        }
        self.scheduler.apply(input, now);
    }

    /// Pushes effects to the queues. Conditions and events are held back until the next publication, so that the
    /// snapshot contains the verdict behind each of them.
    fn push_effects(&mut self) {
        if self.lists.are_complete() && self.queues.room() > 0 {
            self.scheduler.order_due_writes((self.clock)());
        }
        let mut effects = self.scheduler.take_effects();
        let is_text =
            |e: &mut Effect| matches!(e, Effect::Status(_) | Effect::Event(_) | Effect::GroupStatus(_));
        self.held_back.extend(effects.extract_if(.., is_text));
        if let Some(traces) = &mut self.traces {
            traces.ordered(&effects, (self.clock)());
        }
        if !effects.is_empty() {
            self.queues.push_all(effects);
        }
    }

    fn plan(&mut self, stopwatch: &Stopwatch) -> bool {
        if !self.can_plan() {
            return false;
        }
        let mut now = (self.clock)();
        let end = now.monotonic + ROUND;
        let mut any = false;
        for _ in 0..self.queues.room() {
            let advance = self.scheduler.advance(now, stopwatch);
            let after = (self.clock)();
            let took = after.monotonic.saturating_sub(now.monotonic);
            match advance {
                Advance::Idle => break,
                Advance::Paused(gang) => *self.paused.entry(gang).or_default() += took,
                Advance::Judged(step) => self.record_step(&step, took, (now, after)),
            }
            any = true;
            self.progress.working(after.monotonic);
            if after.monotonic >= end {
                break;
            }
            now = after;
        }
        any
    }

    /// Counts, logs and traces the outcome of a unit. `took` is the time of the last slice, if the unit was planned in
    /// several.
    fn record_step(&mut self, step: &Step, took: Duration, (now, after): (Now, Now)) {
        let earlier = step.gang.as_ref().and_then(|gang| self.paused.remove(gang)).unwrap_or_default();
        let in_all = earlier + took;
        if let Some(decisions) = &self.decisions {
            decisions.add(in_all);
        }
        self.metrics.unit(step, in_all);
        let mut recorded = RecordedLines::default();
        for judged in step.all() {
            let node = self.scheduler.chosen(&judged.verdict);
            self.metrics.pod(judged, now.monotonic);
            if let Some(traces) = &self.traces {
                traces.attempt(judged, (step.gang.as_ref(), node), now, in_all);
            }
            log(judged, node, in_all, &mut recorded);
        }
        recorded.end();
        self.charge_cost(step, in_all, after);
    }

    /// Charges the time of the attempt to the cost meter, and the time of logging if anything was recorded. Warns when
    /// a recording is turned off for exceeding its budget.
    fn charge_cost(&mut self, step: &Step, took: Duration, after: Now) {
        let is_recorded = step.all().any(|s| s.table.is_some() || s.failure.is_some());
        let now = if is_recorded { (self.clock)() } else { after };
        let logged = now.monotonic.saturating_sub(after.monotonic);
        if let Some(recording) = self.scheduler.charge_cost(took, logged, now) {
            let (flag, id, owner) = (recording.flag.as_str(), recording.id, &*recording.owner);
            warn!(
                flag,
                id, owner, "recording is turned off: it took more than its budget (see /apis/v1/debug)"
            );
        }
    }

    fn publish(&mut self) {
        let snapshot = self.scheduler.publish((self.clock)());
        let generation = snapshot.generation;
        self.snapshot.store(Arc::new(snapshot));
        self.published.send_replace(generation);
        if !self.held_back.is_empty() {
            self.queues.push_all(self.held_back.drain(..));
        }
    }

    /// Waits for an input or the next deadline, at most for some time. `are_quick` is whether the last input came within
    /// [`LINGER`], and becomes whether this one did.
    fn wait(
        &mut self,
        runtime: &tokio::runtime::Runtime,
        most: Option<Duration>,
        are_quick: &mut bool,
    ) -> Waited {
        let now = (self.clock)();
        self.progress.waiting(now.monotonic);
        if *are_quick {
            // Who sends meanwhile wakes nobody.
            std::thread::sleep(LINGER);
            if !self.inputs.is_empty() {
                return Waited::Input;
            }
        }
        let deadline = self.scheduler.next_deadline();
        // While a queue is full, nothing can be planned; the next effect report arrives as an input.
        let until = deadline.map_or(Duration::from_secs(3600), |at| at.saturating_sub(now.monotonic));
        let until = until.max(Duration::from_millis(1)).min(most.unwrap_or(Duration::MAX));
        let (inputs, stop) = (&mut self.inputs, self.stop.clone());
        let input = runtime.block_on(async {
            tokio::select! {
                input = inputs.recv() => input.map(Some),
                () = tokio::time::sleep(until) => Some(None),
                () = stop.cancelled() => None,
            }
        });
        *are_quick = false;
        match input {
            None => Waited::End,
            Some(None) => Waited::Deadline,
            Some(Some(input)) => {
                *are_quick = (self.clock)().monotonic < now.monotonic + LINGER;
                self.take(input);
                Waited::Input
            }
        }
    }
}

/// What ended a wait.
#[derive(Debug, PartialEq)]
enum Waited {
    /// There are inputs, the first of which may have been taken.
    Input,
    Deadline,
    End,
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use pellucid_cycle::scheduler::Settings;
    use pellucid_kubernetes::writes::effect_queues::EffectQueueSizes;
    use pellucid_model::gang::{Dialect, GangDeclaration, GangTerms};
    use pellucid_model::{Node, Pod, PodKey};

    use super::super::health::Health;
    use super::*;

    /// Returns a loop on a clock that advances by half a millisecond per reading, with a node and some pods.
    fn core_loop(n_pods: usize, gang: Option<Arc<GangDeclaration>>) -> CoreLoop {
        let registry = pellucid_plugins::registry();
        let profiles = pellucid_config::default(&registry).expect("the defaults are valid").profiles;
        let mut scheduler = Scheduler::new(Settings {
            profiles,
            registry: Arc::new(registry),
            limits: Default::default(),
            seed: 0,
            switches: Arc::default(),
            controllers: Vec::new(),
            shadow_of: None,
        });
        let read = AtomicU64::new(0);
        let clock: Clock = Arc::new(move || Now {
            monotonic: Duration::from_micros(500 * read.fetch_add(1, Ordering::Relaxed)),
            ..Now::default()
        });
        let snapshot = Arc::new(ArcSwap::from_pointee(scheduler.publish(clock())));
        let mut node = Node { name: "n".into(), ready: true, ..Node::default() };
        node.allocatable.pods = 1_000;
        scheduler.apply(Input::NodeApplied(Arc::new(node)), Now::default());
        for i in 0..n_pods {
            let key = PodKey::new("ns", &format!("p{i}"));
            let scheduler_name = pellucid_config::DEFAULT_SCHEDULER_NAME.into();
            let gang = gang.clone();
            let pod = Pod { uid: key.to_string().into(), key, scheduler_name, gang, ..Pod::default() };
            scheduler.apply(Input::PodApplied(Arc::new(pod)), Now::default());
        }
        CoreLoop {
            scheduler,
            inputs: mpsc::channel(1).1,
            queues: Arc::new(EffectQueues::new(EffectQueueSizes::default(), clock.clone())),
            clock,
            snapshot,
            published: watch::channel(0).0,
            metrics: Arc::new(Metrics::new(vec![pellucid_config::DEFAULT_SCHEDULER_NAME.into()])),
            decisions: None,
            lists: InitialLists {
                pods: true,
                nodes: true,
                objects: [true; ObjectKind::ALL.len()],
                custom: Vec::new(),
            },
            held_back: Vec::new(),
            traces: None,
            progress: Arc::default(),
            paused: FxHashMap::default(),
            stop: CancellationToken::new(),
        }
    }

    #[test]
    fn inputs_are_looked_at_after_milliseconds_however_many_units_wait() {
        let mut core = core_loop(500, None);
        let placed = |core: &CoreLoop| core.scheduler.n_in_flight();
        assert!(core.plan(&Stopwatch::start()));
        assert_eq!(placed(&core), 4, "four attempts of half a millisecond");
        assert!(core.plan(&Stopwatch::start()));
        assert_eq!(placed(&core), 8);
        assert!(core.can_plan());
    }

    #[test]
    fn inputs_that_follow_each_other_closely_are_awaited_together() {
        let mut core = core_loop(0, None);
        let (sender, inputs) = mpsc::channel(8);
        // No time passes.
        (core.inputs, core.clock) = (inputs, Arc::new(Now::default));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let pod = || Input::PodApplied(Arc::default());
        let mut are_quick = false;
        let mut wait = |core: &mut CoreLoop| {
            let waited = core.wait(&runtime, Some(Duration::ZERO), &mut are_quick);
            (waited, core.inputs.len(), are_quick)
        };
        sender.try_send(pod()).expect("there is room");
        sender.try_send(pod()).expect("there is room");
        assert_eq!(wait(&mut core), (Waited::Input, 1, true), "the first is taken at once");
        sender.try_send(pod()).expect("there is room");
        assert_eq!(wait(&mut core), (Waited::Input, 2, true), "those of the pause come together");
        core.take_inputs();
        assert_eq!(
            wait(&mut core),
            (Waited::Deadline, 0, false),
            "nothing came, so the next is awaited alone"
        );
    }

    #[test]
    fn changes_within_milliseconds_are_published_together() {
        let ms = Duration::from_millis;
        let changed = |next| Publishing { is_changed: true, next };
        assert!(changed(ms(0)).is_due(ms(50)), "the first after a quiet time");
        assert!(!changed(ms(60)).is_due(ms(59)));
        assert!(changed(ms(60)).is_due(ms(60)));
        assert!(!Publishing { is_changed: false, next: ms(0) }.is_due(ms(60)));
    }

    #[test]
    fn the_attempt_at_a_gang_counts_once_with_all_its_slices() {
        let mark = Arc::new(GangDeclaration {
            gang: GangKey::new("ns", "g"),
            dialect: Dialect::Koordinator,
            needs_group: false,
            is_shadow: false,
            names_two: false,
            terms: GangTerms { min: Some(20), ..GangTerms::default() },
            problems: Box::default(),
        });
        let mut core = core_loop(20, Some(mark));
        core.scheduler.set_slice(1);
        while core.scheduler.has_work() {
            core.plan(&Stopwatch::start());
        }
        assert_eq!(core.scheduler.n_in_flight(), 20);
        let health = Health::new(core.progress.clone(), Arc::default(), &[], false, core.clock.clone());
        let text = core.metrics.render(&core.snapshot, None, None, &health);
        let labels =
            format!("{{result=\"scheduled\",profile=\"{}\"}}", pellucid_config::DEFAULT_SCHEDULER_NAME);
        let is_there = |line: &str| assert!(text.contains(line), "{line}:\n{text}");
        is_there(&format!("scheduler_schedule_attempts_total{labels} 20\n"));
        is_there(&format!("scheduler_scheduling_attempt_duration_seconds_count{labels} 1\n"));
        // Twenty slices of half a millisecond.
        is_there(&format!("scheduler_scheduling_attempt_duration_seconds_sum{labels} 0.01\n"));
    }

    #[test]
    fn lists_are_complete_when_every_kind_has_had_one() {
        let reset = |kind| Input::ObjectsReset { kind, objects: Vec::new(), quarantined: Vec::new() };
        let mut lists = InitialLists::default();
        lists.record(&Input::PodsReset { pods: Vec::new(), quarantined: Vec::new() });
        lists.record(&Input::NodesReset { nodes: Vec::new(), quarantined: Vec::new() });
        for kind in ObjectKind::ALL {
            assert!(!lists.are_complete(), "{kind:?} is missing");
            lists.record(&reset(kind));
        }
        assert!(lists.are_complete());
    }
}
