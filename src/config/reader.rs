//! Reads typed values from a [`Tree`] and collects problems on the way.
//!
//! Every reading function returns what it could read and adds problems to [`Found`]. The caller continues with the
//! default and rejects the configuration at the end if a problem was found.

use std::ops::RangeInclusive;
use std::time::Duration;

use pellucid_model::duration;
use pellucid_model::nearest::nearest;
use serde_json::Value;

use super::problem::Problem;
use super::tree::{self, Kind, Tree};

#[derive(Default)]
pub(super) struct Found {
    /// Errors; a single one rejects the configuration.
    pub problems: Vec<Problem>,
    /// Information for the user that is not an error.
    pub notes: Vec<String>,
}

impl Found {
    pub(super) fn add(&mut self, at: &Place, message: impl Into<String>) {
        self.problems.push(Problem { line: at.line, path: at.path.clone(), message: message.into() });
    }

    pub(super) fn note(&mut self, at: &Place, text: impl std::fmt::Display) {
        self.notes.push(format!("{}: {text}", at.path));
    }
}

/// A location in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Path, such as `profiles[0].plugins`.
    pub path: String,
    /// Line, counted from 1; `None` if unknown.
    pub line: Option<u64>,
}

impl Place {
    /// Returns a place below this one on the same line.
    pub(super) fn below(&self, step: &str) -> Self {
        Self { path: tree::join(&self.path, step), line: self.line }
    }
}

/// A value together with its place.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    pub at: Place,
    pub tree: &'a Tree,
}

impl<'a> Cursor<'a> {
    pub(super) fn top(tree: &'a Tree) -> Self {
        Self { at: Place { path: String::new(), line: tree.line }, tree }
    }

    fn child(&self, step: &str, tree: &'a Tree) -> Self {
        Self { at: Place { line: tree.line.or(self.at.line), ..self.at.below(step) }, tree }
    }

    fn mismatch(&self, found: &mut Found, wanted: &str) {
        found.add(&self.at, format!("must be {wanted}, got {}", shown(self.tree)));
    }

    /// Reads an object. Reports fields that are not in `known`.
    pub(super) fn object(&self, known: &[&str], found: &mut Found) -> Fields<'a> {
        self.object_of(known, |_| None, found)
    }

    /// Like [`Cursor::object`], but also reports fields that this version lacks: `lacks` returns the reason.
    pub(super) fn object_of(
        &self,
        known: &[&str],
        lacks: impl Fn(&str) -> Option<String>,
        found: &mut Found,
    ) -> Fields<'a> {
        let Kind::Map(fields) = &self.tree.kind else {
            self.mismatch(found, "an object");
            return Fields { fields: Vec::new() };
        };
        let mut read = Vec::with_capacity(fields.len());
        for (name, tree) in fields {
            let child = self.child(name, tree);
            if !known.contains(&name.as_str()) {
                let here: Vec<&str> = known.iter().copied().filter(|name| lacks(name).is_none()).collect();
                found.add(&child.at, unknown_field(name, &here));
            } else if let Some(why) = lacks(name) {
                found.add(&child.at, why);
            } else {
                read.push((name.as_str(), child));
            }
        }
        Fields { fields: read }
    }

    pub(super) fn list(&self, found: &mut Found) -> Vec<Self> {
        let Kind::List(items) = &self.tree.kind else {
            self.mismatch(found, "a list");
            return Vec::new();
        };
        items.iter().enumerate().map(|(i, item)| self.child(&format!("[{i}]"), item)).collect()
    }

    /// Reads a scalar. Reports a value that is none, or that `read` rejects.
    fn scalar<T>(
        &self,
        wanted: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
        found: &mut Found,
    ) -> Option<T> {
        let read = match &self.tree.kind {
            Kind::Scalar(value) => read(value),
            _ => None,
        };
        if read.is_none() {
            self.mismatch(found, wanted);
        }
        read
    }

    /// Reads an integer within bounds.
    pub(super) fn integer(&self, within: RangeInclusive<i64>, found: &mut Found) -> Option<i64> {
        let wanted = format!("an integer from {} to {}", within.start(), within.end());
        self.scalar(&wanted, |value| value.as_i64().filter(|n| within.contains(n)), found)
    }

    pub(super) fn number(&self, found: &mut Found) -> Option<f64> {
        self.scalar("a number", Value::as_f64, found)
    }

    /// Reads a duration above zero in Go's notation.
    pub(super) fn duration(&self, found: &mut Found) -> Option<Duration> {
        let read = |value: &Value| value.as_str().and_then(duration::parse).filter(|read| !read.is_zero());
        self.scalar("a duration above 0, such as 15s, 1m30s or 1h", read, found)
    }

    pub(super) fn boolean(&self, found: &mut Found) -> Option<bool> {
        self.scalar("true or false", Value::as_bool, found)
    }

    pub(super) fn string(&self, found: &mut Found) -> Option<&'a str> {
        self.scalar("a string", Value::as_str, found)
    }

    /// Reads a non-empty string.
    pub(super) fn name(&self, found: &mut Found) -> Option<&'a str> {
        let read = self.string(found)?;
        if read.is_empty() {
            found.add(&self.at, "must not be empty, got \"\"");
            return None;
        }
        Some(read)
    }
}

/// The fields of an object. A field that is `null` counts as absent.
pub(super) struct Fields<'a> {
    fields: Vec<(&'a str, Cursor<'a>)>,
}

impl<'a> Fields<'a> {
    /// Returns a field if it is present and not `null`.
    pub(super) fn get(&self, name: &str) -> Option<&Cursor<'a>> {
        let (_, cursor) = self.fields.iter().find(|(field, _)| *field == name)?;
        (cursor.tree.kind != Kind::Null).then_some(cursor)
    }
}

/// Formats a value as JSON, truncated when it is long.
pub(super) fn shown(tree: &Tree) -> String {
    const LIMIT: usize = 80;
    let text = tree.to_value().to_string();
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn unknown_field(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(field) => format!("unknown field; did you mean {field}?"),
        None => format!("unknown field; known here: {}", known.join(", ")),
    }
}
