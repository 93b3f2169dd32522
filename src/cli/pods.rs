//! `pellucid explain pods`: the pending pods by controller and shape, or each with its reason.

use pellucid_api::rest::explain::PendingPods;
use pellucid_api::rest::pending::PendingSummary;

use super::filters::{ListArgs, walk};
use super::out::Paint;
use super::pending_text;
use super::server::ServerArgs;

pub(super) fn list(list: &ListArgs, server: &ServerArgs) -> anyhow::Result<String> {
    let paint = Paint::for_stdout();
    if list.wants_items(server) {
        let path = "/apis/v1/explain/pods";
        let body = walk(server, path, &list.query(server, &[]), "pods", list.rows(server))?;
        return server.shown(path, body, |body: &PendingPods| pending_text::pods(body, paint));
    }
    let path = "/apis/v1/summary/pending";
    let body = walk(server, path, &list.query(server, &[("by", "owner,shape")]), "rows", list.rows(server))?;
    server.shown(path, body, |body: &PendingSummary| pending_text::groups(body, paint))
}
