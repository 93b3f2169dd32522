//! One read of a snapshot as data: its path, its parameters, its body type, and how to answer it.
//!
//! `reads` and its submodules list the reads.

use std::sync::Arc;

use pellucid_api::rest::{BodySchema, ToSchema};
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::{PathParams, Query, ReadError};
use pellucid_model::{GangKey, Now, PodKey};
use serde::Serialize;
use serde_json::{Value, json};

/// Answers a read from a snapshot.
pub type SnapshotFn = Arc<dyn Fn(&Snapshot, &PathParams, Now) -> Result<Value, ReadError> + Send + Sync>;

/// A heading and a JSON pointer for each column: `Pod /name, Free memory /free/memory`.
type Columns = &'static str;

/// The layout of a body as a table: an array of rows, and per column a heading and a JSON pointer.
#[derive(Clone, Debug, Default)]
pub struct RowSpec {
    /// JSON pointer to the array; empty when the rows are the values of the body, a map.
    pub array: &'static str,
    /// JSON pointer to an array in each element, whose elements are the rows. Column pointers that begin with `..`
    /// then refer to the outer element.
    pub nested: Option<&'static str>,
    /// Columns; when empty, the fields of the first row.
    pub columns: Columns,
    /// Columns derived from the data, after the others.
    pub spread: Option<Spread>,
}

/// Columns for each element of an array in the row, such as one plugin's share of a score.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// JSON pointer to the array in the row.
    pub array: &'static str,
    /// JSON pointer to the name of an element, with which its headings begin.
    pub name: &'static str,
    /// Columns per element: the end of the heading, and a JSON pointer.
    pub columns: Columns,
}

/// Columns for each plugin's share of a node's score.
const SHARES: Spread = Spread {
    array: "/plugins",
    name: "/plugin",
    columns: "raw /raw, normalized /normalized, weight /weight, weighted /weighted",
};

/// One read: where it is served, how it is documented, and how it is answered.
#[derive(Clone)]
pub struct SnapshotRead {
    /// Full path with `:name` parameters.
    pub path: String,
    /// Group in the API documentation.
    pub tag: &'static str,
    /// One-sentence summary.
    pub summary: String,
    /// Schema of the body.
    pub body: BodySchema,
    /// Layout as a table, if the body can be shown as one.
    pub rows: Option<RowSpec>,
    /// Code of the 404 response, when the path names an object.
    pub not_found: Option<&'static str>,
    /// Query parameters that the read accepts.
    pub query: &'static [Query],
    /// Whether the read takes long to compute.
    pub is_long: bool,
    /// Answers the read from a snapshot.
    pub read: SnapshotFn,
}

impl SnapshotRead {
    pub(crate) fn new<T: Serialize + ToSchema>(
        path: impl Into<String>,
        tag: &'static str,
        summary: impl Into<String>,
        read: impl Fn(&Snapshot, &PathParams, Now) -> Result<T, ReadError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            path: path.into(),
            tag,
            summary: summary.into(),
            body: BodySchema::of::<T>(),
            rows: None,
            not_found: None,
            query: &[],
            is_long: false,
            read: Arc::new(move |snapshot, params, now| Ok(json!(read(snapshot, params, now)?))),
        }
    }

    pub(crate) fn body(mut self, body: BodySchema) -> Self {
        self.body = body;
        self
    }

    pub(crate) fn rows(mut self, array: &'static str, columns: Columns) -> Self {
        self.rows = Some(RowSpec { array, columns, ..RowSpec::default() });
        self
    }

    pub(crate) fn score_rows(mut self, rows: RowSpec) -> Self {
        self.rows = Some(RowSpec { spread: Some(SHARES), ..rows });
        self
    }

    pub(crate) fn not_found(mut self, code: &'static str) -> Self {
        self.not_found = Some(code);
        self
    }

    pub(crate) fn long(mut self) -> Self {
        self.is_long = true;
        self
    }

    pub(crate) fn query(mut self, query: &'static [Query]) -> Self {
        self.query = query;
        self
    }
}

/// Returns the key of the pod that the path names.
pub(crate) fn pod_key(params: &PathParams) -> PodKey {
    PodKey::new(param(params, "namespace"), param(params, "name"))
}

/// Returns the key of the gang that the path names.
pub(crate) fn gang_key(params: &PathParams) -> GangKey {
    GangKey::new(param(params, "namespace"), param(params, "name"))
}

/// Returns a path parameter, or an empty string.
pub(crate) fn param<'p>(params: &'p PathParams, name: &str) -> &'p str {
    params.get(name).map_or("", String::as_str)
}

/// Returns a text parameter of the query. Fails when it is present but empty.
pub(crate) fn text<'p>(params: &'p PathParams, name: &str) -> Result<Option<&'p str>, ReadError> {
    match params.get(name).map(String::as_str) {
        Some(text) if text.trim().is_empty() => Err(ReadError::BadRequest {
            code: "InvalidParameter",
            message: format!("parameter `{name}` has the value `{text}`: it must not be empty; leave it out"),
        }),
        other => Ok(other),
    }
}

/// Returns whether a boolean query parameter is on. The bare name means yes.
pub(crate) fn is_on(params: &PathParams, name: &str) -> bool {
    params.get(name).is_some_and(|value| value != "false" && value != "0")
}

/// Returns a numeric query parameter, or `default`.
pub(crate) fn number(params: &PathParams, name: &str, default: usize) -> usize {
    params.get(name).and_then(|value| value.parse().ok()).unwrap_or(default)
}
