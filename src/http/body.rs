//! Reads request bodies: checks their type, and limits their length and their time to arrive.

use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::error::Failure;
use crate::registration::params::shortened;

/// Fails unless the body declares one of the accepted types. The error suggests the first one.
///
/// A body without a type could come from any page: browsers send it without asking the server first.
pub(super) fn check_type(headers: &HeaderMap, accepted: &[&str]) -> Result<(), Failure> {
    let unsupported = |what: &str| {
        let message = format!("{what}; send it as {}", accepted.first().unwrap_or(&"text"));
        Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message))
    };
    if headers.contains_key(header::CONTENT_ENCODING) {
        return unsupported("compressed bodies are not read");
    }
    let Some(given) = headers.get(header::CONTENT_TYPE) else {
        return if has_body(headers) { unsupported("the body has no Content-Type") } else { Ok(()) };
    };
    let given = given.to_str().unwrap_or("(not text)");
    let kind = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if accepted.contains(&kind.as_str()) {
        return Ok(());
    }
    unsupported(&format!("a body of type `{}` is not read", shortened(given)))
}

fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(header::TRANSFER_ENCODING)
        || headers.get(header::CONTENT_LENGTH).is_some_and(|length| length != "0")
}

/// Reads a text body. Fails when it is too long, late, incomplete or no UTF-8. A body that declares too great a length
/// is not read.
pub(super) async fn read_text(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    patience: Duration,
) -> Result<String, Failure> {
    let too_long = || {
        let message = format!("the body is longer than {limit} bytes");
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "BodyTooLarge", message).with(header::CONNECTION, "close")
    };
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_long());
    }
    let bad = |code, message: &str| Failure::new(StatusCode::BAD_REQUEST, code, message);
    let collected = tokio::time::timeout(patience, Limited::new(body, limit).collect());
    let bytes = match collected.await {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_long()),
        Ok(Err(_)) => return Err(bad("BodyIncomplete", "the body broke off")),
        Err(_) => return Err(bad("BodyTimeout", "the body did not arrive in time")),
    };
    String::from_utf8(bytes.to_vec()).map_err(|_| bad("BodyNotText", "the body is not UTF-8 text"))
}
