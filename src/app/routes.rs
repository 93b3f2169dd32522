//! Turns the reads that pure rooms register into routes of the server.

use std::sync::Arc;

use serde_json::{Value, json};

use super::clock::Stopwatch;
use crate::diagnosis::Root;
use crate::diagnosis::reads::{RootRead, RowSpec, reads};
use crate::framework::PluginFactory;
use crate::framework::endpoint::{PathParams, QueryKind, ReadError};
use crate::http::{Kind, Param, Params, Published, RequestInfo, Route, Table};
use crate::model::time::Probe;

impl Published for Root {
    fn generation(&self) -> u64 {
        self.generation
    }
}

/// Returns the routes of everything that is registered.
pub fn routes(registry: &[Box<dyn PluginFactory>]) -> Vec<Route<Root>> {
    reads(registry).into_iter().map(route).chain([super::simulate::route()]).collect()
}

fn route(read: RootRead) -> Route<Root> {
    let RootRead { path, tag, summary, body, rows, not_found, query, read } = read;
    let names: Vec<String> =
        path.split('/').filter_map(|s| s.strip_prefix(':')).map(str::to_string).collect();
    let mut params: Vec<Param> = names.iter().map(|name| Param::path(name, &describe(name))).collect();
    params.extend(query.iter().map(|q| Param::query(q.name, kind(q.kind), q.description)));
    let answer = move |root: &Root, params: &Params, info: &RequestInfo| {
        let given = names.iter().map(|n| Ok((n.clone(), params.required(n)?.to_string())));
        let mut given: PathParams = given.collect::<Result<_, crate::http::ReadError>>()?;
        let asked = query.iter().filter_map(|q| Some((q.name.to_string(), params.text(q.name)?.to_string())));
        given.extend(asked);
        costed(|| read(root, &given, info.now).map_err(adapt))
    };
    let mut route = Route::get(path, tag, &summary, body, answer);
    route.not_found_example = not_found.map(|code| (code, "there is no such object".to_string()));
    route.params = params;
    route.rows = rows.map(|spec| -> crate::http::Rows { Arc::new(move |body| table(&spec, body)) });
    route
}

/// Makes a body and notes in its `meta`, when it has one, what that took.
pub(super) fn costed<E>(make: impl FnOnce() -> Result<Value, E>) -> Result<Value, E> {
    let stopwatch = Stopwatch::start();
    let mut body = make()?;
    if let Some(meta) = body.get_mut("meta").and_then(Value::as_object_mut) {
        meta.insert("costMicros".into(), json!(stopwatch.elapsed().as_micros() as u64));
    }
    Ok(body)
}

fn kind(kind: QueryKind) -> Kind {
    match kind {
        QueryKind::Text => Kind::String,
        QueryKind::Integer => Kind::Integer,
        QueryKind::Boolean => Kind::Boolean,
        QueryKind::Choice(words) => Kind::Choice(words),
    }
}

fn describe(param: &str) -> String {
    match param {
        "namespace" => "Namespace of the object".into(),
        "name" => "Name of the object".into(),
        "nodeName" => "Name of the node".into(),
        other => format!("The {other}"),
    }
}

pub(super) fn adapt(error: ReadError) -> crate::http::ReadError {
    match error {
        ReadError::NotFound { code, message } => crate::http::ReadError::NotFound { code, message },
        ReadError::BadRequest { code, message } => crate::http::ReadError::BadRequest { code, message },
    }
}

/// Returns what becomes rows: an array of the body, or the values of a body that is a map.
fn objects(spec: &RowSpec, body: &Value) -> Vec<Value> {
    if spec.array.is_empty() {
        return body.as_object().into_iter().flat_map(|map| map.values().cloned()).collect();
    }
    let pointer =
        if spec.array.starts_with('/') { spec.array.to_string() } else { format!("/{}", spec.array) };
    body.pointer(&pointer).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Lays a body out as rows. Without declared columns the fields of the first object are the columns.
fn table(spec: &RowSpec, body: &Value) -> Table {
    let objects = objects(spec, body);
    let columns: Vec<(String, String)> = if spec.columns.is_empty() {
        let first = objects.first().and_then(Value::as_object);
        let fields = first.into_iter().flat_map(|o| o.iter());
        fields.map(|(name, _)| (name.clone(), format!("/{name}"))).collect()
    } else {
        spec.columns.iter().map(|(h, p)| ((*h).to_string(), (*p).to_string())).collect()
    };
    let row = |object: &Value| columns.iter().map(|(_, p)| cell(object.pointer(p))).collect();
    Table {
        header: columns.iter().map(|(h, _)| h.clone()).collect(),
        rows: objects.iter().map(row).collect(),
    }
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
