//! The task that takes a sample of the running scheduler every ten seconds.
//!
//! Reasons are those of the verdicts on all pending pods, as in every other count of them. Verdicts are worked out once per
//! snapshot for all readers, on the calling thread. So that this stays cheap however large the cluster is, they are asked
//! for at most a fiftieth of the time, and given up after a second; samples in between have no reasons.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use pellucid_cycle::Snapshot;
use pellucid_diagnosis::verdict::{Verdicts, verdicts};
use pellucid_diagnosis::views::pending::waiting;
use pellucid_model::cancellation::{Cancellation, run_cancellable};
use pellucid_model::time::Probe;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::ring::{Rates, Reasons, Sample};
use super::{EVERY, SharedRing};
use crate::clock::{Clock, Stopwatch};
use crate::metrics::Metrics;
use crate::metrics::buckets::Buckets;

/// How long the verdicts of one sample may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// Verdicts may take one part in this many of the time.
const SHARE: u32 = 50;

/// What the counters said at a sample.
struct Reading {
    monotonic: Duration,
    bound: u64,
    attempts: u64,
    waits: Buckets,
}

/// Takes samples.
pub struct Sampler {
    snapshot: Arc<ArcSwap<Snapshot>>,
    metrics: Arc<Metrics>,
    clock: Clock,
    ring: SharedRing,
    before: Option<Reading>,
    /// When reasons may be counted again, on the monotonic clock.
    reasons_from: Duration,
}

/// Ends the counting of reasons when its time is up or the process stops.
struct Limit {
    stopwatch: Stopwatch,
    stop: CancellationToken,
}

impl Cancellation for Limit {
    fn is_over(&self) -> bool {
        self.stopwatch.elapsed() > PATIENCE || self.stop.is_cancelled()
    }
}

impl Sampler {
    /// Creates a sampler that writes to `ring`.
    pub fn new(
        snapshot: Arc<ArcSwap<Snapshot>>,
        metrics: Arc<Metrics>,
        clock: Clock,
        ring: SharedRing,
    ) -> Self {
        Self { snapshot, metrics, clock, ring, before: None, reasons_from: Duration::ZERO }
    }

    /// Takes a sample every ten seconds until stopped, the first after ten.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick comes at once, when nothing is known of the cluster yet.
        ticks.tick().await;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let token = stop.clone();
            let taken = tokio::task::spawn_blocking(move || {
                self.take(&token);
                self
            });
            match taken.await {
                Ok(sampler) => self = sampler,
                Err(error) => {
                    tracing::error!(error = %error, "no more samples of trends are taken");
                    return;
                }
            }
        }
    }

    /// Takes one sample.
    fn take(&mut self, stop: &CancellationToken) {
        let snapshot = self.snapshot.load_full();
        let now = (self.clock)();
        let counters = &snapshot.counters;
        let reading = Reading {
            monotonic: now.monotonic,
            bound: counters.bound,
            attempts: counters.attempts,
            waits: self.metrics.waits(),
        };
        let pending = waiting(&snapshot, &Verdicts::default()).count();
        let sample = Sample {
            at: now.wall,
            pending: u32::try_from(pending).unwrap_or(u32::MAX),
            reasons: self.reasons(&snapshot, now.monotonic, stop),
            rates: self.before.as_ref().and_then(|before| rates(before, &reading)),
        };
        self.before = Some(reading);
        self.ring.0.lock().push(sample);
    }

    /// Counts pending pods by reason, unless it is too early or takes too long.
    fn reasons(
        &mut self,
        snapshot: &Snapshot,
        monotonic: Duration,
        stop: &CancellationToken,
    ) -> Option<Reasons> {
        if monotonic < self.reasons_from {
            return None;
        }
        let stopwatch = Stopwatch::start();
        let limit = Rc::new(Limit { stopwatch: Stopwatch::start(), stop: stop.clone() });
        let counted = run_cancellable(limit, || {
            let verdicts = verdicts(snapshot, snapshot.published);
            let mut counts: BTreeMap<&'static str, u32> = BTreeMap::new();
            for pod in waiting(snapshot, &verdicts) {
                *counts.entry(pod.code.as_str()).or_default() += 1;
            }
            Reasons::of(counts, verdicts.truncated)
        });
        self.reasons_from = monotonic + stopwatch.elapsed() * SHARE;
        counted.ok()
    }
}

/// Returns what happened between two readings, or `None` when no time passed between them.
fn rates(before: &Reading, after: &Reading) -> Option<Rates> {
    let since = after.monotonic.checked_sub(before.monotonic).filter(|since| !since.is_zero())?;
    Some(Rates {
        since,
        bound: after.bound.saturating_sub(before.bound),
        attempts: after.attempts.saturating_sub(before.attempts),
        wait_p99: after.waits.quantile_since(&before.waits, 0.99),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use pellucid_cluster::Input;
    use pellucid_cycle::Scheduler;
    use pellucid_cycle::scheduler::Settings;
    use pellucid_cycle::scheduler::turn::Advance;
    use pellucid_model::{Node, Now, Pod, PodKey};

    use super::*;

    /// A scheduler without nodes, its metrics, and a sampler on a clock that is moved by hand.
    struct Sampled {
        scheduler: Scheduler,
        metrics: Arc<Metrics>,
        snapshot: Arc<ArcSwap<Snapshot>>,
        seconds: Arc<AtomicU64>,
        ring: SharedRing,
        sampler: Sampler,
    }

    fn at(seconds: u64) -> Now {
        Now { monotonic: Duration::from_secs(seconds), wall: Duration::from_secs(1_000 + seconds) }
    }

    fn sampled() -> Sampled {
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
        let metrics = Arc::new(Metrics::new(vec![pellucid_config::DEFAULT_SCHEDULER_NAME.into()]));
        let snapshot = Arc::new(ArcSwap::from_pointee(scheduler.publish(at(0))));
        let (seconds, ring) = (Arc::new(AtomicU64::new(0)), SharedRing::default());
        let read = seconds.clone();
        let clock: Clock = Arc::new(move || at(read.load(Ordering::Relaxed)));
        let sampler = Sampler::new(snapshot.clone(), metrics.clone(), clock, ring.clone());
        Sampled { scheduler, metrics, snapshot, seconds, ring, sampler }
    }

    impl Sampled {
        /// Makes all attempts that are due, publishes, and takes a sample at this time.
        fn sample(&mut self, seconds: u64) {
            let now = at(seconds);
            self.seconds.store(seconds, Ordering::Relaxed);
            self.scheduler.tick(now);
            while self.scheduler.has_work() {
                if let Advance::Judged(step) = self.scheduler.advance(now, &Stopwatch::start()) {
                    step.all().for_each(|judged| self.metrics.pod(judged, now.monotonic));
                }
            }
            self.snapshot.store(Arc::new(self.scheduler.publish(now)));
            self.sampler.take(&CancellationToken::new());
        }

        fn add_pods(&mut self, n: usize) {
            for i in 0..n {
                let key = PodKey::new("ns", &format!("p{i}"));
                let scheduler_name = pellucid_config::DEFAULT_SCHEDULER_NAME.into();
                let pod = Pod { uid: key.to_string().into(), key, scheduler_name, ..Pod::default() };
                self.scheduler.apply(Input::PodApplied(Arc::new(pod)), at(0));
            }
        }

        fn add_node(&mut self, seconds: u64) {
            let mut node = Node { name: "n".into(), ready: true, ..Node::default() };
            node.allocatable.pods = 1_000;
            self.scheduler.apply(Input::NodeApplied(Arc::new(node)), at(seconds));
        }
    }

    #[test]
    fn a_sample_says_what_waits_and_what_happened_since_the_one_before() {
        let mut sampled = sampled();
        sampled.add_pods(3);
        sampled.sample(10);
        sampled.add_node(20);
        sampled.sample(20);
        let samples = sampled.ring.samples();
        let [first, second] = &*samples else { panic!("{samples:?}") };
        let reasons = first.reasons.as_ref().expect("reasons");
        assert_eq!((first.pending, reasons.len(), reasons[0].pods), (3, 1, 3), "{first:?}");
        assert_eq!(reasons[0].code, "NoNodes");
        assert_eq!((first.seconds, first.binds_per_second, first.wait_p99_seconds), (None, None, None));
        // Three attempts in ten seconds. The Bindings are not confirmed, so the pods are pending still.
        assert_eq!((second.seconds, second.attempts_per_second), (Some(10.0), Some(0.3)), "{second:?}");
        assert_eq!((second.pending, second.binds_per_second), (3, Some(0.0)));
        assert_eq!(second.reasons.as_ref().expect("reasons")[0].code, "Placed");
        // They came at 0 and were placed at 20: in the bucket up to 20.48 s.
        let p99 = second.wait_p99_seconds.expect("three were placed");
        assert!((10.24..=20.48).contains(&p99), "{p99}");
    }

    #[test]
    fn reasons_are_left_out_until_their_share_of_the_time_has_passed() {
        let mut sampled = sampled();
        sampled.add_pods(1);
        sampled.sampler.reasons_from = Duration::from_secs(11);
        sampled.sample(10);
        sampled.sample(20);
        let samples = sampled.ring.samples();
        assert_eq!((samples[0].pending, samples[0].reasons.is_none()), (1, true));
        assert!(samples[1].reasons.is_some());
    }

    #[test]
    fn counting_ends_with_the_process() {
        let mut sampled = sampled();
        sampled.add_pods(1);
        sampled.sample(10);
        let stop = CancellationToken::new();
        stop.cancel();
        sampled.scheduler.apply(Input::PodsReset { pods: Vec::new(), quarantined: Vec::new() }, at(20));
        sampled.add_pods(2);
        sampled.seconds.store(600, Ordering::Relaxed);
        sampled.snapshot.store(Arc::new(sampled.scheduler.publish(at(600))));
        sampled.sampler.take(&stop);
        let samples = sampled.ring.samples();
        assert_eq!((samples[1].pending, samples[1].reasons.is_none()), (2, true), "{samples:?}");
    }
}
