//! The errors of a Kubernetes API server.
//!
//! [`ApiError`] has the fields of a `metav1.Status`. The constructors hold the messages that clients match on; they
//! know nothing of stores or requests.

use std::borrow::Cow;

use serde_json::{Value, json};

/// The error response to a request.
#[derive(Clone, Debug)]
pub(super) struct ApiError {
    pub code: u16,
    /// The machine-readable reason, empty if there is none.
    pub reason: Cow<'static, str>,
    /// The message for people.
    pub message: String,
    /// The `details` of the Status.
    pub details: Option<Value>,
    /// The continue token with which a client can resume a list after a 410.
    pub continue_token: Option<String>,
}

/// Result of an operation. The error is boxed because it is large and rare.
pub(super) type ApiResult<T> = Result<T, Box<ApiError>>;

/// A field that failed validation.
#[derive(Clone, Debug)]
pub(super) struct FieldError {
    /// The `reason` of the cause, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// The message, without the field's path.
    pub message: String,
    pub field: String,
}

impl FieldError {
    fn new(reason: &'static str, field: impl Into<String>, message: String) -> Self {
        Self { reason, message, field: field.into() }
    }

    /// Returns the error for a value that breaks a rule.
    pub(super) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"))
    }

    pub(super) fn required(field: impl Into<String>, why: &str) -> Self {
        let message = if why.is_empty() { "Required value".into() } else { format!("Required value: {why}") };
        Self::new("FieldValueRequired", field, message)
    }

    /// Returns the error for a change that is not allowed.
    pub(super) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    /// Returns the error for a value outside the known set.
    pub(super) fn unsupported(field: impl Into<String>, value: &Value, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|k| format!("\"{k}\"")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", known.join(", "));
        Self::new("FieldValueNotSupported", field, message)
    }

    /// Returns the error for a list with too many items.
    pub(super) fn too_many(field: impl Into<String>, count: usize, most: usize) -> Self {
        let message = format!("Too many: {count}: must have at most {most} items");
        Self::new("FieldValueTooMany", field, message)
    }

    /// Returns the error for a value with too many bytes.
    pub(super) fn too_long(field: impl Into<String>, most: usize) -> Self {
        Self::new("FieldValueTooLong", field, format!("Too long: may not be more than {most} bytes"))
    }

    pub(super) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
    }

    /// Returns the error for a value of the wrong JSON type.
    pub(super) fn wrong_type(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let shown = match value {
            Value::String(_) | Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null => "\"null\"".into(),
            Value::Array(_) => "\"array\"".into(),
            Value::Object(_) => "\"object\"".into(),
        };
        Self::new("FieldValueTypeInvalid", field, format!("Invalid value: {shown}: {why}"))
    }
}

impl ApiError {
    fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            code,
            reason: reason.into(),
            message: message.into(),
            details: None,
            continue_token: None,
        })
    }

    fn with(mut self: Box<Self>, details: Value) -> Box<Self> {
        self.details = Some(details);
        self
    }

    /// Returns a 400 for a malformed request.
    pub(super) fn bad_request(message: impl Into<String>) -> Box<Self> {
        Self::new(400, "BadRequest", message)
    }

    /// Returns a 404 for an object that does not exist.
    pub(super) fn not_found(group: &str, resource: &str, name: &str) -> Box<Self> {
        let message = format!("{} \"{name}\" not found", qualified(resource, group));
        Self::new(404, "NotFound", message).with(details(name, group, resource))
    }

    /// Returns a 404 for a resource that the group and version do not serve.
    pub(super) fn no_resource() -> Box<Self> {
        Self::new(404, "NotFound", "the server could not find the requested resource").with(json!({}))
    }

    /// Returns a 409 for an object that already exists.
    pub(super) fn already_exists(group: &str, resource: &str, name: &str) -> Box<Self> {
        let message = format!("{} \"{name}\" already exists", qualified(resource, group));
        Self::new(409, "AlreadyExists", message).with(details(name, group, resource))
    }

    /// Returns a 409 for a write that conflicts with the object's state.
    pub(super) fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Box<Self> {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", qualified(resource, group));
        Self::new(409, "Conflict", message).with(details(name, group, resource))
    }

    /// Returns a 409 for a write with an outdated resourceVersion.
    pub(super) fn stale(group: &str, resource: &str, name: &str) -> Box<Self> {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(group, resource, name, why)
    }

    /// Returns a 422 for an object that fails validation.
    pub(super) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Box<Self> {
        let texts: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect();
        let text = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes =
            errors.iter().map(|e| json!({"reason": e.reason, "message": e.message, "field": e.field}));
        let mut about = details(name, group, kind);
        about["causes"] = causes.collect();
        let message = format!("{} \"{name}\" is invalid: {text}", qualified(kind, group));
        Self::new(422, "Invalid", message).with(about)
    }

    /// Returns a 403 for a request that admission rejects.
    pub(super) fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Box<Self> {
        let message = format!("{} \"{name}\" is forbidden: {why}", qualified(resource, group));
        Self::new(403, "Forbidden", message).with(details(name, group, resource))
    }

    /// Returns a 403 for a new object in a terminating namespace.
    pub(super) fn terminating(namespace: &str) -> Box<Self> {
        let message =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let why = format!("namespace {namespace} is being terminated");
        let cause = json!({"reason": "NamespaceTerminating", "message": why, "field": "metadata.namespace"});
        Self::new(403, "Forbidden", message).with(json!({"causes": [cause]}))
    }

    /// Returns a 405 for a verb that the resource does not support.
    pub(super) fn method_not_allowed() -> Box<Self> {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with(json!({}))
    }

    /// Returns a 415 for a body format that the route does not accept.
    pub(super) fn unsupported_media_type() -> Box<Self> {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").with(json!({}))
    }

    /// Returns a 415 for a body format that the resource does not accept, with the accepted ones.
    pub(super) fn media_type_not_accepted(accepted: &str) -> Box<Self> {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// Returns a 413 for a body that is too long.
    pub(super) fn too_large(limit: usize) -> Box<Self> {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// Returns a 413 for a request that exceeds another limit.
    pub(super) fn entity_too_large(why: &str) -> Box<Self> {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity is too large: {why}"))
    }

    /// Returns a 500 without a reason.
    pub(super) fn internal(message: impl Into<String>) -> Box<Self> {
        Self::new(500, "", message)
    }

    /// Returns a 500 with the reason InternalError.
    pub(super) fn internal_error(why: &str) -> Box<Self> {
        let message = format!("Internal error occurred: {why}");
        Self::new(500, "InternalError", message).with(json!({"causes": [{"message": why}]}))
    }

    /// Returns the error for a webhook that could not be asked, or whose answer cannot be used.
    pub(super) fn failed_webhook(name: &str, why: &str) -> Box<Self> {
        Self::internal_error(&format!("failed calling webhook \"{name}\": {why}"))
    }

    /// Returns the error for a write that a webhook denies; `status` is its answer's, null if it has none.
    pub(super) fn denied(name: &str, status: &Value) -> Box<Self> {
        let text = |key: &str| status[key].as_str().unwrap_or_default();
        let why = match (text("message"), text("reason")) {
            ("", "") => " without explanation".to_owned(),
            ("", reason) => format!(": {reason}"),
            (message, _) => format!(": {message}"),
        };
        // A denial is never sent as a success.
        let code = status["code"].as_u64().filter(|code| (400..600).contains(code)).unwrap_or(400);
        let message = format!("admission webhook \"{name}\" denied the request{why}");
        let mut error = Self::new(u16::try_from(code).unwrap_or(400), text("reason").to_owned(), message);
        error.details = status["details"].is_object().then(|| status["details"].clone());
        error
    }

    /// Returns a 410 for history that was dropped.
    pub(super) fn expired(message: impl Into<String>) -> Box<Self> {
        Self::new(410, "Expired", message)
    }

    /// Returns a 410 for a watch that starts before the available history.
    pub(super) fn too_old(revision: u64, oldest: u64) -> Box<Self> {
        Self::expired(format!("too old resource version: {revision} ({oldest})"))
    }

    /// Returns a 504 for a read at a revision that does not exist yet.
    pub(super) fn too_new(revision: u64, current: u64) -> Box<Self> {
        let text = "Too large resource version";
        Self::new(504, "Timeout", format!("Timeout: {text}: {revision}, current: {current}")).with(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": text}], "retryAfterSeconds": 1
        }))
    }

    /// Returns a 429 for an eviction that a disruption budget does not allow now.
    pub(super) fn budget(cause: Value, retry_after: Option<u32>) -> Box<Self> {
        let mut about = json!({"causes": [cause]});
        if let Some(seconds) = retry_after {
            about["retryAfterSeconds"] = seconds.into();
        }
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        Self::new(429, "TooManyRequests", message).with(about)
    }

    pub(super) fn injected(code: u16, retry_after: Option<u32>) -> Box<Self> {
        let reason = match code {
            409 => "Conflict",
            410 => "Expired",
            429 => "TooManyRequests",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "InternalError",
        };
        let mut error = Self::new(code, reason, "injected by a sandbox fault");
        error.details = retry_after.map(|seconds| json!({"retryAfterSeconds": seconds}));
        error
    }

    /// Returns the error as a `metav1.Status`.
    pub(super) fn status(&self) -> Value {
        let mut metadata = json!({});
        if let Some(token) = &self.continue_token {
            metadata["continue"] = token.as_str().into();
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }

    /// Returns the seconds of the `Retry-After` header, or `None` if it is not sent.
    pub(super) fn retry_after(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }
}

/// Returns `resource.group`, or only the resource in the core group.
fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

fn details(name: &str, group: &str, kind: &str) -> Value {
    let mut details = json!({"name": name, "kind": kind});
    if !group.is_empty() {
        details["group"] = group.into();
    }
    details
}
