//! Continue tokens: the last key of a page, and the revision of the list.
//!
//! A token is the base64 of `{"v": …, "rv": revision, "start": key + NUL}`, as on a real server. Revision -1 means the
//! current one.

use serde_json::{Value, json};

use crate::errors::{ApiError, ApiResult};
use crate::store::Key;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A decoded continue token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContinueToken {
    /// The revision of the list, or `None` for the current one.
    pub revision: Option<u64>,
    /// The last key of the page.
    pub after: Key,
}

impl ContinueToken {
    /// Encodes the token.
    pub(crate) fn encode(&self) -> String {
        let (namespace, name) = &self.after;
        let start =
            if namespace.is_empty() { format!("{name}\u{0}") } else { format!("{namespace}/{name}\u{0}") };
        let revision = self.revision.map_or_else(|| json!(-1), |revision| json!(revision));
        encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start}).to_string().as_bytes())
    }

    /// Decodes a token.
    pub(crate) fn decode(text: &str) -> ApiResult<Self> {
        let refuse = |why: String| {
            ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = decode(text).map_err(|at| refuse(format!("illegal base64 data at input byte {at}")))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|_| {
            let first = char::from(bytes.first().copied().unwrap_or_default());
            refuse(format!("invalid character '{first}' looking for beginning of value"))
        })?;
        if value["v"] != "meta.k8s.io/v1" {
            let why = format!("server does not recognize this encoded version {}", value["v"]);
            return Err(refuse(why));
        }
        let start =
            value["start"].as_str().unwrap_or_default().trim_end_matches('\u{0}').trim_start_matches('/');
        let (namespace, name) = start.split_once('/').unwrap_or(("", start));
        Ok(Self { revision: value["rv"].as_u64(), after: (namespace.into(), name.into()) })
    }
}

fn encode(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            out.push(char::from(ALPHABET[(word >> (18 - 6 * place) & 63) as usize]));
        }
    }
    out
}

/// Decodes base64. Fails with the position of the first invalid character.
fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let mut out = Vec::new();
    let (mut word, mut bits) = (0_u32, 0);
    for (at, byte) in text.bytes().enumerate() {
        let value = ALPHABET.iter().position(|letter| *letter == byte).ok_or(at)?;
        word = word << 6 | value as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
            word &= (1 << bits) - 1;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_the_round_trip() {
        let token = ContinueToken { revision: Some(218), after: ("wire".into(), "pod-1".into()) };
        assert_eq!(ContinueToken::decode(&token.encode()).expect("own token"), token);
        let current = ContinueToken { revision: None, after: ("".into(), "w1".into()) };
        assert_eq!(ContinueToken::decode(&current.encode()).expect("own token"), current);
    }

    #[test]
    fn nonsense_is_a_bad_request() {
        assert_eq!(ContinueToken::decode("xxx").expect_err("nonsense").code, 400);
        assert_eq!(ContinueToken::decode("*").expect_err("nonsense").code, 400);
    }
}
