//! Measures the cost of always-on diagnosis (L0): alternating batches of decisions with and without it, and the
//! scheduler's own cost meter.
//!
//! "Without" stores no verdicts, records no placements and measures no plugins. Causes of nodes and call counters stay
//! on, because decisions and the message in a pod's condition depend on them.

use std::hint::black_box;
use std::time::Duration;

use pellucid::model::{NodeIdx, PodId};
use pellucid::recording::Placement;
use pellucid::recording::flight::{DEFAULT_BYTES, FlightRecorder, Numbers};

use super::steady::{Steady, in_turn};
use super::world::{PODS, now};
use super::{line, micros};

/// Total duration of the batches per line, with and without together.
const LONG: Duration = Duration::from_secs(12);
/// Pods per batch: few, so that both sides run under equal conditions, and fewer changes than would invalidate all
/// rows.
const BATCH: usize = 2_000;
/// Maximum loss in percent.
const BUDGET: f64 = 2.0;
/// Number of entries written in a row: several times the capacity of the recorder.
const ENTRIES: u32 = 1_000_000;

pub(crate) fn print() {
    for shapes in [1, 150] {
        let mut steady = Steady::new(shapes, (0, 1), BATCH);
        let switches = steady.switches();
        steady.work(LONG / 12);
        println!(
            "\nL0, {shapes} shape(s): loss of the median pair of batches, 95 of 100 such medians lie within"
        );
        in_turn("nothing: the error", LONG, |_| steady.work(Duration::ZERO));
        let loss = in_turn("all of L0", LONG, |on| {
            switches.set_accounts(on);
            steady.work(Duration::ZERO)
        });
        let costs = steady.snapshot.load().costs;
        let share = 100.0 * costs.l0 as f64 / costs.cycle as f64;
        println!("  the meter             {share:>6.2} % of the time of attempts");
        let met = |share: f64| if share < BUDGET { "met" } else { "MISSED" };
        println!("  budget {BUDGET} %: {} by the bench, {} by the meter", met(loss), met(share));
    }
    println!();
    entries();
}

/// Measures writing a single entry, repeatedly.
fn entries() {
    let mut flight = FlightRecorder::new(DEFAULT_BYTES);
    let (mut i, wall) = (0, now().wall_nanos());
    let each = micros(ENTRIES, || {
        let id = PodId(i % PODS as u32);
        let numbers = Numbers::of(&Placement::nominated(NodeIdx(1), 5_000), 1, u64::from(i));
        flight.record_placement(id, NodeIdx(1), numbers, (u64::from(i), wall));
        i += 1;
    });
    line("one entry, into a full recorder", each * 1000.0, "ns", "-", "-");
    let log = flight.publish();
    line("entries it holds", log.since(0).count() as f64, "", "-", "-");
    black_box(log);
}
