//! A YAML or JSON document as a tree with line numbers.
//!
//! Typed decoding stops at the first mistake, but the user should see all of them with their lines. The file is
//! therefore parsed into this tree first, and [`super::reader`] reads typed values from it.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Error, Spanned};

/// Maximum nesting of objects and lists. Real files have about a dozen levels; parsing is recursive, and the stack is
/// finite.
const DEEPEST: usize = 32;

/// A value with the line on which it starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    /// Line, counted from 1; `None` when the source has no lines.
    pub line: Option<u64>,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// Absent or `null`; both mean the default.
    Null,
    /// A boolean, a number or a string.
    Scalar(Value),
    List(Vec<Tree>),
    /// A mapping, in the order of the file. May contain repeated keys.
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// Parses one document. Fails on several documents, excessive nesting and invalid syntax.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: DEEPEST, flow_nesting_limit: DEEPEST },
            // Only `true` and `false` are booleans: the tree has no type to distinguish the word `no` from the answer
            // `no`.
            strict_booleans: true,
            // Repeated fields stay in the tree, so that they are reported with all other problems.
            duplicate_keys: DuplicateKeyPolicy::LastWins,
            with_snippet: false,
        };
        serde_saphyr::from_str_with_options(text, options)
    }

    /// Calls `report` for every field that repeats an earlier field of its object, with the path of the object.
    pub(super) fn repeated(&self, path: &str, report: &mut impl FnMut(&str, &str, &Self)) {
        match &self.kind {
            Kind::Null | Kind::Scalar(_) => {}
            Kind::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.repeated(&join(path, &format!("[{index}]")), report);
                }
            }
            Kind::Map(fields) => {
                let mut seen = BTreeSet::new();
                for (name, value) in fields {
                    if !seen.insert(name) {
                        report(path, name, value);
                    }
                    value.repeated(&join(path, name), report);
                }
            }
        }
    }

    /// Returns the value without line numbers.
    pub(super) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => items.iter().map(Self::to_value).collect(),
            Kind::Map(fields) => {
                let fields = fields.iter().map(|(name, value)| (name.clone(), value.to_value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// Returns the value at a path such as `scoringStrategy.resources[0].name`, or its nearest existing ancestor.
    pub(super) fn nearest(&self, path: &str) -> &Self {
        let mut at = self;
        for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
            let next = match &at.kind {
                Kind::Map(fields) => fields.iter().find(|(name, _)| name == step).map(|(_, value)| value),
                Kind::List(items) => {
                    step.trim_end_matches(']').parse().ok().and_then(|i: usize| items.get(i))
                }
                Kind::Null | Kind::Scalar(_) => None,
            };
            match next {
                Some(diagnostics) => at = diagnostics,
                None => return at,
            }
        }
        at
    }
}

/// Returns the path of a field or, with brackets, of a list item.
pub(super) fn join(path: &str, step: &str) -> String {
    let dot = if path.is_empty() || step.starts_with('[') { "" } else { "." };
    format!("{path}{dot}{step}")
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Spanned::<Kind>::deserialize(deserializer)?;
        let line = Some(read.referenced.line()).filter(|line| *line > 0);
        Ok(Self { line, kind: read.value })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }
    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }
    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        Kind::deserialize(deserializer)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        let number = Number::from_f64(value).map(Value::Number);
        Ok(Kind::Scalar(number.unwrap_or_else(|| value.to_string().into())))
    }
    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Kind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Kind::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Kind, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = access.next_entry::<String, Tree>()? {
            fields.push(field);
        }
        Ok(Kind::Map(fields))
    }
}
