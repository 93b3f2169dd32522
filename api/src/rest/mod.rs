//! REST bodies.
pub mod plugins;
mod schema;
pub use schema::BodySchema;
