//! A sandbox and a scheduler as child processes of this binary, for a bench without a cluster. They end with this value.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::oneshot;

/// How long the sandbox may take to print its address.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// CPU ticks per second in `/proc`, which Linux fixes for user space.
const TICKS_PER_SECOND: f64 = 100.0;

/// The child processes, and the kubeconfig that reaches the sandbox.
pub(super) struct Children {
    /// File in the temporary directory, removed at the end.
    pub kubeconfig: PathBuf,
    _sandbox: Killed,
    scheduler: Option<Killed>,
    /// What the schedulers before this one used.
    used: Usage,
}

/// What the scheduler used until now.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    /// Greatest resident memory.
    pub peak_memory_bytes: u64,
    /// Time on CPUs, user and system.
    pub cpu_seconds: f64,
}

impl Children {
    /// Starts the sandbox. Its nodes have no kubelet, as those of the bench on a cluster: what they write of pods comes half a
    /// second late, during one kind of run and after another.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let mut sandbox = command()?
            .args(["sandbox", "--no-kubelet", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the sandbox")?;
        let out = sandbox.stdout.take();
        let sandbox = Killed(sandbox);
        let line = first_line(out.context("the sandbox has no output")?).await?;
        let url = line.split_whitespace().find(|word| word.starts_with("http"));
        let url = url.with_context(|| format!("no address in the sandbox's output {line:?}"))?;
        let kubeconfig = std::env::temp_dir().join(format!("pellucid-bench-{}.yaml", std::process::id()));
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: bench\nclusters: [{{name: bench, cluster: {{server: \"{}\"}}}}]\n\
             users: [{{name: bench, user: {{}}}}]\ncontexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]\n",
            url.trim_end_matches(',')
        );
        std::fs::write(&kubeconfig, text)
            .with_context(|| format!("cannot write {}", kubeconfig.display()))?;
        Ok(Self { kubeconfig, _sandbox: sandbox, scheduler: None, used: Usage::default() })
    }

    /// Starts the scheduler, unless it runs.
    pub(super) fn start_scheduler(&mut self) -> anyhow::Result<()> {
        if self.scheduler.is_none() {
            let scheduler = command()?
                .args(["run", "--listen", "127.0.0.1:0", "-v", "0", "--kubeconfig"])
                .arg(&self.kubeconfig)
                .stdout(Stdio::null())
                .spawn();
            self.scheduler = Some(Killed(scheduler.context("cannot start the scheduler")?));
        }
        Ok(())
    }

    /// Ends the scheduler, if it runs.
    pub(super) fn stop_scheduler(&mut self) {
        self.used = self.usage().unwrap_or(self.used);
        self.scheduler = None;
    }

    /// Returns what the schedulers used so far, the greatest memory and all of the time; `None` before the first, or where
    /// there is no `/proc`.
    pub(super) fn usage(&self) -> Option<Usage> {
        let now = self.scheduler.as_ref().and_then(|scheduler| usage_of(scheduler.0.id()));
        let Some(now) = now else { return (self.used.peak_memory_bytes > 0).then_some(self.used) };
        Some(Usage {
            peak_memory_bytes: now.peak_memory_bytes.max(self.used.peak_memory_bytes),
            cpu_seconds: now.cpu_seconds + self.used.cpu_seconds,
        })
    }
}

/// Returns what a process used until now.
fn usage_of(pid: u32) -> Option<Usage> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.split_whitespace().next()?.parse().ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the process, in parentheses, may have spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    let cpu_seconds = (ticks()? + ticks()?) / TICKS_PER_SECOND;
    Some(Usage { peak_memory_bytes: kib * 1024, cpu_seconds })
}

impl Drop for Children {
    fn drop(&mut self) {
        // It may be gone already, and nothing else can be done about it here.
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

/// A child process that ends with this value.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Both fail only if the process is gone.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the first line of an output, and reads on to its end: a process fails when it prints to a closed pipe.
async fn first_line(out: ChildStdout) -> anyhow::Result<String> {
    let (sender, line) = oneshot::channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        // Nobody may wait any more; the rest is read all the same.
        let _ = lines.next().map(|line| sender.send(line));
        lines.for_each(drop);
    });
    let line =
        tokio::time::timeout(START_PATIENCE, line).await.context("the sandbox did not start in time")?;
    line.context("the sandbox ended at once")
}

/// Returns a command of this binary.
fn command() -> anyhow::Result<Command> {
    let binary = std::env::current_exe().context("cannot find this binary")?;
    let mut command = Command::new(binary);
    command.stdin(Stdio::null());
    // Ctrl-C reaches the whole foreground group; the children must outlive the clean-up.
    command.process_group(0);
    Ok(command)
}
