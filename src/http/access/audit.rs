//! A line in the log for every request that may write, whether it passed or not.
//!
//! It names the user, never the credentials. The line is written whatever becomes of the request: also when it is refused
//! before it reaches an endpoint, when its handler fails, and when the client leaves while a write may be under way.

use std::sync::{Arc, OnceLock};

use axum::extract::Request;
use http::{Method, StatusCode};

use crate::authority::User;
use crate::registration::params::shortened;
use crate::registration::route::RequestInfo;

/// Target of the lines, by which a log tells them from others.
pub const AUDIT_TARGET: &str = "pellucid::audit";

/// What a line has as its status when the client left before the answer.
const LEFT: u16 = 499;

/// Where a request keeps its user once somebody has said who that is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asker(Arc<OnceLock<Arc<User>>>);

impl Asker {
    /// Notes the user of a request.
    pub(crate) fn is(&self, user: &Arc<User>) {
        // Who sends a request is found out once.
        let _ = self.0.set(Arc::clone(user));
    }
}

/// The line of a request. It is written when it is dropped.
pub(crate) struct Line {
    verb: &'static str,
    path: String,
    request_id: String,
    from: String,
    asker: Asker,
    status: u16,
}

impl Line {
    /// Begins the line of a request; there is none if its method only reads.
    pub(crate) fn of(request: &Request, info: &RequestInfo, asker: Asker) -> Option<Self> {
        let verb = match *request.method() {
            Method::POST => "create",
            Method::PUT => "update",
            _ => return None,
        };
        Some(Self {
            verb,
            path: shortened(request.uri().path()),
            request_id: info.request_id.clone(),
            from: info.from.clone(),
            asker,
            status: LEFT,
        })
    }

    /// Ends the line with the status of the answer.
    pub(crate) fn answered(mut self, status: StatusCode) {
        self.status = status.as_u16();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let user = self.asker.0.get();
        tracing::info!(
            target: AUDIT_TARGET,
            user = user.map_or("system:unauthenticated", |user| &user.name),
            groups = user.map(|user| user.groups.join(",")).unwrap_or_default(),
            verb = self.verb,
            path = self.path,
            status = self.status,
            request_id = self.request_id,
            from = self.from,
            "audit"
        );
    }
}
