//! What other programs may depend on.
pub mod rest;
