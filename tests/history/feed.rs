//! The feed: cursors, gaps, followers, and connections that end.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use pellucid::config;
use serde_json::{Value, json};

use crate::common::client::{connect, get, request};
use crate::common::running::{Pods, Running, node, node_of, pod, start, start_configured};

/// Reads a feed to its end. Every line must be a JSON document.
pub(crate) fn read(running: &Running, path: &str) -> Vec<Value> {
    let reply = get(running.instance.address, path);
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), "application/x-ndjson");
    lines(&unchunked(&reply.body))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in {line:?}")))
        .collect()
}

/// Removes the framing of a chunked body.
fn unchunked(mut body: &[u8]) -> String {
    let mut text = Vec::new();
    while let Some(end) = body.windows(2).position(|w| w == b"\r\n") {
        let length = std::str::from_utf8(&body[..end]).expect("a length");
        let length = usize::from_str_radix(length, 16).expect("a length in hex");
        text.extend_from_slice(&body[end + 2..end + 2 + length]);
        body = &body[end + 2 + length + 2..];
    }
    String::from_utf8(text).expect("text")
}

fn all_bound(pods: &Pods, count: usize) -> Option<()> {
    (pods.len() == count && pods.values().all(|p| node_of(p).is_some())).then_some(())
}

fn ids(lines: &[Value]) -> Vec<u64> {
    lines.iter().filter_map(|line| line["id"].as_u64()).collect()
}

/// A feed that is read line by line.
struct Follower {
    lines: BufReader<TcpStream>,
}

impl Follower {
    fn new(running: &Running, path: &str, headers: &str) -> Self {
        let mut stream = connect(running.instance.address);
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        let mut follower = Self { lines: BufReader::new(stream) };
        let status = follower.line().expect("a status");
        assert!(status.contains(" 200 "), "{status}");
        while follower.line().is_some_and(|line| !line.is_empty()) {}
        follower
    }

    /// Returns the next line of the response, including chunk framing, or `None` at its end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let n = self.lines.read_line(&mut line).expect("a line in time");
        (n > 0).then(|| line.trim_end().to_owned())
    }

    /// Returns the rest of the next line with this prefix.
    fn next(&mut self, with: &str) -> String {
        loop {
            let line = self.line().expect("the feed goes on");
            if let Some(rest) = line.strip_prefix(with) {
                return rest.to_owned();
            }
        }
    }

    fn document(&mut self) -> Value {
        let rest = self.next("{");
        serde_json::from_str(&format!("{{{rest}")).expect("JSON")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_limits_and_wrong_ones() {
    let mut running = start(vec![node("n1", "a", 8)]).await;
    running.create((0..5).map(|i| pod(&format!("p{i}"), 100)));
    for i in 0..5 {
        running.bound(&format!("p{i}")).await;
        // Bindings are reported in any order.
        let path = format!("/apis/v1/history/pods/default/p{i}");
        running.wait(&path, "bound", |b| b["entries"].as_array().unwrap().len() == 3);
    }
    let all = read(&running, "/apis/v1/events?since=0");
    let all_ids = ids(&all);
    assert!(all_ids.windows(2).all(|pair| pair[0] < pair[1]), "{all_ids:?}");
    assert!(all.len() >= 15 && all.len() == all_ids.len(), "no mark");
    assert!(all_ids[0] > 1_700_000_000_000_000 && all_ids[0] < 1 << 53, "{all_ids:?}");
    assert_eq!(ids(&read(&running, &format!("/apis/v1/events?since={}&limit=4", all_ids[2]))), all_ids[3..7]);
    assert_eq!(read(&running, "/apis/v1/events?limit=0"), [] as [Value; 0]);
    let newest = all_ids.last().unwrap();
    assert_eq!(read(&running, &format!("/apis/v1/events?since={newest}")), [] as [Value; 0]);
    let beyond = &read(&running, &format!("/apis/v1/events?since={}&limit=1", newest + 1))[0];
    assert_eq!((&beyond["kind"], beyond.get("to")), (&json!("Restarted"), None));
    let placed = all.iter().find(|l| l["kind"] == "Placed").unwrap();
    assert!(placed["pod"].as_str().unwrap().starts_with("default/p") && placed["node"] == "n1");
    for wrong in ["since=-1", "since=x", "limit=1.5", "follow=maybe", "what=1", "format=json"] {
        let reply = get(running.instance.address, &format!("/apis/v1/events?{wrong}"));
        assert_eq!(reply.status, 400, "{wrong}: {}", reply.text());
    }
    let address = running.instance.address;
    let reply = request(address, "GET", "/apis/v1/events", "Last-Event-ID: x\r\n");
    assert_eq!((reply.status, reply.json()["code"].as_str()), (400, Some("InvalidHeader")));
    let reply = request(address, "HEAD", "/apis/v1/events?follow=true", "");
    assert_eq!((reply.status, reply.body.len()), (200, 0));
    assert_eq!(request(address, "PUT", "/apis/v1/events", "").status, 405);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_carry_their_ids_and_go_on_behind_the_last_one() {
    let mut running = start(vec![node("n1", "a", 8)]).await;
    running.place(pod("p", 100)).await;
    let accept = "Accept: text/event-stream\r\n";
    let mut first = Follower::new(&running, "/apis/v1/events", accept);
    let id: u64 = first.next("id: ").parse().expect("an id");
    let line: Value = serde_json::from_str(&first.next("data: ")).expect("JSON");
    assert_eq!((line["kind"].as_str(), line["id"].as_u64()), (Some("Added"), Some(id)));
    drop(first);
    let again = format!("{accept}Last-Event-ID: {id}\r\n");
    let mut second = Follower::new(&running, "/apis/v1/events?since=0", &again);
    assert_eq!(second.next("id: "), (id + 1).to_string());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_from_before_a_restart_is_known_as_such() {
    let mut running = start(vec![node("n1", "a", 8)]).await;
    running.place(pod("p", 100)).await;
    let before = *ids(&read(&running, "/apis/v1/events")).last().expect("an id");
    running.stop().await;

    let mut running = start(vec![node("n1", "a", 8)]).await;
    running.create((0..9).map(|i| pod(&format!("p{i}"), 100)));
    for i in 0..9 {
        running.bound(&format!("p{i}")).await;
    }
    let all = read(&running, "/apis/v1/events?since=0");
    let first = all[0]["id"].as_u64().expect("no mark");
    assert!(first > before, "{first} after {before}");
    let told = read(&running, &format!("/apis/v1/events?since={before}"));
    let mark = &told[0];
    assert_eq!((&mark["kind"], mark.get("id")), (&json!("Restarted"), None));
    assert_eq!((mark["from"].as_u64(), mark["to"].as_u64()), (Some(before + 1), Some(first - 1)));
    assert!(mark["message"].as_str().expect("words").contains("nobody knows how much"), "{mark}");
    assert_eq!(ids(&told)[..all.len()], ids(&all), "all of this process follows");
    // A browser's event stream gets an id to continue from with the marker itself.
    let headers = format!("Accept: text/event-stream\r\nLast-Event-ID: {before}\r\n");
    let mut stream = Follower::new(&running, "/apis/v1/events", &headers);
    assert_eq!(stream.next("id: "), (first - 1).to_string());
    let headers = format!("Accept: text/event-stream\r\nLast-Event-ID: {}\r\n", first - 1);
    let mut stream = Follower::new(&running, "/apis/v1/events", &headers);
    assert_eq!(stream.next("id: "), first.to_string());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_lines_are_followed_as_they_come() {
    let mut running =
        start(vec![node("n1", "a", 64), node("n2", "a", 64), node("n3", "a", 64), node("n4", "a", 64)]).await;
    let mut follower = Follower::new(&running, "/apis/v1/events?since=0&follow=true", "");
    running.create((0..400).map(|i| pod(&format!("p{i:03}"), 1)));
    running.pods("all bound", |pods| all_bound(pods, 400)).await;
    let (mut last, mut n) = (0, 0);
    while n < 1_200 {
        let line = follower.document();
        let id = line["id"].as_u64().expect("no gap");
        assert!(id > last, "{id} after {last}");
        (last, n) = (id, n + 1);
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_pushed_out_is_a_gap() {
    let mut configuration = config::default(&pellucid::plugins::registry()).expect("the default");
    configuration.recorder_bytes = 4_096;
    let mut running = start_configured(vec![node("n1", "a", 64)], configuration, None).await;
    running.create((0..90).map(|i| pod(&format!("p{i:02}"), 1)));
    running.pods("all bound", |pods| all_bound(pods, 90)).await;
    let feed = read(&running, "/apis/v1/events");
    assert_eq!(feed[0]["kind"], "Gap", "{}", feed[0]);
    assert_eq!(feed[0]["to"].as_u64().map(|to| to + 1), feed[1]["id"].as_u64());
    let first = feed[0]["from"].as_u64().expect("the first id of the process");
    let feed = read(&running, &format!("/apis/v1/events?since={}", first + 1));
    assert_eq!((feed[0]["kind"].as_str(), feed[0]["from"].as_u64()), (Some("Gap"), Some(first + 2)));
    assert_eq!(running.status_of("/apis/v1/history/pods/default/p00"), 404);
    // The pod's node, and that it was placed here, are known without the recorder.
    let told = running.read("/apis/v1/explain/pods/default/p00");
    assert_eq!((&told["verdict"], &told["meta"]["truncated"]), (&json!("placed"), &json!(true)), "{told:#}");
    let summary = told["summary"].as_str().expect("a sentence");
    assert!(
        summary.starts_with("Placed on n1 at ")
            && summary.ends_with("; the numbers of that decision were pushed out of the flight recorder."),
        "{summary}"
    );
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_are_bounded_leave_no_trace_and_end_with_the_server() {
    let running = start(vec![node("n1", "a", 8)]).await;
    let path = "/apis/v1/events?follow=true";
    let mut followers: Vec<Follower> = (0..32).map(|_| Follower::new(&running, path, "")).collect();
    let refused = get(running.instance.address, path);
    assert_eq!((refused.status, refused.json()["code"].as_str()), (429, Some("TooManyStreams")));
    // A closed connection releases its slot.
    drop(followers.pop());
    let mut tries = 0;
    let last = loop {
        let mut stream = connect(running.instance.address);
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).expect("sent");
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).expect("a status");
        if status.contains(" 200 ") {
            break Follower { lines: reader };
        }
        tries += 1;
        assert!(tries < 10_000, "the place was never given back: {status}");
    };
    followers.push(last);
    running.stop().await;
    for mut follower in followers {
        while follower.line().is_some() {}
    }
}
