//! To be written.
pub mod client;
pub mod decode;
mod decode_node;
mod decode_requests;
pub mod door;
pub mod lanes;
mod lenient;
mod slim;
