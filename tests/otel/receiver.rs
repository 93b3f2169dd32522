//! A minimal collector: receives OTLP over HTTP and stores the spans. It parses only the fields that the tests check.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

const PATIENCE: Duration = Duration::from_secs(60);

/// The parsed fields of a span.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    pub(crate) service: String,
    pub(crate) trace: Vec<u8>,
    pub(crate) id: Vec<u8>,
    pub(crate) parent: Vec<u8>,
    pub(crate) name: String,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    texts: BTreeMap<String, String>,
    numbers: BTreeMap<String, u64>,
}

impl Span {
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.numbers.get(key).copied()
    }
}

#[derive(Default)]
struct Spans {
    all: Mutex<Vec<Span>>,
    changed: Condvar,
}

/// A receiver on its own port, for the duration of the test.
pub(crate) struct Receiver {
    address: SocketAddr,
    spans: Arc<Spans>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, spans) = (listener.local_addr().unwrap(), Arc::new(Spans::default()));
        let sink = Arc::clone(&spans);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let received = take(stream);
                sink.all.lock().extend(received);
                sink.changed.notify_all();
            }
        });
        Self { address, spans }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn has(&self, wanted: impl Fn(&Span) -> bool) -> bool {
        self.spans.all.lock().iter().any(wanted)
    }

    /// Waits for a span that satisfies a condition.
    pub(crate) fn wait_for(&self, what: &str, wanted: impl Fn(&Span) -> bool) -> Span {
        let mut all = self.spans.all.lock();
        loop {
            if let Some(span) = all.iter().find(|span| wanted(span)) {
                return span.clone();
            }
            let waited = self.spans.changed.wait_for(&mut all, PATIENCE);
            assert!(!waited.timed_out(), "{what} did not come; there are {all:#?}");
        }
    }
}

/// Receives one request, responds with success, and returns its spans.
fn take(stream: TcpStream) -> Vec<Span> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "POST /v1/traces HTTP/1.1");
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if let Some(value) = header.strip_prefix("content-type:") {
            assert_eq!(value.trim(), "application/x-protobuf");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
    reader.get_mut().write_all(answer.as_bytes()).unwrap();
    request(&body)
}

/// The value of a protobuf field.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => &[],
        }
    }

    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => 0,
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

/// Splits a protobuf message into fields with their numbers.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let length = match tag & 7 {
            0 => {
                found.push((tag >> 3, Field::Number(varint(&mut bytes))));
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)).unwrap(),
            5 => 4,
            other => panic!("wire type {other}"),
        };
        let (value, rest) = bytes.split_at(length);
        bytes = rest;
        let field = match tag & 7 {
            1 => Field::Number(u64::from_le_bytes(value.try_into().unwrap())),
            _ => Field::Bytes(value),
        };
        found.push((tag >> 3, field));
    }
    found
}

/// Parses an `ExportTraceServiceRequest`.
fn request(bytes: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for (_, resource_spans) in fields(bytes).iter().filter(|(number, _)| *number == 1) {
        let mut service = Span::default();
        for (number, field) in fields(resource_spans.bytes()) {
            match number {
                1 => {
                    let resource = fields(field.bytes());
                    resource.iter().filter(|(n, _)| *n == 1).for_each(|(_, a)| attribute(a, &mut service));
                }
                2 => {
                    let scope = fields(field.bytes());
                    spans.extend(scope.iter().filter(|(n, _)| *n == 2).map(|(_, s)| span(s.bytes())));
                }
                _ => {}
            }
        }
        for span in &mut spans {
            span.service = service.text("service.name").unwrap_or_default().to_owned();
        }
    }
    spans
}

fn span(bytes: &[u8]) -> Span {
    let mut span = Span::default();
    for (number, field) in fields(bytes) {
        match number {
            1 => span.trace = field.bytes().to_vec(),
            2 => span.id = field.bytes().to_vec(),
            4 => span.parent = field.bytes().to_vec(),
            5 => span.name = field.text(),
            7 => span.begin = field.number(),
            8 => span.end = field.number(),
            9 => attribute(&field, &mut span),
            _ => {}
        }
    }
    span
}

/// Parses a `KeyValue` into a span.
fn attribute(field: &Field<'_>, span: &mut Span) {
    let (mut key, mut text, mut value) = (String::new(), None, None);
    for (number, field) in fields(field.bytes()) {
        match number {
            1 => key = field.text(),
            2 => {
                for (kind, inner) in fields(field.bytes()) {
                    match kind {
                        1 => text = Some(inner.text()),
                        3 => value = Some(inner.number()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    span.texts.extend(text.map(|text| (key.clone(), text)));
    span.numbers.extend(value.map(|value| (key, value)));
}
