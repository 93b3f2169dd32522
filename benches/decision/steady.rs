//! The decision bench over seconds instead of milliseconds, to compare runs under different conditions.
//!
//! Pods are placed in batches and deleted again. Only placing is timed, with a publication every ten milliseconds as in
//! the scheduling thread.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use pellucid::cluster::Input;
use pellucid::cycle::Scheduler;
use pellucid::cycle::Snapshot;
use pellucid::model::time::{NoProbe, Probe};
use pellucid::model::{Pod, PodKey};
use pellucid::recording::switches::Switches;

use super::Clock;
use super::world::{NODES, empty_scheduler, node, now, pod, spec};

/// Maximum time between publications.
const PUBLISH_EVERY: Duration = Duration::from_millis(10);
/// Number of runs per side.
const ROUNDS: usize = 9;

/// A scheduler that places and deletes batches of pods.
pub(crate) struct Steady {
    pub(crate) scheduler: Scheduler,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    shapes: usize,
    batch: usize,
    batches: usize,
    clock: Clock,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stretch {
    pub(crate) pods: usize,
    pub(crate) took: Duration,
}

impl Stretch {
    pub(crate) fn rate(self) -> f64 {
        self.pods as f64 / self.took.as_secs_f64()
    }
}

impl Steady {
    /// Creates a scheduler with all nodes and `refused` pods that fit on no node, of `kinds` different shapes. `batch` is
    /// the number of pods placed at a time.
    pub(crate) fn new(shapes: usize, (refused, kinds): (usize, usize), batch: usize) -> Self {
        let mut scheduler = empty_scheduler(true);
        let nodes = (0..NODES).map(|i| Arc::new(node(i))).collect();
        scheduler.apply(Input::NodesReset { nodes, quarantined: Vec::new() }, now());
        for i in 0..refused {
            let mut spec = spec(i % kinds % 150);
            spec.requests.list.milli_cpu = 1_000_000 + (i % kinds) as i64;
            scheduler.apply(Input::PodApplied(pod(&format!("refused-{i:04}"), spec)), now());
        }
        while scheduler.step(now(), &NoProbe).is_some() {}
        drop(scheduler.take_effects());
        let snapshot = Arc::new(ArcSwap::from_pointee(scheduler.publish(now())));
        Self { scheduler, snapshot, shapes, batch, batches: 0, clock: Clock(Instant::now()) }
    }

    pub(crate) fn switches(&self) -> Arc<Switches> {
        self.snapshot.load().switches.clone()
    }

    /// Places batches, at least one, until placing took `long` in total.
    pub(crate) fn work(&mut self, long: Duration) -> Stretch {
        let mut all = Stretch::default();
        while all.pods == 0 || all.took < long {
            let pods = self.add();
            all.took += self.place();
            all.pods += pods.len();
            for key in pods {
                self.scheduler.apply(Input::PodDeleted(key), now());
            }
        }
        all
    }

    fn add(&mut self) -> Vec<PodKey> {
        self.batches += 1;
        let pods: Vec<Arc<Pod>> = (0..self.batch)
            .map(|i| pod(&format!("pod-{}-{i:05}", self.batches), spec(i % self.shapes)))
            .collect();
        let keys = pods.iter().map(|pod| pod.key.clone()).collect();
        for pod in pods {
            self.scheduler.apply(Input::PodApplied(pod), now());
        }
        keys
    }

    fn place(&mut self) -> Duration {
        let start = Instant::now();
        let mut published = start;
        let mut count = 0;
        loop {
            // The clock is read around each attempt, as in the scheduling thread.
            let before = self.clock.elapsed();
            if self.scheduler.step(now(), &self.clock).is_none() {
                break;
            }
            let took = self.clock.elapsed() - before;
            self.scheduler.charge_cost(took, Duration::ZERO, now());
            count += 1;
            if count % 64 == 0 {
                black_box(self.scheduler.take_effects());
                if published.elapsed() >= PUBLISH_EVERY {
                    self.snapshot.store(Arc::new(self.scheduler.publish(now())));
                    published = Instant::now();
                }
            }
        }
        drop(self.scheduler.take_effects());
        self.snapshot.store(Arc::new(self.scheduler.publish(now())));
        start.elapsed()
    }
}

/// Runs two sides in turn, `ROUNDS` times each, and prints rates, medians and the loss. Returns the loss in percent.
pub(crate) fn compare(what: &str, names: [&str; 2], mut run: impl FnMut(bool) -> Stretch) -> f64 {
    let medians = interleaved(what, &names, |side| run(side == 1));
    let loss = 100.0 * (1.0 - medians[1] / medians[0]);
    println!("  loss of the median           {loss:.2} %");
    loss
}

/// Compares pairs of runs for readers who keep a core busy: with nobody who asks, and with a thread that only counts, which
/// is compared with nobody too. Returns the loss to the thread that counts. What a busy core takes from the other one is not
/// the readers' own: two processors of a virtual machine may be one core of the host, and then whatever runs on one slows the
/// other down.
pub(crate) fn beside_readers(long: Duration, mut run: impl FnMut(bool) -> Stretch) -> f64 {
    in_turn("readers", long, &mut run);
    in_turn("a thread that counts", long, |on| if on { beside_a_counter(|| run(false)) } else { run(false) });
    in_turn("readers, not a counter", long, |on| if on { run(true) } else { beside_a_counter(|| run(false)) })
}

/// Runs something while another thread counts.
fn beside_a_counter(run: impl FnOnce() -> Stretch) -> Stretch {
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut count = 0_u64;
            while !end.load(Ordering::Relaxed) {
                count = black_box(count.wrapping_add(1));
            }
        });
        let stretch = run();
        end.store(true, Ordering::Relaxed);
        stretch
    })
}

/// Runs sides in turn, `ROUNDS` times each, beginning with another one each time. Prints rates, and returns their medians.
fn interleaved(what: &str, names: &[&str], mut run: impl FnMut(usize) -> Stretch) -> Vec<f64> {
    let mut rates = vec![Vec::new(); names.len()];
    for round in 0..ROUNDS {
        for turn in 0..names.len() {
            let side = (round + turn) % names.len();
            rates[side].push(run(side).rate());
        }
    }
    println!("\n{what}: pods/s, {ROUNDS} interleaved runs each");
    let print = |(name, rates): (&&str, &mut Vec<f64>)| {
        let all: Vec<String> = rates.iter().map(|r| format!("{r:.0}")).collect();
        rates.sort_by(f64::total_cmp);
        let median = rates[ROUNDS / 2];
        let spread = 100.0 * (rates[ROUNDS - 1] - rates[0]) / median;
        println!("  {name:<28} {}  median {median:.0}, spread {spread:.1} %", all.join(" "));
        median
    };
    names.iter().zip(&mut rates).map(print).collect()
}

/// Runs pairs of both sides until they took `long` in total. Prints and returns the loss of the median pair in percent.
/// The runs of a pair are short and see equal conditions, so a disturbance affects few pairs.
pub(crate) fn in_turn(what: &str, long: Duration, mut run: impl FnMut(bool) -> Stretch) -> f64 {
    let mut losses = Vec::new();
    let mut took = Duration::ZERO;
    while took < long {
        let first = losses.len() % 2 == 1;
        let (a, b) = (run(first), run(!first));
        took += a.took + b.took;
        let (off, on) = if first { (b, a) } else { (a, b) };
        losses.push(100.0 * (1.0 - on.rate() / off.rate()));
    }
    losses.sort_by(f64::total_cmp);
    // The ranks of a 95 % confidence interval for the median, by the binomial distribution.
    let (n, half) = (losses.len(), losses.len() / 2);
    let off = (0.98 * (n as f64).sqrt()).ceil() as usize;
    let (low, high) = (losses[half.saturating_sub(off)], losses[(half + off).min(n - 1)]);
    println!("  {what:<22}{:>6.2} %  ({low:.2} to {high:.2}; {n} pairs)", losses[half]);
    losses[half]
}
