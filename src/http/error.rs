//! Errors of three kinds: of a read, of building a server, and of listening.
//!
//! A read knows nothing of HTTP and states the kind of its failure; this module chooses the status. Details for the
//! operator go to the log, not into the response.

use std::borrow::Cow;
use std::net::SocketAddr;

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use pellucid_api::rest::ErrorBody;

use crate::registration::endpoint::answer;
use crate::registration::params::shortened;

/// Why a read failed: a code, which is a stable identifier that programs may match on, and a message for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{1}")]
pub enum ReadError {
    /// The object does not exist. 404.
    NotFound(&'static str, String),
    /// What the request refers to is not kept any more. 410.
    Gone(&'static str, String),
    /// The request is malformed. 400.
    BadRequest(&'static str, String),
    /// The client may not see what the request names. 403.
    Forbidden(&'static str, String),
    /// The request is well formed but contradicts itself. 422.
    Unprocessable(&'static str, String),
    /// There are too many requests at once; a later one may succeed. 429.
    TooMany(&'static str, String),
    /// The read cannot be answered now; a later request may succeed. 503.
    Unavailable(&'static str, String),
}

/// Why a set of registrations cannot be served. Each is a bug in this program, found at start.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A path template is not of the form `/literal/:parameter`.
    #[error("path template `{path}`: {why}")]
    Path {
        /// The template.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two registrations have the same method and colliding paths.
    #[error("{method} `{path}` is registered twice (as `{other}`)")]
    Duplicate {
        /// The HTTP method.
        method: &'static str,
        /// The second template.
        path: String,
        /// The first template.
        other: String,
    },
    /// The declared parameters do not match the template, or collide with the server's own.
    #[error("path template `{path}`: parameter `{name}` {why}")]
    Parameter {
        /// The template.
        path: String,
        /// Name of the parameter.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two body types share a name but not a schema, so one would be documented wrongly.
    #[error("two different body types are named `{name}`")]
    SchemaName {
        /// The shared schema name.
        name: String,
    },
    /// Two switches or health checks share a name.
    #[error("two {what} are named `{name}`")]
    Name {
        /// What shares the name: switches or health checks.
        what: &'static str,
        /// The shared name.
        name: String,
    },
}

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is reachable from other machines.
    #[error(
        "refusing to listen on {address} with plain HTTP: an address that other machines can reach needs TLS, which \
         --secure-port serves, and asks who its users are; or listen on 127.0.0.1 and use kubectl port-forward"
    )]
    NotLoopback {
        /// The refused address.
        address: SocketAddr,
    },
    /// Another process uses the port.
    #[error("cannot listen on {address}: the address is in use by another process")]
    InUse {
        /// The requested address.
        address: SocketAddr,
    },
    /// Any other error of the operating system.
    #[error("cannot listen on {address}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
}

/// A failed request before it becomes a response.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    code: &'static str,
    message: String,
    header: Option<(header::HeaderName, Cow<'static, str>)>,
}

impl Failure {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), header: None }
    }

    pub(super) fn with(mut self, name: header::HeaderName, value: impl Into<Cow<'static, str>>) -> Self {
        self.header = Some((name, value.into()));
        self
    }

    /// Logs the message of a handler's panic, and hides it from the client.
    pub(super) fn panic(payload: &(dyn std::any::Any + Send)) -> Self {
        let said = payload.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("(no text)");
        tracing::error!(panic = said, "a handler panicked");
        let message = "this request met a defect in the program; the log has more under the request id";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    pub(super) fn respond(self, request_id: &str) -> Response {
        let body = ErrorBody {
            code: self.code.to_owned(),
            message: self.message,
            request_id: request_id.to_owned(),
        };
        // Three strings always serialise; an empty body would still have the status.
        let mut response = answer("application/json", serde_json::to_vec(&body).unwrap_or_default());
        *response.status_mut() = self.status;
        if let Some((name, value)) = self.header
            && let Ok(value) = HeaderValue::from_str(&value)
        {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotFound(code, message) => Self::new(StatusCode::NOT_FOUND, code, message),
            ReadError::Gone(code, message) => Self::new(StatusCode::GONE, code, message),
            ReadError::BadRequest(code, message) => Self::new(StatusCode::BAD_REQUEST, code, message),
            ReadError::Forbidden(code, message) => Self::new(StatusCode::FORBIDDEN, code, message),
            ReadError::Unprocessable(code, message) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
            }
            ReadError::TooMany(code, message) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, code, message).with(header::RETRY_AFTER, "1")
            }
            ReadError::Unavailable(code, message) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message).with(header::RETRY_AFTER, "1")
            }
        }
    }
}

/// Path of the list of all routes.
pub(crate) const SERVICES: &str = "/apis/v1/__services__";

/// Returns the 404 for an unknown path.
pub(crate) fn unknown_path(path: &str) -> Failure {
    let shown = shortened(path);
    let message = match path.strip_suffix('/') {
        Some(bare) if !bare.is_empty() => {
            format!(
                "nothing is served at {shown}; try it without the slash at the end, or see GET {SERVICES}"
            )
        }
        _ => format!("nothing is served at {shown}; GET {SERVICES} lists what is"),
    };
    Failure::new(StatusCode::NOT_FOUND, "UnknownPath", message)
}
