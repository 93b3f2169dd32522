//! Checks the sources against the rules of the project: which room may import what, and how files look.
//!
//! The checks read text, without a compiler: comments and strings are blanked, `use` trees are expanded, and paths
//! written in full are found too. Code under `#[cfg(test)]` may import what it needs. What clippy can check is left
//! to clippy (see clippy.toml).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod codes;
mod commit;
mod files;
mod guide;
mod imports;
mod rooms;
mod source;
