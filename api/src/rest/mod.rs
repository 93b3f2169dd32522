//! The bodies of the REST API: plain data that serialises to JSON and describes itself as a schema.
//!
//! No I/O and no rendering: a type says what a body holds, the rooms that own the facts fill it in, and the HTTP server
//! serves it. Field names are camelCase and, where they exist, those of Kubernetes or Koordinator.

pub mod consistency;
pub mod contrast;
pub mod debug;
pub mod device_share;
pub mod elastic_quota;
mod error;
pub mod evictions;
pub mod explain;
pub mod gang_explain;
pub mod gangs;
pub mod history;
pub mod load_aware;
mod meta;
pub mod node_explain;
pub mod nodes;
pub mod numa;
pub mod pending;
pub mod plugins;
pub mod preemption;
pub mod profiles;
pub mod proportion;
pub mod queue;
pub mod relations;
pub mod requirements;
pub mod reservation;
mod schema;
pub mod scores;
mod services;
pub mod shadow;
pub mod sharing;
pub mod simulate;
pub mod standing;
pub mod suggestions;
pub mod topology;
pub mod trends;
pub mod volumes;
pub mod wakeups;

pub use error::ErrorBody;
pub use meta::Meta;
pub use schema::BodySchema;
pub use services::Services;
pub use utoipa::ToSchema;
