//! The sandbox: an API server in the binary, for a machine without a cluster.
//!
//! Real HTTP, real watches, small workload controllers and a pod lifecycle. kubectl and kube-rs work against
//! it unchanged, and the scheduler has no private door. It keeps everything in memory, evaluates no
//! permissions and no CEL, and runs no containers.
//!
//! A request goes `server` → `router` → `api` (`read`, `watch`, `delete`, `pods`) → `store`. What a kind
//! demands is one row in `catalog`, in `storage` for volumes and claims, in `groups` for gangs. `controllers` and
//! `kubelet` are clients of `api` that follow the history of the store, as a watch does.

mod api;
mod clock;
mod controllers;
mod delete;
mod errors;
mod faults;
mod follow;
mod groups;
mod handle;
mod inside;
mod kinds;
mod kubelet;
mod requests;
mod storage;
mod store;
mod watch;

pub use clock::Clock;
pub use faults::{Fault, Faults, Match, Objects, Trouble};
pub use groups::Gangs;
pub use handle::{Config, Handle, Kubelet, Sandbox, StartError};
