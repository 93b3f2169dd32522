//! The log: [`telemetry`] sets it up and switches it at run time, `fields` escapes what others wrote.

mod fields;
pub mod telemetry;
