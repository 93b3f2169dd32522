//! Misbehaving readers: they never read their response, disconnect in the middle, or send invalid requests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::Scope;
use std::time::Duration;

use super::rng::Rng;
use super::state::Soak;
use super::wire;

const LEAVERS: u64 = 3;
const DEAF: u64 = 3;
const GARBLED: u64 = 2;
const PATIENCE: Duration = Duration::from_secs(2);

/// Paths with large or slow responses.
const DEAR: [&str; 6] = [
    "/apis/v1/snapshot",
    "/apis/v1/events?since=0",
    "/metrics",
    "/apis/v1/explain/pods",
    "/openapi.json",
    "/apis/v1/queue",
];

/// Starts all rude readers.
pub(crate) fn start<'a>(scope: &'a Scope<'a, '_>, soak: &'a Soak) {
    for n in 0..LEAVERS {
        scope.spawn(move || leave(soak, soak.rng(500 + n)));
    }
    for n in 0..DEAF {
        scope.spawn(move || never_read(soak, soak.rng(600 + n)));
    }
    for n in 0..GARBLED {
        scope.spawn(move || garble(soak, soak.rng(700 + n)));
    }
}

fn ask_for_much(soak: &Soak, rng: &mut Rng) -> Option<TcpStream> {
    let target = rng.pick(&DEAR).copied().unwrap_or_default();
    let stream = wire::send(soak.address, "GET", target, None, PATIENCE).ok();
    soak.count(if stream.is_some() { "rude requests" } else { "rude requests refused" });
    stream
}

/// Sends requests, reads little or nothing, and closes the connection.
fn leave(soak: &Soak, mut rng: Rng) {
    while soak.pause(rng.millis(100, 1_500)) {
        let Some(mut stream) = ask_for_much(soak, &mut rng) else { continue };
        if rng.chance(50) {
            // Any amount of data is enough.
            let _ = stream.read(&mut vec![0; 1 + rng.below(1_000)]);
        }
    }
}

/// Sends requests and holds the connection without reading.
fn never_read(soak: &Soak, mut rng: Rng) {
    while soak.pause(rng.millis(100, 5_000)) {
        let _held = ask_for_much(soak, &mut rng);
        if !soak.pause(rng.millis(1_000, 20_000)) {
            return;
        }
    }
}

/// Sends invalid or incomplete requests.
fn garble(soak: &Soak, mut rng: Rng) {
    while soak.pause(rng.millis(100, 2_000)) {
        let Ok(mut stream) = wire::open(soak.address, PATIENCE) else { continue };
        let long = "x".repeat(1 << 20);
        let text: Vec<u8> = match rng.below(8) {
            0 => (0..1_000).map(|_| rng.below(256) as u8).collect(),
            1 => b"GET /apis/v1/queue HTT".to_vec(),
            2 => format!("GET /{long} HTTP/1.1\r\n\r\n").into_bytes(),
            3 => format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {long}\r\n\r\n").into_bytes(),
            4 => b"POST /apis/v1/simulate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n{".to_vec(),
            5 => {
                let deep = "[".repeat(100_000);
                let kind = "Content-Type: application/json";
                let length = deep.len();
                format!("POST /apis/v1/simulate HTTP/1.1\r\nHost: x\r\n{kind}\r\nContent-Length: {length}\r\n\r\n{deep}").into_bytes()
            }
            6 => b"GET /apis/v1/explain/pods/%00/%ff%fe?minGeneration=-1&format=%0a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_vec(),
            _ => b"BREW /coffee HTCPCP/1.0\r\n\r\n".to_vec(),
        };
        // The server may have closed the connection already.
        let _ = stream.write_all(&text);
        let _ = stream.read(&mut [0; 1_000]);
        soak.count("garbled requests");
    }
}
