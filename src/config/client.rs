//! `clientConnection`: the connection to the API server.
//!
//! Only the kubeconfig is used. The other fields are stored and shown without effect: requests are JSON, and the number
//! of requests in flight is limited instead of their rate.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::reader::{Cursor, Diagnostics};

const FIELDS: &[&str] = &["kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"];

/// The only content type that requests use.
const JSON: &str = "application/json";

/// Connection to the API server.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConnection {
    /// Path of the kubeconfig, if the file or the command line names one.
    pub kubeconfig: Option<PathBuf>,
    /// `acceptContentTypes`; without effect.
    pub accept_content_types: String,
    /// `contentType`; without effect.
    pub content_type: String,
    /// Requests per second, below 0 for no limit; without effect.
    pub qps: f64,
    /// Requests in a burst; without effect.
    pub burst: u32,
}

impl Default for ClientConnection {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            accept_content_types: String::new(),
            content_type: JSON.to_owned(),
            qps: 50.0,
            burst: 100,
        }
    }
}

impl ClientConnection {
    /// Reads the object. As in kube-scheduler, a `qps` or `burst` of 0 means the default.
    pub(super) fn read(cursor: &Cursor<'_>, diagnostics: &mut Diagnostics) -> Self {
        let fields = cursor.object(FIELDS, diagnostics);
        let default = Self::default();
        let mut text =
            |name| fields.get(name).and_then(|c| c.string(diagnostics)).filter(|text| !text.is_empty());
        let kubeconfig = text("kubeconfig").map(PathBuf::from);
        let accept_content_types = text("acceptContentTypes").map(str::to_owned);
        let content_type = text("contentType").map(str::to_owned);
        let qps = fields.get("qps").and_then(|c| c.number(diagnostics)).filter(|qps| *qps != 0.0);
        let burst = fields.get("burst").and_then(|c| c.integer(0..=i64::from(i32::MAX), diagnostics));
        let burst = burst.filter(|burst| *burst > 0).and_then(|burst| u32::try_from(burst).ok());
        let mut note = |name, is_given: bool, why| {
            if let Some(field) = fields.get(name).filter(|_| is_given) {
                diagnostics.note(&field.at, format_args!("accepted and not used: {why}"));
            }
        };
        note("acceptContentTypes", accept_content_types.is_some(), "the API server is spoken to in JSON");
        note("contentType", content_type.is_some(), "the API server is spoken to in JSON");
        note("qps", qps.is_some(), "what bounds requests is how many are under way at once");
        note("burst", burst.is_some(), "what bounds requests is how many are under way at once");
        Self {
            kubeconfig,
            accept_content_types: accept_content_types.unwrap_or(default.accept_content_types),
            content_type: content_type.unwrap_or(default.content_type),
            qps: qps.unwrap_or(default.qps),
            burst: burst.unwrap_or(default.burst),
        }
    }

    /// Renders the object for the effective document.
    pub(super) fn document(&self) -> Value {
        json!({
            "kubeconfig": self.kubeconfig.as_deref().map(Path::to_string_lossy).unwrap_or_default(),
            "acceptContentTypes": self.accept_content_types,
            "contentType": self.content_type,
            "qps": self.qps,
            "burst": self.burst,
        })
    }
}
