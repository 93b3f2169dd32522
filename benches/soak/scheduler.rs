//! The scheduler as a child process: its log, memory and exit.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};
use serde_json::{Value, json};

use super::options::Options;

/// Maximum size of the stored log in bytes; later lines are examined but not stored.
const LOG_BYTES: usize = 256 << 20;
const PATIENCE: Duration = Duration::from_secs(60);
/// Default of `gangExpirationSeconds`.
const GANG_EXPIRATION: Duration = Duration::from_secs(600);

/// A running `pellucid run`. Killed when dropped.
pub(crate) struct Scheduler {
    child: Child,
    pub(crate) address: SocketAddr,
    log: Option<JoinHandle<std::io::Result<Log>>>,
    _folder: tempfile::TempDir,
}

/// Summary of a scheduler's log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Path of the log file.
    pub(crate) path: PathBuf,
    /// Lines that report panics.
    pub(crate) panics: Vec<String>,
    /// Number of warnings.
    pub(crate) warnings: u64,
    pub(crate) errors: Vec<String>,
    pub(crate) lines: u64,
    /// Whether the scheduler exited with 0 when asked to stop.
    pub(crate) ended_well: bool,
}

impl Scheduler {
    /// Starts the scheduler for an API server and waits until it logs its listen address.
    pub(crate) fn start(server: &str, options: &Options) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
        });
        std::fs::write(&kubeconfig, text.to_string())?;
        let configuration = folder.path().join("configuration.json");
        std::fs::write(&configuration, configured(options).to_string())?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_pellucid"));
        command.args(["run", "--listen", "127.0.0.1:0", "--kubeconfig"]).arg(&kubeconfig);
        command.arg("--config").arg(&configuration);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start the scheduler")?;
        let stderr = child.stderr.take().ok_or_else(|| anyhow!("its log is not there"))?;
        let path = std::env::temp_dir().join(format!("pellucid-soak-{}-{}.log", options.seed, child.id()));
        let (found, address) = sync_channel(1);
        let log = std::thread::spawn(move || follow(stderr, path, &found));
        let address = address.recv_timeout(PATIENCE).context("the scheduler does not say where it listens");
        if address.is_err() {
            // The process may already have ended.
            let _ = child.kill();
        }
        Ok(Self { child, address: address?, log: Some(log), _folder: folder })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops the scheduler with SIGTERM, as Kubernetes does, and returns its log.
    pub(crate) fn end(mut self) -> Log {
        let asked = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status();
        let status = match asked {
            Ok(_) => self.child.wait().ok(),
            Err(_) => None,
        };
        let log = self.log.take().and_then(|log| log.join().ok()).and_then(Result::ok).unwrap_or_default();
        Log { ended_well: status.is_some_and(|status| status.success()), ..log }
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        // Both calls fail if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the default configuration, except that gangs without pods expire after at most an eighth of the test: memory
/// can be flat only if gangs are forgotten as fast as they are created.
fn configured(options: &Options) -> Value {
    let seconds = (options.length / 8).min(GANG_EXPIRATION).as_secs();
    let arguments = json!({"gangExpirationSeconds": seconds});
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": "pellucid",
            "pluginConfig": [{"name": "Coscheduling", "args": arguments}],
        }],
    })
}

/// Writes the log to a file until it ends, without debug and trace lines, and looks for panics.
fn follow(pipe: ChildStderr, path: PathBuf, found: &SyncSender<SocketAddr>) -> std::io::Result<Log> {
    let mut file = File::create(&path)?;
    let mut log = Log { path, ..Log::default() };
    let (mut written, mut line) = (0, Vec::new());
    let mut pipe = BufReader::new(pipe);
    while pipe.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        log.lines += 1;
        if let Some(rest) = text.split("scheduling rest=http://").nth(1) {
            let address = rest.split_whitespace().next().and_then(|address| address.parse().ok());
            // No receiver waits for a second address.
            address.map(|address| found.try_send(address));
        }
        if text.contains("panicked at") {
            log.panics.push(text.trim_end().to_owned());
        }
        log.warnings += u64::from(text.contains(" WARN "));
        if text.contains(" ERROR ") {
            log.errors.push(text.trim_end().chars().take(300).collect());
        }
        let is_detail = text.contains(" DEBUG ") || text.contains(" TRACE ");
        if !is_detail && written < LOG_BYTES {
            file.write_all(&line)?;
            written += line.len();
        }
        line.clear();
    }
    Ok(log)
}

/// Returns the resident memory of a process in KiB.
pub(crate) fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
