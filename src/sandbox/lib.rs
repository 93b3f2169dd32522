//! The sandbox: an in-memory Kubernetes API server, for a machine without a cluster.
//!
//! It speaks real HTTP and has real watches, small workload controllers and a pod lifecycle. kubectl and kube-rs work
//! against it unchanged. It evaluates no permissions and no CEL, and runs no containers. *Invariant:* it knows nothing
//! of the scheduler, which uses it over HTTP like any other client.
//!
//! Start with [`Sandbox::start`]. A request goes through `requests`, `api` and `store`. The modules, in reading order:
//!
//! - `handle`, `inside`: start and stop a sandbox; read and change objects without HTTP.
//! - `requests`: from a TCP connection to an operation, and from its result to a response.
//! - `api`, `delete`, `watch`: the operations on objects.
//! - `store`, `follow`: objects, revisions and history, and how it is followed from inside.
//! - `kinds`: the served kinds, one row per built-in kind, and the rules that rows name; `options`, `selectors`.
//! - `webhooks`: asks admission webhooks about writes.
//! - `controllers`, `kubelet`, `koordlet`: clients of `api` that follow the store's history, as a watch does.
//! - `clock`, `faults`, `errors`: time and misbehaviour under a test's control; refusals.
//! - `write_log`: which client wrote what, for tests of several schedulers.
//! - `users`: users that TokenReview and SubjectAccessReview know.
//! - `fields`: access to fields of JSON objects.

mod api;
mod clock;
mod controllers;
mod delete;
mod errors;
mod faults;
mod fields;
mod follow;
mod handle;
mod inside;
mod kinds;
mod koordlet;
mod kubelet;
mod options;
mod requests;
mod selectors;
mod store;
mod users;
mod watch;
mod webhooks;
mod write_log;

pub use clock::Clock;
pub use faults::{Fault, Faults, Match, Objects, Trouble};
pub use handle::{Config, Handle, Kubelet, Sandbox, StartError};
pub use kinds::groups::{Gangs, definition};
pub use users::{Right, User};
pub use write_log::LoggedWrite;
