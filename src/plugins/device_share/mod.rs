//! x
#![allow(dead_code)]
mod allocate;
mod allocation;
mod amounts;
pub(crate) mod device;
mod hints;
mod partition;
mod request;
mod row;
mod scope;
mod score;
