//! Decisions of the real Koordinator, with its state and scores: ours must agree.
//!
//! `PELLUCID_KOORDINATOR_ORACLE_DIR` names a directory with other case files of the same format.

#[path = "../common/mod.rs"]
mod common;
mod loadaware;
mod loadaware_model;

use std::path::PathBuf;

use serde_json::Value;

/// Returns whether the cases are those of this repository.
fn own_copy() -> bool {
    std::env::var_os("PELLUCID_KOORDINATOR_ORACLE_DIR").is_none()
}

/// Reads a file of cases.
fn lines(name: &str) -> Vec<Value> {
    let dir = std::env::var_os("PELLUCID_KOORDINATOR_ORACLE_DIR").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/koordinator")),
        PathBuf::from,
    );
    let file = dir.join(name);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let cases: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("a case is JSON")).collect();
    assert!(!cases.is_empty(), "{} holds no case", file.display());
    cases
}
