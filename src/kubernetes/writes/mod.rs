//! What the scheduler orders, as requests: [`effect_queues`] holds the orders, one writer per queue pulls them, and all
//! requests pass [`api_writer`], which shadow mode closes. `writing` is what the writers have in common.
//!
//! `binder`, `evictor`, `object_writer` report what came of an order; `status`, `group_status` and `events` write what people
//! read, and `status_memory` and `event_book` say what need not be written. `pod_readback` resolves a write whose outcome is
//! not known.

pub mod api_writer;
pub(crate) mod binder;
pub mod effect_queues;
mod event_book;
pub(crate) mod events;
pub mod evictor;
mod group_patch;
pub(crate) mod group_status;
mod newest_queue;
pub mod object_writer;
mod pod_readback;
pub mod status;
mod status_memory;
pub(crate) mod writing;
