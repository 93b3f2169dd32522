//! The edge against a scripted API server: watches, binder, conditions, events, shadow mode, shutdown.
//!
//! The server is an axum router inside the process, so time can stand still: a pause costs nothing, and a
//! request that never answers times out at once.

#[path = "kubernetes/mock.rs"]
mod mock;

#[path = "kubernetes/connect.rs"]
mod connect;
#[path = "kubernetes/rights.rs"]
mod rights;
#[path = "kubernetes/watching.rs"]
mod watching;
#[path = "kubernetes/writing.rs"]
mod writing;
