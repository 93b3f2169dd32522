//! The token of `continue`: which snapshot a walk through pages reads, where it stands, and what it was asked.
//!
//! Its text is `<generation>-<offset>-<milliseconds since 1970>-<hash of the parameters>`. Clients treat it as opaque.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use pellucid_model::Now;

use super::params::CONTINUE;
use crate::endpoint::{PathParams, ReadError};

/// Parameters that may differ from page to page.
const FREE: [&str; 3] = [CONTINUE, "limit", "fields"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Token {
    generation: u64,
    /// Items on the pages before.
    pub(super) offset: usize,
    /// Wall time at which the walk began, in whole milliseconds: ages are those of then on every page.
    pub(super) started: Duration,
    asked: u64,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { generation, offset, started, asked } = self;
        write!(f, "{generation}-{offset}-{}-{asked:x}", started.as_millis())
    }
}

impl Token {
    /// Returns the token of a request: the one it carries, or that of a first page. Fails when it carries one of another
    /// list, of other parameters, or none that was given out.
    pub(super) fn of(params: &PathParams, generation: u64, now: Now) -> Result<Self, ReadError> {
        let asked = asked(params);
        let started = Duration::from_millis(now.wall.as_millis() as u64);
        let Some(text) = params.get(CONTINUE) else {
            return Ok(Self { generation, offset: 0, started, asked });
        };
        let token = parse(text).ok_or_else(|| malformed(text))?;
        if token.asked != asked {
            let message =
                "parameter `continue` is of a list with other parameters; send the same ones on every page, \
                           only `limit` and `fields` may differ"
                    .to_owned();
            return Err(ReadError::BadRequest { code: "InvalidContinue", message });
        }
        Ok(token)
    }

    /// Returns the token of the page that begins after `offset` items.
    pub(super) fn at(self, offset: usize) -> Self {
        Self { offset, ..self }
    }
}

/// Returns the generation of the snapshot that a request goes on with, or `None` for a first page. Fails when the token
/// is none that was given out.
pub fn generation_of(text: Option<&str>) -> Result<Option<u64>, ReadError> {
    let Some(text) = text else { return Ok(None) };
    parse(text).map(|token| Some(token.generation)).ok_or_else(|| malformed(text))
}

fn parse(text: &str) -> Option<Token> {
    let mut parts = text.split('-');
    let mut part = || parts.next();
    let token = Token {
        generation: part()?.parse().ok()?,
        offset: part()?.parse().ok()?,
        started: Duration::from_millis(part()?.parse().ok()?),
        asked: u64::from_str_radix(part()?, 16).ok()?,
    };
    // Another spelling of the same numbers was not given out either.
    (parts.next().is_none() && token.to_string() == text).then_some(token)
}

fn malformed(text: &str) -> ReadError {
    let shown: String = text.chars().take(100).collect();
    let message = format!(
        "parameter `continue` has the value `{shown}`: it must be `meta.continue` of the page before"
    );
    ReadError::BadRequest { code: "InvalidContinue", message }
}

/// Returns a hash of the parameters that must be the same on every page, those of the path included.
fn asked(params: &PathParams) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, value) in params.iter().filter(|(name, _)| !FREE.contains(&name.as_str())) {
        hasher.write(name.as_bytes());
        hasher.write_u8(0xff);
        hasher.write(value.as_bytes());
        hasher.write_u8(0xff);
    }
    hasher.finish()
}
