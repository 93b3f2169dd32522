//! The REST server, generic over the published state that it serves.
//!
//! Crates register reads as data ([`Route`]). From that registration come the GET route, its OpenAPI description, its
//! line in `/apis/v1/__services__` and its tables. The server adds what every Kubernetes component has: health,
//! metrics, version, configuration, runtime switches.
//!
//! Knows nothing of pods and nodes. Each read sees one published snapshot and never makes the scheduling thread wait.
//! Plain HTTP is for loopback addresses only. With TLS every request says who sends it, and an [`Authority`] says what they may.
//!
//! Start with [`Server`] in `server`, which checks the registrations and builds the router. Modules in the order in which a
//! request passes them:
//! - `connection`: sockets, bounds, the pool in which reads run; `tls`: certificates; `middleware`: request ids, panics, log lines.
//! - `path_entry`: the endpoint of a request; `access`: who asks and what they see, which `authority` says.
//! - `registration`: what a registered read becomes: endpoint, parameters, OpenAPI operation, tables.
//! - `read` and `stream`: answer registered reads; `walks`: snapshots that lists are paged through; `recent`: the one that costly lists share; `body`: request bodies; `error`: refusals.
//! - `standard`: the server's own endpoints, with the web page at `/`.

mod access;
mod authority;
mod body;
mod connection;
mod error;
mod middleware;
mod path_entry;
mod read;
mod recent;
mod registration;
mod server;
mod standard;
mod stream;
mod tls;
mod walks;

pub use access::audit::AUDIT_TARGET;
pub use access::redaction::{HIDDEN, Names, Redact};
pub use access::share::Share;
pub use authority::{Asked, Authority, NoAnswer, Right, User};
pub use connection::listen::Bound;
pub use error::{BuildError, ReadError, ServeError};
pub use middleware::{Observation, Observe};
pub use read::Load;
pub use registration::params::{Kind, Location, Param, Params};
pub use registration::route::{
    Answers, Lines, Method, PageOf, Read, ReadBytes, ReadLines, RequestInfo, Route, Rows,
};
pub use registration::table::Table;
pub use server::{Clock, Limits, Parts, Server};
pub use standard::flags::{Refused, Said, Switch};
pub use standard::health::{Check, HealthCheck};
pub use standard::{Configz, OPENMETRICS, Renderer, Version, openapi};
pub use tls::{Certificate, ClientCa, Tls, TlsError};
