//! Turns the reads that pure rooms register into routes of the server.

use std::sync::Arc;

use super::clock::Stopwatch;
use super::diagnosis_metrics::Explained;
use super::rows::table;
use crate::diagnosis::Root;
use crate::diagnosis::reads::{RootRead, reads};
use crate::framework::PluginFactory;
use crate::framework::endpoint::{PathParams, QueryKind, ReadError};
use crate::http::{Kind, Param, Params, Published, RequestInfo, Route};
use crate::model::time::Probe;

impl Published for Root {
    fn generation(&self) -> u64 {
        self.generation
    }
}

/// Returns the routes of everything that is registered.
pub fn routes(registry: &[Box<dyn PluginFactory>]) -> Vec<Route<Root>> {
    metered(registry, &Explained::default())
}

/// The same, adding up the time of what is worked out for a reader.
pub fn metered(registry: &[Box<dyn PluginFactory>], explained: &Explained) -> Vec<Route<Root>> {
    reads(registry).into_iter().map(|read| route(read, explained.clone())).collect()
}

fn route(read: RootRead, explained: Explained) -> Route<Root> {
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
        if tag != "explain" {
            return read(root, &given, info.now).map_err(adapt);
        }
        let stopwatch = Stopwatch::start();
        let answer = read(root, &given, info.now);
        explained.add(stopwatch.elapsed());
        answer.map_err(adapt)
    };
    let mut route = Route::get(path, tag, &summary, body, answer);
    route.not_found_example = not_found.map(|code| (code, "there is no such object".to_string()));
    route.params = params;
    route.rows = rows.map(|spec| -> crate::http::Rows { Arc::new(move |body| table(&spec, body)) });
    route
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

fn adapt(error: ReadError) -> crate::http::ReadError {
    match error {
        ReadError::NotFound { code, message } => crate::http::ReadError::NotFound { code, message },
        ReadError::BadRequest { code, message } => crate::http::ReadError::BadRequest { code, message },
    }
}
