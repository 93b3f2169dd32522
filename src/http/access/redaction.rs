//! The one place where names of other namespaces are taken out of answers.
//!
//! A reader who does not see everything gets each body through [`Redactor`], after it was made and before it becomes JSON,
//! a table or lines; errors pass here too. The published state says which names are foreign ([`Names`]); this file walks
//! through bodies. Numbers stay, so counts stay right. Names of fields and of labels stay too, whatever objects are called.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use pellucid_model::Viewer;
use serde_json::{Map, Value};

use crate::error::ReadError;

/// What stands for a name of another namespace.
pub const HIDDEN: &str = "(hidden)";

/// Knows the names that a reader may not see.
pub trait Names: Send + Sync {
    /// Returns a text without them, or `None` when it has none.
    fn without(&self, text: &str) -> Option<String>;
}

/// Returns what is foreign to a viewer in a state.
pub type Redact<S> = Arc<dyn Fn(&S, &Viewer) -> Arc<dyn Names> + Send + Sync>;

/// Names of the fields that bodies have by their types, collected when the first reader with limits comes.
pub(crate) type FieldNames = Arc<LazyLock<BTreeSet<String>, Box<dyn FnOnce() -> BTreeSet<String> + Send>>>;

/// Takes the names that one reader may not see out of answers. Without limits it does nothing.
#[derive(Clone)]
pub(crate) struct Redactor(Option<Limited>);

/// What a reader with limits sees.
#[derive(Clone)]
struct Limited {
    viewer: Viewer,
    names: Arc<dyn Names>,
    field_names: FieldNames,
}

impl Redactor {
    /// Creates the redactor of a viewer. `names` is asked only if the viewer has limits.
    pub(crate) fn of(
        viewer: &Viewer,
        field_names: &FieldNames,
        names: impl FnOnce() -> Arc<dyn Names>,
    ) -> Self {
        let limited =
            || Limited { viewer: viewer.clone(), names: names(), field_names: Arc::clone(field_names) };
        Self(viewer.limits().map(|_| limited()))
    }

    /// Redacts a body.
    pub(crate) fn value(&self, value: &mut Value) {
        if let Some(limited) = &self.0 {
            limited.walk(value, false);
        }
    }

    /// Redacts a line of a feed, which is a JSON document.
    pub(crate) fn line(&self, line: String) -> String {
        if self.0.is_none() {
            return line;
        }
        match serde_json::from_str::<Value>(&line) {
            Ok(mut value) => {
                self.value(&mut value);
                value.to_string()
            }
            Err(_) => self.text(line),
        }
    }

    /// Redacts a text.
    pub(crate) fn text(&self, text: String) -> String {
        let Some(limited) = &self.0 else { return text };
        limited.names.without(&text).unwrap_or(text)
    }

    /// Redacts the lines of metrics: a sample that names something foreign is left out, so that no two have equal labels.
    pub(crate) fn metrics(&self, text: String) -> String {
        let Some(Limited { viewer, names, .. }) = &self.0 else { return text };
        let stays = |line: &&str| {
            line.starts_with('#')
                || labels(line).all(|(name, value)| match name {
                    "namespace" => viewer.sees(&value),
                    _ => names.without(&value).is_none(),
                })
        };
        text.split_inclusive('\n').filter(stays).collect()
    }

    /// Redacts the message of an error.
    pub(crate) fn error(&self, error: ReadError) -> ReadError {
        use ReadError::{BadRequest, Forbidden, Gone, NotFound, TooMany, Unavailable, Unprocessable};
        match error {
            NotFound(code, message) => NotFound(code, self.text(message)),
            Gone(code, message) => Gone(code, self.text(message)),
            BadRequest(code, message) => BadRequest(code, self.text(message)),
            Forbidden(code, message) => Forbidden(code, self.text(message)),
            Unprocessable(code, message) => Unprocessable(code, self.text(message)),
            TooMany(code, message) => TooMany(code, self.text(message)),
            Unavailable(code, message) => Unavailable(code, self.text(message)),
        }
    }
}

/// Iterates over names and values of the labels of a sample, those of an exemplar too.
fn labels(line: &str) -> impl Iterator<Item = (&str, String)> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (before, behind) = rest.split_once("=\"")?;
        let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
        let (mut value, mut escaped) = (String::new(), false);
        for (at, c) in behind.char_indices() {
            match c {
                '"' if !escaped => {
                    rest = &behind[at + 1..];
                    return Some((name, value));
                }
                '\\' if !escaped => escaped = true,
                c => {
                    value.push(if escaped && c == 'n' { '\n' } else { c });
                    escaped = false;
                }
            }
        }
        rest = "";
        Some((name, value))
    })
}

impl Limited {
    /// Redacts a value. `of_others` says that it is part of what is said about an object of another namespace.
    fn walk(&self, value: &mut Value, of_others: bool) {
        match value {
            Value::String(text) => {
                if let Some(shown) = self.names.without(text) {
                    *text = shown;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, of_others)),
            Value::Object(fields) => {
                let about = subject(fields).map(|namespace| !self.viewer.sees(namespace));
                if about == Some(true) {
                    hide(fields, &NAMING);
                }
                hide_keys(fields, &self.viewer);
                let of_others = about.unwrap_or(of_others);
                if of_others {
                    hide(fields, &TELLING);
                }
                if fields.contains_key(SWITCH) {
                    hide(fields, &WHO);
                }
                fields.values_mut().for_each(|field| self.walk(field, of_others));
                self.rename(fields);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the name of a field without foreign names, or `None` when it has none, or is one of a type.
    fn renamed(&self, field: &str) -> Option<String> {
        self.names.without(field).filter(|_| !self.field_names.contains(field))
    }

    /// Renames the fields of a map by names. Those that become equal are numbered, so that none is lost.
    fn rename(&self, fields: &mut Map<String, Value>) {
        if !fields.keys().any(|field| self.renamed(field).is_some()) {
            return;
        }
        let mut n_hidden = 0;
        let renamed = std::mem::take(fields).into_iter().map(|(field, value)| match self.renamed(&field) {
            None => (field, value),
            Some(shown) => {
                n_hidden += 1;
                (format!("{shown} {n_hidden}"), value)
            }
        });
        *fields = renamed.collect();
    }
}

/// Fields that say what an object of a body is about: a namespace, or `namespace/name`. The first counts.
const SUBJECTS: [&str; 6] = ["namespace", "key", "pod", "unit", "gang", "victim"];
/// Fields that name an object, or what belongs to it, of the namespace in the field beside them.
const NAMING: [&str; 8] = ["namespace", "name", "uid", "key", "owner", "gang", "gangGroup", "labels"];
/// The field that every object of a body about a switch has: a recording, or a change of one.
const SWITCH: &str = "flag";
/// Fields of such objects that name users, who may be accounts of any namespace. The owner of a recording is who set it,
/// unless the request gave another one.
const WHO: [&str; 3] = ["setBy", "by", "owner"];
/// Fields with texts, which may name what is in no list of names: claims that do not exist, objects that are gone.
const TELLING: [&str; 4] = ["message", "subject", "text", "note"];

/// Returns the namespace of what an object of a body is about.
fn subject(fields: &Map<String, Value>) -> Option<&str> {
    let texts = SUBJECTS.iter().filter_map(|field| Some((*field, fields.get(*field)?.as_str()?)));
    let namespaces = texts.filter_map(|(field, text)| match field {
        "namespace" => Some(text),
        _ => text.split_once('/').map(|(namespace, _)| namespace),
    });
    namespaces.into_iter().find(|namespace| !namespace.is_empty())
}

/// Hides what some fields say, whatever words they use.
fn hide(fields: &mut Map<String, Value>, which: &[&str]) {
    for (field, value) in fields.iter_mut().filter(|(field, _)| which.contains(&field.as_str())) {
        match value {
            Value::String(text) if !text.is_empty() => *text = HIDDEN.to_owned(),
            Value::Object(inner) if field == "labels" => inner.clear(),
            Value::Object(inner) => hide(inner, which),
            _ => {}
        }
    }
}

/// Hides the fields that say by a key what an object of a body is about, where its namespace is not seen, whatever words
/// the key has: `7/0` could be a number.
fn hide_keys(fields: &mut Map<String, Value>, viewer: &Viewer) {
    for (_, value) in fields.iter_mut().filter(|(field, _)| SUBJECTS.contains(&field.as_str())) {
        if let Value::String(text) = value
            && text.split_once('/').is_some_and(|(namespace, _)| is_foreign_number(namespace, viewer))
        {
            HIDDEN.clone_into(text);
        }
    }
}

fn is_foreign_number(namespace: &str, viewer: &Viewer) -> bool {
    let is_number = !namespace.bytes().any(|byte| byte.is_ascii_alphabetic());
    is_number && !namespace.is_empty() && !viewer.sees(namespace)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Secret;

    impl Names for Secret {
        fn without(&self, text: &str) -> Option<String> {
            text.contains("secret").then(|| text.replace("secret", HIDDEN))
        }
    }

    fn field_names() -> FieldNames {
        Arc::new(LazyLock::new(Box::new(|| BTreeSet::from(["secretRows".to_owned()]))))
    }

    fn redactor() -> Redactor {
        Redactor::of(&Viewer::of(["mine"]), &field_names(), || Arc::new(Secret))
    }

    #[test]
    fn fields_and_labels_keep_their_names_and_keys_of_numbers_go() {
        let mut body = json!({"secretRows": [{"victim": "7/0"}, {"victim": "mine/0"}], "secret": 1});
        redactor().value(&mut body);
        let expected = json!({
            "secretRows": [{"victim": "(hidden)"}, {"victim": "mine/0"}], "(hidden) 1": 1,
        });
        assert_eq!(body, expected);
        let kept = "secret_total{secret=\"x\\\" y\",namespace=\"mine\"} 1 # {trace_id=\"1\"} 2\n";
        let text = format!("{kept}a{{b=\"x\\\\\",c=\"a secret\"}} 1\na{{namespace=\"theirs\"}} 1\n");
        assert_eq!(redactor().metrics(text), kept);
    }

    #[test]
    fn names_go_and_numbers_stay() {
        let mut body = json!({
            "count": 3,
            "secret/a": {"n": 1}, "secret/b": {"n": 2},
            "rows": [
                {"namespace": "theirs", "name": "pods", "priority": 7, "code": "NotEnough"},
                {"namespace": "mine", "name": "pods", "message": "behind secret/x"},
                {"pod": "theirs/pods", "reasons": [{"code": "Lost", "message": "claim \"gone\" not found"}]},
                {"pod": "mine/pods", "reasons": [{"code": "Lost", "message": "claim \"gone\" not found"}]},
            ],
        });
        redactor().value(&mut body);
        let expected = json!({
            "count": 3,
            "(hidden)/a 1": {"n": 1}, "(hidden)/b 2": {"n": 2},
            "rows": [
                {"namespace": "(hidden)", "name": "(hidden)", "priority": 7, "code": "NotEnough"},
                {"namespace": "mine", "name": "pods", "message": "behind (hidden)/x"},
                {"pod": "theirs/pods", "reasons": [{"code": "Lost", "message": "(hidden)"}]},
                {"pod": "mine/pods", "reasons": [{"code": "Lost", "message": "claim \"gone\" not found"}]},
            ],
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn who_sets_switches_is_hidden_and_other_causes_are_not() {
        let who = "system:serviceaccount:theirs:robot 10.0.0.7 curl";
        let mut body = json!({
            "active": [{"id": 1, "flag": "s", "owner": who, "setBy": who, "value": "3"}],
            "audit": [{"number": 1, "flag": "s", "owner": who, "by": who, "why": "set", "from": "0", "to": "3"}],
            "entries": [{"kind": "Evicted", "by": "mine/urgent"}],
        });
        redactor().value(&mut body);
        let expected = json!({
            "active": [{"id": 1, "flag": "s", "owner": HIDDEN, "setBy": HIDDEN, "value": "3"}],
            "audit": [{"number": 1, "flag": "s", "owner": HIDDEN, "by": HIDDEN, "why": "set", "from": "0", "to": "3"}],
            "entries": [{"kind": "Evicted", "by": "mine/urgent"}],
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn samples_of_others_are_left_out() {
        let text = "# HELP pods\npods{namespace=\"mine\"} 1\npods{namespace=\"theirs\"} 2\nup{at=\"secret\"} 1\nup 1\n";
        let shown = "# HELP pods\npods{namespace=\"mine\"} 1\nup 1\n";
        assert_eq!(redactor().metrics(text.into()), shown);
        let all = Redactor::of(&Viewer::All, &field_names(), || unreachable!("it sees all"));
        assert_eq!(all.metrics(text.into()), text);
    }

    #[test]
    fn lines_and_errors_pass_here_too() {
        assert_eq!(redactor().line(r#"{"pod":"secret/a","n":1}"#.into()), r#"{"n":1,"pod":"(hidden)/a"}"#);
        let error = redactor().error(ReadError::NotFound("X", "no secret".into()));
        assert_eq!(error, ReadError::NotFound("X", "no (hidden)".into()));
    }
}
