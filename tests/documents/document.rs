//! Runs all commands of one document against a demo of its own.
#![allow(clippy::disallowed_methods, reason = "a test that waits for something gives up some time")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pellucid_api::reason::STATES;
use serde_json::Value;

use crate::blocks::{Block, Step, parse};
use crate::common::client::post;
use crate::common::demo::Demo;
use crate::kinds::{difference, values};
use crate::shell::{Done, Shell, lacking};

/// How long after a change its effects may take to be seen.
const PATIENCE: Duration = Duration::from_secs(15);

/// What came of a document.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) failures: Vec<String>,
    /// Commands that ran, and manifests that were applied.
    pub(crate) ran: usize,
    /// Commands that need a tool that this machine lacks.
    pub(crate) not_run: Vec<String>,
    /// First commands of the blocks that are marked `elsewhere`.
    pub(crate) elsewhere: Vec<String>,
    /// Lines that another sample replaces, and the sample, in order.
    fresh: Vec<(std::ops::Range<usize>, String)>,
}

/// A document of the repository.
pub(crate) struct Document {
    name: String,
    /// `None` for a document that is in no file.
    file: Option<PathBuf>,
    text: String,
}

impl Document {
    pub(crate) fn read(name: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), file: Some(file), text }
    }

    /// Makes a document that is in no file.
    pub(crate) fn of(text: &str) -> Self {
        Self { name: "a document".to_owned(), file: None, text: text.to_owned() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the first command of each block that is marked `elsewhere`.
    pub(crate) fn elsewhere(&self) -> Vec<String> {
        let lines: Vec<&str> = self.text.lines().collect();
        let blocks = parse(&lines).unwrap_or_else(|why| panic!("{}, {why}", self.name));
        let first = |block| if let Block::Elsewhere { first, .. } = block { Some(first) } else { None };
        blocks.into_iter().filter_map(first).collect()
    }

    /// Runs its commands. With `UPDATE=1` in the environment, samples that differ in kind are written anew.
    pub(crate) fn run(&self, absent: &[&'static str]) -> Report {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut report = Report::default();
        match parse(&lines) {
            Ok(blocks) => self.run_blocks(&lines, blocks, absent, &mut report),
            Err(why) => report.failures.push(format!("{}, {why}", self.name)),
        }
        if let Some(file) = &self.file
            && std::env::var_os("UPDATE").is_some()
            && !report.fresh.is_empty()
        {
            fs::write(file, replaced(&lines, &report.fresh)).expect("written");
        }
        report
    }

    fn run_blocks(&self, lines: &[&str], blocks: Vec<Block>, absent: &[&'static str], report: &mut Report) {
        let is_run = |block: &Block| matches!(block, Block::Commands(_) | Block::Apply { .. });
        let demo = blocks.iter().any(is_run).then(|| Demo::start(&["--still"]));
        let mut shell = demo.as_ref().map(Shell::new);
        // Nothing happens in a still demo but what the document does.
        let mut settled = Instant::now();
        for block in blocks {
            match (block, &mut shell) {
                (Block::Commands(steps), Some(shell)) => {
                    for step in steps {
                        self.run_step(lines, &step, (shell, &mut settled), absent, report);
                    }
                }
                (Block::Apply { line, text }, _) => {
                    report.ran += 1;
                    settled = Instant::now() + PATIENCE;
                    if let Some(Err(why)) = demo.as_ref().map(|demo| apply(demo, &text)) {
                        report.failures.push(format!("{}:{line}: {why}", self.name));
                    }
                }
                (Block::File { name, text }, Some(shell)) => shell.keep(&name, &text),
                (Block::Elsewhere { first, .. }, _) => report.elsewhere.push(first),
                (Block::Commands(_) | Block::File { .. }, None) => {}
            }
        }
    }

    fn run_step(
        &self,
        lines: &[&str],
        step: &Step,
        (shell, settled): (&mut Shell<'_>, &mut Instant),
        absent: &[&'static str],
        report: &mut Report,
    ) {
        let lacking = lacking(&step.command, absent);
        if !lacking.is_empty() {
            report.not_run.push(format!("{}:{}: there is no {lacking:?}", self.name, step.line));
            return;
        }
        if let Some(assigned) = shell.assign(&step.command) {
            report.failures.extend(assigned.err().map(|why| format!("{}:{}: {why}", self.name, step.line)));
            return;
        }
        report.ran += 1;
        let changes = changes(&step.command);
        if changes {
            *settled = Instant::now() + PATIENCE;
        }
        let shown: Option<Vec<&str>> = step.shown.clone().map(|range| lines[range].to_vec());
        let found = loop {
            let done = shell.run(&step.command);
            let found = judge(&done, shown.as_deref());
            if found.is_ok() || changes || Instant::now() > *settled {
                break found.map_err(|why| (why, done));
            }
        };
        if let Err((why, done)) = found {
            let said = shell.there(&format!("{}{}", done.said(), done.complained()));
            report.failures.push(format!("{}:{}: {why}\n  $ {}\n{said}", self.name, step.line, step.command));
            if let (Some(range), Ok(())) = (&step.shown, judge_run(&done, shown.as_deref())) {
                report.fresh.push((range.clone(), shell.there(&done.said())));
            }
        }
    }
}

/// Returns whether a command changes something, so that it cannot be run again.
fn changes(command: &str) -> bool {
    let marks =
        [" -X PUT", " -X POST", " -X DELETE", " -d ", " -d@", " --data", " delete ", " apply ", " create "];
    let is_question = command.contains("/apis/v1/simulate");
    !is_question && marks.iter().any(|mark| command.contains(mark))
}

fn judge(done: &Done, shown: Option<&[&str]>) -> Result<(), String> {
    judge_run(done, shown)?;
    let said = done.said();
    match shown {
        Some(shown) => difference(shown, &said).map_or(Ok(()), Err),
        None if values(&said).is_some_and(|all| all.iter().any(is_nothing)) => {
            Err("it answers with nothing but null".to_owned())
        }
        None => Ok(()),
    }
}

/// Judges exit code and statuses. An answer that refuses is expected where its body is shown.
fn judge_run(done: &Done, shown: Option<&[&str]>) -> Result<(), String> {
    if !done.output.status.success() {
        return Err(format!("{}", done.output.status));
    }
    let is_expected = shown.is_some_and(shows_refusal);
    match done.answers.iter().find(|(status, _)| (*status >= 400) != is_expected) {
        Some((status, url)) if is_expected => {
            Err(format!("a refusal is shown, the answer is {status} from {url}"))
        }
        Some((status, url)) => Err(format!("the answer is {status} from {url}")),
        None => Ok(()),
    }
}

/// Returns whether lines show the body of a refused request.
fn shows_refusal(shown: &[&str]) -> bool {
    let known = |code: &str| STATES.iter().any(|entry| entry.code == code && entry.status.is_some());
    let is_refusal = |value: &Value| {
        let fields = value.as_object();
        let code = value["code"].as_str();
        let is_error = |key: &String| matches!(key.as_str(), "code" | "message" | "requestId");
        fields.is_some_and(|fields| fields.len() > 1 && fields.keys().all(is_error))
            && code.is_some_and(known)
    };
    values(&shown.join("\n")).is_some_and(|all| all.iter().any(is_refusal))
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => !fields.is_empty() && fields.values().all(Value::is_null),
        _ => false,
    }
}

/// Creates the objects of a manifest at the API server of a demo.
pub(crate) fn apply(demo: &Demo, text: &str) -> Result<(), String> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
    for object in objects {
        let (version, kind) =
            (object["apiVersion"].as_str().unwrap_or(""), object["kind"].as_str().unwrap_or(""));
        let root = if version.contains('/') { "/apis" } else { "/api" };
        let plural = kind.to_lowercase() + if kind.ends_with('s') { "es" } else { "s" };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
        let place = match kind {
            "Node" | "PriorityClass" | "Queue" | "Namespace" | "Reservation" => String::new(),
            _ => format!("/namespaces/{namespace}"),
        };
        let reply = post(demo.api, &format!("{root}/{version}{place}/{plural}"), &object);
        if reply.status != 201 {
            return Err(format!("{kind} {}: {} {}", object["metadata"]["name"], reply.status, reply.text()));
        }
    }
    Ok(())
}

/// Returns the text with new samples.
fn replaced(lines: &[&str], fresh: &[(std::ops::Range<usize>, String)]) -> String {
    let mut lines: Vec<&str> = lines.to_vec();
    for (range, sample) in fresh.iter().rev() {
        lines.splice(range.clone(), sample.lines());
    }
    lines.join("\n") + "\n"
}
