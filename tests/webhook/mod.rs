//! Admission webhooks end to end over HTTPS: how the sandbox calls them, and what `pellucid webhook` answers.
//!
//! `fixture` makes certificates, a cluster and what is registered in it; `fake` is a webhook that answers as a test wants.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test that waits for something gives up some time")]

mod calls;
mod failures;
mod fake;
mod fixture;
mod policy;
mod quotas;
