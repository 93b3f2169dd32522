//! Serving securely, over real TLS on loopback: who may ask, what they see, what is logged.
//!
//! `authority` makes certificates, users and a scheduler in a sandbox; `caller` asks over TLS; `two_tenants` makes a cluster of two.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test that waits for something gives up some time")]

mod access;
mod authority;
#[path = "../page/browser.rs"]
#[allow(dead_code, reason = "the tests of the page use all of it")]
mod browser;
mod caller;
mod commands;
mod page;
mod tenants;
mod two_tenants;
