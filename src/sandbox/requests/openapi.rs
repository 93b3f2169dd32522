//! `/openapi/v2`: a document without paths or definitions, which is enough for `kubectl apply`.
//!
//! kubectl requests the protobuf form. Its few fields are encoded by hand: field 1 `swagger`, field 2 `info` (1
//! `title`, 2 `version`), field 8 `paths` (empty).

use bytes::Bytes;
use serde_json::json;

/// The content type of the protobuf form.
pub(crate) const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

const TITLE: &str = "Pellucid sandbox";
const VERSION: &str = "v1.36.0";

/// Returns the document as protobuf.
pub(crate) fn protobuf() -> Bytes {
    let mut info = Vec::new();
    field(&mut info, 1, TITLE.as_bytes());
    field(&mut info, 2, VERSION.as_bytes());
    let mut document = Vec::new();
    field(&mut document, 1, b"2.0");
    field(&mut document, 2, &info);
    field(&mut document, 8, b"");
    document.into()
}

/// Appends a length-delimited field. The content must be shorter than 128 bytes.
fn field(out: &mut Vec<u8>, number: u8, content: &[u8]) {
    debug_assert!(content.len() < 128, "a longer field would need a longer length");
    out.push(number << 3 | 2);
    out.push(content.len() as u8);
    out.extend_from_slice(content);
}

/// Returns the document as JSON.
pub(crate) fn json() -> Bytes {
    let document = json!({"swagger": "2.0", "info": {"title": TITLE, "version": VERSION}, "paths": {}});
    crate::requests::render::to_bytes(&document)
}
