//! What may become traces: facts about attempts, Bindings and answered requests, on their way to an exporter.
//!
//! A fact is handed over with what is at hand and without waiting: the scheduling thread clones a few pointers, and
//! what finds the channel full is dropped and counted. Spans are made of facts by the exporter, on a thread of the
//! runtime: `otlp` with the cargo feature `otel`; without it there is none, and nobody makes a channel.

#[cfg(feature = "otel")]
mod otlp;
#[cfg(not(feature = "otel"))]
#[path = "none.rs"]
mod otlp;
#[cfg(feature = "otel")]
mod post;
#[cfg(feature = "otel")]
mod spans;

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;

pub use self::otlp::Exporter;
use pellucid_cluster::Input;
use pellucid_cycle::scheduler::Step;
use pellucid_http::Observation;
use pellucid_model::effect::{BindOrder, BindOutcome, Effect, EffectId, EffectReport};
use pellucid_model::{GangKey, Name, Now, Pod};
use pellucid_recording::Outcome;

/// Facts that may wait for the exporter: a second or two of the fastest scheduling.
const FACTS_WAITING: usize = 65_536;
/// Bind orders whose end is awaited.
const ORDERS_OPEN: usize = 65_536;
/// Paths that probes and scrapers ask again and again: nobody wants them as traces.
const UNTRACED: [&str; 5] = ["/livez", "/readyz", "/healthz", "/metrics", "/metrics/resources"];

/// Something that happened, with when it began (wall time) and how long it took.
#[derive(Clone, Debug)]
pub struct Fact {
    /// When it began.
    pub began: Duration,
    /// How long it took.
    pub took: Duration,
    /// What it was.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// A pod was judged.
    Attempt {
        /// Pod.
        pod: Arc<Pod>,
        /// The first gang of the group, when the unit was one.
        gang: Option<GangKey>,
        /// Number of the attempt.
        cycle: u64,
        /// Attempts at the unit, this one included.
        attempts: u32,
        /// How long it had waited since it first entered the queue.
        waited: Duration,
        /// What it came to.
        outcome: Outcome,
        /// The node that was chosen.
        node: Option<Name>,
    },
    /// A bind order ended.
    Binding {
        /// The order.
        order: BindOrder,
        /// What it came to.
        outcome: BindOutcome,
    },
    /// A request was answered.
    Request {
        /// Method, one of the usual ones.
        method: &'static str,
        /// Path template, or empty when nothing is registered there.
        template: Box<str>,
        /// Status.
        status: u16,
    },
}

/// Takes facts. Cheap to clone; never waits.
#[derive(Clone)]
pub struct Traces {
    facts: mpsc::Sender<Fact>,
    counts: Counts,
}

/// What became of spans.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Taken by the collector.
    pub exported: Counter,
    /// Lost: the channel was full, or the collector did not take them.
    pub dropped: Counter,
}

impl Traces {
    /// Makes a channel of facts.
    pub fn channel() -> (Self, mpsc::Receiver<Fact>) {
        let (facts, receiver) = mpsc::channel(FACTS_WAITING);
        (Self { facts, counts: Counts::default() }, receiver)
    }

    /// Returns what became of spans so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    fn send(&self, fact: Fact) {
        if self.facts.try_send(fact).is_err() {
            self.counts.dropped.inc();
        }
    }

    /// Tells of an answered request.
    pub fn request(&self, seen: &Observation<'_>, now: Now) {
        if UNTRACED.contains(&seen.template) {
            return;
        }
        let what = What::Request { method: seen.method, template: seen.template.into(), status: seen.status };
        self.send(Fact { began: now.wall.saturating_sub(seen.took), took: seen.took, what });
    }
}

/// The scheduling thread's side: remembers when bind orders were given until they end.
pub struct CoreTraces {
    traces: Traces,
    open: FxHashMap<EffectId, (BindOrder, Now)>,
}

impl CoreTraces {
    /// Begins with no order open.
    pub fn new(traces: Traces) -> Self {
        Self { traces, open: FxHashMap::default() }
    }

    /// Tells of a pod that was judged, with its gang, and the node that was chosen.
    pub fn attempt(
        &self,
        step: &Step,
        (gang, node): (Option<&GangKey>, Option<&Name>),
        now: Now,
        took: Duration,
    ) {
        let what = What::Attempt {
            pod: Arc::clone(&step.pod),
            gang: gang.cloned(),
            cycle: step.verdict.cycle,
            attempts: step.attempts,
            waited: now.monotonic.saturating_sub(step.first_queued_at),
            outcome: step.verdict.outcome.clone(),
            node: node.cloned(),
        };
        self.traces.send(Fact { began: now.wall, took, what });
    }

    /// Remembers orders that are given.
    pub fn ordered(&mut self, effects: &[Effect], now: Now) {
        for effect in effects {
            let Effect::Bind(order) = effect else { continue };
            if self.open.len() < ORDERS_OPEN {
                self.open.insert(order.id, (order.clone(), now));
            } else {
                self.traces.counts.dropped.inc();
            }
        }
    }

    /// Tells of an order that ended.
    pub fn reported(&mut self, input: &Input, now: Now) {
        let Input::Report(EffectReport::BindDone { id, outcome, .. }) = input else { return };
        let Some((order, given)) = self.open.remove(id) else { return };
        let took = now.monotonic.saturating_sub(given.monotonic);
        let what = What::Binding { order, outcome: outcome.clone() };
        self.traces.send(Fact { began: given.wall, took, what });
    }
}

#[cfg(test)]
mod tests {
    use pellucid_model::PodKey;
    use pellucid_model::effect::PodRef;

    use super::*;

    fn order(id: u64) -> BindOrder {
        let pod = PodRef { key: PodKey::new("ns", "p"), uid: "u".into() };
        BindOrder { id: EffectId(id), pod, node: Name::new("n"), attempt: 7 }
    }

    fn at(seconds: u64) -> Now {
        Now { monotonic: Duration::from_secs(seconds), wall: Duration::from_secs(1000 + seconds) }
    }

    #[test]
    fn a_binding_lasts_from_its_order_to_its_report() {
        let (traces, mut facts) = Traces::channel();
        let mut core = CoreTraces::new(traces);
        core.ordered(&[Effect::Bind(order(1)), Effect::Bind(order(2))], at(1));
        let done =
            |id| EffectReport::BindDone { id: EffectId(id), uid: "u".into(), outcome: BindOutcome::Bound };
        for id in [2, 2, 9] {
            core.reported(&Input::Report(done(id)), at(4));
        }
        let fact = facts.try_recv().unwrap();
        assert_eq!((fact.began, fact.took), (Duration::from_secs(1001), Duration::from_secs(3)));
        assert!(matches!(fact.what, What::Binding { order, .. } if order.id == EffectId(2)));
        assert!(facts.try_recv().is_err(), "one report, one fact");
        assert_eq!(core.open.len(), 1);
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let (facts, _receiver) = mpsc::channel(1);
        let traces = Traces { facts, counts: Counts::default() };
        let seen = |template| Observation { method: "GET", template, status: 200, took: Duration::ZERO };
        traces.request(&seen("/metrics"), at(1));
        for _ in 0..3 {
            traces.request(&seen("/version"), at(1));
        }
        assert_eq!(traces.counts().dropped.get(), 2);
    }
}
