//! What users read is true: explanations of refused pods, queue positions, the pending summary, the node's side, one
//! node against another, suggestions, simulations. On random clusters without I/O, and over HTTP on a sandbox.
//!
//! Every answer comes from the registered reads on a published snapshot. `claims` checks explanations against a
//! separate scheduler that is given the changed objects. `settled` makes the changes with edits of its own, so that no
//! claim is checked with the code that made it.

mod asking_less;
mod claims;
mod company;
mod contrast;
mod evictions;
mod fixing;
mod lists;
mod nearest;
mod node_side;
mod one_verdict;
mod over_http;
mod provenance;
mod settled;
mod simulating;
mod standing;
mod stories;
mod suggesting;
mod terms;
mod timing;
mod unasked;
mod under_way;
mod waiting;
