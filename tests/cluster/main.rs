//! One end-to-end suite against a cluster: with `KUBECONFIG` set against that one, else against a sandbox. The cases see a
//! client of an API server and schedulers, and do not know which it is.
//!
//! An API server and its store are enough: what a kubelet or a controller would do to the suite's objects and has not done,
//! the suite does. It brings nodes, a namespace, rights and the definitions that are missing, and takes all of it away.
//! On a cluster with pods or nodes of others it refuses to run unless `PELLUCID_CLUSTER_SHARED=1`.

#![expect(clippy::print_stdout, reason = "what was not tried must be seen")]

#[path = "../common/mod.rs"]
mod common;

mod cases;
mod schedulers;
mod suite;

use crate::suite::Suite;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_passes_and_leaves_nothing_behind() {
    let suite = Suite::open().await;
    // A case that fails must not leave anything behind either.
    let tried = suite.clone();
    let outcome = tokio::spawn(async move {
        tried.set_up().await;
        cases::run(&tried).await;
    });
    let outcome = outcome.await;
    suite.take_down().await;
    if let Err(failed) = outcome {
        std::panic::resume_unwind(failed.into_panic());
    }
}
