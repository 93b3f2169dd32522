//! AdmissionReview v1: the body that is sent, and what an answer means.
//!
//! Pure functions on JSON.

use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Operation, Write};
use crate::fields::{list, text};
use crate::kinds::registry::Kind;

/// What a webhook answered.
#[derive(Debug)]
pub(super) struct Verdict {
    /// The `status` of a denial, null if the webhook gives none; `None` if the write is allowed.
    pub(super) denial: Option<Value>,
    /// A JSON patch.
    pub(super) patch: Option<Value>,
    pub(super) warnings: Vec<String>,
}

/// Returns group, version and kind of what a write carries.
fn body_kind(write: &Write<'_>, kind: &Kind) -> Value {
    let body = kind.subresource(write.subresource).filter(|found| !found.kind.is_empty());
    let (mut group, mut version) = (&*kind.group, &*kind.version);
    if let Some((own_group, own_version)) = body.and_then(|found| found.body) {
        (group, version) = (own_group, own_version);
    }
    json!({"group": group, "version": version, "kind": body.map_or(&*kind.kind, |found| found.kind)})
}

/// Returns an object with the apiVersion and kind under which a webhook sees it.
pub(super) fn typed(write: &Write<'_>, kind: &Kind, object: &Value) -> Value {
    let mut object = object.clone();
    let body = body_kind(write, kind);
    object["apiVersion"] = match text(&body["group"]) {
        "" => body["version"].clone(),
        group => format!("{group}/{}", text(&body["version"])).into(),
    };
    object["kind"] = body["kind"].clone();
    object
}

/// Returns the review of a write. `kind` is the kind as which the webhook is asked.
pub(super) fn request(uid: &str, write: &Write<'_>, kind: &Kind, [object, old]: [Option<Value>; 2]) -> Value {
    let resource =
        |kind: &Kind| json!({"group": kind.group, "version": kind.version, "resource": kind.plural});
    let options = match write.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut request = json!({
        "uid": uid, "kind": body_kind(write, kind), "resource": resource(kind),
        "requestKind": body_kind(write, write.kind), "requestResource": resource(write.kind),
        "operation": write.operation.name(),
        "userInfo": {"username": write.requester.user, "groups": write.requester.groups},
        "object": object, "oldObject": old, "dryRun": write.dry_run,
        "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"}
    });
    let texts = [
        ("name", write.name),
        ("namespace", write.namespace),
        ("subResource", write.subresource),
        ("requestSubResource", write.subresource),
    ];
    for (key, value) in texts.into_iter().filter(|(_, value)| !value.is_empty()) {
        request[key] = value.into();
    }
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
}

/// Reads the answer to the review with a uid. Fails with what is wrong with it.
pub(super) fn verdict(uid: &str, answer: &[u8]) -> Result<Verdict, String> {
    let review: Value = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    let (version, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
    if (version, kind) != ("admission.k8s.io/v1", "AdmissionReview") {
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {version}, Kind={kind}"
        ));
    }
    let response = &review["response"];
    if !response.is_object() {
        return Err("webhook response was absent".to_owned());
    }
    if response["uid"] != uid {
        return Err(format!("expected response.uid={uid:?}, got {:?}", text(&response["uid"])));
    }
    let Some(is_allowed) = response["allowed"].as_bool() else {
        return Err("response.allowed is no boolean".to_owned());
    };
    let warnings = list(&response["warnings"]).iter().map(|warning| text(warning).to_owned()).collect();
    let patch = patch(response)?.filter(|_| is_allowed);
    Ok(Verdict { denial: (!is_allowed).then(|| response["status"].clone()), patch, warnings })
}

fn patch(response: &Value) -> Result<Option<Value>, String> {
    let patch_type = text(&response["patchType"]);
    if response["patch"].is_null() || response["patch"] == "" {
        return match patch_type {
            "" => Ok(None),
            _ => Err("webhook returned response.patchType but not response.patch".to_owned()),
        };
    }
    match patch_type {
        "JSONPatch" => {}
        "" => return Err("webhook returned response.patch but not response.patchType".to_owned()),
        other => return Err(format!("webhook returned invalid response.patchType of {other:?}")),
    }
    let bytes = ByteString::deserialize(&response["patch"]).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes.0).map(Some).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(response: Value) -> Result<Verdict, String> {
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        verdict("u", review.to_string().as_bytes())
    }

    #[test]
    fn answers_are_read() {
        let allowed =
            read(json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": "W10=", "warnings": ["w"]}))
                .unwrap();
        assert_eq!(
            (allowed.denial, allowed.patch, allowed.warnings),
            (None, Some(json!([])), vec!["w".into()])
        );
        let denied = read(json!({"uid": "u", "allowed": false, "status": {"message": "m"}})).unwrap();
        assert_eq!(denied.denial, Some(json!({"message": "m"})));
    }

    #[test]
    fn wrong_answers_are_refused_with_what_is_wrong() {
        for (response, expected) in [
            (json!(null), "webhook response was absent"),
            (json!({"uid": "v", "allowed": true}), "expected response.uid=\"u\", got \"v\""),
            (json!({"uid": "u"}), "response.allowed is no boolean"),
            (
                json!({"uid": "u", "allowed": true, "patch": "W10="}),
                "response.patch but not response.patchType",
            ),
            (
                json!({"uid": "u", "allowed": true, "patchType": "JSONPatch"}),
                "patchType but not response.patch",
            ),
            (json!({"uid": "u", "allowed": true, "patchType": "x", "patch": "W10="}), "patchType of \"x\""),
            (json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": "%"}), "Invalid"),
            (json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": "Ww=="}), "EOF"),
        ] {
            let why = read(response.clone()).unwrap_err();
            assert!(why.contains(expected), "{response}: {why}");
        }
        assert!(verdict("u", b"no JSON").unwrap_err().contains("expected"));
        let other = json!({"apiVersion": "v1", "kind": "Status"}).to_string();
        assert!(verdict("u", other.as_bytes()).unwrap_err().ends_with("got v1, Kind=Status"));
    }
}
