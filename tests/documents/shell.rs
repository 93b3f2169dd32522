//! Runs commands as a reader's shell would, against a demo on other ports.
//!
//! `curl` is a script around the real one that notes the status of each answer, which a pipe would hide. A command has
//! a directory of its own, the document's, and sees nothing of the environment but the PATH.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::common::demo::Demo;
use crate::common::process::{finish, is_there};

/// Addresses as documents write them.
const REST: &str = "127.0.0.1:10251";
const API: &str = "127.0.0.1:8001";
/// Time limit of a command.
const PATIENCE: Duration = Duration::from_secs(30);
/// Seconds after which a feed that would go on for ever is left.
const FEED_SECONDS: &str = "1";
/// Files of the repository that commands name.
const SHARED: [&str; 2] = ["examples", "tests"];

/// A script around curl. It lies in the repository: one that the test writes itself cannot be executed (`Text file busy`)
/// while a process that another thread forks meanwhile still holds the file open for writing.
const CURL: &str = "tests/documents/curl";

/// What a command did.
pub(crate) struct Done {
    pub(crate) output: Output,
    /// Status and address of each answer to curl.
    pub(crate) answers: Vec<(u16, String)>,
}

impl Done {
    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub(crate) fn complained(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

/// A shell beside a demo.
pub(crate) struct Shell<'a> {
    demo: &'a Demo,
    home: tempfile::TempDir,
    /// Assignments of the document, for the commands after them.
    assigned: String,
}

impl<'a> Shell<'a> {
    pub(crate) fn new(demo: &'a Demo) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let (tools, desk) = (home.path().join("tools"), home.path().join("desk"));
        fs::create_dir(&tools).expect("made");
        fs::create_dir(&desk).expect("made");
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join(CURL), tools.join("curl")).expect("linked");
        for name in ["pellucid", "kubectl-pellucid"] {
            symlink(env!("CARGO_BIN_EXE_pellucid"), tools.join(name)).expect("linked");
        }
        for name in SHARED {
            symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join(name), desk.join(name)).expect("linked");
        }
        let example = fs::read_to_string(desk.join("examples/sandbox.kubeconfig")).expect("the example");
        let own = example.replace(API, &demo.api.to_string());
        fs::write(home.path().join("kubeconfig"), own).expect("written");
        Self { demo, home, assigned: String::new() }
    }

    /// Keeps a file for later commands.
    pub(crate) fn keep(&self, name: &str, text: &str) {
        fs::write(self.home.path().join("desk").join(name), text).expect("written");
    }

    /// Keeps what a command assigns for the commands after it. Returns `None` for one that does more than that, and fails
    /// for one that assigns nothing.
    pub(crate) fn assign(&mut self, command: &str) -> Option<Result<(), String>> {
        let (name, value) = command.split_once('=')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic());
        let is_value = !value.contains(' ') || value.starts_with("$(") && value.ends_with(')');
        if !is_name || !is_value {
            return None;
        }
        let said = self.run(&format!("{command} && printf %s \"${name}\"")).said();
        self.assigned += &format!("{name}='{said}'\n");
        let is_something = !said.is_empty() && said != "null";
        Some(is_something.then_some(()).ok_or_else(|| format!("{command} assigns nothing: {said:?}")))
    }

    pub(crate) fn run(&self, command: &str) -> Done {
        let log = self.home.path().join("answers");
        let _none_yet = fs::remove_file(&log);
        let path = std::env::var("PATH").unwrap_or_default();
        let tools = self.home.path().join("tools");
        let script = self.here(&format!("{}{command}", self.assigned));
        let mut shell = Command::new("bash");
        shell.args(["-o", "pipefail", "-c", &script]).current_dir(self.home.path().join("desk")).env_clear();
        shell.env("PATH", format!("{}:{path}", tools.display())).env("HOME", self.home.path());
        shell.env("REAL_CURL", real_curl(&path)).env("CURL_LOG", &log).env("FEED_SECONDS", FEED_SECONDS);
        shell.env("PELLUCID_SERVER", format!("http://{}", self.demo.rest)).env("COLUMNS", "110");
        shell.env("KUBECONFIG", self.home.path().join("kubeconfig"));
        let output = finish(shell, PATIENCE);
        let noted = fs::read_to_string(&log).unwrap_or_default();
        let answers = noted.lines().filter_map(|line| line.split_once(' '));
        let answers = answers.filter_map(|(status, url)| Some((status.parse().ok()?, url.to_owned())));
        Done { output, answers: answers.collect() }
    }

    /// Points the addresses of a document at the demo.
    fn here(&self, text: &str) -> String {
        text.replace(REST, &self.demo.rest.to_string()).replace(API, &self.demo.api.to_string())
    }

    /// Returns a text with the addresses that documents write.
    pub(crate) fn there(&self, text: &str) -> String {
        text.replace(&self.demo.rest.to_string(), REST).replace(&self.demo.api.to_string(), API)
    }
}

fn real_curl(path: &str) -> PathBuf {
    let folders = path.split(':').map(|folder| Path::new(folder).join("curl"));
    folders.into_iter().find(|file| file.is_file()).unwrap_or_else(|| "curl".into())
}

/// Returns the tools that a command needs and this machine lacks.
pub(crate) fn lacking(command: &str, absent: &[&'static str]) -> Vec<&'static str> {
    let words = || command.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    absent.iter().copied().filter(|tool| words().any(|word| word == *tool)).collect()
}

/// Returns which of the tools that documents use are absent.
pub(crate) fn absent() -> Vec<&'static str> {
    let tools = ["bash", "curl", "jq", "kubectl"];
    tools.into_iter().filter(|tool| !is_here(tool)).collect()
}

/// kubectl has no `--version`.
fn is_here(tool: &str) -> bool {
    let client = || Command::new(tool).args(["version", "--client"]).stdin(Stdio::null()).output();
    is_there(Path::new(tool)) || client().is_ok_and(|output| output.status.success())
}
