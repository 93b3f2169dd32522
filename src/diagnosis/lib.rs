//! Renders what people read: verdicts in words, explanations, score tables, histories, dumps.
//!
//! PURE. The scheduler stores numbers and cause ids; this crate turns them into text on request, from a published
//! snapshot. It changes no state and knows no HTTP: `http/` serves the reads.
//!
//! Start with [`reads::reads`], which lists every read as data. Modules in reading order:
//! - `meta`: the `meta` part of every body
//! - `explain`: why a pod is where it is, or why it is pending
//! - `known`: what readers of a snapshot share; `population`: its pods, counted; `owner`: who makes a pod; `facts`: what lists of pods go by
//! - `advice`: what plugins say of one pod
//! - `requirements`: what every node fails of a pod's requirements, and the nearest nodes
//! - [`verdict`]: what keeps a pending pod pending, and whether it can fit
//! - `not_pending`: where a pod is, how it ended or whose it is, when it is not pending
//! - [`views`]: parts of a snapshot as bodies (nodes, queue, preemption, wake-ups, scores)
//! - [`consistency`]: the state compared with a list of the API server
//! - `lists`: pending pods and nodes, one per line
//! - [`gangs`]: gangs as bodies: status, explanation, what blocks them
//! - [`history`]: pod histories, the feed, and the hashes of decisions
//! - [`what_if`]: questions that are answered on a copy of the snapshot
//! - [`tenants`]: which names in a text belong to namespaces that a viewer does not see
//! - [`dump`]: a snapshot as a document, and a scheduler rebuilt from one

mod advice;
mod called;
pub mod consistency;
pub mod dump;
mod explain;
mod facts;
pub mod gangs;
pub mod history;
mod known;
mod lists;
mod meta;
mod not_pending;
mod owner;
mod population;
pub mod reads;
mod remedies;
mod requirements;
pub mod tenants;
pub mod verdict;
pub mod views;
pub mod what_if;

pub use explain::summary;
