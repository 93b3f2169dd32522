//! Refusals: what a Kubernetes API server answers when it does not do what was asked.
//!
//! One type, [`ApiError`], carries the fields of a `metav1.Status`. The constructors hold the texts that
//! clients match on; they know nothing of stores or requests.

use serde_json::{Value, json};

/// The answer to a request that was not carried out.
#[derive(Clone, Debug)]
pub(super) struct ApiError {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, empty when the server has none.
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
    /// `details` of the Status.
    pub details: Option<Value>,
    /// The continue token to go on with after a 410 on a list.
    pub resume: Option<String>,
}

/// What a room function returns; the error is boxed because it is large and rare.
pub(super) type ApiResult<T> = Result<T, Box<ApiError>>;

/// One field that did not pass validation.
#[derive(Clone, Debug)]
pub(super) struct FieldError {
    /// `FieldValueInvalid`, `FieldValueRequired`, …
    pub reason: &'static str,
    /// The text after the field's path.
    pub message: String,
    /// The field's path.
    pub field: String,
}

impl FieldError {
    /// A value that breaks a rule.
    pub(super) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self { reason: "FieldValueInvalid", message, field: field.into() }
    }

    /// A value that is missing.
    pub(super) fn required(field: impl Into<String>, why: &str) -> Self {
        let message = if why.is_empty() { "Required value".into() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    /// A change that is not allowed.
    pub(super) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {why}"), field: field.into() }
    }

    /// A value outside the known set.
    pub(super) fn unsupported(field: impl Into<String>, value: &Value, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|k| format!("\"{k}\"")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", known.join(", "));
        Self { reason: "FieldValueNotSupported", message, field: field.into() }
    }

    /// A list that is too long.
    pub(super) fn too_many(field: impl Into<String>, count: usize, most: usize) -> Self {
        let message = format!("Too many: {count}: must have at most {most} items");
        Self { reason: "FieldValueTooMany", message, field: field.into() }
    }

    /// A value with too many bytes.
    pub(super) fn too_long(field: impl Into<String>, most: usize) -> Self {
        let message = format!("Too long: may not be more than {most} bytes");
        Self { reason: "FieldValueTooLong", message, field: field.into() }
    }

    /// A value that stands there twice.
    pub(super) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self {
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value: {value}"),
            field: field.into(),
        }
    }

    /// A value of the wrong JSON type.
    pub(super) fn wrong_type(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let shown = match value {
            Value::String(_) | Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null => "\"null\"".into(),
            Value::Array(_) => "\"array\"".into(),
            Value::Object(_) => "\"object\"".into(),
        };
        Self {
            reason: "FieldValueTypeInvalid",
            message: format!("Invalid value: {shown}: {why}"),
            field: field.into(),
        }
    }
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { code, reason, message: message.into(), details: None, resume: None })
    }

    fn with(mut self: Box<Self>, details: Value) -> Box<Self> {
        self.details = Some(details);
        self
    }

    /// A request that makes no sense.
    pub(super) fn bad_request(message: impl Into<String>) -> Box<Self> {
        Self::new(400, "BadRequest", message)
    }

    /// An object that is not there.
    pub(super) fn not_found(group: &str, resource: &str, name: &str) -> Box<Self> {
        let message = format!("{} \"{name}\" not found", qualified(resource, group));
        Self::new(404, "NotFound", message).with(details(name, group, resource))
    }

    /// A resource that the group and version do not have.
    pub(super) fn no_resource() -> Box<Self> {
        Self::new(404, "NotFound", "the server could not find the requested resource").with(json!({}))
    }

    /// An object that is already there.
    pub(super) fn already_exists(group: &str, resource: &str, name: &str) -> Box<Self> {
        let message = format!("{} \"{name}\" already exists", qualified(resource, group));
        Self::new(409, "AlreadyExists", message).with(details(name, group, resource))
    }

    /// A write that lost against another.
    pub(super) fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Box<Self> {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", qualified(resource, group));
        Self::new(409, "Conflict", message).with(details(name, group, resource))
    }

    /// A write whose resourceVersion is not the object's.
    pub(super) fn stale(group: &str, resource: &str, name: &str) -> Box<Self> {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(group, resource, name, why)
    }

    /// An object that does not pass validation.
    pub(super) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Box<Self> {
        let texts: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect();
        let text = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes: Vec<Value> = errors
            .iter()
            .map(|e| json!({"reason": e.reason, "message": e.message, "field": e.field}))
            .collect();
        let mut about = details(name, group, kind);
        about["causes"] = Value::Array(causes);
        let message = format!("{} \"{name}\" is invalid: {text}", qualified(kind, group));
        Self::new(422, "Invalid", message).with(about)
    }

    /// A request that admission refuses.
    pub(super) fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Box<Self> {
        let message = format!("{} \"{name}\" is forbidden: {why}", qualified(resource, group));
        Self::new(403, "Forbidden", message).with(details(name, group, resource))
    }

    /// A new object in a namespace that is going away.
    pub(super) fn terminating(namespace: &str) -> Box<Self> {
        let message =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Self::new(403, "Forbidden", message)
            .with(json!({"causes": [{"reason": "NamespaceTerminating", "message": message_of(namespace), "field": "metadata.namespace"}]}))
    }

    /// A verb that the resource does not have.
    pub(super) fn method_not_allowed() -> Box<Self> {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with(json!({}))
    }

    /// A body format that the route does not take.
    pub(super) fn unsupported_media_type() -> Box<Self> {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").with(json!({}))
    }

    /// A body format that the resource does not take, with those it does.
    pub(super) fn media_type_not_accepted(accepted: &str) -> Box<Self> {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// A body that is too long.
    pub(super) fn too_large(limit: usize) -> Box<Self> {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// A request that asks for more than is allowed.
    pub(super) fn entity_too_large(why: &str) -> Box<Self> {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity is too large: {why}"))
    }

    /// A server fault that has no reason of its own.
    pub(super) fn internal(message: impl Into<String>) -> Box<Self> {
        Self::new(500, "", message)
    }

    /// History that is no longer kept.
    pub(super) fn expired(message: impl Into<String>) -> Box<Self> {
        Self::new(410, "Expired", message)
    }

    /// A watch that starts before the kept history.
    pub(super) fn too_old(revision: u64, oldest: u64) -> Box<Self> {
        Self::expired(format!("too old resource version: {revision} ({oldest})"))
    }

    /// A read of a revision that does not exist yet.
    pub(super) fn too_new(revision: u64, current: u64) -> Box<Self> {
        let text = "Too large resource version";
        Self::new(504, "Timeout", format!("Timeout: {text}: {revision}, current: {current}")).with(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": text}], "retryAfterSeconds": 1
        }))
    }

    /// An eviction that a disruption budget does not allow now.
    pub(super) fn budget(cause: Value, retry_after: Option<u32>) -> Box<Self> {
        let mut about = json!({"causes": [cause]});
        if let Some(seconds) = retry_after {
            about["retryAfterSeconds"] = seconds.into();
        }
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        Self::new(429, "TooManyRequests", message).with(about)
    }

    /// A refusal that a test asked for.
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

    /// Returns the `metav1.Status` body.
    pub(super) fn status(&self) -> Value {
        let mut metadata = json!({});
        if let Some(token) = &self.resume {
            metadata["continue"] = token.as_str().into();
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }

    /// Returns the seconds of the `Retry-After` header, if there is one.
    pub(super) fn retry_after(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }
}

/// Returns `resource.group`, or the resource alone in the core group.
fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

fn message_of(namespace: &str) -> String {
    format!("namespace {namespace} is being terminated")
}

fn details(name: &str, group: &str, kind: &str) -> Value {
    let mut details = json!({"name": name, "kind": kind});
    if !group.is_empty() {
        details["group"] = group.into();
    }
    details
}
