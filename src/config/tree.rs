//! A YAML or JSON document as a tree that remembers lines.
//!
//! Typed decoding stops at the first mistake. A person with a configuration file wants all of them, each
//! with its line, so the file becomes this tree first and [`super::reader`] takes typed values out of it.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Error, Spanned};

/// Objects and lists within each other. Real files have a dozen; reading is recursive, and the stack ends.
const DEEPEST: usize = 32;

/// A value with the line it starts on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    /// Line, from 1; 0 when the source has none.
    pub line: u64,
    /// The value.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// Absent or `null`: both mean the default.
    Null,
    /// A boolean, a number or a string.
    Scalar(Value),
    /// A sequence.
    List(Vec<Tree>),
    /// A mapping, in the order of the file.
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// Reads one document. Several documents, nesting beyond any file and unreadable syntax are errors.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: DEEPEST, flow_nesting_limit: DEEPEST },
            // Only `true` and `false` are: the tree has no type to tell `no` the word from `no` the answer.
            strict_booleans: true,
            // Repeated fields are kept, to be reported with everything else.
            duplicate_keys: DuplicateKeyPolicy::LastWins,
            with_snippet: false,
        };
        serde_saphyr::from_str_with_options(text, options)
    }

    /// Calls back for every field that repeats an earlier one of its object, with the path of the object.
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

    /// Returns the value without lines.
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

    /// Returns the value at a path such as `scoringStrategy.resources[0].name`, or the nearest above it.
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
                Some(found) => at = found,
                None => return at,
            }
        }
        at
    }
}

/// Returns the path of a field or, with brackets, of an item.
pub(super) fn join(path: &str, step: &str) -> String {
    let dot = if path.is_empty() || step.starts_with('[') { "" } else { "." };
    format!("{path}{dot}{step}")
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Spanned::<Kind>::deserialize(deserializer)?;
        Ok(Self { line: read.referenced.line(), kind: read.value })
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
