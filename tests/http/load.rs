//! Load, waiting and shutdown.

#![allow(clippy::disallowed_methods, reason = "what a read took decides how long its state is used")]

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use pellucid::http::{Limits, Renderer};

use crate::common::client::{connect, get, put, read};
use crate::common::openapi::check_body_against_openapi;
use crate::http::site::{BIG, Site, parts};

#[test]
fn reads_beyond_the_bound_are_told_to_come_back() {
    let site = Site::with(Limits { reads: 1, reads_waiting: 1, ..Limits::default() });
    let send_held =
        || send(&site, "GET /apis/v1/held HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut running = send_held();
    site.began.recv().unwrap();
    // One of these two waits for its turn and the other is rejected, whichever comes first.
    let mut others = [send_held(), send_held()];
    let mut ready = [0_u8; 1];
    others[0].set_nonblocking(true).unwrap();
    others[1].set_nonblocking(true).unwrap();
    let refused = loop {
        match others.iter().position(|stream| stream.peek(&mut ready).is_ok()) {
            Some(index) => break index,
            None => std::thread::yield_now(),
        }
    };
    others[refused].set_nonblocking(false).unwrap();
    let reply = read(&mut others[refused]);
    site.check_refused(&reply, 429, "TooManyRequests", "ask again");
    assert_eq!(reply.header("retry-after"), "1");
    // Neither monitoring nor switches queue behind the reads.
    assert_eq!(site.get("/metrics").status, 200);
    assert_eq!(put(site.address, "/debug/flags/s", "3").status, 200);
    assert_eq!(site.get("/readyz").status, 200);
    site.let_end.send(()).unwrap();
    assert_eq!(read(&mut running).status, 200);
    site.began.recv().unwrap();
    site.let_end.send(()).unwrap();
    let waited = &mut others[1 - refused];
    waited.set_nonblocking(false).unwrap();
    assert_eq!(read(waited).status, 200);
}

const FOR_EVER: Duration = Duration::from_secs(60);

fn send(site: &Site, request: &str) -> std::net::TcpStream {
    let mut stream = connect(site.address);
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

const ENDLESS: &str = "GET /apis/v1/endless HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[test]
fn a_read_that_takes_too_long_is_given_up() {
    let site =
        Site::endless(Limits { reads: 1, read_patience: Duration::from_millis(20), ..Limits::default() });
    let reply = site.get("/apis/v1/endless");
    site.check_refused(&reply, 503, "DeadlineExceeded", "this took longer than 0.02 s and was given up");
    check_body_against_openapi(&site.document, "/apis/v1/endless", 503, &reply.json());
    assert_eq!(site.get("/apis/v1/list").status, 200, "its thread is free again");
}

#[test]
fn a_read_is_given_up_when_its_caller_leaves() {
    let limits = Limits { reads: 1, read_patience: FOR_EVER, turn_patience: FOR_EVER, ..Limits::default() };
    let site = Site::endless(limits);
    let caller = send(&site, ENDLESS);
    site.began.recv().unwrap();
    drop(caller);
    assert_eq!(site.get("/apis/v1/list").status, 200, "the only thread for reads is free again");
}

#[test]
fn a_turn_that_does_not_come_is_told() {
    let turn_patience = Duration::from_millis(20);
    let limits = Limits { reads: 1, read_patience: FOR_EVER, turn_patience, ..Limits::default() };
    let site = Site::endless(limits);
    let _caller = send(&site, ENDLESS);
    site.began.recv().unwrap();
    let reply = site.get("/apis/v1/list");
    site.check_refused(&reply, 429, "TooManyRequests", "other requests took all of 0.02 s");
    assert_eq!(reply.header("retry-after"), "1");
}

#[test]
fn questions_hold_up_neither_long_reads_nor_short_ones() {
    let limits = Limits { read_patience: FOR_EVER, turn_patience: FOR_EVER, ..Limits::default() };
    let site = Site::endless(limits);
    let body = r#"{"name": "n", "freeMilliCpu": 1}"#;
    let head = "POST /apis/v1/question HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let question = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let _askers = [send(&site, &question), send(&site, &question), send(&site, &question)];
    site.began.recv().unwrap();
    assert_eq!(site.get("/apis/v1/long").status, 200);
    assert_eq!(site.get("/apis/v1/list").status, 200);
}

#[test]
fn a_reader_can_wait_for_a_generation() {
    let site = Site::with(Limits::default());
    assert_eq!(site.get("/apis/v1/nodes?minGeneration=7").status, 200);
    let address = site.address;
    let waiting = std::thread::spawn(move || get(address, "/apis/v1/nodes?minGeneration=9"));
    site.publish(8);
    site.publish(9);
    let reply = waiting.join().unwrap();
    assert_eq!((reply.status, reply.header("x-snapshot-generation")), (200, "9"));
}

#[test]
fn waiting_for_a_generation_ends() {
    let site = Site::new();
    let reply = site.get("/apis/v1/nodes?minGeneration=99");
    site.check_refused(&reply, 503, "GenerationNotReached", "generation 99 was not reached");
    check_body_against_openapi(&site.document, "/apis/v1/nodes", 503, &reply.json());
}

#[test]
fn a_costly_list_is_read_from_one_state_for_a_while() {
    // Nothing but these requests reads it.
    let site = Site::with(Limits { renewal: Duration::from_secs(3600), ..Limits::default() });
    // Returns the generation that was read. The read takes at least as long as given.
    let read_shared = |query: &str, takes: Duration| {
        let mut stream = send(
            &site,
            &format!(
                "GET /apis/v1/held/shared{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            ),
        );
        end_after(&site, takes);
        let reply = read(&mut stream);
        assert_eq!(reply.json()["generation"].to_string(), reply.header("x-snapshot-generation"));
        reply.json()["generation"].as_u64().unwrap()
    };
    let since = Instant::now();
    assert_eq!(read_shared("", Duration::from_millis(100)), 7);
    site.publish(8);
    let again = read_shared("", Duration::ZERO);
    assert!(
        again == 7 || since.elapsed() > Duration::from_secs(1),
        "the state that was worked out is read again"
    );
    assert_eq!(
        read_shared("?minGeneration=8", Duration::from_millis(100)),
        8,
        "who wants a newer one gets it"
    );
    assert_eq!(read_shared("", Duration::ZERO), 8);
}

/// Waits until a held read begins, and lets it end after this time.
fn end_after(site: &Site, takes: Duration) {
    site.began.recv().unwrap();
    let since = Instant::now();
    while since.elapsed() < takes {
        std::thread::yield_now();
    }
    site.let_end.send(()).unwrap();
}

#[test]
fn a_costly_list_is_worked_out_anew_without_another_request() {
    let site = Site::with(Limits { renewal: Duration::from_millis(5), ..Limits::default() });
    let mut stream =
        send(&site, "GET /apis/v1/held/shared HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    end_after(&site, Duration::from_millis(100));
    assert_eq!(read(&mut stream).json()["generation"], 7);
    site.publish(8);
    // Nobody asks.
    end_after(&site, Duration::ZERO);
}

#[test]
fn requests_under_way_finish_at_shutdown() {
    let mut site = Site::new();
    let mut stream = send(&site, "GET /apis/v1/held HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let _idle = connect(site.address);
    site.began.recv().unwrap();
    site.stop.cancel();
    site.let_end.send(()).unwrap();
    assert_eq!(read(&mut stream).status, 200);
    site.runtime.block_on(site.served.take().unwrap()).unwrap();
    assert!(std::net::TcpStream::connect(site.address).is_err());
}

#[test]
fn a_read_that_does_not_end_does_not_hold_up_shutdown() {
    let mut site = Site::with(Limits { stop_patience: Duration::from_millis(20), ..Limits::default() });
    let _stream = send(&site, "GET /apis/v1/held HTTP/1.1\r\nHost: localhost\r\n\r\n");
    site.began.recv().unwrap();
    site.stop.cancel();
    site.runtime.block_on(site.served.take().unwrap()).unwrap();
    site.let_end.send(()).unwrap();
}

/// Limits for tests that hold connections: nothing times out except what the test shortens.
fn few(connections: usize, reserve: usize) -> Limits {
    let long = Duration::from_secs(600);
    Limits {
        connections,
        reserve,
        header_patience: long,
        write_patience: long,
        reserve_patience: long,
        ..Limits::default()
    }
}

#[test]
fn an_answer_that_nobody_reads_is_given_up() {
    let site = Site::with(Limits { write_patience: Duration::from_millis(500), ..few(1, 0) });
    let mut slow = send(&site, "GET /apis/v1/big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // There is one connection and no reserve: the request is answered once the first one is closed.
    assert_eq!(site.get("/apis/v1/list").status, 200);
    assert_eq!(site.seen.lock()[0], ("/apis/v1/big".to_owned(), 200));
    let mut rest = Vec::new();
    let ended = slow.read_to_end(&mut rest);
    assert!(rest.len() < BIG, "{} bytes, {ended:?}", rest.len());
}

#[test]
fn unread_answers_have_one_bound_together() {
    let site =
        Site::with(Limits { answer_bytes: BIG + BIG / 2, write_patience: FOR_EVER, ..Limits::default() });
    let ask = "GET /apis/v1/big HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut slow = send(&site, ask);
    // The first byte has arrived, so the response is in progress.
    slow.read_exact(&mut [0]).unwrap();
    let refused = site.get("/apis/v1/big");
    site.check_refused(&refused, 503, "AnswersUnread", "answers that were not read yet take most of");
    assert_eq!(refused.header("retry-after"), "1");
    check_body_against_openapi(&site.document, "/apis/v1/big", 503, &refused.json());
    for path in ["/apis/v1/list", "/metrics", "/readyz"] {
        assert_eq!(site.get(path).status, 200, "{path}");
    }
    drop(slow);
    let is_answered = (0..10_000).any(|_| site.get("/apis/v1/big").status == 200);
    assert!(is_answered, "its room is not given back");
}

#[test]
fn unread_metrics_have_a_bound_of_their_own() {
    let limits = Limits { answer_bytes: BIG + BIG / 2, write_patience: FOR_EVER, ..Limits::default() };
    let mut built = parts(limits);
    built.0.metrics = Renderer::openmetrics(|| "x".repeat(BIG));
    let site = Site::of(built);
    let mut slow = send(&site, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    slow.read_exact(&mut [0]).unwrap();
    let refused = site.get("/metrics");
    site.check_refused(&refused, 503, "AnswersUnread", "answers that were not read yet take most of");
    check_body_against_openapi(&site.document, "/metrics", 503, &refused.json());
    for path in ["/apis/v1/big", "/metrics/resources", "/configz", "/debug/flags", "/readyz"] {
        assert_eq!(site.get(path).status, 200, "{path}");
    }
    drop(slow);
    let is_answered = (0..10_000).any(|_| site.get("/metrics").status == 200);
    assert!(is_answered, "its room is not given back");
}

#[test]
fn health_is_answered_when_all_connections_are_taken() {
    let site = Site::with(few(3, 2));
    let _idle = [connect(site.address), connect(site.address), connect(site.address)];
    for path in ["/readyz", "/livez", "/healthz"] {
        assert_eq!((site.get(path).status, site.get(path).text()), (200, "ok"), "{path}");
    }
    *site.sick.lock() = Some("no list");
    assert_eq!(site.get("/readyz").status, 503);
    for path in ["/apis/v1/list", "/metrics", "/nothing"] {
        let reply = site.get(path);
        site.check_refused(&reply, 503, "TooManyConnections", "all connections are taken");
        assert_eq!((reply.header("retry-after"), reply.header("connection")), ("1", "close"), "{path}");
    }
}

#[test]
fn idle_connections_do_not_keep_the_reserve() {
    let site = Site::with(Limits { reserve_patience: Duration::from_millis(20), ..few(1, 1) });
    let _idle = connect(site.address);
    let _more: Vec<_> = (0..5).map(|_| connect(site.address)).collect();
    // A probe asks again when a busy machine takes longer than those 20 ms.
    let mut answer = Vec::new();
    while answer.is_empty() {
        let mut probe = connect(site.address);
        let _may_be_cut_short = probe.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let _may_be_cut_short = probe.read_to_end(&mut answer);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}
