//! Schemathesis sends the demo's REST API whatever its OpenAPI document allows, and much that it does not. No
//! response is a 5xx, and none has a status, type or body that the document does not describe.
//!
//! `tests/data/schemathesis/schemathesis.toml` configures the checks; equal documents give equal requests. The tool
//! is `$SCHEMATHESIS`, else the one that `.ci/run` installs under `target/`, else the one on the PATH. Without it the
//! tests report that and pass.

#![expect(clippy::print_stdout, reason = "the tool's report tells what went wrong")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::demo::Demo;
use crate::common::process::{finish, is_there};

/// Time limit of a run, which takes 20 s on an idle machine with two cores.
const PATIENCE: Duration = Duration::from_secs(240);

/// Returns the tool, or reports that there is none.
fn tool() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let known = [
        std::env::var_os("SCHEMATHESIS").map(PathBuf::from),
        Some(root.join("target/schemathesis/bin/schemathesis")),
        Some(PathBuf::from("schemathesis")),
    ];
    let found = known.into_iter().flatten().find(|tool| is_there(tool));
    if found.is_none() {
        println!(
            "\n*** NOT RUN: there is no schemathesis (.ci/run installs it), so nothing was tested here ***\n"
        );
    }
    found
}

/// Runs the tool to completion, for at most [`PATIENCE`].
fn run(tool: &Path, arguments: &[String]) -> Output {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/schemathesis/schemathesis.toml");
    let folder = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(tool);
    command.arg("--config-file").arg(config).arg("run").args(arguments).current_dir(folder.path());
    finish(command, PATIENCE)
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Truncates long lines of a report: a failing tool prints its own sources.
fn cut(report: &str) -> String {
    let lines = report.lines().map(|line| line.chars().take(400).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the paths whose responses need not end; other tests cover them.
fn endless(document: &Value) -> Vec<String> {
    let is_feed = |operation: &Value| {
        let content = operation["responses"]["200"]["content"].as_object();
        content.is_some_and(|types| types.contains_key("text/event-stream"))
    };
    let paths = document["paths"].as_object().expect("paths");
    paths.iter().filter(|(_, methods)| is_feed(&methods["get"])).map(|(path, _)| path.clone()).collect()
}

#[test]
fn no_answer_is_an_error_of_ours_or_undocumented() {
    let Some(tool) = tool() else { return };
    let demo = Demo::start(&["-v", "0"]);
    let document = demo.get("/openapi.json").json();
    let mut arguments = vec![format!("http://{}/openapi.json", demo.rest)];
    for path in endless(&document) {
        println!("not asked: {path}, a feed");
        arguments.extend(["--exclude-path".to_owned(), path]);
    }
    let output = run(&tool, &arguments);
    let said = text(&output);
    let heard = demo.process.stderr_so_far();
    let last = heard[heard.len().saturating_sub(50)..].join("\n");
    assert!(output.status.success(), "the demo's last lines:\n{last}\n\n{}", cut(&said));
    let summary = said.find("API Operations:").map_or(said.as_str(), |at| &said[at..]);
    println!("{summary}");
    assert!(said.contains(" passed"), "nothing was asked: {said}");
    assert_eq!(demo.get("/livez").status, 200);
}

#[test]
fn a_document_that_is_not_true_is_found_out() {
    let Some(tool) = tool() else { return };
    let demo = Demo::start(&["-v", "0"]);
    let mut document = demo.get("/openapi.json").json();
    let answers = &mut document["paths"]["/version"]["get"]["responses"]["200"]["content"];
    assert!(answers["application/json"]["schema"].is_object());
    answers["application/json"]["schema"] = json!({"type": "integer"});
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, document.to_string()).expect("written");
    let only = ["--include-path", "/version", "--url"].map(str::to_owned);
    let file = file.to_str().expect("text").to_owned();
    let arguments: Vec<String> =
        [file].into_iter().chain(only).chain([format!("http://{}", demo.rest)]).collect();
    let output = run(&tool, &arguments);
    let said = text(&output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("GET /version") && said.contains("violates schema"), "{said}");
}
