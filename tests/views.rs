//! Reads evaluated anew on a published snapshot: queue positions, the pending summary, the node's side, one node
//! against another, refreshed verdicts. On random clusters without I/O, and over HTTP on a sandbox.

#[allow(dead_code, reason = "this test needs a part of it")]
#[path = "common/client.rs"]
mod client;
#[path = "common/cluster.rs"]
mod cluster;
#[path = "common/driver.rs"]
mod driver;
#[allow(dead_code, reason = "this test needs a part of it")]
#[path = "core/made.rs"]
mod made;
#[path = "common/running.rs"]
mod running;

#[path = "views/ask.rs"]
mod ask;
#[path = "views/contrast.rs"]
mod contrast;
#[path = "views/nearest.rs"]
mod nearest;
#[path = "views/node_side.rs"]
mod node_side;
#[path = "views/over_http.rs"]
mod over_http;
#[path = "views/provenance.rs"]
mod provenance;
#[path = "views/simulating.rs"]
mod simulating;
#[path = "views/suggesting.rs"]
mod suggesting;
#[path = "views/waiting.rs"]
mod waiting;
#[path = "views/worlds.rs"]
mod worlds;
