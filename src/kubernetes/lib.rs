//! The edge that talks to a cluster: watches in, writes out.
//!
//! In: `watch` decodes objects (`decode`) and sends them to the scheduling thread. Out: the
//! scheduling thread puts effects into [`queues`], from which the binder, the evictor and the writers of volumes,
//! statuses (of pods, of PodGroups) and events pull; all of them write through one [`writer`]. [`ClusterIo`] starts all this and stops it in order.
//!
//! Not here: decisions, and the clock, which comes in as an argument.

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

/// Tells the time. Only `app::clock` makes one that reads the machine's.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// Returns the wall time in the type that API objects use.
fn timestamp(now: Now) -> jiff::Timestamp {
    let seconds = i64::try_from(now.wall.as_secs()).unwrap_or(i64::MAX);
    let nanos = i32::try_from(now.wall.subsec_nanos()).unwrap_or(0);
    jiff::Timestamp::new(seconds, nanos).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
