//! Volumes end to end: pods wait for their claims, claims are bound where pods can run, and failures are retried.

#[allow(dead_code, reason = "this test needs a part of it")]
#[path = "common/client.rs"]
mod client;
#[path = "volume_binding/failing.rs"]
mod failing;
#[path = "volume_binding/local.rs"]
mod local;
#[path = "volume_binding/made.rs"]
mod made;
#[path = "volume_binding/provisioned.rs"]
mod provisioned;
#[path = "common/running.rs"]
mod running;
#[path = "volume_binding/waiting.rs"]
mod waiting;
