//! Measures the cost of readers: 50 explanations per second over HTTP while the decision bench runs.
//!
//! The server is the real one on loopback, with the scheduler's routes. Requests are sent at fixed times, each on its
//! own connection as with curl, and latency counts from the time a request was due.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pellucid::app::access;
use pellucid::app::clock;
use pellucid::app::rest::routes;
use pellucid::http::{Limits, Parts, Renderer, Server};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::steady::{Steady, compare};

/// Duration of each run.
const RUN: Duration = Duration::from_millis(2_500);
/// Pods per batch.
const BATCH: usize = 20_000;
/// Requests per second.
const RATE: u32 = 50;
/// Number of pending pods; requests cycle through them.
const REFUSED: usize = 200;
/// Maximum loss of throughput in percent, followed by the floor and the aim for the p99 latency in milliseconds.
const BUDGET: f64 = 5.0;
const FLOOR_MS: f64 = 20.0;
const AIM_MS: f64 = 5.0;

pub(crate) fn print() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    for shapes in [1, 150] {
        let mut steady = Steady::new(shapes, (REFUSED, REFUSED), BATCH);
        let stop = CancellationToken::new();
        let address = serve(&steady, &runtime, &stop);
        let mut latencies = Vec::new();
        steady.work(RUN / 5);
        let what = format!("{RATE} explanations a second, {shapes} shape(s)");
        let loss = compare(&what, ["nobody asks", "they are asked for"], |asked| {
            if !asked {
                return steady.work(RUN);
            }
            let end = Arc::new(AtomicBool::new(false));
            let asking = std::thread::spawn({
                let end = end.clone();
                move || ask(address, &end)
            });
            let stretch = steady.work(RUN);
            end.store(true, Ordering::Relaxed);
            latencies.extend(asking.join().expect("it asks to the end"));
            stretch
        });
        stop.cancel();
        latencies.sort_unstable();
        let at = |share: f64| {
            let at = ((latencies.len() as f64 * share) as usize).min(latencies.len() - 1);
            latencies[at].as_secs_f64() * 1e3
        };
        let (p50, p99, max) = (at(0.5), at(0.99), at(1.0));
        println!(
            "  {} answers: p50 {p50:.2} ms, p99 {p99:.2} ms, longest {max:.2} ms (floor {FLOOR_MS}, aim {AIM_MS})",
            latencies.len()
        );
        let met = |is: bool| if is { "met" } else { "MISSED" };
        println!("  budget {BUDGET} %: {}; p99: {}", met(loss < BUDGET), met(p99 < FLOOR_MS));
    }
}

/// Starts the server on the snapshots that the bench publishes.
pub(crate) fn serve(
    steady: &Steady,
    runtime: &tokio::runtime::Runtime,
    stop: &CancellationToken,
) -> SocketAddr {
    let snapshot = steady.snapshot.clone();
    let (_, published) = watch::channel(0);
    let server = Server::new(Parts {
        routes: routes::routes(&pellucid::plugins::registry()),
        load: Arc::new(move || snapshot.load_full()),
        published,
        switches: Vec::new(),
        health: Vec::new(),
        metrics: Renderer::openmetrics(|| "# EOF\n".to_owned()),
        resource_metrics: Renderer::openmetrics(|| "# EOF\n".to_owned()),
        configz: Arc::new(|| serde_json::json!({})),
        version: pellucid::app::instance::version(""),
        now: clock::system(),
        observe: Arc::new(|_| ()),
        limits: Limits::default(),
        authority: None,
        redact: access::redact(),
    });
    let server = server.expect("the registrations agree");
    let bound = runtime.block_on(server.bind(([127, 0, 0, 1], 0).into())).expect("a port");
    let address = bound.address();
    runtime.spawn(bound.serve(stop.clone()));
    address
}

/// Sends requests at fixed times until `end` is set. Returns the latency of each response, counted from its due time.
fn ask(address: SocketAddr, end: &AtomicBool) -> Vec<Duration> {
    let start = Instant::now();
    let mut took = Vec::new();
    for i in 0.. {
        let due = start + Duration::from_secs(1) / RATE * i;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if end.load(Ordering::Relaxed) {
            break;
        }
        let path = format!("/apis/v1/explain/pods/default/refused-{:04}", i as usize * 7 % REFUSED);
        let answer = get(address, &path);
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        took.push(due.elapsed());
    }
    took
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answered");
    answer
}
