//! What other programs may depend on: reason codes, REST bodies, keys and custom resources.
//!
//! No I/O. Additive: a removed code or field is an API change and stands in the CHANGELOG. Feature `crd` has the custom
//! resources as types, for programs that make such objects with kube; the definitions are there without it.
#![deny(missing_docs)]

#[cfg(feature = "crd")]
pub mod crd;
pub mod definitions;
pub mod keys;
pub mod reason;
pub mod rest;
