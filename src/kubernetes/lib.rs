//! The Kubernetes client: watches objects into the scheduler and writes its effects back.
//!
//! Decides nothing: decisions arrive as effects. Reads no wall clock, except in `exec_plugin` for the expiry of tokens:
//! the time comes through [`Clock`].
//!
//! Start with [`ClusterIo`], which starts the watches and writers and stops them in order. Modules in reading order:
//! - In: `watch` lists and watches one kind, with `watch_list` and `list_items` (pages of a list), `reader` (reads
//!   with time limits), `kind` and `served` (where a kind is served). [`decode`] turns JSON into the model.
//!   [`watched`] builds the inputs, [`watch_status`] records the state of each watch, `limits` holds time and size
//!   limits.
//! - Out: the scheduling thread pushes effects into [`effect_queues`] (`newest_queue` for statuses). [`binder`],
//!   [`evictor`], [`volume_writer`], [`status`] (with `status_memory`), `group_status` (with `group_patch`) and
//!   [`events`] (with `event_book`) pull them. All writes go through [`api_writer`]; `pod_readback` resolves unknown
//!   outcomes.
//! - Connection: [`client`] connects, with `kubeconfig`, `exec_plugin` and `transport`. [`server_probe`] detects when
//!   the API server comes back.

mod cluster_io;
pub mod connection;
pub mod decode;
pub mod watches;
pub mod writes;

use std::sync::Arc;

pub use cluster_io::{ClusterIo, ClusterIoConfig, Drained, stop_requested};
pub use connection::client::{ConnectError, Connection};
pub use connection::limits::WatchLimits;
pub use connection::transport::Pools;

use pellucid_model::Now;

/// Returns the current time. Only `app::clock` makes one that reads the machine's clock.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// Returns the wall time as the timestamp type of API objects.
fn timestamp(now: Now) -> jiff::Timestamp {
    let seconds = i64::try_from(now.wall.as_secs()).unwrap_or(i64::MAX);
    let nanos = i32::try_from(now.wall.subsec_nanos()).unwrap_or(0);
    jiff::Timestamp::new(seconds, nanos).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
