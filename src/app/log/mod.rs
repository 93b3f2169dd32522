//! The log: [`telemetry`] sets it up and changes its level at run time; `fields` formats fields and escapes their
//! values; `attempts` logs what the scheduling thread did.

pub(crate) mod attempts;
mod fields;
pub mod telemetry;
