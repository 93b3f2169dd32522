//! Polls the scheduler's health and memory every second.

use std::time::Duration;

use anyhow::bail;
use parking_lot::Mutex;

use super::outages::READY_AGAIN;
use super::scheduler::resident;
use super::state::Soak;
use super::wire;

/// Response timeout. The kubelet of a real node waits one second by default.
const PATIENCE: Duration = Duration::from_secs(5);

/// Health observations so far.
#[derive(Default)]
pub(crate) struct Health {
    /// Time, and resident memory in KiB.
    memory: Mutex<Vec<(Duration, u64)>>,
    slowest: Mutex<Duration>,
}

impl Health {
    /// Returns the minimum and maximum memory between two times, in KiB. Growth of the minimum indicates a leak; peaks
    /// may be responses to readers.
    pub(crate) fn memory(&self, from: Duration, to: Duration) -> (u64, u64) {
        let samples = self.memory.lock();
        let within = samples.iter().filter(|(at, _)| from <= *at && *at < to).map(|(_, kib)| *kib);
        (within.clone().min().unwrap_or_default(), within.max().unwrap_or_default())
    }

    /// Returns the latency of the slowest response.
    pub(crate) fn slowest(&self) -> Duration {
        *self.slowest.lock()
    }
}

/// Waits until the scheduler is ready for the first time. Fails after `patience`.
pub(crate) fn wait_until_ready(soak: &Soak, patience: Duration) -> anyhow::Result<()> {
    let until = soak.now() + patience;
    loop {
        let said = wire::get(soak.address, "/readyz?verbose", PATIENCE);
        match said {
            Ok((200, _)) => return Ok(()),
            other if soak.now() > until => {
                let text = other.map(|(_, body)| String::from_utf8_lossy(&body).into_owned());
                bail!("the scheduler is not ready after {patience:?}: {text:?}")
            }
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Polls every second until the end of the test.
pub(crate) fn keep_asking(soak: &Soak) {
    let mut next = soak.now();
    while !soak.is_over() {
        next += Duration::from_secs(1);
        if let Some(kib) = resident(soak.pid) {
            soak.health.memory.lock().push((soak.now(), kib));
        }
        for path in ["/livez", "/readyz"] {
            look(soak, path);
        }
        while soak.now() < next && !soak.is_over() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Polls one health endpoint once. Records an unexpected response as a complaint with the scheduler's text.
fn look(soak: &Soak, path: &str) {
    let asked = soak.now();
    // Use the body of this response: another request might report that all is well.
    let said = wire::get(soak.address, &format!("{path}?verbose"), PATIENCE);
    let now = soak.now();
    let mut slowest = soak.health.slowest.lock();
    *slowest = slowest.max(now - asked);
    drop(slowest);
    let text = match said {
        Ok((200, _)) => return soak.count(format!("{path} 200")),
        Ok((status, body)) => {
            soak.count(format!("{path} {status}"));
            let body = String::from_utf8_lossy(&body).into_owned();
            let failing = body.lines().filter(|line| !line.starts_with("[+]"));
            format!("{status}: {}", failing.collect::<Vec<_>>().join("; "))
        }
        Err(error) => {
            soak.count(format!("{path} no answer"));
            format!("no answer within {PATIENCE:?}: {error}")
        }
    };
    if path == "/readyz" && soak.outages.touch(asked, now, READY_AGAIN) {
        return soak.outages.note_unready(now);
    }
    soak.complain(format!("{path} says {text}"));
}
