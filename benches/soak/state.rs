//! State shared by the threads of the soak test: the sandbox, the scheduler's address, the time, and counters.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pellucid::sandbox::Handle;

use super::fitting::Fitting;
use super::health::Health;
use super::options::Options;
use super::outages::Outages;
use super::plain::Plain;
use super::rng::Rng;

/// Maximum sleep between two checks for the end of the test.
const NAP: Duration = Duration::from_millis(100);

/// The running test.
pub(crate) struct Soak {
    pub(crate) options: Options,
    pub(crate) sandbox: Handle,
    /// Address of the scheduler's REST API.
    pub(crate) address: SocketAddr,
    /// Process id of the scheduler.
    pub(crate) pid: u32,
    started: Instant,
    begun: OnceLock<Duration>,
    load_over: AtomicBool,
    over: AtomicBool,
    pub(crate) outages: Outages,
    pub(crate) plain: Plain,
    pub(crate) fitting: Fitting,
    pub(crate) health: Health,
    /// Names of current or past gangs, used by readers.
    pub(crate) gangs: Mutex<Vec<String>>,
    /// Counters by name of an action or response.
    counts: Mutex<BTreeMap<String, u64>>,
    /// Violations, as text.
    complaints: Mutex<Vec<String>>,
}

impl Soak {
    pub(crate) fn new(options: Options, sandbox: Handle, address: SocketAddr, pid: u32) -> Self {
        Self {
            options,
            sandbox,
            address,
            pid,
            started: Instant::now(),
            begun: OnceLock::new(),
            load_over: AtomicBool::new(false),
            over: AtomicBool::new(false),
            outages: Outages::default(),
            plain: Plain::default(),
            fitting: Fitting::default(),
            health: Health::default(),
            gangs: Mutex::default(),
            counts: Mutex::default(),
            complaints: Mutex::default(),
        }
    }

    /// Starts the load. Times count from here.
    pub(crate) fn begin(&self) {
        self.begun.get_or_init(|| self.started.elapsed());
    }

    /// Returns the time since the load began.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.begun.get().copied().unwrap_or_default())
    }

    /// Returns a random number generator with its own seed for a part of the test.
    pub(crate) fn rng(&self, part: u64) -> Rng {
        Rng::new(self.options.seed.wrapping_mul(1_000_003).wrapping_add(part))
    }

    /// Stops creating hostile objects, faults and readers.
    pub(crate) fn stop_load(&self) {
        self.load_over.store(true, Ordering::Relaxed);
    }

    /// Stops the whole test.
    pub(crate) fn stop(&self) {
        self.stop_load();
        self.over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_load_over(&self) -> bool {
        self.load_over.load(Ordering::Relaxed)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Sleeps, but not beyond the end of the load. Returns whether the load continues.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let until = self.started.elapsed() + time;
        loop {
            let left = until.saturating_sub(self.started.elapsed());
            if self.is_load_over() || left.is_zero() {
                return !self.is_load_over();
            }
            std::thread::sleep(left.min(NAP));
        }
    }

    pub(crate) fn count(&self, what: impl Into<String>) {
        *self.counts.lock().entry(what.into()).or_default() += 1;
    }

    pub(crate) fn counted(&self, what: &str) -> u64 {
        self.counts.lock().get(what).copied().unwrap_or_default()
    }

    /// Returns all counters whose names start with a prefix, without the prefix.
    pub(crate) fn counted_below(&self, beginning: &str) -> Vec<(String, u64)> {
        let counts = self.counts.lock();
        let below = counts.iter().filter_map(|(name, n)| Some((name.strip_prefix(beginning)?, *n)));
        below.map(|(name, n)| (name.to_owned(), n)).collect()
    }

    /// Records a violation and prints it immediately.
    pub(crate) fn complain(&self, what: String) {
        println!("!! {:>6.1} s  {what}", self.now().as_secs_f64());
        self.complaints.lock().push(what);
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        self.complaints.lock().clone()
    }

    /// Creates an object in the sandbox without HTTP. Rejections are counted by kind and reason.
    pub(crate) fn create(&self, object: serde_json::Value) -> bool {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        match self.sandbox.create(object) {
            Ok(()) => {
                self.count(format!("created {kind}"));
                true
            }
            Err(error) => {
                let text = error.to_string();
                let why = text.split("was refused: ").nth(1).unwrap_or(&text);
                let why: String = why.split("invalid: ").last().unwrap_or(why).chars().take(60).collect();
                self.count(format!("refused {kind}: {}", why.escape_debug()));
                false
            }
        }
    }
}
