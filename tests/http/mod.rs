//! The REST server over a real socket, serving an example snapshot.
#![allow(clippy::unwrap_used, reason = "helpers of tests, outside their functions")]

mod build;
mod load;
mod reads;
mod site;
mod standard;
