//! Turns the reads that other rooms and plugins register into routes of the REST server.

use std::sync::Arc;

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::history::FeedLine;
use pellucid_cycle::Snapshot;
use pellucid_diagnosis::history;
use pellucid_diagnosis::reads::{SEEN, SnapshotRead, reads};
use pellucid_framework::PluginFactory;
use pellucid_framework::endpoint::{PathParams, QueryKind, ReadError};
use pellucid_framework::list::generation_of;
use pellucid_framework::list::params::{CONTINUE, FIELDS};
use pellucid_http::{Kind, Lines, Param, Params, RequestInfo, Route};
use pellucid_model::time::Probe;
use serde_json::{Value, json};

use crate::clock::Stopwatch;
use crate::consistency::ConsistencyConfig;
use crate::consistency::record::ConsistencyRecord;
use crate::metrics::diagnosis::Explained;
use crate::rest::rows::table;
use crate::trends::SharedRing;

/// Returns all registered routes, for the OpenAPI document.
pub fn routes(registry: &[Box<dyn PluginFactory>]) -> Vec<Route<Snapshot>> {
    metered(registry, Value::Null, &Explained::default(), Sources::default())
}

/// What routes read beside the snapshot.
#[derive(Clone, Default)]
pub struct Sources {
    /// The last hour in numbers.
    pub trends: SharedRing,
    /// What comparisons with the API server found, and when they are made.
    pub consistency: (ConsistencyRecord, ConsistencyConfig),
}

/// Returns all routes, for a server. Dumps carry `configuration`, which is the effective one; the time spent on
/// explanations is added to `explained`.
pub fn metered(
    registry: &[Box<dyn PluginFactory>],
    configuration: Value,
    explained: &Explained,
    sources: Sources,
) -> Vec<Route<Snapshot>> {
    let mut all: Vec<Route<Snapshot>> =
        reads(registry).into_iter().map(|read| route(read, explained.clone())).collect();
    all.push(crate::rest::simulate::route(explained.clone()));
    all.push(events());
    all.push(crate::rest::trends::route(sources.trends));
    all.push(crate::rest::consistency::route(sources.consistency.0, sources.consistency.1));
    all.push(crate::rest::dump::route(configuration));
    all
}

fn events() -> Route<Snapshot> {
    let read = |snapshot: &Snapshot, _: &Params, cursor: u64, at_most: usize| {
        let history::Lines { lines, cursor, is_more } =
            history::lines(&snapshot.flight, &snapshot.cluster, cursor, at_most);
        Lines { lines, cursor, is_more }
    };
    Route::lines(
        "/apis/v1/events",
        "history",
        "What happens to pods and gangs, as it happens: one JSON document per line",
        BodySchema::of::<FeedLine>(),
        read,
    )
    .described(
        "Ids rise and are not given twice, across restarts too: a process begins with its clock in microseconds. What \
         failed again for the same reasons comes again under a new id, counts on, and says which id it replaces. Where \
         entries were pushed out before they were read, a line of kind Gap says which; for a cursor of an earlier process \
         a line of kind Restarted says so. `Accept: text/event-stream` gives server-sent events; `Last-Event-ID` stands \
         above `since`.",
    )
}

fn route(read: SnapshotRead, explained: Explained) -> Route<Snapshot> {
    let SnapshotRead { path, tag, summary, body, rows, not_found, query, is_long, is_shared, read } = read;
    let is_list = query.iter().any(|query| query.name == CONTINUE);
    let names: Vec<String> =
        path.split('/').filter_map(|s| s.strip_prefix(':')).map(str::to_string).collect();
    let mut params: Vec<Param> = names.iter().map(|name| Param::path(name, &describe(name))).collect();
    params.extend(query.iter().map(|q| Param::query(q.name, kind(q.kind), q.description)));
    let answer = move |snapshot: &Snapshot, params: &Params, info: &RequestInfo| {
        let given = names.iter().map(|n| Ok((n.clone(), params.required(n)?.to_string())));
        let mut given: PathParams = given.collect::<Result<_, pellucid_http::ReadError>>()?;
        let asked = query.iter().filter_map(|q| Some((q.name.to_string(), params.text(q.name)?.to_string())));
        given.extend(asked);
        if let Some(namespaces) = info.viewer.limits()
            && query.iter().any(|q| q.name == NAMESPACE)
        {
            let all: Vec<&str> = namespaces.iter().map(String::as_str).collect();
            let all = all.join(",");
            narrow(&mut given, &all);
            given.insert(SEEN.to_owned(), all);
        }
        let _timed = (tag == "explain").then(|| explained.timed());
        costed(|| read(snapshot, &given, info.now).map_err(adapt))
    };
    let mut route = Route::get(path, tag, &summary, body, answer);
    route.not_found_example = not_found.map(|code| (code, "there is no such object".to_string()));
    route.params = params;
    (route.is_long, route.is_shared) = (is_long, is_shared);
    route.rows = rows.map(|spec| -> pellucid_http::Rows {
        Arc::new(move |body, params| table(&spec, body, params.text(FIELDS)))
    });
    route.page_of = is_list.then(|| -> pellucid_http::PageOf {
        Arc::new(|params| generation_of(params.text(CONTINUE)).map_err(adapt))
    });
    route
}

/// Parameters of a summary under which it counts all items. Any other filters by something that may be a name of others, such
/// as the groups that plugins know, and the counts would tell whether it exists.
const COUNTING: [&str; 11] = [
    "by",
    "limit",
    CONTINUE,
    "sort",
    FIELDS,
    "reason",
    "stage",
    "olderThan",
    "youngerThan",
    "minPriority",
    "maxPriority",
];
/// The parameter of lists that admits items of some namespaces.
const NAMESPACE: &str = "namespace";

/// Has a list only the items of the namespaces that its reader sees. A summary counts all items unless the request asks
/// for some by what may be a name.
fn narrow(given: &mut PathParams, namespaces: &str) {
    let counts = given.contains_key("by") && given.keys().all(|name| COUNTING.contains(&name.as_str()));
    if !counts && !given.contains_key(NAMESPACE) {
        given.insert(NAMESPACE.to_owned(), namespaces.to_owned());
    }
}

/// Renders a body, and adds the time that this took to its `meta`, if it has one.
pub(crate) fn costed<E>(make: impl FnOnce() -> Result<Value, E>) -> Result<Value, E> {
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
        QueryKind::Range(least, most) => Kind::Range(least, most),
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

pub(crate) fn adapt(error: ReadError) -> pellucid_http::ReadError {
    match error {
        ReadError::NotFound { code, message } => pellucid_http::ReadError::NotFound(code, message),
        ReadError::BadRequest { code, message } => pellucid_http::ReadError::BadRequest(code, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_all_items_unless_it_filters_by_what_may_be_a_name() {
        let namespaces = |pairs: &[(&str, &str)]| {
            let mut given: PathParams =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            narrow(&mut given, "a,b");
            given.get(NAMESPACE).cloned()
        };
        let by = ("by", "code");
        assert_eq!(namespaces(&[by]), None);
        assert_eq!(namespaces(&[by, ("reason", "NoDevice"), ("sort", "name"), ("minPriority", "5")]), None);
        for filter in
            ["name", "owner", "gang", "selector", "quota", "queue", "a-group-of-a-plugin-from-outside"]
        {
            assert_eq!(namespaces(&[by, (filter, "x")]).as_deref(), Some("a,b"), "{filter}");
        }
        assert_eq!(namespaces(&[]).as_deref(), Some("a,b"), "items are always narrowed");
        assert_eq!(namespaces(&[by, ("quota", "x"), ("namespace", "a")]).as_deref(), Some("a"));
    }
}
