//! Carries out the scheduler's orders as API requests: [`effect_queues`] holds the orders, the writers pull them, and
//! all requests go through [`api_writer`], which shadow mode closes. `writing` has what the writers share.
//!
//! `binder`, `evictor` and `object_writer` report the outcome of each order. `status`, `group_status` and `events`
//! write what people read; `write_right` says until when writes may be sent, `in_flight`
//! how many Bindings at once; `status_memory` and `event_book` decide what need not be written. `pod_readback` resolves
//! writes with an unknown outcome.

pub mod api_writer;
pub(crate) mod binder;
pub mod effect_queues;
mod event_book;
pub(crate) mod events;
pub mod evictor;
mod group_patch;
pub(crate) mod group_status;
pub mod in_flight;
mod newest_queue;
pub mod object_writer;
mod pod_readback;
pub mod status;
mod status_memory;
pub mod write_right;
pub(crate) mod writing;
