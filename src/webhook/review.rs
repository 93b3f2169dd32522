//! AdmissionReview v1: reads the request, and writes the response.

use pellucid_http::ReadError;
use serde_json::{Value, json};

/// What is asked.
pub(crate) struct Review<'a> {
    uid: &'a str,
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub(crate) operation: &'a str,
    pub(crate) resource: &'a str,
    /// The object as it would be; null for a delete.
    pub(crate) object: &'a Value,
    /// The object as it is; null for a create.
    pub(crate) old: &'a Value,
}

/// Reads a review. Fails with 400 when it is none, which the API server shows as a failed call.
pub(crate) fn read(body: &Value) -> Result<Review<'_>, ReadError> {
    let refuse = |why: String| ReadError::BadRequest("NoAdmissionReview", why);
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&body["apiVersion"]), text(&body["kind"]));
    if (version.as_str(), kind.as_str()) != ("admission.k8s.io/v1", "AdmissionReview") {
        return Err(refuse(format!(
            "the body is no admission.k8s.io/v1 AdmissionReview, but apiVersion {version:?}, kind {kind:?}"
        )));
    }
    let request = &body["request"];
    let field = |key: &str| request[key].as_str().filter(|text| !text.is_empty());
    let uid = field("uid").ok_or_else(|| refuse("request.uid is missing".to_owned()))?;
    let operation = field("operation").ok_or_else(|| refuse("request.operation is missing".to_owned()))?;
    let resource = request["resource"]["resource"].as_str().unwrap_or_default();
    let (object, old) = (&request["object"], &request["oldObject"]);
    let is_there = match operation {
        "CREATE" => object.is_object(),
        "UPDATE" => object.is_object() && old.is_object(),
        "DELETE" => old.is_object(),
        other => return Err(refuse(format!("request.operation {other:?} is not reviewed here"))),
    };
    if !is_there {
        return Err(refuse(format!("a {operation} comes without object or oldObject")));
    }
    Ok(Review { uid, operation, resource, object, old })
}

impl Review<'_> {
    fn answer(&self, response: Value) -> Value {
        let mut response = response;
        response["uid"] = self.uid.into();
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    }

    /// Allows the write, with a JSON patch if there is any.
    pub(crate) fn allow(&self, patch: &[Value]) -> Value {
        if patch.is_empty() {
            return self.answer(json!({"allowed": true}));
        }
        let text = base64(Value::from(patch).to_string().as_bytes());
        self.answer(json!({"allowed": true, "patchType": "JSONPatch", "patch": text}))
    }

    /// Allows the write if there are no problems, else refuses it with all of them.
    pub(crate) fn judge(&self, problems: &[String]) -> Value {
        if problems.is_empty() {
            return self.allow(&[]);
        }
        let status = json!({"code": 403, "reason": "Forbidden", "message": problems.join("; ")});
        self.answer(json!({"allowed": false, "status": status}))
    }
}

/// Returns the JSON patch that sets entries of a map in the metadata, which may be absent.
pub(crate) fn set_entries<'a>(
    object: &Value,
    map: &str,
    entries: impl IntoIterator<Item = (&'a &'static str, &'a String)>,
) -> Vec<Value> {
    let path = format!("/metadata/{map}");
    let mut patch = Vec::new();
    for (key, value) in entries {
        if patch.is_empty() && !object["metadata"][map].is_object() {
            patch.push(json!({"op": "add", "path": path, "value": {}}));
        }
        // RFC 6901: `/` within a name is written `~1`.
        let name = key.replace('~', "~0").replace('/', "~1");
        patch.push(json!({"op": "add", "path": format!("{path}/{name}"), "value": value}));
    }
    patch
}

/// Writes bytes in base64 (RFC 4648, with padding).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        let shown = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(shown, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn what_is_no_review_is_refused_with_what_is_missing() {
        let review = |request: Value| json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        for (body, expected) in [
            (json!({}), "is no admission.k8s.io/v1 AdmissionReview"),
            (json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}), "v1beta1"),
            (review(json!({})), "request.uid is missing"),
            (review(json!({"uid": "u"})), "request.operation is missing"),
            (review(json!({"uid": "u", "operation": "CONNECT"})), "\"CONNECT\" is not reviewed here"),
            (review(json!({"uid": "u", "operation": "UPDATE", "object": {}})), "a UPDATE comes without"),
        ] {
            let why = read(&body).map(|_| ()).unwrap_err();
            assert!(format!("{why:?}").contains(&expected.replace('"', "\\\"")), "{body}: {why:?}");
        }
    }

    #[test]
    fn entries_are_set_in_maps_that_may_be_absent() {
        let entries = [(&"a.b/c", &"v".to_owned())];
        let add = json!({"op": "add", "path": "/metadata/labels/a.b~1c", "value": "v"});
        assert_eq!(
            set_entries(&json!({"metadata": {"labels": {}}}), "labels", entries),
            std::slice::from_ref(&add)
        );
        let made = json!({"op": "add", "path": "/metadata/labels", "value": {}});
        assert_eq!(set_entries(&json!({}), "labels", entries), [made, add]);
    }
}
