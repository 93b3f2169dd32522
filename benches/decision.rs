//! Measures the decision rate of the core without I/O: 5,000 nodes, the default profile.
//!
//! Prints a table with the floors and aims of the design. It is a plain program, because it reports rates and not
//! distributions:
//! - `cargo bench --bench decision` runs everything except `hostile`, `explain`, `fixes`, `routes`, `reads`, `l0`, `load`,
//!   `quotas`, `reservations`, `numa` and `devices`;
//! - `-- gangs` runs only gangs;
//! - `-- relations` runs only affinity and spread, compared with basic pods without reuse;
//! - `-- hostile` measures the wait of plain pods next to gangs that take long;
//! - `-- routes` measures every route of the REST API while pods are placed, `-- reads` what each answer costs by itself;
//! - `-- explain` compares runs with and without readers, `-- fixes` with and without readers who ask for fixes, `-- l0` with
//!   and without always-on diagnosis;
//! - `-- load` compares runs with and without LoadAwareScheduling, and with NodeMetrics that arrive meanwhile; `-- quotas` with
//!   and without ElasticQuota and 1,000 quotas;
//! - `-- reservations` places owners of 10,000 reservations, and compares pods that own none with and without Reservation;
//! - `-- numa` measures one pick of CPUs, and compares plain pods with and without NodeNUMAResource, and pods with CPUs of
//!   their own with plain ones;
//! - `-- count SIDE [BATCHES]` places two batches, or so many, of one side of a comparison and nothing else, for a profiler
//!   that counts instructions: `valgrind --tool=callgrind --toggle-collect='*place_all*' BENCH --bench count numa` (`count.rs` lists the sides);
//! - `-- devices` compares pods with a share of a card, with DeviceShare, with the same pods without one, without the plugin.
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a bench measures time and prints")]

#[path = "decision/count.rs"]
mod count;
#[path = "decision/devices.rs"]
mod devices;
#[path = "decision/explain.rs"]
mod explain;
#[path = "decision/fixes.rs"]
mod fixes;
#[path = "decision/gangs.rs"]
mod gangs;
#[path = "decision/hostile.rs"]
mod hostile;
#[path = "decision/level0.rs"]
mod level0;
#[path = "decision/load.rs"]
mod load;
#[path = "decision/numa.rs"]
mod numa;
#[path = "decision/quotas.rs"]
mod quotas;
#[path = "decision/reads.rs"]
mod reads;
#[path = "decision/relations.rs"]
mod relations;
#[path = "decision/reservations.rs"]
mod reservations;
#[path = "decision/routes.rs"]
mod routes;
#[path = "decision/steady.rs"]
mod steady;
#[path = "decision/storm.rs"]
mod storm;
#[path = "decision/world.rs"]
mod world;

use std::hint::black_box;
use std::time::{Duration, Instant};

use pellucid::cycle::Scheduler;
use pellucid::model::time::{NoProbe, Probe};
use pellucid::recording::Outcome;
use world::{NODES, PODS, add_pods, bare_scan, big_pod, now, resident, scheduler};

/// That of the program: what readers take from the scheduling thread depends on it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A probe that reads the clock, like the probe of the scheduling thread.
struct Clock(Instant);

impl Probe for Clock {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Schedules all active pods and returns pods per second. Takes effects as often as the scheduling loop does.
fn rate(scheduler: &mut Scheduler, probe: &dyn Probe, publish_every: usize) -> f64 {
    let start = Instant::now();
    let mut placed = 0;
    while let Some(step) = scheduler.step(now(), probe) {
        assert!(matches!(step.verdict.outcome, Outcome::Placed(_)), "every pod fits");
        placed += 1;
        if placed % 64 == 0 {
            black_box(scheduler.take_effects());
        }
        if publish_every > 0 && placed % publish_every == 0 {
            black_box(scheduler.publish(now()));
        }
    }
    assert_eq!(placed, PODS);
    placed as f64 / start.elapsed().as_secs_f64()
}

/// Returns the best rate of three runs, to exclude disturbances by the machine.
fn best(shapes: usize, probe: &dyn Probe, publish_every: usize, reuse: bool) -> f64 {
    let run = || {
        let mut scheduler = scheduler(reuse);
        add_pods(&mut scheduler, PODS, shapes);
        rate(&mut scheduler, probe, publish_every)
    };
    (0..3).map(|_| run()).fold(0.0, f64::max)
}

fn line(what: &str, value: f64, unit: &str, floor: &str, aim: &str) {
    println!("| {what:<44} | {value:>12.1} {unit:<7} | {floor:>9} | {aim:>9} |");
}

fn micros(n: u32, mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..n {
        run();
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(n)
}

fn main() {
    let mut args = std::env::args().skip_while(|arg| arg != "count");
    if args.next().is_some() {
        let side = args.next().unwrap_or_default();
        let batches = args.next().map(|batches| batches.parse().expect("BATCHES is a number"));
        return count::run(&side, batches);
    }
    if std::env::args().any(|arg| arg == "explain") {
        return explain::print();
    }
    if std::env::args().any(|arg| arg == "fixes") {
        return fixes::print();
    }
    if std::env::args().any(|arg| arg == "routes") {
        return routes::print();
    }
    if std::env::args().any(|arg| arg == "reads") {
        return reads::print();
    }
    if std::env::args().any(|arg| arg == "l0") {
        return level0::print();
    }
    if std::env::args().any(|arg| arg == "load") {
        return load::print();
    }
    if std::env::args().any(|arg| arg == "quotas") {
        return quotas::print();
    }
    if std::env::args().any(|arg| arg == "numa") {
        return numa::print();
    }
    if std::env::args().any(|arg| arg == "devices") {
        return devices::print();
    }
    if std::env::args().any(|arg| arg == "reservations") {
        return reservations::print();
    }
    if std::env::args().any(|arg| arg == "hostile") {
        return hostile::print();
    }
    println!("{NODES} nodes, {PODS} pods, default profile\n");
    println!("| {:<44} | {:>20} | {:>9} | {:>9} |", "what", "measured", "floor", "aim");
    println!("|{:-<46}|{:->22}|{:->11}|{:->11}|", "", "", "", "");

    if std::env::args().any(|arg| arg == "gangs") {
        return gangs::print();
    }
    if std::env::args().any(|arg| arg == "relations") {
        return relations::print();
    }
    // Measure memory first, before other runs affect it.
    let before = resident();
    let mut full = scheduler(true);
    add_pods(&mut full, PODS, 150);
    rate(&mut full, &NoProbe, 1000);
    let snapshot = full.publish(now());
    line("memory of the core, 150 shapes, one root", resident() - before, "MB", "150", "60");

    let equal = best(1, &NoProbe, 0, true);
    line("equal pods", equal, "pods/s", "100000", "500000");
    let clock = Clock(Instant::now());
    line("equal pods, plugins timed", best(1, &clock, 0, true), "pods/s", "100000", "500000");
    line("equal pods, a snapshot every 1,000", best(1, &NoProbe, 1000, true), "pods/s", "100000", "500000");
    let shapes = best(150, &NoProbe, 0, true);
    line("150 shapes", shapes, "pods/s", "20000", "100000");
    line("150 shapes, plugins timed", best(150, &clock, 0, true), "pods/s", "20000", "100000");

    let scan = micros(2000, || {
        black_box(bare_scan(&snapshot.cluster, black_box(100), black_box(128 << 20)));
    });
    line("bare fused scan: fit, least, balanced, best", scan, "us", "-", "-");
    line("bare scan / decision of equal pods", scan * equal / 1e6, "x", "-", "-");
    let mut fresh = scheduler(false);
    add_pods(&mut fresh, 200, 1);
    let anew = micros(200, || drop(black_box(fresh.step(now(), &NoProbe))));
    line("decision with rows made anew", anew, "us", "-", "-");
    line("rows made anew / bare scan", anew / scan, "x", "-", "-");

    let publish = micros(1000, || drop(black_box(full.publish(now()))));
    line("publish, nothing changed", publish, "us", "-", "-");
    let refused = micros(50, || {
        let scheduler = &mut full;
        big_pod(scheduler);
        black_box(scheduler.step(now(), &NoProbe));
        black_box(scheduler.take_effects());
    });
    line("refuse a pod of a new shape, all 5,000 nodes", refused, "us", "-", "-");
    drop(snapshot);
    gangs::print();
    relations::print();

    for (what, (took, woken)) in [("selectors", storm::of_selectors()), ("requests", storm::of_requests())] {
        let what = format!("5,000 deletes, {} refused by {what}", storm::GROUPS);
        line(&what, took, "ms", "-", "-");
        line("  of them woken", woken as f64, "pods", "-", "-");
    }
}
