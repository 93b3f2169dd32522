//! Measures every route of the REST API with default paging, at 5,000 nodes and 10,000 pending pods, while pods are
//! placed at full speed.
//!
//! Each route is asked again and again, one request at a time, so a route that is slow shows by itself. Routes of one
//! object are asked about a refused pod, a node, and so on; what does not exist in this cluster, such as gangs, is left
//! out.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::explain::{get, serve};
use super::steady::{Steady, beside_readers};

/// Number of pending pods and of their shapes.
const PENDING: usize = 10_000;
const SHAPES: usize = 150;
/// Duration of each run, and of all runs of a comparison.
const RUN: Duration = Duration::from_millis(2_500);
const LONG: Duration = Duration::from_secs(60);
/// Pods per batch.
const BATCH: usize = 20_000;
/// Budget of a route in milliseconds, and the largest loss of throughput in percent.
const BUDGET_MS: f64 = 50.0;
const BUDGET: f64 = 5.0;

type Latencies = BTreeMap<String, Vec<Duration>>;

pub(crate) fn print() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let mut steady = Steady::new(150, (PENDING, SHAPES), BATCH);
    let stop = CancellationToken::new();
    let address = serve(&steady, &runtime, &stop);
    let paths = paths(address);
    let mut latencies = Latencies::new();
    steady.work(RUN / 5);
    println!("\nevery route with {PENDING} pending pods, one request after another: loss of pods/s");
    let loss = beside_readers(LONG, |asked| {
        if !asked {
            return steady.work(RUN);
        }
        let end = Arc::new(AtomicBool::new(false));
        let asking = std::thread::spawn({
            let (end, paths, mut latencies) = (end.clone(), paths.clone(), std::mem::take(&mut latencies));
            move || {
                ask(address, &paths, &end, &mut latencies);
                latencies
            }
        });
        let stretch = steady.work(RUN);
        end.store(true, Ordering::Relaxed);
        latencies = asking.join().expect("it asks to the end");
        stretch
    });
    stop.cancel();
    let slow = report(&mut latencies);
    let met = |is: bool| if is { "met" } else { "MISSED" };
    println!(
        "  budget {BUDGET} %: {}; {BUDGET_MS} ms: {} ({slow} routes are slower)",
        met(loss < BUDGET),
        met(slow == 0)
    );
}

/// Returns the paths of all routes that answer 200 here, with their parameters filled in.
fn paths(address: SocketAddr) -> Vec<String> {
    let services = body(address, "/apis/v1/__services__");
    let services: serde_json::Value = serde_json::from_slice(&services).expect("JSON");
    let templates = services["GET"].as_array().expect("a list").iter().filter_map(|path| path.as_str());
    // Feeds and dumps are no answers to wait for.
    let templates = templates.filter(|path| !matches!(*path, "/apis/v1/events" | "/apis/v1/snapshot"));
    let filled = templates.map(|path| {
        let path = path.replace(":nodeName", "node-0001").replace(":namespace", "default");
        path.replace(":name", "refused-0001").replace(":podName", "refused-0001")
    });
    filled.filter(|path| get(address, path).starts_with(b"HTTP/1.1 200")).collect()
}

fn body(address: SocketAddr, path: &str) -> Vec<u8> {
    let answer = get(address, path);
    let at = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    answer[at + 4..].to_vec()
}

fn ask(address: SocketAddr, paths: &[String], end: &AtomicBool, latencies: &mut Latencies) {
    for path in paths.iter().cycle() {
        if end.load(Ordering::Relaxed) {
            return;
        }
        let start = Instant::now();
        let answer = get(address, path);
        // What is recorded of a pod may be pushed out meanwhile.
        if answer.starts_with(b"HTTP/1.1 404") {
            continue;
        }
        let is_answered = answer.starts_with(b"HTTP/1.1 200");
        assert!(is_answered, "{path}: {}", String::from_utf8_lossy(&answer));
        latencies.entry(path.clone()).or_default().push(start.elapsed());
    }
}

/// Prints the routes, the slowest first. Returns how many are over the budget.
fn report(latencies: &mut Latencies) -> usize {
    let mut all: Vec<(f64, f64, usize, &str)> = Vec::new();
    for (path, took) in latencies.iter_mut() {
        took.sort_unstable();
        let at =
            |share: f64| took[((took.len() as f64 * share) as usize).min(took.len() - 1)].as_secs_f64() * 1e3;
        all.push((at(0.99), at(0.5), took.len(), path));
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let slow = all.iter().filter(|(p99, ..)| *p99 >= BUDGET_MS).count();
    for (p99, p50, n, path) in all.iter().take(slow.max(15)) {
        println!("  p99 {p99:>8.2} ms, p50 {p50:>8.2} ms of {n:>4}: {path}");
    }
    println!("  {} routes", all.len());
    slow
}
