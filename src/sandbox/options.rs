//! Request options: query parameters, media types and delete options.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::errors::{ApiError, ApiResult};
use crate::users::AUTHENTICATED;

/// How unknown fields are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    /// They are dropped silently.
    Ignore,
    /// They are dropped with a warning.
    #[default]
    Warn,
    /// The request is rejected.
    Strict,
}

/// The form of objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum View {
    #[default]
    Full,
    Table,
    Metadata,
}

/// The query parameters that the API knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// `watch`: a watch instead of a list.
    pub watch: bool,
    /// `labelSelector`.
    pub labels: String,
    /// `fieldSelector`.
    pub fields: String,
    /// `limit`: the page size, 0 for no limit.
    pub limit: usize,
    /// `continue`: the token of the next page.
    pub continue_token: String,
    /// `resourceVersion`.
    pub revision: String,
    /// `resourceVersionMatch`.
    pub revision_match: String,
    /// `timeoutSeconds`.
    pub timeout: Option<u64>,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `sendInitialEvents`.
    pub initial_events: bool,
    /// `dryRun`.
    pub dry_run: bool,
    /// `fieldValidation`.
    pub validation: FieldValidation,
    /// `gracePeriodSeconds`.
    pub grace: Option<i64>,
    /// `propagationPolicy`.
    pub propagation: String,
    /// `includeObject` of tables.
    pub include_object: String,
    /// Set for writes by the sandbox itself, whose objects need no decoding.
    pub is_internal: bool,
    /// On whose behalf admission webhooks are asked; they are not asked without.
    pub requester: Option<Requester>,
    /// The subresource that the request names, empty for the object itself.
    pub subresource: String,
}

/// Who sends a write that admission webhooks are asked about, and what they warn of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requester {
    /// Name of the user.
    pub user: String,
    pub groups: Vec<String>,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl Requester {
    /// Returns a user of these groups, and of the group of everybody who is authenticated.
    pub(crate) fn new(user: &str, groups: &[String]) -> Self {
        let mut groups = groups.to_vec();
        groups.push(AUTHENTICATED.to_owned());
        Self { user: user.to_owned(), groups, warnings: Arc::default() }
    }

    /// Keeps warnings for the response.
    pub(crate) fn warn(&self, warnings: Vec<String>) {
        self.warnings.lock().extend(warnings);
    }

    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock())
    }
}

impl Options {
    /// Parses a query string.
    pub(crate) fn parse(query: &str) -> ApiResult<Self> {
        let mut options = Self::default();
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            options.set(&decode(key), decode(value))?;
        }
        Ok(options)
    }

    /// Returns the options for a write by the sandbox itself.
    pub(crate) fn internal() -> Self {
        Self { is_internal: true, ..Self::default() }
    }

    /// Returns the options for a write by a controller, which webhooks are asked about.
    pub(crate) fn controller() -> Self {
        Self { requester: Some(controller()), ..Self::internal() }
    }

    /// Returns the options for an object that webhooks have changed.
    pub(crate) fn patched() -> Self {
        Self { validation: FieldValidation::Ignore, ..Self::default() }
    }

    fn set(&mut self, key: &str, value: String) -> ApiResult<()> {
        let is_true = matches!(value.as_str(), "true" | "1" | "True" | "t");
        let number = || {
            let why = format!("strconv.ParseInt: parsing \"{value}\": invalid syntax");
            value.parse::<i64>().map_err(|_| ApiError::bad_request(why))
        };
        match key {
            "watch" => self.watch = is_true,
            "labelSelector" => self.labels = value,
            "fieldSelector" => self.fields = value,
            "limit" => self.limit = number()?.max(0) as usize,
            "continue" => self.continue_token = value,
            "resourceVersion" => self.revision = value,
            "resourceVersionMatch" => self.revision_match = value,
            "timeoutSeconds" => self.timeout = Some(number()?.max(0) as u64),
            "allowWatchBookmarks" => self.bookmarks = is_true,
            "sendInitialEvents" => self.initial_events = is_true,
            "dryRun" if value == "All" => self.dry_run = true,
            "dryRun" if value.is_empty() => {}
            "dryRun" => return Err(ApiError::bad_request(format!("invalid dryRun value: {value}"))),
            "fieldValidation" => {
                self.validation = match value.as_str() {
                    "Strict" => FieldValidation::Strict,
                    "Ignore" => FieldValidation::Ignore,
                    _ => FieldValidation::Warn,
                }
            }
            "gracePeriodSeconds" => self.grace = Some(number()?),
            "propagationPolicy" => self.propagation = value,
            "includeObject" => self.include_object = value,
            _ => {}
        }
        Ok(())
    }
}

/// Percent-decodes a part of a query string or path.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |from: usize| text.get(from..from + 2).and_then(|h| u8::from_str_radix(h, 16).ok());
        let (byte, length) = match (bytes[at], hex(at + 1)) {
            (b'%', Some(byte)) => (byte, 3),
            (b'+', _) => (b' ', 1),
            (byte, _) => (byte, 1),
        };
        out.push(byte);
        at += length;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns the first form in an Accept header that the sandbox supports.
pub(crate) fn view(accept: &str) -> View {
    for media in accept.split(',') {
        let mut parts = media.split(';').map(str::trim);
        if !matches!(parts.next(), Some("application/json" | "*/*" | "")) {
            continue;
        }
        match parts.find_map(|p| p.strip_prefix("as=")) {
            Some("Table") => return View::Table,
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => return View::Metadata,
            Some(_) => {}
            None => return View::Full,
        }
    }
    View::Full
}

/// Options of a delete.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    /// Grace period in seconds, or `None` for the kind's default.
    pub grace: Option<i64>,
    /// Precondition: the object's uid.
    pub uid: Option<String>,
    /// Precondition: the object's resourceVersion.
    pub revision: Option<String>,
    /// `Orphan`, `Background` or `Foreground`.
    pub propagation: String,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// On whose behalf admission webhooks are asked; they are not asked without.
    pub requester: Option<Requester>,
    /// Whether the request names a collection instead of the object.
    pub of_collection: bool,
}

fn controller() -> Requester {
    Requester::new("system:kube-controller-manager", &[])
}

impl DeleteOptions {
    /// Merges the query parameters and the body of a delete.
    pub(crate) fn new(options: &Options, body: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            grace: options.grace.or(body["gracePeriodSeconds"].as_i64()),
            uid: text(&body["preconditions"]["uid"]),
            revision: text(&body["preconditions"]["resourceVersion"]),
            propagation: text(&body["propagationPolicy"]).unwrap_or_else(|| options.propagation.clone()),
            dry_run: options.dry_run || body["dryRun"].as_array().is_some_and(|d| !d.is_empty()),
            requester: options.requester.clone(),
            of_collection: false,
        }
    }

    /// Returns the options for a delete by a controller, which webhooks are asked about.
    pub(crate) fn controller() -> Self {
        Self { requester: Some(controller()), ..Self::default() }
    }
}
