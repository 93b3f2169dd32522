//! Endpoints: what a plugin lets people read, registered as data.
//!
//! From one registration, `http/` makes the GET route, its OpenAPI entry, its place in `__services__` and its table.
//! Endpoints read a published snapshot, never the scheduling thread's state.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::rest::{BodySchema, ToSchema};
use pellucid_model::Now;
use serde_json::Value;

use super::list::{Attribute, List};
use super::view::View;

/// Path and query parameters of a request, by name. The server has checked them against their declarations.
pub type PathParams = BTreeMap<String, String>;

/// The type of a query parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// Any text.
    Text,
    /// A non-negative integer.
    Integer,
    /// A whole number from the first to the second of these.
    Range(u64, u64),
    /// `true` or `false`; the bare name means `true`.
    Boolean,
    /// One of these values.
    Choice(&'static [&'static str]),
}

/// Declares a query parameter of a read. All query parameters are optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// Name of the parameter in the URL.
    pub name: &'static str,
    /// Type of its value.
    pub kind: QueryKind,
    /// What the parameter does, in one sentence.
    pub description: &'static str,
}

impl Query {
    /// Declares a query parameter.
    pub const fn new(name: &'static str, kind: QueryKind, description: &'static str) -> Self {
        Self { name, kind, description }
    }
}

/// Why a read has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The named object does not exist: 404.
    NotFound {
        /// Stable code, such as `NodeNotFound`.
        code: &'static str,
        /// Message that names the object.
        message: String,
    },
    /// A parameter cannot be used: 400.
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
    /// Path and query parameters.
    pub params: &'a PathParams,
    /// When the request arrived.
    pub now: Now,
    /// What is asked of an endpoint that is a list; of others everything.
    pub list: &'a List,
}

/// Answers a read with a JSON body.
pub type Read = Arc<dyn for<'a> Fn(&ReadContext<'a>) -> Result<Value, ReadError> + Send + Sync>;

/// What a list lists.
#[derive(Clone, Debug)]
pub struct ListSpec {
    /// Name of the body's array.
    pub array: &'static str,
    /// What its items are filtered and sorted by.
    pub attributes: Arc<[Attribute]>,
    /// Schema of an item.
    pub item: BodySchema,
}

/// One registered endpoint.
#[derive(Clone)]
pub struct Endpoint {
    /// Path below `/apis/v1/plugins/<Plugin>/`, or [`/apis/v1/explain/`](Self::explaining), with `:name` parameters.
    pub path: &'static str,
    /// What the endpoint returns, in one sentence.
    pub summary: &'static str,
    /// Schema of the body.
    pub body: BodySchema,
    /// Name of the body's array that `?format=csv` and `?format=table` lay out as rows.
    pub rows: Option<&'static str>,
    /// What is listed, if the endpoint is a list with pages.
    pub list: Option<ListSpec>,
    /// Query parameters, besides those of lists.
    pub query: &'static [Query],
    /// Whether it explains something: its path lies below `/apis/v1/explain/` then.
    pub explains: bool,
    /// Computes the body.
    pub read: Read,
}

impl Endpoint {
    /// Registers an endpoint whose body is one `T`, without a table.
    pub fn of<T: ToSchema + 'static>(
        path: &'static str,
        summary: &'static str,
        read: impl for<'a> Fn(&ReadContext<'a>) -> Result<Value, ReadError> + Send + Sync + 'static,
    ) -> Self {
        Self::new(path, summary, BodySchema::of::<T>(), read)
    }

    /// Registers an endpoint without a table, such as the plugin's `state`.
    pub fn new(
        path: &'static str,
        summary: &'static str,
        body: BodySchema,
        read: impl for<'a> Fn(&ReadContext<'a>) -> Result<Value, ReadError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            path,
            summary,
            body,
            rows: None,
            list: None,
            query: &[],
            explains: false,
            read: Arc::new(read),
        }
    }

    /// Makes the endpoint a list of `I`, which lies in the field `array` of the body; it is its table too. The read cuts
    /// its page with [`ReadContext::list`].
    pub fn with_pages<I: ToSchema + 'static>(
        mut self,
        array: &'static str,
        attributes: &'static [Attribute],
    ) -> Self {
        self.list = Some(ListSpec { array, attributes: attributes.into(), item: BodySchema::of::<I>() });
        self.with_rows(array)
    }

    /// Puts the endpoint below `/apis/v1/explain/`, beside the explanations of pods and gangs.
    pub fn explaining(mut self) -> Self {
        self.explains = true;
        self
    }

    /// Declares query parameters.
    pub fn with_query(mut self, query: &'static [Query]) -> Self {
        self.query = query;
        self
    }

    /// Names the array of the body whose objects are table rows.
    pub fn with_rows(mut self, field: &'static str) -> Self {
        self.rows = Some(field);
        self
    }
}
