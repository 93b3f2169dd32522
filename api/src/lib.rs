//! What other programs may depend on: reason codes, REST bodies, keys and custom resources.
//!
//! No I/O. Additive: a removed code or field is an API change and stands in the CHANGELOG.
#![deny(missing_docs)]

pub mod keys;
pub mod reason;
pub mod rest;
