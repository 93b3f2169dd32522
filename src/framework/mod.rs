//! The framework.
pub mod effect;
