//! What can go wrong, at three doors: reading a route, answering a request, and building a server.
//!
//! A read knows nothing of HTTP and says what kind of failure it met; the status is chosen here. What
//! only the operator should see goes to the log, not into a body.

use std::borrow::Cow;
use std::net::SocketAddr;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use pellucid_api::rest::ErrorBody;

/// Why a read gave no value. The code is a stable word that programs may match on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is no such object. 404.
    #[error("{message}")]
    NotFound {
        /// The stable word.
        code: &'static str,
        /// The sentence for people.
        message: String,
    },
    /// The request makes no sense as it stands. 400.
    #[error("{message}")]
    BadRequest {
        /// The stable word.
        code: &'static str,
        /// The sentence for people.
        message: String,
    },
    /// The request is well formed but asks for something contradictory. 422.
    #[error("{message}")]
    Unprocessable {
        /// The stable word.
        code: &'static str,
        /// The sentence for people.
        message: String,
    },
    /// Too much is being asked at once; asking again later may work. 429.
    #[error("{message}")]
    TooMany {
        /// The stable word.
        code: &'static str,
        /// The sentence for people.
        message: String,
    },
    /// It cannot be answered now; asking again later may work. 503.
    #[error("{message}")]
    Unavailable {
        /// The stable word.
        code: &'static str,
        /// The sentence for people.
        message: String,
    },
}

/// Why a set of registrations cannot be served. All are mistakes in this program, found at start.
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
    /// Two registrations answer the same requests.
    #[error("{method} `{path}` is registered twice (as `{other}`)")]
    Duplicate {
        /// The HTTP method.
        method: &'static str,
        /// The second template.
        path: String,
        /// The first template.
        other: String,
    },
    /// The declared parameters do not fit the template or the server's own.
    #[error("path template `{path}`: parameter `{name}` {why}")]
    Parameter {
        /// The template.
        path: String,
        /// The parameter.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two body types share a name but not a shape, so one would be described wrongly.
    #[error("two different body types are named `{name}`")]
    SchemaName {
        /// The name.
        name: String,
    },
    /// Two switches or health checks share a name.
    #[error("two {what} are named `{name}`")]
    Name {
        /// What they are.
        what: &'static str,
        /// The name.
        name: String,
    },
}

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address can be reached from other machines.
    #[error(
        "refusing to listen on {address}: an address that other machines can reach needs TLS and authentication, \
         which this version does not have; listen on 127.0.0.1 and use kubectl port-forward"
    )]
    NotLoopback {
        /// The refused address.
        address: SocketAddr,
    },
    /// Another process has the port.
    #[error("cannot listen on {address}: the address is in use by another process")]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// Anything else that the operating system said.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
}

/// A refused request, on its way to becoming a response.
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

    /// Logs what a handler's panic said and hides it from the caller.
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
        // Three strings always serialise; an empty body would still carry the status.
        let mut response = Response::new(Body::from(serde_json::to_vec(&body).unwrap_or_default()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some((name, value)) = self.header
            && let Ok(value) = HeaderValue::from_str(&value)
        {
            headers.insert(name, value);
        }
        response
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotFound { code, message } => Self::new(StatusCode::NOT_FOUND, code, message),
            ReadError::BadRequest { code, message } => Self::new(StatusCode::BAD_REQUEST, code, message),
            ReadError::Unprocessable { code, message } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
            }
            ReadError::TooMany { code, message } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, code, message).with(header::RETRY_AFTER, "1")
            }
            ReadError::Unavailable { code, message } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message).with(header::RETRY_AFTER, "1")
            }
        }
    }
}
