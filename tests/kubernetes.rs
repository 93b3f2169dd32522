//! The I/O rooms against a scripted API server: watches, outages, binder, evictor, volumes, statuses, PodGroups,
//! events, shadow mode, shutdown.
//!
//! The server is an axum router in this process, so time can be virtual: a pause costs nothing, and a request that
//! never responds times out at once.

#[path = "kubernetes/mock.rs"]
mod mock;

#[path = "kubernetes/connect.rs"]
mod connect;
#[path = "kubernetes/evicting.rs"]
mod evicting;
#[path = "kubernetes/group_writing.rs"]
mod group_writing;
#[path = "kubernetes/groups.rs"]
mod groups;
#[path = "kubernetes/outages.rs"]
mod outages;
#[path = "kubernetes/rights.rs"]
mod rights;
#[path = "kubernetes/volume_writing.rs"]
mod volume_writing;
#[path = "kubernetes/watching.rs"]
mod watching;
#[path = "kubernetes/writing.rs"]
mod writing;
