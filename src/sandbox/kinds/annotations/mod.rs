//! The sandbox's own annotations that describe what it does not have: what a pod uses, and the machine under a node.

pub(crate) mod machine;
pub(crate) mod usage;
