//! The sandbox's own annotations that describe what it does not have: what a pod uses, the machine under a node, and its devices.

pub(crate) mod devices;
pub(crate) mod machine;
pub(crate) mod usage;
