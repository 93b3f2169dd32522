//! The sandbox: an in-memory Kubernetes API server, for a machine without a cluster.
//!
//! It speaks real HTTP and has real watches, small workload controllers and a pod lifecycle. kubectl and kube-rs work
//! against it unchanged. It evaluates no permissions and no CEL, and runs no containers. *Invariant:* it knows nothing
//! of the scheduler, which uses it over HTTP like any other client.
//!
//! Start with [`Sandbox::start`]. A request goes through `server`, `router`, `api` and `store`. The modules, in reading
//! order:
//!
//! - `handle`, `inside`: start and stop a sandbox; read and change objects without HTTP.
//! - `server`, `connection`, `router`, `options`, `body`: from a TCP connection to a parsed request.
//! - `api`, `read`, `watch`, `delete`, `pods`, `scale`, `patch`: the operations on objects.
//! - `store`, `paging`: objects, revisions and history; continue tokens.
//! - `kinds`, `catalog`, `storage`, `groups`, `crd`: the served kinds, one row per built-in kind.
//! - `defaults`, `decode`, `validate`, `placement`, `pod_diff`, `ports`, `schema`, `meta`, `selectors`, `events`: the
//!   rules that rows name.
//! - `render`, `table`, `printers`, `discovery`, `openapi`, `errors`: responses.
//! - `follow`, `controllers`, `kubelet`: clients of `api` that follow the store's history, as a watch does.
//! - `clock`, `faults`: time and misbehaviour under a test's control.

mod api;
mod body;
mod catalog;
mod clock;
mod connection;
mod controllers;
mod crd;
mod decode;
mod defaults;
mod delete;
mod discovery;
mod errors;
mod events;
mod faults;
mod follow;
mod groups;
mod handle;
mod inside;
mod kinds;
mod kubelet;
mod meta;
mod openapi;
mod options;
mod paging;
mod patch;
mod placement;
mod pod_diff;
mod pods;
mod ports;
mod printers;
mod read;
mod render;
mod router;
mod scale;
mod schema;
mod selectors;
mod server;
mod storage;
mod store;
mod table;
mod validate;
mod watch;

pub use clock::Clock;
pub use faults::{Fault, Faults, Match, Objects, Trouble};
pub use groups::Gangs;
pub use handle::{Config, Handle, Kubelet, Sandbox, StartError};
