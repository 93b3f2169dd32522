//! The 25 capabilities of a diagnosable scheduler, as far as they are built. Each is a script under tests/conformance
//! that queries a demo of its own with curl and checks the result with jq, as a user would.
//!
//! The table in docs/diagnostics.md is generated from the heads of the scripts: `UPDATE=1 cargo test --test
//! conformance` writes it once all have passed. Without bash, curl or jq the tests report that and pass.

mod common;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use common::demo::Demo;
use common::process::is_there;
use parking_lot::Mutex;

/// Time limit per script in seconds. A script takes 2 s on an idle machine, the longest 7 s.
const PATIENCE: &str = "240";
/// Number of demos that run at a time.
const LANES: usize = 4;
const BEGIN: &str = "<!-- capabilities: made by tests/conformance.rs -->\n";
const END: &str = "<!-- capabilities end -->\n";

/// A script and the fields of its head.
struct Check {
    file: PathBuf,
    number: u32,
    title: String,
    command: String,
}

/// Returns the checks, sorted by number.
fn checks() -> Vec<Check> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let files = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    let mut all: Vec<Check> = files.filter(|file| !file.ends_with("prelude.sh")).map(read).collect();
    all.sort_by_key(|check| check.number);
    all
}

fn read(file: PathBuf) -> Check {
    let text = fs::read_to_string(&file).expect("a script");
    let mut lines = text.lines();
    let mut head = |mark: &str| {
        let line = lines.next().and_then(|line| line.strip_prefix(mark));
        line.unwrap_or_else(|| panic!("{}: no line begins with {mark:?}", file.display())).to_owned()
    };
    let (title, command) = (head("# "), head("#: "));
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let number = name.split('-').next().and_then(|n| n.parse().ok());
    let number = number.unwrap_or_else(|| panic!("{name} does not begin with the number of a capability"));
    Check { file, number, title, command }
}

/// Runs a script against a fresh demo. Fails with what went wrong.
fn run(check: &Check) -> Result<(), String> {
    let demo = Demo::start(&["--still"]);
    let output = Command::new("timeout")
        .args([PATIENCE, "bash", "-euo", "pipefail"])
        .arg(&check.file)
        .env("S", format!("http://{}", demo.rest))
        .env("A", format!("http://{}", demo.api))
        .env("PELLUCID", env!("CARGO_BIN_EXE_pellucid"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("bash: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}\n{said}", check.file.display(), output.status))
}

#[test]
fn every_check_passes_against_a_demo() {
    let missing: Vec<&str> =
        ["bash", "curl", "jq"].into_iter().filter(|tool| !is_there(Path::new(tool))).collect();
    if !missing.is_empty() {
        println!("\n*** NOT RUN: there is no {missing:?}, so no capability was checked here ***\n");
        return;
    }
    let wanted = std::env::var("ONLY").ok().map(|only| only.parse::<u32>().expect("ONLY is a number"));
    let mut all = checks();
    all.retain(|check| wanted.is_none_or(|number| number == check.number));
    let (next, failed) = (Mutex::new(all.iter()), Mutex::new(Vec::new()));
    let take = || next.lock().next();
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(check) = take() {
                    if let Err(why) = run(check) {
                        failed.lock().push(why);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    assert!(failed.is_empty(), "{} of {} checks fail:\n{}", failed.len(), all.len(), failed.join("\n"));
    if wanted.is_none() {
        compare(&table(&all));
    }
}

/// Returns the table of the passed checks.
fn table(all: &[Check]) -> String {
    let mut text = String::from("| | capability | command | |\n|---:|---|---|---|\n");
    for Check { file, number, title, command } in all {
        let name = file.file_name().expect("a name").to_string_lossy();
        let command = command.replace('|', "\\|");
        writeln!(text, "| {number} | [{title}](../tests/conformance/{name}) | `{command}` | pass |")
            .expect("text");
    }
    text
}

/// Compares the table with the one in the documentation, or writes it there with `UPDATE=1`.
fn compare(fresh: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/diagnostics.md");
    let page = fs::read_to_string(&file).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("a mark where the table begins");
    let (stored, after) = rest.split_once(END).expect("a mark where the table ends");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, format!("{before}{BEGIN}\n{fresh}\n{END}{after}")).expect("written");
        return;
    }
    let why = "`UPDATE=1 cargo test --test conformance` writes the table of capabilities";
    assert_eq!(stored.trim(), fresh.trim(), "{why}");
}
