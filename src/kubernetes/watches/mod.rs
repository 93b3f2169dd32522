//! Lists and watches every kind, and sends the objects as inputs: one list, a watch from its version, and another list
//! when the server no longer has the changes.
//!
//! `watch` is the state machine, the same for every kind; `initial_list` gets all objects, as a stream or in pages; `list`
//! and `list_items` read pages object by object; `reader` limits every wait; [`inputs`] starts the watches and turns objects
//! into inputs; [`status`] tracks each watch; `catch_up` makes sure that a watch has passed what was written before a
//! moment; `served` discovers which version of a kind is served; [`lister`] lists beside the watches; [`observer`] watches a few
//! kinds for a process that only reads. `decode` reads the
//! objects.

mod catch_up;
mod initial_list;
pub mod inputs;
mod list;
mod list_items;
pub mod lister;
pub mod observer;
pub(crate) mod reader;
pub(crate) mod served;
pub mod status;
pub(crate) mod watch;
