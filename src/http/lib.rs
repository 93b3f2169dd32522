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
mod docs;
mod endpoint;
mod error;
mod flags;
mod health;
mod listen;
mod middleware;
mod openapi;
mod operation;
mod page;
mod params;
mod patient;
mod pool;
mod read;
mod route;
mod server;
mod standard;
mod stream;
mod table;
mod unread;

pub use error::{BuildError, ReadError, ServeError};
pub use flags::{Refused, Said, Switch};
pub use health::{Check, HealthCheck};
pub use listen::Bound;
pub use middleware::{Observation, Observe};
pub use openapi::openapi;
pub use params::{Kind, Location, Param, Params};
pub use read::Load;
pub use route::{Answers, Lines, Method, Read, ReadBytes, ReadLines, RequestInfo, Route, Rows};
pub use server::{Clock, Limits, Parts, Server};
pub use standard::{Configz, OPENMETRICS, Renderer, Version};
pub use table::Table;
