//! Answers reads as the server would, on a snapshot published now.

use pellucid::cycle::Snapshot;
use pellucid::diagnosis::reads::reads;
use pellucid::framework::endpoint::{PathParams, ReadError};
use pellucid::plugins::registry;
use serde_json::Value;

use super::driver::Core;

/// Answers a path with a query on a snapshot.
pub(crate) fn ask_snapshot(snapshot: &Snapshot, core: &Core, target: &str) -> Result<Value, ReadError> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let asked: Vec<&str> = path.split('/').collect();
    for read in reads(&registry()) {
        let template: Vec<&str> = read.path.split('/').collect();
        let fits = |(t, a): (&&str, &&str)| t.starts_with(':') || t == a;
        if template.len() == asked.len() && template.iter().zip(&asked).all(fits) {
            let pairs = template.iter().zip(&asked);
            let of_path = pairs.filter_map(|(t, a)| Some((t.strip_prefix(':')?.to_owned(), (*a).to_owned())));
            let mut params: PathParams = of_path.collect();
            for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
                assert!(read.query.iter().any(|q| q.name == name), "{name} is not declared for {path}");
                params.insert(name.to_owned(), value.to_owned());
            }
            return (read.read)(snapshot, &params, core.now);
        }
    }
    panic!("nobody answers {target}")
}

/// Does the same on a snapshot published now.
pub(crate) fn try_ask(core: &mut Core, target: &str) -> Result<Value, ReadError> {
    let snapshot = core.scheduler.publish(core.now);
    ask_snapshot(&snapshot, core, target)
}

/// Does the same, and expects success.
pub(crate) fn ask(core: &mut Core, target: &str) -> Value {
    try_ask(core, target).unwrap_or_else(|error| panic!("{target}: {error:?}"))
}

/// Returns the code of an error.
pub(crate) fn code_of(answer: Result<Value, ReadError>) -> &'static str {
    match answer {
        Ok(body) => panic!("it answers {body}"),
        Err(ReadError::NotFound { code, .. } | ReadError::BadRequest { code, .. }) => code,
    }
}

/// Returns an array of a body.
pub(crate) fn list<'v>(body: &'v Value, pointer: &str) -> &'v [Value] {
    body.pointer(pointer).and_then(Value::as_array).unwrap_or_else(|| panic!("no array {pointer} in {body}"))
}

/// Returns a text of a body.
pub(crate) fn text<'v>(body: &'v Value, pointer: &str) -> &'v str {
    body.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no text {pointer} in {body}"))
}

/// Returns a number of a body.
pub(crate) fn number(body: &Value, pointer: &str) -> i64 {
    body.pointer(pointer).and_then(Value::as_i64).unwrap_or_else(|| panic!("no number {pointer} in {body}"))
}
