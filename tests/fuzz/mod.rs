//! Fuzz targets: whatever text or object comes in, each reader gives a value or an error, and never panics or hangs.
//!
//! - `mutate`: makes inputs from good ones, the same ones at every run
//! - `texts`: quantities, selectors, requests to switches
//! - `objects`: objects of the API server, and a scheduler that is fed with them
//! - `files`: configuration, traces, dumps
//!
//! Each target gets the same fixed number of inputs, or as many as `PELLUCID_FUZZ_INPUTS` says. Not here: requests to the
//! REST API (`tests/schemathesis/mod.rs`) and faults of the API server (`tests/chaos/mod.rs`).

#![expect(
    clippy::print_stdout,
    reason = "how many inputs were good tells whether the target reached anything"
)]

mod files;
mod mutate;
mod objects;
mod texts;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Number of inputs per target.
const INPUTS: usize = 5_000;

fn inputs() -> usize {
    match std::env::var("PELLUCID_FUZZ_INPUTS") {
        Ok(text) => text.parse().expect("PELLUCID_FUZZ_INPUTS is a number"),
        Err(_) => INPUTS,
    }
}

/// Gives a target its inputs. The target returns whether it took the input. An input at which it panics is printed. Some
/// inputs must be taken and some refused, else the target has missed its code.
fn fuzz<T: std::fmt::Debug>(name: &str, make: impl Fn(u64) -> T, target: impl Fn(&T) -> bool) {
    let (mut taken, all) = (0, inputs());
    for seed in 0..all as u64 {
        let input = make(seed);
        match catch_unwind(AssertUnwindSafe(|| target(&input))) {
            Ok(is_taken) => taken += usize::from(is_taken),
            Err(_) => panic!("{name}, input {seed}: it panics at\n{input:#?}"),
        }
    }
    println!("{name}: {all} inputs, {taken} taken");
    assert!(taken > 0, "{name}: no input was taken");
    assert!(taken < all, "{name}: every input was taken");
}
