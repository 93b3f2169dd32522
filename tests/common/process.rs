//! Runs the binary under test and other programs as child processes: exposes their lines as they appear, and always
//! ends them.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::PATIENCE;

#[derive(Default)]
struct Lines {
    all: Mutex<Vec<String>>,
    changed: Condvar,
}

/// A running program. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    stdout: Arc<Lines>,
    stderr: Arc<Lines>,
}

impl Process {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_binary(env!("CARGO_BIN_EXE_pellucid"), args)
    }

    pub(crate) fn start_binary(binary: &str, args: &[&str]) -> Self {
        let mut command = Command::new(binary);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let stdout = follow(child.stdout.take().expect("piped"));
        let stderr = follow(child.stderr.take().expect("piped"));
        Self { child, stdout, stderr }
    }

    pub(crate) fn wait_for_stdout(&self, text: &str) -> String {
        self.wait(&self.stdout, text)
    }

    pub(crate) fn wait_for_stderr(&self, text: &str) -> String {
        self.wait(&self.stderr, text)
    }

    pub(crate) fn stderr_so_far(&self) -> Vec<String> {
        self.stderr.all.lock().clone()
    }

    /// Sends SIGTERM, as Kubernetes does, and waits for the process to exit.
    pub(crate) fn terminate(&mut self) -> std::process::ExitStatus {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        assert!(sent.success());
        self.child.wait().expect("it ends")
    }

    fn wait(&self, lines: &Lines, text: &str) -> String {
        let mut all = lines.all.lock();
        loop {
            if let Some(line) = all.iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            if lines.changed.wait_for(&mut all, PATIENCE).timed_out() {
                let (out, err) =
                    (self.stdout.all.try_lock().map(|l| l.join("\n")), self.stderr.all.try_lock());
                panic!("{text:?} did not appear; stdout: {out:?}, stderr: {:?}", err.map(|l| l.join("\n")));
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn follow(pipe: impl Read + Send + 'static) -> Arc<Lines> {
    let lines = Arc::new(Lines::default());
    let sink = lines.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            sink.all.lock().push(line);
            sink.changed.notify_all();
        }
    });
    lines
}

/// Runs the binary to completion.
pub(crate) fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pellucid"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts")
}

/// Returns whether a tool is installed.
pub(crate) fn is_there(tool: &Path) -> bool {
    let version = Command::new(tool).arg("--version").stdin(Stdio::null()).output();
    version.is_ok_and(|output| output.status.success())
}

/// Runs a command to completion, for at most this time.
pub(crate) fn finish(mut command: Command, patience: Duration) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    let id = child.id();
    let (done, end) = mpsc::channel();
    // The receiver is gone after a timeout.
    std::thread::spawn(move || done.send(child.wait_with_output()));
    let Ok(output) = end.recv_timeout(patience) else {
        let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status();
        let said = end.recv().expect("it was killed");
        panic!("{command:?} is not done after {} s: {said:?}", patience.as_secs());
    };
    output.expect("it ends")
}
