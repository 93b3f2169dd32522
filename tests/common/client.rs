//! A minimal blocking HTTP/1.1 client, so that tests see exactly the bytes that were sent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::PATIENCE;

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Returns a header, or an empty string.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }
}

/// Sends a request without a body.
pub(crate) fn request(address: SocketAddr, method: &str, target: &str, headers: &str) -> Reply {
    let head = format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
    raw(address, head.as_bytes())
}

/// Sends a `GET`.
pub(crate) fn get(address: SocketAddr, target: &str) -> Reply {
    request(address, "GET", target, "")
}

/// Sends a request with a body.
pub(crate) fn send(address: SocketAddr, method: &str, target: &str, headers: &str, body: &str) -> Reply {
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    raw(address, head.as_bytes())
}

/// Sends a `PUT` as `curl -X PUT --data` does.
pub(crate) fn put(address: SocketAddr, target: &str, body: &str) -> Reply {
    send(address, "PUT", target, "Content-Type: application/x-www-form-urlencoded\r\n", body)
}

/// Sends JSON in a `POST`.
pub(crate) fn post(address: SocketAddr, target: &str, body: &Value) -> Reply {
    send(address, "POST", target, "Content-Type: application/json\r\n", &body.to_string())
}

/// Reads a path again with every newer generation until its body satisfies a condition. The condition must depend on
/// the body alone; otherwise a newer generation may never come.
pub(crate) fn wait(address: SocketAddr, path: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let (end, mut generation) = (Instant::now() + PATIENCE, 0);
    let sign = if path.contains('?') { '&' } else { '?' };
    loop {
        let reply = get(address, &format!("{path}{sign}minGeneration={generation}"));
        let body = if reply.status == 200 { reply.json() } else { Value::Null };
        if !body.is_null() && wanted(&body) {
            return body;
        }
        assert!(Instant::now() < end, "{what} did not come about: {path} says {}", reply.text());
        let seen = reply.header("x-snapshot-generation").parse::<u64>();
        generation = seen.map_or(generation, |g| g + 1);
    }
}

/// Returns the address in a line with a URL.
pub(crate) fn address_in(line: &str) -> SocketAddr {
    let address = line.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next());
    address.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no address in {line:?}"))
}

/// Sends these bytes and reads one response. The peer may respond and close before it has read everything.
pub(crate) fn raw(address: SocketAddr, bytes: &[u8]) -> Reply {
    let mut stream = connect(address);
    let _may_be_cut_short = stream.write_all(bytes);
    read(&mut stream)
}

/// Connects with timeouts that bound how long a test can hang.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout can be set");
    stream.set_write_timeout(Some(Duration::from_secs(20))).expect("a timeout can be set");
    stream
}

/// Reads a response until the peer closes.
pub(crate) fn read(stream: &mut TcpStream) -> Reply {
    read_all(stream)
}

/// Reads a response until the end, of any stream.
pub(crate) fn read_all(stream: &mut impl Read) -> Reply {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end =
        end.unwrap_or_else(|| panic!("no answer: {ended:?} after {:?}", String::from_utf8_lossy(&bytes)));
    let head = String::from_utf8(bytes[..end].to_vec()).expect("the head is text");
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status line");
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Reply { status, headers, body: bytes[end + 4..].to_vec() }
}
