//! Chromium, driven by the WebDriver protocol over plain HTTP.
//!
//! Nothing sleeps here: a script in the browser checks for expected conditions.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::client;
use crate::common::process::Process;

/// Time limit of one driver command on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Keys in the encoding of the protocol.
pub(crate) mod keys {
    pub(crate) const ENTER: &str = "\u{e007}";
    pub(crate) const TAB: &str = "\u{e004}";
    pub(crate) const ESCAPE: &str = "\u{e00c}";
    pub(crate) const DOWN: &str = "\u{e015}";
    pub(crate) const RIGHT: &str = "\u{e014}";
    pub(crate) const END: &str = "\u{e010}";
    pub(crate) const HOME: &str = "\u{e011}";
}

/// Browsers that may be at work, and those of them that are not. More would take the time of those whose times are bounded.
static FREE: (Mutex<usize>, Condvar) = (Mutex::new(3), Condvar::new());

/// A share of what may be at work.
struct Turn(usize);

impl Turn {
    fn take(share: usize) -> Self {
        let mut free = FREE.0.lock();
        FREE.1.wait_while(&mut free, |free| *free < share);
        *free -= share;
        Self(share)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *FREE.0.lock() += self.0;
        FREE.1.notify_all();
    }
}

/// A browser with its own profile. Closed when dropped.
pub(crate) struct Browser {
    driver: Process,
    address: SocketAddr,
    session: String,
    _profile: TempDir,
    _turn: Turn,
}

impl Browser {
    /// Starts a browser, or reports loudly that there is none.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(1)
    }

    /// Does the same for a test that bounds times: no more than one other browser is at work meanwhile.
    pub(crate) fn start_timed() -> Option<Self> {
        Self::start_with(2)
    }

    #[expect(clippy::print_stderr, reason = "that a test did not run must be seen")]
    fn start_with(share: usize) -> Option<Self> {
        let is_there = |name: &str| {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).any(|folder| folder.join(name).is_file())
        };
        if let Some(missing) = ["chromium", "chromedriver"].into_iter().find(|name| !is_there(name)) {
            eprintln!("=== NOT RUN: there is no {missing} on the PATH, so the page is not tested ===");
            return None;
        }
        let turn = Turn::take(share);
        let driver = Process::start_binary("chromedriver", &["--port=0"]);
        let line = driver.wait_for_stdout("started successfully on port");
        let port = line.trim_end_matches('.').rsplit(' ').next().and_then(|port| port.parse().ok());
        let address =
            SocketAddr::from(([127, 0, 0, 1], port.unwrap_or_else(|| panic!("no port in {line:?}"))));
        let profile = tempfile::tempdir().expect("a folder");
        let mut browser = Self { driver, address, session: String::new(), _profile: profile, _turn: turn };
        let folder = browser._profile.path().display();
        let mut arguments: Vec<String> = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--force-device-scale-factor=1",
        ]
        .map(str::to_owned)
        .into();
        arguments.push(format!("--user-data-dir={folder}"));
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            // Certificates of tests are signed by nobody.
            "acceptInsecureCerts": true,
            "timeouts": {"script": 90_000, "pageLoad": 90_000},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"args": arguments},
        }}});
        let made = browser.call("POST", "/session", &wanted);
        browser.session =
            made["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {made}")).to_owned();
        browser.resize(1440, 900);
        browser.devtools("Emulation.setScrollbarsHidden", json!({"hidden": true}));
        // The browser's initial page is not ours.
        browser.open("about:blank");
        browser.log("performance");
        Some(browser)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let reply = self.ask(method, path, body);
        let answer = &reply.body["value"];
        assert_eq!(reply.status, 200, "{method} {path} {body}: {answer:#}");
        answer.clone()
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let text = if method == "POST" { body.to_string() } else { String::new() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{text}",
            self.address,
            text.len()
        );
        let mut stream = client::connect(self.address);
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream.write_all(head.as_bytes()).expect("the driver listens");
        read_answer(stream)
    }

    fn in_session(&self, method: &str, command: &str, body: &Value) -> Value {
        self.call(method, &format!("/session/{}/{command}", self.session), body)
    }

    /// Opens a URL.
    pub(crate) fn open(&self, url: &str) {
        self.in_session("POST", "url", &json!({"url": url}));
    }

    /// Reloads a page, even if only the fragment of the URL differs.
    pub(crate) fn in_new_page(&self, url: &str) {
        self.open("about:blank");
        self.open(url);
    }

    /// Runs a script and returns its result.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.in_session("POST", "execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until a script returns a truthy value, and returns it.
    #[track_caller]
    pub(crate) fn wait(&self, script: &str) -> Value {
        let waiting = format!(
            "const done = arguments[0], end = performance.now() + 60_000; let wrong = null;
             const look = () => {{
                let found = null;
                try {{ found = (() => {{ {script} }})(); }} catch (error) {{ wrong = String(error); }}
                if (found) return done({{found}});
                if (performance.now() > end) return done({{wrong, text: document.body.innerText}});
                setTimeout(look, 30);
             }};
             look();"
        );
        let outcome = self.in_session("POST", "execute/async", &json!({"script": waiting, "args": []}));
        assert!(
            !outcome["found"].is_null(),
            "{script} did not come about: {} in\n{}",
            outcome["wrong"],
            outcome["text"]
        );
        outcome["found"].clone()
    }

    /// Presses keys one after another, in the focused element.
    pub(crate) fn press(&self, keys: &[&str]) {
        let strokes = keys.iter().flat_map(|key| {
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
        });
        let strokes: Vec<Value> = strokes.collect();
        self.in_session(
            "POST",
            "actions",
            &json!({"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]}),
        );
    }

    /// Sends a command of the DevTools protocol.
    pub(crate) fn devtools(&self, command: &str, params: Value) -> Value {
        self.in_session("POST", "goog/cdp/execute", &json!({"cmd": command, "params": params}))
    }

    /// Sets the size of the window.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", size);
    }

    /// Sets the preferred color scheme, `light` or `dark`.
    pub(crate) fn prefer(&self, theme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.devtools("Emulation.setEmulatedMedia", features);
    }

    /// Returns the entries of a log since the last call.
    pub(crate) fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.in_session("POST", "se/log", &json!({"type": kind}));
        entries.as_array().cloned().unwrap_or_default()
    }

    /// Returns the URLs of all requests since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        let sent = |entry: &Value| {
            let message: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let message = &message["message"];
            let is_request = message["method"] == "Network.requestWillBeSent";
            is_request.then(|| message["params"]["request"]["url"].as_str().map(str::to_owned))?
        };
        self.log("performance").iter().filter_map(sent).collect()
    }

    /// Takes a screenshot, and saves it in the folder that `PELLUCID_SCREENSHOTS` names. Returns it in base64.
    pub(crate) fn screenshot(&self, name: &str) -> String {
        let picture = self.in_session("GET", "screenshot", &Value::Null);
        let text = picture.as_str().expect("a picture").to_owned();
        if let Some(folder) = std::env::var_os("PELLUCID_SCREENSHOTS") {
            let path = Path::new(&folder).join(format!("{name}.png"));
            std::fs::write(&path, decode(&text))
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        text
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            // Ends the browser; killing the driver alone would leave it running.
            let path = format!("/session/{}", self.session);
            let _ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                self.ask("DELETE", &path, &Value::Null)
            }));
        }
        self.driver.terminate();
    }
}

/// A response of the driver.
struct Answer {
    status: u16,
    body: Value,
}

/// Reads a response by its Content-Length: the driver keeps the connection open.
fn read_answer(stream: TcpStream) -> Answer {
    let mut reader = BufReader::new(stream);
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        let n = reader.read_line(&mut line).expect("the driver answers in time");
        if n == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(code) = line.strip_prefix("HTTP/1.1 ") {
            status = code.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or(0);
        } else if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the driver answers to the end");
    Answer { status, body: serde_json::from_slice(&body).unwrap_or(Value::Null) }
}

/// Decodes base64.
fn decode(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bytes, mut bits, mut n) = (Vec::with_capacity(text.len() * 3 / 4), 0_u32, 0);
    for six in text.bytes().filter_map(value) {
        bits = (bits << 6) | u32::from(six);
        n += 6;
        if n >= 8 {
            n -= 8;
            bytes.push((bits >> n) as u8);
            bits &= (1 << n) - 1;
        }
    }
    bytes
}
