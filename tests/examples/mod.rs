//! The examples of `docs/writing-a-plugin.md`: schedulers with a plugin from outside this crate, each as a separate process
//! against a sandbox.
//!
//! `cargo test` builds examples with the tests, so their binaries are next to this one.
//!
//! - `favourite_node`: a plugin that filters, scores and can be read
//! - `licence_seats`: a plugin with a kind, holds, writes, time and reasons; killed and started again

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod favourite_node;
mod licence_seats;

use std::path::PathBuf;

fn binary(example: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().unwrap().parent().unwrap();
    let binary = built.join("examples").join(format!("{example}{}", std::env::consts::EXE_SUFFIX));
    assert!(binary.exists(), "{} is missing: `cargo build --example {example}`", binary.display());
    binary
}
