//! The REST server, generic over what it serves.
//!
//! Rooms register reads as data ([`Route`]); from that one registration come the GET route, its OpenAPI
//! description, its line in `/apis/v1/__services__` and its tables. The server adds what every component
//! of Kubernetes has: health, metrics, version, configuration, runtime switches.
//!
//! Reads see one published snapshot each and never make the scheduling thread wait. There is no TLS and no
//! authentication, therefore no address but loopback.
//!
//! A request passes `listen` (socket) → `edge` (id, panics, log) → `endpoint` (method, parameters) →
//! `read` (and `stream`), `flags`, `health` or `standard`. `page` is what a browser gets at `/`.

mod body;
mod connection;
mod error;
mod page;
mod read;
mod registration;
mod server;
mod standard;
mod stream;

pub use connection::listen::Bound;
pub use connection::middleware::{Observation, Observe};
pub use error::{BuildError, ReadError, ServeError};
pub use read::Load;
pub use registration::openapi::openapi;
pub use registration::params::{Kind, Location, Param, Params};
pub use registration::route::{Answers, Lines, Method, Read, ReadBytes, ReadLines, RequestInfo, Route, Rows};
pub use registration::table::Table;
pub use server::{Clock, Limits, Parts, Server};
pub use standard::flags::{Refused, Said, Switch};
pub use standard::health::{Check, HealthCheck};
pub use standard::{Configz, OPENMETRICS, Renderer, Version};
