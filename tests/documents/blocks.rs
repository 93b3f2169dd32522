//! The fenced blocks of a document, and the commands in them.
//!
//! The first word of a fence is its language and the second what the test does with it, so that a page shows neither:
//! `elsewhere` after `sh` or `console` marks commands that cannot run here, `apply` after `yaml` manifests that the API
//! server gets, and a file name after `yaml` a file that later commands read.

use std::ops::Range;
use std::process::{Command, Stdio};

/// One block, by what is to be done with it.
pub(crate) enum Block {
    /// Commands to run, in order.
    Commands(Vec<Step>),
    /// Manifests for the API server.
    Apply {
        line: usize,
        text: String,
    },
    File {
        name: String,
        text: String,
    },
    /// Commands that cannot run here.
    Elsewhere {
        first: String,
    },
}

/// A command, and what the document shows as its output.
pub(crate) struct Step {
    /// Line of the document on which it begins, from 1.
    pub(crate) line: usize,
    pub(crate) command: String,
    /// Lines of the document with its output, from 0; `None` in a block that shows none.
    pub(crate) shown: Option<Range<usize>>,
}

/// Languages of blocks that hold no commands.
const QUIET: [&str; 5] = ["", "rust", "rust,ignore", "toml", "yaml"];

/// Parses the blocks of a document. Fails on a fence that it does not know, because that would skip it silently.
pub(crate) fn parse(lines: &[&str]) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(info) = lines[at].strip_prefix("```") else {
            at += 1;
            continue;
        };
        let end = (at + 1..lines.len()).find(|n| lines[*n] == "```");
        let end = end.ok_or_else(|| format!("line {}: the fence does not end", at + 1))?;
        blocks.extend(block(lines, info, at + 1..end)?);
        at = end + 1;
    }
    Ok(blocks)
}

fn block(lines: &[&str], info: &str, inside: Range<usize>) -> Result<Option<Block>, String> {
    let (line, text) = (inside.start + 1, || lines[inside.clone()].join("\n") + "\n");
    Ok(Some(match info.split_once(' ') {
        Some(("sh" | "console", "elsewhere")) => {
            let first = lines[inside.clone()].iter().find(|line| !line.is_empty() && !line.starts_with('#'));
            let first = first.map_or("", |line| line.trim_start_matches("$ "));
            Block::Elsewhere { first: first.to_owned() }
        }
        Some(("yaml", "apply")) => Block::Apply { line, text: text() },
        Some(("yaml", name)) => Block::File { name: name.to_owned(), text: text() },
        None if info == "sh" => Block::Commands(plain(lines, inside)?),
        None if info == "console" => Block::Commands(prompted(lines, inside)?),
        None if QUIET.contains(&info) => return Ok(None),
        _ => return Err(format!("line {}: unknown fence `{info}`", inside.start)),
    }))
}

/// Returns the commands of a block without output: all lines but comments.
fn plain(lines: &[&str], inside: Range<usize>) -> Result<Vec<Step>, String> {
    let (mut steps, mut at) = (Vec::new(), inside.start);
    while at < inside.end {
        if lines[at].is_empty() || lines[at].starts_with('#') {
            at += 1;
            continue;
        }
        let (command, next) = whole(lines, lines[at].to_owned(), at, inside.end)?;
        steps.push(Step { line: at + 1, command, shown: None });
        at = next;
    }
    Ok(steps)
}

/// Returns the commands behind `$ `, each with the lines up to the next one.
fn prompted(lines: &[&str], inside: Range<usize>) -> Result<Vec<Step>, String> {
    let (mut steps, mut at) = (Vec::new(), inside.start);
    while at < inside.end {
        let Some(begin) = lines[at].strip_prefix("$ ") else {
            return Err(format!("line {}: output of no command", at + 1));
        };
        let (command, first) = whole(lines, begin.to_owned(), at, inside.end)?;
        let next = (first..inside.end).find(|n| lines[*n].starts_with("$ ")).unwrap_or(inside.end);
        let last = (first..next).rev().find(|n| !lines[*n].is_empty()).map_or(first, |n| n + 1);
        steps.push(Step { line: at + 1, command, shown: Some(first..last) });
        at = next;
    }
    Ok(steps)
}

/// Adds lines to a command until it is a whole one, and returns the line behind it.
fn whole(lines: &[&str], begin: String, at: usize, end: usize) -> Result<(String, usize), String> {
    let (mut command, mut next) = (begin, at + 1);
    while !is_whole(&command) {
        if next == end {
            return Err(format!("line {}: the command does not end: {command}", at + 1));
        }
        command = command + "\n" + lines[next];
        next += 1;
    }
    Ok((command, next))
}

/// Returns whether bash would run a command without asking for more.
fn is_whole(command: &str) -> bool {
    if command.ends_with('\\') {
        return false;
    }
    let checked = Command::new("bash").args(["-n", "-c", command]).stdin(Stdio::null()).output();
    // A here-document that does not end is only a warning.
    checked.is_ok_and(|output| output.status.success() && output.stderr.is_empty())
}
