//! Kubernetes objects as the scheduler sees them, and the values that they are made of. `lib.rs` re-exports every module.

pub mod custom;
pub mod duration;
pub mod gang;
pub mod group_status;
pub mod naming;
pub mod node;
pub mod object;
pub mod pod;
pub mod priority_class;
pub mod quantity;
pub mod relations;
pub mod requests;
pub mod selector;
mod selector_text;
pub mod storage;
pub mod taint;
