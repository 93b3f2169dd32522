//! What several test binaries share: clients, processes, clusters and schedulers, each by concept.
//!
//! - `client`: HTTP over a socket; `process`: the binary as a child, and programs beside it; `demo`: `pellucid demo`
//! - `running`: a sandbox and a scheduler in this process, with a watch of its pods
//! - `driver`: a scheduler without I/O on a simulated clock; `made`: nodes and pods for it; `ordered`: its orders by
//!   kind; `storage`: classes, volumes and claims; `herald`: a plugin that writes; `reads`: what users read of it
//! - `dialects`: one gang in each dialect
//! - `cluster`: random clusters; `seen`: everything visible of one; `dumps`: schedulers rebuilt from dumps
//! - `cases`: recorded cases of real schedulers
//! - `rng`: random numbers from a seed; `certificates`: an authority that signs them
//! - `openapi`: whether a body is as the document says
#![allow(dead_code, unreachable_pub, reason = "every test binary includes all of it and uses a part")]
#![allow(clippy::disallowed_methods, reason = "a test that waits for something gives up some time")]

pub mod cases;
pub mod certificates;
pub mod client;
pub mod cluster;
pub mod demo;
pub mod dialects;
pub mod driver;
pub mod dumps;
pub mod herald;
pub mod made;
pub mod openapi;
pub mod ordered;
pub mod process;
pub mod reads;
pub mod rng;
pub mod running;
pub mod seen;
pub mod storage;

use std::time::{Duration, Instant};

/// How long a test waits for an expected condition.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How long a test that polls leaves the cores to the others between two looks.
pub const LOOK_EVERY: Duration = Duration::from_millis(3);

/// Writes the kubeconfig of the examples for an API server.
pub fn kubeconfig(server: &str) -> tempfile::NamedTempFile {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sandbox.kubeconfig");
    let text = std::fs::read_to_string(example).expect("the example");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text.replace("http://127.0.0.1:8001", server)).expect("written");
    file
}

/// Waits until a condition holds, by polling.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}: did not come about");
        std::thread::sleep(LOOK_EVERY);
    }
}
