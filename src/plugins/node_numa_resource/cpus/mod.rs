//! CPUs as bits: sets of them, how they lie on a machine, and which of them a pod gets. Knows neither pods nor nodes.

pub mod accumulator;
#[cfg(test)]
mod accumulator_tests;
pub mod set;
pub mod topology;
