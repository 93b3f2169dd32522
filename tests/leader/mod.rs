//! Leader election with real replicas: two schedulers in one process, each on a runtime of its own, against one sandbox.
//!
//! A replica is stopped as by SIGTERM, killed as by a crash (its runtime is dropped with everything on it), or cut off from
//! the API server. The sandbox's log of writes says who wrote when; `log_checks` holds it against who held the Lease.
//! The election itself is tried on clocks moved by hand in `src/kubernetes/lease/election_tests.rs`.
//!
//! `PELLUCID_HAND_OVERS` is the number of hand-overs, 20 when absent.

#![expect(clippy::print_stdout, reason = "how long a hand-over takes is worth a look")]

mod chaos;
mod gang_log;
mod hand_overs;
mod load;
mod log_checks;
mod replicas;
mod standby;
