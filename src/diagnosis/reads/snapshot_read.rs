//! One read of a snapshot as data: its path, its parameters, its body type, and how to answer it.
//!
//! `reads` and its submodules list the reads.

use std::sync::{Arc, OnceLock};

use pellucid_api::rest::{BodySchema, Meta, ToSchema};
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::{ListSpec, PathParams, Query, ReadError};
use pellucid_framework::list::fields::select;
use pellucid_framework::list::params::queries;
use pellucid_framework::list::{Attribute, List};
use pellucid_model::{GangKey, Now, PodKey};
use serde::Serialize;
use serde_json::{Value, json};

use crate::meta::of_snapshot;

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
    pub query: Vec<Query>,
    /// Whether the read takes long to compute.
    pub is_long: bool,
    /// Whether the read works out what all readers of the snapshot share, such as the verdicts on all pending pods.
    pub is_shared: bool,
    /// Answers the read from a snapshot.
    pub read: SnapshotFn,
}

impl SnapshotRead {
    pub(crate) fn new<T: Serialize + ToSchema + 'static>(
        path: impl Into<String>,
        tag: &'static str,
        summary: impl Into<String>,
        read: impl Fn(&Snapshot, &PathParams, Now) -> Result<T, ReadError> + Send + Sync + 'static,
    ) -> Self {
        let read =
            move |snapshot: &Snapshot, params: &PathParams, now| Ok(json!(read(snapshot, params, now)?));
        Self::of(path.into(), tag, summary.into(), BodySchema::of::<T>(), Arc::new(read))
    }

    fn of(path: String, tag: &'static str, summary: String, body: BodySchema, read: SnapshotFn) -> Self {
        let (rows, not_found, query) = (None, None, Vec::new());
        let (is_long, is_shared) = (false, false);
        Self { path, tag, summary, body, rows, not_found, query, is_long, is_shared, read }
    }

    /// Makes a read of a list of `I`, which lies in the field `array` of the body. Its items have `attributes` to filter
    /// and sort by.
    pub(crate) fn list<T: Serialize + ToSchema + 'static, I: ToSchema + 'static>(
        path: &str,
        tag: &'static str,
        summary: &str,
        (array, attributes): (&'static str, &[Attribute]),
        read: impl Fn(&Snapshot, &PathParams, &List, Now) -> Result<T, ReadError> + Send + Sync + 'static,
    ) -> Self {
        let spec = ListSpec { array, attributes: attributes.into(), item: BodySchema::of::<I>() };
        let read =
            in_pages(spec, move |snapshot, params, list, now| Ok(json!(read(snapshot, params, list, now)?)));
        let of = Self::of(path.to_owned(), tag, summary.to_owned(), BodySchema::of::<T>(), read);
        Self { query: queries(attributes), ..of }
    }

    /// Adds to the `meta` of the body what it is a body of; a body without `meta` gets one. Maps stay as they are.
    pub(crate) fn with_meta(self) -> Self {
        let Some(kind) = self.body.kind() else { return self };
        let read = self.read;
        let stamped = move |snapshot: &Snapshot, params: &PathParams, now| {
            let mut body = read(snapshot, params, now)?;
            stamp(&mut body, &kind, snapshot, now);
            Ok(body)
        };
        Self { body: self.body.with_meta(), read: Arc::new(stamped), ..self }
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

    pub(crate) fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    pub(crate) fn query(mut self, query: &[Query]) -> Self {
        self.query.extend(query);
        self
    }
}

/// Returns a read that gives its function what the request asks of the list, and keeps the fields that it asks for.
pub(crate) fn in_pages(
    spec: ListSpec,
    read: impl Fn(&Snapshot, &PathParams, &List, Now) -> Result<Value, ReadError> + Send + Sync + 'static,
) -> SnapshotFn {
    let fields = OnceLock::new();
    Arc::new(move |snapshot: &Snapshot, params: &PathParams, now| {
        let list = List::of(params, &spec.attributes, snapshot.generation, now)?;
        let mut body = read(snapshot, params, &list, now)?;
        select(&mut body, spec.array, params, fields.get_or_init(|| spec.item.fields()))?;
        Ok(body)
    })
}

/// Adds the version of the API and the name of the body's type to its `meta`.
pub fn stamp(body: &mut Value, kind: &str, snapshot: &Snapshot, now: Now) {
    let Some(body) = body.as_object_mut() else { return };
    let meta = body.entry("meta").or_insert_with(|| json!(Meta::default()));
    // Plugins do not know the snapshot.
    if meta["generatedAt"] == "" {
        let Meta { generated_at, snapshot_generation, leader, .. } = of_snapshot(snapshot, now);
        (meta["generatedAt"], meta["snapshotGeneration"]) = (generated_at.into(), snapshot_generation.into());
        meta["leader"] = leader.into();
    }
    meta["apiVersion"] = Meta::API_VERSION.into();
    meta["kind"] = kind.into();
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
