//! The public API of Pellucid, for other programs to depend on: reason codes, REST bodies, gang keys and custom
//! resources.
//!
//! No I/O, and nothing of the scheduler's internals. Additive: a removed code or field is an API change and is listed
//! in the CHANGELOG. Start at [`reason::REGISTRY`] for why pods are not placed, or at [`rest`] for what the server
//! returns.
//!
//! - [`reason`]: the registry of reason codes and other codes;
//! - [`rest`]: the bodies of the REST API;
//! - [`keys`]: the label and annotation keys that declare gangs;
//! - [`definitions`]: the custom resource definitions as YAML;
//! - `crd` (feature `crd`): the custom resources as types, for programs that create such objects with kube.
#![deny(missing_docs)]

#[cfg(feature = "crd")]
pub mod crd;
pub mod definitions;
pub mod keys;
pub mod reason;
pub mod rest;
