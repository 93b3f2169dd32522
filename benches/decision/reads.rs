//! Measures what an answer of each read costs: the time on a processor, each on a snapshot of its own that nobody has read
//! yet, with 10,000 pending pods and 20,000 placed ones at 5,000 nodes.
//!
//! The reads are called directly and their bodies are made into text, without HTTP. Unlike `routes` it says nothing about
//! waiting, so that what else the machine does matters little. The system counts in steps of some milliseconds: an answer
//! that takes less shows as nothing. `-- reads /apis/v1/explain/pods` asks that path alone, for a profiler.

use std::collections::BTreeMap;
use std::hint::black_box;

use pellucid::cluster::Input;
use pellucid::cycle::Snapshot;
use pellucid::diagnosis::reads::{SnapshotRead, reads};
use pellucid::model::time::NoProbe;

use super::steady::Steady;
use super::world::{now, pod, spec};

const PENDING: usize = 10_000;
const PLACED: usize = 20_000;
const SHAPES: usize = 150;
/// Number of answers of each read, of which the median is printed.
const ROUNDS: usize = 7;
/// The same of a read that is asked alone.
const ROUNDS_ALONE: usize = 99;
/// Number of reads that are printed.
const SHOWN: usize = 20;

pub(crate) fn print() {
    let mut steady = Steady::new(SHAPES, (PENDING, SHAPES), 1);
    for i in 0..PLACED {
        steady.scheduler.apply(Input::PodApplied(pod(&format!("pod-{i:05}"), spec(i % SHAPES))), now());
    }
    while steady.scheduler.step(now(), &NoProbe).is_some() {}
    drop(steady.scheduler.take_effects());
    let mut rows: Vec<(f64, f64, String)> = Vec::new();
    let only = std::env::args().skip(1).find(|arg| arg.starts_with('/'));
    let rounds = if only.is_some() { ROUNDS_ALONE } else { ROUNDS };
    for read in reads(&pellucid::plugins::registry()) {
        if only.as_ref().is_some_and(|only| *only != read.path) {
            continue;
        }
        // The first answer after the start is not counted, but shown.
        let took: Option<Vec<f64>> =
            (0..=rounds).map(|_| millis(&read, &steady.scheduler.publish(now()))).collect();
        let Some(mut took) = took else { continue };
        let first = took.remove(0);
        took.sort_by(f64::total_cmp);
        rows.push((took[rounds / 2], first, read.path));
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("time on a processor, {PENDING} pending pods, {PLACED} placed, median of {rounds} answers");
    for (median, first, path) in rows.iter().take(SHOWN) {
        println!("  {median:>8.2} ms (the first {first:>8.2} ms): {path}");
    }
    println!("  {} reads, all together {:.0} ms", rows.len(), rows.iter().map(|row| row.0).sum::<f64>());
}

/// Returns how long an answer takes, or `None` if there is none in this cluster.
fn millis(read: &SnapshotRead, snapshot: &Snapshot) -> Option<f64> {
    let params = [("namespace", "default"), ("name", "refused-0001"), ("nodeName", "node-0001")];
    let params: BTreeMap<_, _> = params.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let start = on_processor();
    let body = (read.read)(snapshot, &params, now()).ok()?;
    black_box(serde_json::to_vec(&body).expect("JSON"));
    Some((on_processor() - start) as f64 / 1e6)
}

/// Returns the time that this thread has had a processor, in nanoseconds.
fn on_processor() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux says it");
    text.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number")
}
