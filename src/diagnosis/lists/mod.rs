//! Lists of what waits and of where it could go, one line per pod or node.
//!
//! A list says what its items are filtered and sorted by, and makes the lines of one page. The details of one item are
//! in its explanation.

pub(crate) mod nodes;
pub(crate) mod pods;
