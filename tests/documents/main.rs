//! README.md and docs/*.md: every command in them runs against a demo and answers as they show.
//!
//! What is compared is the kind of an answer: exit code, HTTP status, keys and types of JSON, codes, and the words of
//! sentences and tables. `UPDATE=1 cargo test --test documents` writes samples anew that differ; it cannot mend a
//! command that fails. Without bash, curl, jq or kubectl the commands that need them do not run, and the test says so.

#![expect(clippy::print_stdout, reason = "what did not run is said")]

#[path = "../common/mod.rs"]
mod common;

mod blocks;
mod document;
mod elsewhere;
mod gangs;
mod kinds;
mod names;
mod shell;

use std::fs;
use std::path::Path;
use std::thread;

use document::{Document, Report};
use elsewhere::ELSEWHERE;
use parking_lot::Mutex;

/// Number of documents that run at a time, each with a demo of its own.
const LANES: usize = 3;

fn documents() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let files = fs::read_dir(folder).expect("docs").map(|entry| entry.expect("an entry").file_name());
    let names = files.map(|name| name.into_string().expect("text")).filter(|name| name.ends_with(".md"));
    let mut all: Vec<String> = names.map(|name| format!("docs/{name}")).collect();
    all.push("README.md".to_owned());
    all.sort();
    all
}

#[test]
fn every_command_answers_as_the_documents_show() {
    let absent = shell::absent();
    let only = std::env::var("ONLY").ok();
    let mut all = documents();
    all.retain(|name| only.as_ref().is_none_or(|only| name.contains(only)));
    let (next, reports) = (Mutex::new(all.iter()), Mutex::new(Vec::new()));
    let take = || next.lock().next();
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(name) = take() {
                    let report = Document::read(name).run(&absent);
                    reports.lock().push((name.clone(), report));
                }
            });
        }
    });
    let mut reports = reports.into_inner();
    reports.sort_by(|a, b| a.0.cmp(&b.0));
    tell(&reports, &absent);
    let failures: Vec<&str> = reports.iter().flat_map(|(_, r)| &r.failures).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} samples are wrong:\n{}", failures.len(), failures.join("\n"));
    assert!(only.is_some() || reports.iter().map(|(_, r)| r.ran).sum::<usize>() > 100 || !absent.is_empty());
}

/// Says what ran, what did not run here, and what never does.
fn tell(reports: &[(String, Report)], absent: &[&str]) {
    for (name, report) in reports {
        println!("{name}: {} commands, {} elsewhere", report.ran, report.elsewhere.len());
    }
    let not_run: Vec<&String> = reports.iter().flat_map(|(_, report)| &report.not_run).collect();
    if !not_run.is_empty() {
        println!(
            "\n*** DID NOT RUN: there is no {absent:?}, so {} commands were not tried ***",
            not_run.len()
        );
        not_run.iter().for_each(|what| println!("{what}"));
    }
}

#[test]
fn what_is_marked_elsewhere_is_listed_with_a_reason() {
    let mut wanted = ELSEWHERE.to_vec();
    for name in documents() {
        for first in Document::read(&name).elsewhere() {
            let at = wanted.iter().position(|(of, begin, _)| *of == name && first.starts_with(begin));
            let at =
                at.unwrap_or_else(|| panic!("{name}: `{first}` is marked elsewhere and not in ELSEWHERE"));
            println!("{name}: {first}: {}", wanted.remove(at).2);
        }
    }
    assert!(wanted.is_empty(), "no document has {wanted:?}");
}

#[test]
fn a_wrong_sample_is_found() {
    let absent = shell::absent();
    if !absent.is_empty() {
        println!("\n*** DID NOT RUN: there is no {absent:?} ***\n");
        return;
    }
    let wrong: &[(&str, &str)] = &[
        ("curl -s $S/version | jq '.major |'", "\"0\""),
        (
            "curl -s $S/metrics | grep 'pellucid_gangs{stage=\"Running\"}'",
            "pellucid_gangs{stage=\"Running\"} 1",
        ),
        ("curl -s $S/apis/v1/simulate -d '{\"include\": [\"demo/gated\"]}' | jq -c .placements", "[]"),
        ("curl -s $S/apis/v1/explain/pods/demo/nobody | jq -r .summary", "null"),
        ("curl -s $S/version | jq .noSuchKey", "\"1\""),
        ("curl -s $S/version | jq -c '{major}'", "{\"major\":\"0\",\"noSuchKey\":\"\"}"),
        ("curl -s $S/version | jq -c '{major}'", "{\"major\":0}"),
        ("curl -s $S/apis/v1/explain/pods/demo/gated | jq -r .verdict", "\"refused\""),
        ("curl -s $S/apis/v1/explain/pods/demo/gated | jq -r .verdict", "refused"),
        ("curl -s $S/apis/v1/explain/gangs/demo/crew | jq .verdict.code", "\"GangRunning\""),
        ("curl -s $S/apis/v1/nodes/none", "{\"code\":\"PodNotFound\",\"message\":\"there is no node none\"}"),
        ("curl -s $S/nowhere", "{\"status\":\"fine\"}"),
        ("pellucid explain pod demo/gated -o sketch", "demo/gated: gated"),
        ("curl -s $S/apis/v1/summary/pending?by=colour | jq .totalPending", "18"),
    ];
    let mut text = "```sh\nS=http://127.0.0.1:10251\n```\n```console\n".to_owned();
    wrong.iter().for_each(|(command, shown)| text += &format!("$ {command}\n{shown}\n"));
    let report = Document::of(&(text + "```\n")).run(&absent);
    let is_found =
        |line: usize| report.failures.iter().any(|f| f.starts_with(&format!("a document:{line}:")));
    for (index, (command, shown)) in wrong.iter().enumerate() {
        assert!(is_found(5 + 2 * index), "{command} may show {shown}:\n{}", report.failures.join("\n"));
    }
}
