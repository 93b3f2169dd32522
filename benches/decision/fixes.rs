//! Measures the cost of readers who ask for fixes: ten of them, each about other pods, while the decision bench runs.
//!
//! Each reader asks again as soon as it is answered; one that is sent away waits for a moment. The server runs one such
//! search at a time, so the measure is what a machine that is busy with nothing else loses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::explain::{get, serve};
use super::steady::{Steady, beside_readers};

/// Number of readers.
const READERS: usize = 10;
/// Duration of each run, and of all runs of a comparison.
const RUN: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(10);
/// Pods per batch.
const BATCH: usize = 20_000;
/// Number of pending pods, each of a shape of its own.
const REFUSED: usize = 200;
/// How long a reader waits that was sent away.
const PAUSE: Duration = Duration::from_millis(200);
/// Maximum loss of throughput in percent.
const BUDGET: f64 = 5.0;

pub(crate) fn print() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    for shapes in [1, 150] {
        let mut steady = Steady::new(shapes, (REFUSED, REFUSED), BATCH);
        let stop = CancellationToken::new();
        let address = serve(&steady, &runtime, &stop);
        let mut latencies = Vec::new();
        steady.work(RUN);
        println!("\n{READERS} readers ask for fixes, {shapes} shape(s): loss of pods/s");
        let loss = beside_readers(LONG, |asked| {
            if !asked {
                return steady.work(RUN);
            }
            let end = Arc::new(AtomicBool::new(false));
            let asking = |reader| {
                let end = end.clone();
                std::thread::spawn(move || ask(address, reader, &end))
            };
            let asking: Vec<_> = (0..READERS).map(asking).collect();
            let stretch = steady.work(RUN);
            end.store(true, Ordering::Relaxed);
            latencies
                .extend(asking.into_iter().flat_map(|reader| reader.join().expect("it asks to the end")));
            stretch
        });
        stop.cancel();
        latencies.sort_unstable();
        let at = |share: f64| {
            let at = ((latencies.len() as f64 * share) as usize).min(latencies.len().saturating_sub(1));
            latencies.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e3)
        };
        println!(
            "  {} answers: p50 {:.2} ms, p99 {:.2} ms, each with the wait for its turn",
            latencies.len(),
            at(0.5),
            at(0.99)
        );
        println!("  budget {BUDGET} %: {}", if loss < BUDGET { "met" } else { "MISSED" });
    }
}

/// Asks for fixes of one pod after another until `end` is set. Returns the latency of each answer.
fn ask(address: SocketAddr, reader: usize, end: &AtomicBool) -> Vec<Duration> {
    let mut took = Vec::new();
    let mut pod = reader;
    while !end.load(Ordering::Relaxed) {
        let start = Instant::now();
        let answer =
            get(address, &format!("/apis/v1/explain/pods/default/refused-{:04}/suggestions", pod % REFUSED));
        if answer.starts_with(b"HTTP/1.1 429") {
            std::thread::sleep(PAUSE);
            continue;
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        took.push(start.elapsed());
        pod += READERS;
    }
    took
}
