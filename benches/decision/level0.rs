//! What the diagnosis that is always on costs: the decision bench with and without it, and what the meter says.
//!
//! "Without" stores no verdicts, records no placements and measures no plugins. Causes of
//! nodes and counters of calls stay: decisions and the message in a pod's condition are made of them.

use std::time::Duration;

use super::steady::{Steady, compare};

/// How long each run places pods.
const RUN: Duration = Duration::from_millis(1_500);
/// What it may cost, percent.
const BUDGET: f64 = 2.0;

pub(crate) fn print() {
    for shapes in [1, 150] {
        let mut steady = Steady::new(shapes, 0);
        let switches = steady.switches();
        steady.work(RUN / 3);
        let loss = compare(&format!("L0, {shapes} shape(s)"), ["off", "on"], |on| {
            switches.set_accounts(on);
            steady.work(RUN)
        });
        let costs = steady.root.load().costs;
        let share = 100.0 * costs.l0 as f64 / costs.cycle as f64;
        println!("  the meter                    {share:.2} % of the time of attempts");
        let verdict = if loss < BUDGET { "met" } else { "MISSED" };
        println!("  budget {BUDGET} %: {verdict}");
    }
}
