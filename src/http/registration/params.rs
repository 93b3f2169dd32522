//! Request parameters: their declaration, validation and access.
//!
//! The server validates a request against the declarations before a read sees it, so a read finds only declared names
//! with values of the declared kind. Decoding is strict: invalid percent-encoded UTF-8 is rejected, never repaired.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;

use crate::error::ReadError;

/// Part of the URL that contains a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// A `:name` segment of the path template.
    Path,
    /// `?name=value` in the query.
    Query,
}

/// Type of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    String,
    /// A non-negative integer.
    Integer,
    /// A whole number from the first to the second of these.
    Range(u64, u64),
    /// `true` or `false`; the bare name means `true`.
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// Declaration of one parameter of a route.
#[derive(Clone, Debug)]
pub struct Param {
    /// Name, as in the path template or the query.
    pub name: String,
    /// Part of the URL that contains the parameter.
    pub location: Location,
    /// Description in the OpenAPI document, in one sentence.
    pub description: String,
    /// Type of the value.
    pub kind: Kind,
    /// A valid value, for the documentation.
    pub example: Option<String>,
}

impl Param {
    /// Declares a path segment with any text.
    pub fn path(name: &str, description: &str) -> Self {
        Self {
            name: name.to_owned(),
            location: Location::Path,
            description: description.to_owned(),
            kind: Kind::String,
            example: None,
        }
    }

    /// Declares an optional query parameter.
    pub fn query(name: &str, kind: Kind, description: &str) -> Self {
        Self { location: Location::Query, kind, ..Self::path(name, description) }
    }

    /// Sets a valid value for the documentation.
    #[must_use]
    pub fn example(mut self, value: &str) -> Self {
        self.example = Some(value.to_owned());
        self
    }
}

/// Validated parameters and body of one request.
#[derive(Clone, Debug, Default)]
pub struct Params {
    values: Vec<(String, String)>,
    /// A JSON text.
    body: Option<String>,
}

impl Params {
    /// Sets the JSON body of a `POST`. Fails when the text is no JSON.
    pub fn with_body(mut self, body: String) -> Result<Self, ReadError> {
        serde_json::from_str::<IgnoredAny>(&body).map_err(|error| unreadable(&error))?;
        self.body = Some(body);
        Ok(self)
    }

    /// Deserialises the JSON body of a `POST`, from its text: as values of any kind it would take many times the memory. The
    /// error says where it does not match.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, ReadError> {
        serde_json::from_str(self.body.as_deref().unwrap_or("null")).map_err(|error| unreadable(&error))
    }

    /// Returns the value of a parameter, if the request has it.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns names and values of all parameters of the request.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the value of a required parameter.
    pub fn required(&self, name: &str) -> Result<&str, ReadError> {
        let missing = || ReadError::BadRequest("MissingParameter", format!("parameter `{name}` is required"));
        self.text(name).ok_or_else(missing)
    }

    /// Parses the value of a parameter. The error names the parameter and the value.
    pub fn parsed<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, ReadError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|error: T::Err| invalid(name, text, &error.to_string()))
    }

    /// Returns the value of an integer parameter.
    pub fn integer(&self, name: &str) -> Result<Option<u64>, ReadError> {
        self.within(name, 0, u64::MAX)
    }

    /// Returns the value of an integer parameter within bounds. The error names the parameter, the value and the bounds.
    fn within(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, ReadError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        // `parse` alone would accept a leading plus sign.
        let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits_only && (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(invalid(name, text, &format!("it must be a whole number from {least} to {most}"))),
        }
    }

    /// Returns the value of a boolean parameter. The bare name means `true`.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>, ReadError> {
        match self.text(name) {
            None => Ok(None),
            Some("true" | "1" | "") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(text) => Err(invalid(name, text, "it must be `true` or `false`")),
        }
    }

    /// Parses and validates a raw path and query.
    ///
    /// Invariant: `raw_path` has matched `template`, so both have the same number of segments.
    pub(crate) fn read(
        template: &str,
        raw_path: &str,
        raw_query: &str,
        declared: &[Param],
    ) -> Result<Self, ReadError> {
        let mut params = Self::default();
        for (pattern, raw) in template.split('/').zip(raw_path.split('/')) {
            if let Some(name) = pattern.strip_prefix(':') {
                let value = decode(raw, false).ok_or_else(|| malformed("path", raw))?;
                params.values.push((name.to_owned(), value));
            }
        }
        for pair in raw_query.split('&').filter(|pair| !pair.is_empty()) {
            let (raw_name, raw_value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(name), Some(value)) = (decode(raw_name, true), decode(raw_value, true)) else {
                return Err(malformed("query", pair));
            };
            params.add_query(name, value, declared)?;
        }
        for param in declared {
            params.check(param)?;
        }
        Ok(params)
    }

    fn add_query(&mut self, name: String, value: String, declared: &[Param]) -> Result<(), ReadError> {
        let known = || declared.iter().filter(|param| param.location == Location::Query);
        if !known().any(|param| param.name == name) {
            let names: Vec<&str> = known().map(|param| param.name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let message = format!("query parameter `{}` is not known here; known: {known}", shortened(&name));
            return Err(ReadError::BadRequest("UnknownParameter", message));
        }
        if self.text(&name).is_some() {
            let message = format!("query parameter `{name}` is given more than once");
            return Err(ReadError::BadRequest("RepeatedParameter", message));
        }
        self.values.push((name, value));
        Ok(())
    }

    fn check(&self, param: &Param) -> Result<(), ReadError> {
        match param.kind {
            Kind::String => Ok(()),
            Kind::Integer => self.integer(&param.name).map(drop),
            Kind::Range(least, most) => self.within(&param.name, least, most).map(drop),
            Kind::Boolean => self.boolean(&param.name).map(drop),
            Kind::Choice(words) => match self.text(&param.name) {
                Some(text) if !words.contains(&text) => {
                    Err(invalid(&param.name, text, &format!("it must be one of {}", words.join(", "))))
                }
                _ => Ok(()),
            },
        }
    }
}

fn unreadable(error: &serde_json::Error) -> ReadError {
    match error.classify() {
        Category::Data => {
            let why = shortened(&error.to_string());
            ReadError::BadRequest("InvalidBody", format!("the body is not what is expected here: {why}"))
        }
        // Such as an unclosed bracket, or brackets within each other beyond a limit.
        Category::Syntax | Category::Eof | Category::Io => {
            ReadError::BadRequest("MalformedJson", format!("the body is not JSON: {error}"))
        }
    }
}

/// Decodes percent-encoded UTF-8; `None` when it is invalid.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Returns the error for invalid percent-encoded UTF-8.
pub(crate) fn malformed(place: &str, raw: &str) -> ReadError {
    let message = format!("the {place} `{}` is not percent-encoded UTF-8", shortened(raw));
    ReadError::BadRequest("MalformedUrl", message)
}

fn invalid(name: &str, value: &str, why: &str) -> ReadError {
    let message = format!("parameter `{name}` has the value `{}`: {why}", shortened(value));
    ReadError::BadRequest("InvalidParameter", message)
}

/// Shortens a client's text, so that a response does not repeat a long request.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_strictly() {
        for (raw, decoded) in [
            ("a%20b", Some("a b")),
            ("a+b", Some("a b")),
            ("%c3%A9", Some("é")),
            ("%", None),
            ("%4", None),
            ("%zz", None),
            ("%+1", None),
            ("%ff", None),
        ] {
            assert_eq!(decode(raw, true).as_deref(), decoded, "{raw}");
        }
        assert_eq!(decode("a+b", false).as_deref(), Some("a+b"));
    }

    #[test]
    fn a_number_beyond_its_range_is_refused_with_the_range() {
        let declared = [Param::query("max", Kind::Range(0, 20), "How many")];
        let read = |query: &str| Params::read("/x", "/x", query, &declared).map(drop);
        for query in ["", "max=0", "max=20"] {
            assert_eq!(read(query), Ok(()), "{query}");
        }
        for value in ["-1", "21", "+3", "", "18446744073709551616"] {
            let message =
                format!("parameter `max` has the value `{value}`: it must be a whole number from 0 to 20");
            let error = read(&format!("max={}", value.replace('+', "%2B")));
            assert_eq!(error, Err(ReadError::BadRequest("InvalidParameter", message)));
        }
    }

    #[test]
    fn errors_name_the_parameter_and_the_value() {
        let params = |pairs: &[(&str, &str)]| {
            let values =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Params { values, body: None }
        };
        let small: Result<Option<u8>, ReadError> = params(&[("n", "300")]).parsed("n");
        assert!(small.unwrap_err().to_string().contains("`300`"));
        assert!(params(&[("n", "+3")]).integer("n").is_err());
        let params = params(&[("limit", "-3"), ("detail", "maybe"), ("node", "n1")]);
        assert_eq!(params.required("node").unwrap(), "n1");
        for error in [params.integer("limit").unwrap_err(), params.boolean("detail").unwrap_err()] {
            let text = error.to_string();
            let expected = ["`limit` has the value `-3`", "`detail` has the value `maybe`"];
            assert!(expected.iter().any(|part| text.contains(part)), "{text}");
        }
        assert!(params.required("pod").unwrap_err().to_string().contains("`pod`"));
    }
}
