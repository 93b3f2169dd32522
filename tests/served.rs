//! What a running scheduler serves, over HTTP and on the command line.
//!
//! One binary, because most of these tests wait for other processes, so that others run meanwhile. Each module says what it
//! is about.

mod common;

mod app;
mod examples;
mod gang_e2e;
mod history;
mod http;
mod kubectl;
mod sandbox;
mod schemathesis;
mod security;
mod webhook;
mod wire;
