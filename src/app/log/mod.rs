//! The log: [`telemetry`] sets it up and changes its level at run time; `fields` formats fields and escapes their
//! values.

mod fields;
pub mod telemetry;
