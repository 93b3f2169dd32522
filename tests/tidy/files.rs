//! Rules for the form of files, and for what no file may contain.

use std::fs;

use pellucid_api::reason::REGISTRY;

use super::source::{Source, files_below, root, sources};

/// Number of lines above which a file must be split.
const LONGEST: usize = 500;
/// Largest number of lines of `main.rs`, which only sets up the process.
const LONGEST_MAIN: usize = 60;

/// Folders of everything in the repository that is written by hand.
const FOLDERS: &[&str] =
    &["src", "api", "tests", "examples", "benches", "docs", "deploy", "dashboards", ".ci"];

fn rust() -> Vec<Source> {
    sources(&["src", "api/src", "tests", "examples", "benches"])
}

fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

/// Returns `file:line` of every line of the sources' code in which one of some words occurs.
fn lines_with(words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for source in rust() {
        for (number, line) in source.code.lines().enumerate() {
            if let Some(word) = words.iter().find(|w| line.contains(**w)) {
                found.push(format!("{}:{}: `{word}`", source.path, number + 1));
            }
        }
    }
    found
}

#[test]
fn every_file_says_what_it_is() {
    let untitled = rust().into_iter().filter(|s| !s.is_test_file() || s.path.starts_with("tests/"));
    let untitled = untitled.filter(|s| !s.text.starts_with("//!"));
    assert_none(
        &untitled.map(|s| format!("{}:1: begins with `//!` and what it is", s.path)).collect::<Vec<_>>(),
    );
}

#[test]
fn no_test_is_ignored_or_expects_a_panic() {
    assert_none(&lines_with(&["#[ignore", "should_panic"]));
}

#[test]
fn nothing_is_left_to_be_done_at_run_time() {
    assert_none(&lines_with(&["todo!", "unimplemented!", "dbg!"]));
}

#[test]
fn no_file_is_too_long() {
    let mut complaints = Vec::new();
    for source in rust() {
        let lines = source.text.lines().count();
        if lines > LONGEST {
            complaints.push(format!("{}:{lines}: over {LONGEST} lines", source.path));
        }
    }
    assert_none(&complaints);
    let main = fs::read_to_string(root().join("src/main.rs")).unwrap().lines().count();
    assert!(main < LONGEST_MAIN, "src/main.rs:{main}: under {LONGEST_MAIN} lines");
}

#[test]
fn the_maps_of_std_are_named_in_one_place() {
    let mut complaints = Vec::new();
    for source in rust().iter().filter(|s| s.path != "src/model/data/collections.rs") {
        for import in super::imports::imports(source) {
            if import.path.starts_with("std::collections::Hash")
                || import.path.starts_with("std::collections::hash")
            {
                complaints.push(format!("{}:{}: use model::collections", source.path, import.line));
            }
        }
    }
    assert_none(&complaints);
}

#[test]
fn no_file_names_a_folder_of_somebodys_machine() {
    // Put together here, so that this file does not contain one.
    let folders = ["home", "root", "work", "Users"].map(|folder| format!("/{folder}/"));
    let top = fs::read_dir(root()).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file());
    let top = top.map(|p| p.file_name().unwrap().to_str().unwrap().to_owned()).filter(|p| p != ".git");
    let mut complaints = Vec::new();
    for path in top.chain(files_below(FOLDERS)) {
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            let begins =
                |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || ".-_$}~".contains(c));
            if let Some(folder) =
                folders.iter().find(|f| line.match_indices(f.as_str()).any(|(at, _)| begins(at)))
            {
                complaints.push(format!("{path}:{}: `{folder}`", number + 1));
            }
        }
    }
    assert_none(&complaints);
}

#[test]
fn every_reason_is_given_in_some_test() {
    let mut tested = String::new();
    for source in rust().iter().filter(|s| !s.path.starts_with("tests/tidy/")) {
        let lines = source.text.lines().zip(&source.is_test).filter(|(_, is_test)| **is_test);
        lines.for_each(|(line, _)| tested.extend([line, "\n"]));
    }
    let is_given = |code: &str, message: &str| {
        let fixed = message.split("{}").max_by_key(|part| part.len()).unwrap_or_default();
        let fixed = fixed.split('[').next().unwrap_or_default().trim();
        tested.contains(&format!("ReasonCode::{code}"))
            || tested.contains(&format!("\"{code}\""))
            || (fixed.len() > 8 && tested.contains(fixed))
    };
    let plugins = pellucid::plugins::registry();
    let of_plugins = plugins.iter().flat_map(|factory| factory.reasons()).map(|r| (r.code, r.message));
    let all = REGISTRY.iter().map(|e| (e.code.as_str(), e.message)).chain(of_plugins);
    let missing = all.filter(|reason| !is_given(reason.0, reason.1));
    assert_none(&missing.map(|(code, _)| format!("reason {code}: no test has it")).collect::<Vec<_>>());
}

/// Documents name the test that proves a claim as `path::name`.
#[test]
fn tests_that_documents_name_exist() {
    let documents = files_below(&["docs"]).into_iter().filter(|p| p.ends_with(".md"));
    let mut complaints = Vec::new();
    let mut n = 0;
    for path in documents.chain(["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"].map(str::to_owned)) {
        let text = fs::read_to_string(root().join(&path)).unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            for (file, name) in line.split('`').filter_map(|part| part.split_once(".rs::")) {
                n += 1;
                let source = fs::read_to_string(root().join(format!("{file}.rs"))).unwrap_or_default();
                if !source.contains(&format!("fn {name}(")) {
                    complaints.push(format!("{path}:{}: there is no {file}.rs::{name}", number + 1));
                }
            }
        }
    }
    assert_none(&complaints);
    assert!(n >= 8, "only {n} tests are named");
}
