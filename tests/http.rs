//! The REST server over a real socket, serving an example snapshot.
#![allow(clippy::unwrap_used, reason = "helpers of tests, outside their functions")]

#[path = "http/build.rs"]
mod build;
#[path = "common/client.rs"]
mod client;
#[path = "http/load.rs"]
mod load;
#[path = "common/openapi.rs"]
mod openapi;
#[path = "http/reads.rs"]
mod reads;
#[path = "http/site.rs"]
mod site;
#[path = "http/standard.rs"]
mod standard;
