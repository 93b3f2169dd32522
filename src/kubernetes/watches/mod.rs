//! What the cluster says, as inputs: list, watch from there, list again when the server has lost the changes.
//!
//! `watch` is the state machine, the same for every kind; `list` and `list_items` read lists object by object;
//! `reader` puts a limit on every wait; [`inputs`] makes inputs of objects, [`status`] says how each watch is doing, and
//! `served` asks which version of a kind there is. Not here: how an object is read (`decode`).

pub mod inputs;
mod list;
mod list_items;
pub(crate) mod reader;
pub(crate) mod served;
pub mod status;
pub(crate) mod watch;
