//! The wire test: the sandbox responds as a recorded kube-apiserver 1.36 did.
//!
//! Plays every exchange of a recording (`PELLUCID_WIRE` names another file of the same format) against a fresh
//! sandbox over HTTP, in order. Values that differ on every run (resourceVersions, uids, continue tokens) are mapped
//! from the recorded response to ours as they appear. The test compares the HTTP status, the JSON paths and types of
//! the body (without managedFields), and the reason and message of a Status (the message without quoted values and
//! numbers). The sandbox serves fewer kinds than the recorded server, so array indices in discovery documents are
//! collapsed: what an entry may hold must agree, not how many there are. By rule, exchanges of users other than
//! `admin` are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use pellucid::sandbox::{Clock, Config, Handle, Sandbox};
use serde_json::Value;

const DEFAULT_FILE: &str = "tests/data/kube-apiserver-1.36.jsonl";
const LEAST_COMPARED: usize = 111;
/// Kinds of the documents that list what a server serves.
const DISCOVERY: [&str; 4] = ["APIVersions", "APIGroupList", "APIResourceList", "APIGroupDiscoveryList"];
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sandbox_answers_like_the_recorded_server() {
    let file = std::env::var("PELLUCID_WIRE").unwrap_or_else(|_| DEFAULT_FILE.to_owned());
    let text = std::fs::read_to_string(&file).expect("the recording can be read");
    let exchanges: Vec<Value> = text
        .lines()
        .filter(|l| !l.trim().is_empty())
        .map(|l| serde_json::from_str(l).expect("a line is JSON"))
        .collect();
    let during: BTreeSet<&str> = exchanges.iter().flat_map(|e| names(&e["during"])).collect();
    let mut player = Player::new().await;
    for exchange in &exchanges {
        if during.contains(name(exchange)) || !is_compared(exchange) {
            continue;
        }
        let inside: Vec<&Value> =
            names(&exchange["during"]).filter_map(|n| exchanges.iter().find(|e| name(e) == n)).collect();
        player.play(exchange, &inside).await;
    }
    let excluded = exchanges.iter().filter(|e| !is_compared(e)).count();
    println!(
        "{} of {} compared exchanges agreed, {excluded} excluded by rule",
        player.agreed, player.compared
    );
    assert!(
        player.complaints.is_empty(),
        "{} disagreed:\n{}",
        player.complaints.len(),
        player.complaints.join("\n")
    );
    assert!(
        file != DEFAULT_FILE || player.compared >= LEAST_COMPARED,
        "only {} were compared",
        player.compared
    );
}

fn name(exchange: &Value) -> &str {
    exchange["name"].as_str().unwrap_or_default()
}

fn names(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Returns whether an exchange is compared.
fn is_compared(exchange: &Value) -> bool {
    exchange["request"]["auth"].as_str().is_none_or(|auth| auth == "admin")
}

struct Player {
    /// The server with which the recording begins.
    main: Handle,
    /// A server whose history is compacted, for the exchanges recorded on one.
    compacted: Handle,
    /// Maps recorded values to ours.
    ours: BTreeMap<String, String>,
    compared: usize,
    agreed: usize,
    complaints: Vec<String>,
}

impl Player {
    async fn new() -> Self {
        let compacted = start().await;
        compacted.compact(1_000);
        Self {
            main: start().await,
            compacted,
            ours: BTreeMap::new(),
            compared: 0,
            agreed: 0,
            complaints: Vec::new(),
        }
    }

    fn server(&self, exchange: &Value) -> &Handle {
        let is_other =
            exchange["note"].as_str().is_some_and(|note| note.contains("history before was compacted"));
        if is_other { &self.compacted } else { &self.main }
    }

    async fn play(&mut self, exchange: &Value, inside: &[&Value]) {
        let (status, body) = self.send(exchange).await;
        if exchange["response"]["lines"].is_null() {
            let bytes = collect(body).await;
            self.judge(exchange, status, &bytes);
            return;
        }
        for exchange in inside {
            let (status, body) = self.send(exchange).await;
            let bytes = collect(body).await;
            self.judge(exchange, status, &bytes);
        }
        let path = exchange["request"]["path"].as_str().unwrap_or_default();
        let seconds = path.split("timeoutSeconds=").nth(1).and_then(|t| t.split('&').next()?.parse().ok());
        self.server(exchange).clock().advance(Duration::from_secs(seconds.unwrap_or(60)));
        let bytes = collect(body).await;
        self.judge_watch(exchange, status, &bytes);
    }

    async fn send(&self, exchange: &Value) -> (u16, Body) {
        let recorded = &exchange["request"];
        let path = self.path(recorded["path"].as_str().expect("a request has a path"));
        let method = recorded["method"].as_str().expect("a request has a method");
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in recorded["headers"].as_object().into_iter().flatten() {
            request = request.header(name, value.as_str().unwrap_or_default());
        }
        let body = match &recorded["body"] {
            Value::Null => Vec::new(),
            Value::String(text) => text.clone().into_bytes(),
            value => self.translated(value).to_string().into_bytes(),
        };
        let mut config = self.server(exchange).kube_config();
        config.default_retry = false;
        let client = kube::Client::try_from(config).expect("a client");
        let request = request.body(Body::from(body)).expect("a request");
        let answer = tokio::time::timeout(PATIENCE, client.send(request)).await;
        let response = answer.expect("an answer in time").expect("an answer");
        (response.status().as_u16(), response.into_body())
    }

    /// Replaces recorded values in a path with ours.
    fn path(&self, path: &str) -> String {
        let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((key @ ("resourceVersion" | "continue"), value)) => {
                format!("{key}={}", self.ours.get(value).map_or(value, String::as_str))
            }
            _ => pair.to_owned(),
        });
        format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
    }

    /// Replaces recorded values in a body with ours.
    fn translated(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| match value.as_str().and_then(|text| self.ours.get(text)) {
                    Some(ours) if is_run_specific(key) => (key.clone(), Value::from(ours.as_str())),
                    _ => (key.clone(), self.translated(value)),
                })
                .collect(),
            Value::Array(items) => items.iter().map(|item| self.translated(item)).collect(),
            plain => plain.clone(),
        }
    }

    /// Records which of our values corresponds to a recorded one.
    fn learn(&mut self, recorded: &Value, ours: &Value) {
        match (recorded, ours) {
            (Value::Object(recorded), Value::Object(ours)) => {
                for (key, value) in recorded {
                    let Some(own) = ours.get(key) else { continue };
                    if let (true, Some(value), Some(own)) =
                        (is_run_specific(key), value.as_str(), own.as_str())
                    {
                        self.ours.insert(value.to_owned(), own.to_owned());
                    }
                    self.learn(value, own);
                }
            }
            (Value::Array(recorded), Value::Array(ours)) => {
                recorded.iter().zip(ours).for_each(|(recorded, ours)| self.learn(recorded, ours));
            }
            _ => {}
        }
    }

    fn judge(&mut self, exchange: &Value, status: u16, bytes: &[u8]) {
        let recorded = &exchange["response"];
        let mut differences = Vec::new();
        if recorded["status"] != status {
            differences.push(format!("status {status}, recorded {}", recorded["status"]));
        }
        let text = String::from_utf8_lossy(bytes).into_owned();
        match &recorded["body"] {
            Value::String(plain) if *plain == text => {}
            Value::String(plain) => differences.push(format!("body {text:?}, recorded {plain:?}")),
            body => {
                let ours: Value = serde_json::from_slice(bytes).unwrap_or(Value::String(text));
                compare(body, &ours, "", &mut differences);
                self.learn(body, &ours);
            }
        }
        self.conclude(exchange, differences);
    }

    fn judge_watch(&mut self, exchange: &Value, status: u16, bytes: &[u8]) {
        let recorded = &exchange["response"];
        let mut differences = Vec::new();
        if recorded["status"] != status {
            differences.push(format!("status {status}, recorded {}", recorded["status"]));
        }
        let text = String::from_utf8_lossy(bytes);
        let ours: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap_or(Value::Null)).collect();
        let lines = recorded["lines"].as_array().expect("a watch has lines");
        let kinds = |lines: &[Value]| {
            lines.iter().map(|l| l["type"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>()
        };
        if kinds(lines) != kinds(&ours) {
            differences.push(format!("events {:?}, recorded {:?}", kinds(&ours), kinds(lines)));
        }
        for (index, (line, own)) in lines.iter().zip(&ours).enumerate() {
            compare(line, own, &format!("line {index}"), &mut differences);
            self.learn(line, own);
        }
        self.conclude(exchange, differences);
    }

    fn conclude(&mut self, exchange: &Value, differences: Vec<String>) {
        self.compared += 1;
        if differences.is_empty() {
            self.agreed += 1;
        } else {
            self.complaints.push(format!("- {}: {}", name(exchange), differences.join("; ")));
        }
    }
}

fn is_run_specific(key: &str) -> bool {
    matches!(key, "resourceVersion" | "uid" | "continue")
}

async fn start() -> Handle {
    let clock = Clock::manual("2026-01-01T00:00:00Z".parse().expect("a time"));
    // The recorded server ran alone: no controllers, no kubelets.
    let config = Config { clock, kubelet: None, controllers: false, ..Config::default() };
    Sandbox::start(config).await.expect("a sandbox starts")
}

async fn collect(body: Body) -> Vec<u8> {
    let collected = tokio::time::timeout(PATIENCE, body.collect()).await;
    collected.expect("the body ends in time").expect("the body can be read").to_bytes().to_vec()
}

/// Compares paths and types, and the reason and message of a Status.
fn compare(recorded: &Value, ours: &Value, place: &str, differences: &mut Vec<String>) {
    let is_discovery = recorded["kind"].as_str().is_some_and(|kind| DISCOVERY.contains(&kind));
    let (mut wanted, mut found) = (BTreeSet::new(), BTreeSet::new());
    shape(recorded, is_discovery, String::new(), &mut wanted);
    shape(ours, is_discovery, String::new(), &mut found);
    let missing: Vec<_> = wanted.difference(&found).collect();
    let extra: Vec<_> = found.difference(&wanted).collect();
    if !missing.is_empty() || !extra.is_empty() {
        differences.push(format!("{place} misses {missing:?}, has in excess {extra:?}"));
    }
    for (recorded, ours) in [(recorded, ours), (&recorded["object"], &ours["object"])] {
        if recorded["kind"] != "Status" {
            continue;
        }
        if recorded["reason"] != ours["reason"] {
            differences.push(format!("{place} reason {}, recorded {}", ours["reason"], recorded["reason"]));
        }
        let text = |status: &Value| essence(status["message"].as_str().unwrap_or_default());
        if text(recorded) != text(ours) {
            differences
                .push(format!("{place} message {}, recorded {}", ours["message"], recorded["message"]));
        }
    }
}

/// Collects every path with its type.
fn shape(value: &Value, collapses: bool, path: String, out: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    out.insert(format!("{path}: {kind}"));
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| *key != "managedFields") {
                shape(value, collapses, format!("{path}.{key}"), out);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let index = if collapses { String::new() } else { index.to_string() };
                shape(item, collapses, format!("{path}[{index}]"), out);
            }
        }
        _ => {}
    }
}

/// Removes from a message what differs on every run: uids, quoted values, numbers.
fn essence(message: &str) -> String {
    let words = message.split_inclusive([' ', '(', ')', ',', ':']).map(|word| {
        let bare = word.trim_end_matches([' ', '(', ')', ',', ':']);
        let is_uid = bare.len() == 36 && bare.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        if is_uid { word.replace(bare, "") } else { word.to_owned() }
    });
    let message: String = words.collect();
    let mut out = String::new();
    let mut quote = None;
    for c in message.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' => quote = Some(c),
            None if c.is_ascii_digit() => {}
            None => out.push(c),
        }
    }
    out
}
