//! Data structures: interned names and their order, maps and vectors whose pages are shared with readers, numbers of slots,
//! a stable hash, typos. `lib.rs` re-exports every module.

pub mod collections;
pub mod cow_index;
pub mod cow_map;
mod mirror;
pub mod name;
mod natural_order;
pub mod pages;
pub mod similar;
mod slots;
pub mod stable_hash;

pub use mirror::Mirror;
pub use natural_order::natural_order;
pub use slots::Slots;
