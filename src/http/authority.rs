//! What the server asks about users: who a token belongs to, and whether a right is granted.
//!
//! The words are those of Kubernetes' TokenReview and SubjectAccessReview, so that an API server can answer. This file
//! knows no API server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

/// An authenticated user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct User {
    /// Name, such as `jane` or `system:serviceaccount:monitoring:prometheus`.
    pub name: String,
    /// Uid; empty when the authenticator has none.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// What else the authenticator says of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// A right that a request takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Right {
    /// A verb on a path that is no resource of the API server.
    Path {
        /// `get`, `create`, `update` or `dump`.
        verb: &'static str,
        /// Path of the request.
        path: String,
    },
    /// A verb on all pods of a namespace.
    Pods {
        /// `get` or `create`.
        verb: &'static str,
        /// The namespace.
        namespace: String,
    },
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { verb, path } => write!(f, "{verb} on nonResourceURL {path}"),
            Self::Pods { verb, namespace } => write!(f, "{verb} pods in namespace {namespace}"),
        }
    }
}

/// Why the authority gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAnswer(
    /// What was tried and what went wrong, for people.
    pub String,
);

/// Answers of the authority.
pub type Asked<T> = BoxFuture<'static, Result<T, NoAnswer>>;

/// Says who users are and what they may. Each answer must come within a time limit of its own.
pub trait Authority: Send + Sync {
    /// Returns whose token this is, or `None` when it is nobody's.
    fn user_of(&self, token: String) -> Asked<Option<User>>;
    /// Returns whether a user has a right.
    fn grants(&self, user: Arc<User>, right: Right) -> Asked<bool>;
}

/// The user of the client's certificate, attached to the requests of a connection. The certificate has been verified.
#[derive(Clone, Debug)]
pub(crate) struct Certified(pub(crate) Arc<User>);
