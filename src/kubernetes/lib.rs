//! The edge that talks to a cluster: watches in, writes out.
//!
//! In: `watch` decodes objects (`decode`) and sends them to the scheduling thread. Out: the
//! scheduling thread puts effects into [`queues`], from which the binder, the evictor and the writers of volumes,
//! statuses (of pods, of PodGroups) and events pull; all of them write through one [`writer`]. [`ClusterIo`] starts all this and stops it in order.
//!
//! Not here: decisions, and the clock, which comes in as an argument.

pub mod api_writer;
pub mod binder;
pub mod client;
mod cluster_io;
pub mod decode;
pub mod effect_queues;
mod event_book;
pub mod events;
pub mod evictor;
mod exec_plugin;
mod group_patch;
mod group_status;
mod kind;
mod kubeconfig;
mod limits;
mod list_items;
mod newest_queue;
mod pod_readback;
mod reader;
mod served;
pub mod server_probe;
pub mod status;
mod status_memory;
mod transport;
pub mod volume_writer;
mod watch;
mod watch_list;
pub mod watch_status;
pub mod watched;

use std::sync::Arc;

pub use client::{ConnectError, Connection};
pub use cluster_io::{ClusterIo, ClusterIoConfig, Drained, stop_requested};
pub use limits::WatchLimits;
pub use transport::Pools;

use pellucid_model::Now;

/// Tells the time. Only `app::clock` makes one that reads the machine's.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// Returns the wall time in the type that API objects use.
fn timestamp(now: Now) -> jiff::Timestamp {
    let seconds = i64::try_from(now.wall.as_secs()).unwrap_or(i64::MAX);
    let nanos = i32::try_from(now.wall.subsec_nanos()).unwrap_or(0);
    jiff::Timestamp::new(seconds, nanos).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
