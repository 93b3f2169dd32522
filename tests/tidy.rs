//! Reads the sources and holds the house to its rules: which room may import what, and how files look.
//!
//! Text only, no compiler: comments and strings are blanked, `use` trees are expanded, and paths written in
//! full are found too. Code under `#[cfg(test)]` is free to import what it needs. What clippy can say is left
//! to clippy (see clippy.toml).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "tidy/codes.rs"]
mod codes;
#[path = "tidy/files.rs"]
mod files;
#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/source.rs"]
mod source;
