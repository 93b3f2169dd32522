//! Traces: facts about attempts, Bindings and answered requests, on their way to an exporter.
//!
//! Sending a fact never waits: the scheduling thread clones a few pointers, and a fact that finds the channel full is
//! dropped and counted. The exporter turns facts into spans on a thread of the runtime. With the cargo feature `otel`
//! it is `otlp`; without it there is no exporter, and no channel is created.

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

/// Capacity of the channel: a second or two of facts at the highest scheduling rate.
const FACTS_WAITING: usize = 65_536;
/// Most bind orders whose outcome is awaited at the same time.
const ORDERS_OPEN: usize = 65_536;
/// Paths that probes and scrapers request all the time, which are not traced.
const UNTRACED: [&str; 5] = ["/livez", "/readyz", "/healthz", "/metrics", "/metrics/resources"];

/// A finished attempt, Binding or request, which becomes one span.
#[derive(Clone, Debug)]
pub struct Fact {
    /// When it began, in wall time.
    pub began: Duration,
    /// How long it took.
    pub took: Duration,
    /// Its kind, with details.
    pub kind: FactKind,
}

/// The kinds of facts.
#[derive(Clone, Debug)]
pub enum FactKind {
    /// An attempt at a pod ended.
    Attempt {
        /// The pod that was tried.
        pod: Arc<Pod>,
        /// The first gang of the group, if the unit is a gang group.
        gang: Option<GangKey>,
        /// Number of the scheduling cycle.
        cycle: u64,
        /// Attempts at the unit so far, including this one.
        attempts: u32,
        /// Time since the unit first entered the queue.
        waited: Duration,
        /// The outcome of the attempt.
        outcome: Outcome,
        /// The chosen node, if any.
        node: Option<Name>,
    },
    /// A bind order ended.
    Binding {
        /// The order as it was given.
        order: BindOrder,
        /// How it ended.
        outcome: BindOutcome,
    },
    /// A request of the REST API was answered.
    Request {
        /// HTTP method.
        method: &'static str,
        /// Path template, or empty if no route matches.
        template: Box<str>,
        /// HTTP status code.
        status: u16,
    },
}

/// Sends facts to the exporter. Cheap to clone; never waits.
#[derive(Clone)]
pub struct Traces {
    facts: mpsc::Sender<Fact>,
    counts: Counts,
}

/// Counts exported and dropped spans.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Spans that the collector accepted.
    pub exported: Counter,
    /// Spans that were lost: the channel was full, or the collector did not accept them.
    pub dropped: Counter,
}

impl Traces {
    /// Creates a channel of facts.
    pub fn channel() -> (Self, mpsc::Receiver<Fact>) {
        let (facts, receiver) = mpsc::channel(FACTS_WAITING);
        (Self { facts, counts: Counts::default() }, receiver)
    }

    /// Returns the counters of spans.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    fn send(&self, fact: Fact) {
        if self.facts.try_send(fact).is_err() {
            self.counts.dropped.inc();
        }
    }

    /// Sends a fact about an answered request.
    pub fn request(&self, seen: &Observation<'_>, now: Now) {
        if UNTRACED.contains(&seen.template) {
            return;
        }
        let kind =
            FactKind::Request { method: seen.method, template: seen.template.into(), status: seen.status };
        self.send(Fact { began: now.wall.saturating_sub(seen.took), took: seen.took, kind });
    }
}

/// The part of tracing that the scheduling thread owns. It remembers bind orders until they end.
pub struct CoreTraces {
    traces: Traces,
    open: FxHashMap<EffectId, (BindOrder, Now)>,
}

impl CoreTraces {
    /// Starts without open orders.
    pub fn new(traces: Traces) -> Self {
        Self { traces, open: FxHashMap::default() }
    }

    /// Sends a fact about an attempt at a pod, with its gang and the chosen node.
    pub fn attempt(
        &self,
        step: &Step,
        (gang, node): (Option<&GangKey>, Option<&Name>),
        now: Now,
        took: Duration,
    ) {
        let kind = FactKind::Attempt {
            pod: Arc::clone(&step.pod),
            gang: gang.cloned(),
            cycle: step.verdict.cycle,
            attempts: step.attempts,
            waited: now.monotonic.saturating_sub(step.first_queued_at),
            outcome: step.verdict.outcome.clone(),
            node: node.cloned(),
        };
        self.traces.send(Fact { began: now.wall, took, kind });
    }

    /// Remembers new bind orders. At the limit of open orders, the span is dropped and counted.
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

    /// Sends a fact about a bind order that ended.
    pub fn reported(&mut self, input: &Input, now: Now) {
        let Input::Report(EffectReport::BindDone { id, outcome, .. }) = input else { return };
        let Some((order, given)) = self.open.remove(id) else { return };
        let took = now.monotonic.saturating_sub(given.monotonic);
        let kind = FactKind::Binding { order, outcome: outcome.clone() };
        self.traces.send(Fact { began: given.wall, took, kind });
    }
}

#[cfg(test)]
mod tests {
    use pellucid_model::{Pages, Pod, PodKey};

    use super::*;

    fn order(id: u64) -> BindOrder {
        let pod = Arc::new(Pod { key: PodKey::new("ns", "p"), uid: "u".into(), ..Pod::default() });
        let mut names = Pages::default();
        names.set(0, Name::new("n"));
        BindOrder { id: EffectId(id), pod, node: names.in_page(0), marks: None, attempt: 7 }
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
        assert!(matches!(fact.kind, FactKind::Binding { order, .. } if order.id == EffectId(2)));
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
