//! The I/O rooms against a scripted API server: watches, outages, credentials, binder, evictor, objects, statuses, PodGroups,
//! events, shadow mode, shutdown.
//!
//! The server is an axum router in this process, so time can be virtual: a pause costs nothing, and a request that
//! never responds times out at once.

mod mock;

mod connect;
mod credentials;
mod evicting;
mod group_writing;
mod groups;
mod leading;
mod object_writing;
mod outages;
mod rights;
mod streaming;
mod watching;
mod writing;
