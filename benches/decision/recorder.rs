//! What the flight recorder costs: the same decisions with and without it, in turn, and one entry by itself.

use std::hint::black_box;

use pellucid::cycle::decision::Placement;
use pellucid::diagnosis::flight::{DEFAULT_BYTES, Flight, Noted, What};
use pellucid::model::time::NoProbe;
use pellucid::model::{NodeIdx, PodId, PodKey};

use crate::world::{PODS, add_pods, now, scheduler_with};
use crate::{line, micros, rate};

/// Pairs of runs.
const PAIRS: usize = 20;
/// Entries that are written one after the other: several times what the recorder holds.
const ENTRIES: u32 = 1_000_000;

pub(crate) fn print() {
    // The small one is full when the decisions begin: it pushes out as much as it takes in, as it does in the long run.
    // The large one takes fresh memory from the system, which is paid for once.
    let small = DEFAULT_BYTES / 16;
    for (what, bytes, publish_every) in [
        ("equal pods", small, 0),
        ("equal pods, a root every 1,000", small, 1000),
        ("equal pods, fresh memory", DEFAULT_BYTES, 0),
    ] {
        let run = |recorder: bool| {
            let mut scheduler = scheduler_with(true, recorder.then_some(bytes));
            add_pods(&mut scheduler, PODS, 1);
            rate(&mut scheduler, &NoProbe, publish_every)
        };
        run(true);
        let (with, without) = pairs(|| run(true), || run(false));
        line(&format!("{what}, recorded"), with, "pods/s", "-", "-");
        line(&format!("{what}, not recorded"), without, "pods/s", "-", "-");
        line("  share of the recorder, ppm of a cycle", (1.0 - with / without) * 1e6, "ppm", "20000", "-");
    }
    let run = || {
        let mut scheduler = scheduler_with(true, None);
        add_pods(&mut scheduler, PODS, 1);
        rate(&mut scheduler, &NoProbe, 0)
    };
    let (a, b) = pairs(run, run);
    line("  the same twice, not recorded: error, ppm", (1.0 - a / b) * 1e6, "ppm", "-", "-");
    let keys: Vec<PodKey> = (0..PODS).map(|i| PodKey::new("default", &format!("pod-{i:05}"))).collect();
    let mut flight = Flight::new(DEFAULT_BYTES);
    let mut i = 0;
    let each = micros(ENTRIES, || {
        let what = What::from(&Placement::nominated(NodeIdx(1), 5_000));
        let id = PodId(i % PODS as u32);
        let noted = Noted { id, key: &keys[id.index()], node: "node-0001", what };
        flight.note(noted, (u64::from(i), now()));
        i += 1;
    });
    line("one entry, into a full recorder", each * 1000.0, "ns", "-", "-");
    let log = flight.publish();
    line("entries it holds", log.len() as f64, "", "-", "-");
    black_box(log);
}

/// Runs two things in turn, each as often first as second: whoever comes second finds the memory that the other left.
fn pairs(a: impl Fn() -> f64, b: impl Fn() -> f64) -> (f64, f64) {
    let pair = |i: usize| match i % 2 {
        0 => (a(), b()),
        _ => {
            let b = b();
            (a(), b)
        }
    };
    let (mut a, mut b): (Vec<f64>, Vec<f64>) = (0..PAIRS).map(pair).unzip();
    (median(&mut a), median(&mut b))
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
