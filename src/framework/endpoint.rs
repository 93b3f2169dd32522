//! Registered endpoints: what a plugin lets people read, as data.
//!
//! `http/` makes the GET route, its OpenAPI entry, its place in `__services__` and its table from one
//! registration. Reading happens on a published snapshot, never on the scheduling thread's state.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::rest::BodySchema;
use pellucid_model::Now;
use serde_json::Value;

use super::view::View;

/// Path and query parameters of a request, by name. The server has checked them against their declarations.
pub type PathParams = BTreeMap<String, String>;

/// What the value of a query parameter looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// Any text.
    Text,
    /// A whole number that is not negative.
    Integer,
    /// `true` or `false`; the bare name means `true`.
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// Declares a query parameter of a read. None is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// Name.
    pub name: &'static str,
    /// What its value looks like.
    pub kind: QueryKind,
    /// One sentence.
    pub description: &'static str,
}

impl Query {
    /// Declares one.
    pub const fn new(name: &'static str, kind: QueryKind, description: &'static str) -> Self {
        Self { name, kind, description }
    }
}

/// Why a read has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// There is no such object: 404.
    NotFound {
        /// Stable code, such as `NodeNotFound`.
        code: &'static str,
        /// Message that names the object.
        message: String,
    },
    /// The request cannot be understood: 400.
    BadRequest {
        /// Stable code.
        code: &'static str,
        /// Message that names the parameter and its value.
        message: String,
    },
}

/// What an endpoint may read.
pub struct ReadContext<'a> {
    /// The published state.
    pub view: View<'a>,
    /// Path parameters.
    pub params: &'a PathParams,
    /// When the request came.
    pub now: Now,
}

/// Answers a read.
pub type Read = Arc<dyn for<'a> Fn(&ReadContext<'a>) -> Result<Value, ReadError> + Send + Sync>;

/// One registered read.
#[derive(Clone)]
pub struct Endpoint {
    /// Path below `/apis/v1/plugins/<Plugin>/`, with `:name` parameters.
    pub path: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Type of the body.
    pub body: BodySchema,
    /// Name of the body's array that `?format=csv` and `?format=table` lay out as rows.
    pub rows: Option<&'static str>,
    /// Answers.
    pub read: Read,
}

impl Endpoint {
    /// Registers the plugin's `state`, or any other read without a table.
    pub fn new(
        path: &'static str,
        summary: &'static str,
        body: BodySchema,
        read: impl for<'a> Fn(&ReadContext<'a>) -> Result<Value, ReadError> + Send + Sync + 'static,
    ) -> Self {
        Self { path, summary, body, rows: None, read: Arc::new(read) }
    }

    /// Names the array whose objects are rows.
    pub fn with_rows(mut self, field: &'static str) -> Self {
        self.rows = Some(field);
        self
    }
}
