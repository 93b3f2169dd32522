//! The Kubernetes client: watches objects into the scheduler and writes its effects back.
//!
//! Decides nothing: decisions arrive as effects. Reads no wall clock, except in `exec_plugin` for the expiry of tokens:
//! the time comes through [`Clock`].
//!
//! Start with [`ClusterIo`], which starts the watches and writers and stops them in order. Modules in reading order:
//! - [`connection`]: finds and reads the kubeconfig, connects, limits every wait, and detects when the server comes back.
//! - [`kinds`]: the registry of what is watched, one file per kind; [`decode`] has what all kinds share when JSON is
//!   turned into the model.
//! - [`rights`]: what all this must be allowed.
//! - [`watches`]: lists and watches each kind and builds the inputs.
//! - [`lease`]: which of several instances writes.
//! - [`writes`]: the effect queues, the writers that pull them, and the API writer through which all of them write.
//! - [`reviews`]: asks who the users of the REST API are and what they may.

mod cluster_io;
pub mod connection;
pub mod decode;
pub mod kinds;
pub mod lease;
pub mod reviews;
pub mod rights;
pub mod watches;
pub mod writes;

use std::sync::Arc;

pub use cluster_io::{ClusterIo, ClusterIoConfig, Drained, stop_requested};
pub use connection::client::{ConnectError, Connection};
pub use connection::kubeconfig::is_in_cluster;
pub use connection::limits::WatchLimits;
pub use connection::service_proxy::ServiceProxy;
pub use connection::transport::Pools;
pub use watches::observer::Observer;

use pellucid_model::Now;

/// Returns the current time. Only `app::clock` makes one that reads the machine's clock.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// Returns the wall time as the timestamp type of API objects.
fn timestamp(now: Now) -> jiff::Timestamp {
    let seconds = i64::try_from(now.wall.as_secs()).unwrap_or(i64::MAX);
    let nanos = i32::try_from(now.wall.subsec_nanos()).unwrap_or(0);
    jiff::Timestamp::new(seconds, nanos).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
