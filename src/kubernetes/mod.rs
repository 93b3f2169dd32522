//! To be written.
pub mod decode;
mod decode_node;
mod decode_requests;
mod lenient;
mod slim;
