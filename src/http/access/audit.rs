//! A line in the log for every request that may write, whether it passed or not.
//!
//! It names the user, never the credentials.

use http::StatusCode;

use crate::authority::User;
use crate::registration::route::{Method, RequestInfo};

/// Target of the lines, by which they can be filtered.
const TARGET: &str = "pellucid::audit";

/// Writes the line of a request, unless its method only reads.
pub(crate) fn line(method: Method, path: &str, user: Option<&User>, info: &RequestInfo, status: StatusCode) {
    let verb = match method {
        Method::Get => return,
        Method::Post => "create",
        Method::Put => "update",
    };
    let name = user.map_or("system:unauthenticated", |user| &user.name);
    let groups = user.map(|user| user.groups.join(",")).unwrap_or_default();
    tracing::info!(
        target: TARGET,
        user = name,
        groups,
        verb,
        path,
        status = status.as_u16(),
        request_id = info.request_id,
        from = info.from,
        "audit"
    );
}
