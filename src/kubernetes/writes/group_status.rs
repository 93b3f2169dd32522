//! Writes the status of PodGroups, with the newest order per group.
//!
//! Each write is a merge patch on `/status` with the uid in it; `group_patch` builds it. An order that cannot be
//! written is counted and forgotten: the next order carries the complete status, so nothing is reported back. A
//! PodGroup whose definition has no status subresource answers 404 and counts as gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pellucid_model::effect::GroupStatusOrder;
use serde_json::Value;

use crate::connection::client::ErrorClass;
use crate::kinds::Kind;
use crate::timestamp;
use crate::watches::served::Served;
use crate::writes::api_writer::WriteError;
use crate::writes::group_patch::{needs_read, patch};
use crate::writes::status::StatusCounters;
use crate::writes::writing::{Tries, Writing};

/// Times one patch is tried.
const TRIES: u32 = 5;

/// One of several identical workers. The clones share everything.
#[derive(Clone)]
pub(crate) struct GroupStatusWriter {
    pub(crate) with: Writing,
    pub(crate) served: Arc<Served>,
    pub(crate) counters: Arc<StatusCounters>,
}

/// Outcome of one try that did not fail.
enum GroupOutcome {
    Written,
    Unchanged,
    Gone,
}

impl GroupStatusWriter {
    /// Processes orders until the queue closes.
    pub(crate) async fn work(self) {
        while let Some(order) = self.with.queues.next_group_status().await {
            let counter = self.carry_out(&order).await;
            counter.fetch_add(1, Ordering::Relaxed);
            self.with.queues.group_status_done(&order.uid);
        }
    }

    /// Writes a status. Returns the counter of its outcome.
    async fn carry_out(&self, order: &GroupStatusOrder) -> &AtomicU64 {
        let Some((path, version)) = self.locate(order) else { return &self.counters.gone };
        let mut tries = Tries::new(TRIES, &self.with);
        loop {
            let error = match self.write(order, &path, &version).await {
                Ok(GroupOutcome::Written) => return &self.counters.written,
                Ok(GroupOutcome::Unchanged) => return &self.counters.unchanged,
                Ok(GroupOutcome::Gone) => return &self.counters.gone,
                Err(error) => error,
            };
            // A conflict means that another group has the name or, if the object was read, that it changed since.
            if error.is_not_found() || (error.class() == ErrorClass::Refresh && !needs_read(order)) {
                return &self.counters.gone;
            }
            if !tries.again(&error).await {
                if !matches!(error, WriteError::Closed) {
                    let group = &order.group;
                    tracing::warn!(%group, kind = order.kind.as_str(), %error, "status of a PodGroup not written");
                }
                return &self.counters.failed;
            }
            if self.with.queues.supersede_group(order) {
                return &self.counters.superseded;
            }
        }
    }

    /// Returns the path and API version of the group; `None` when its kind is not served.
    fn locate(&self, order: &GroupStatusOrder) -> Option<(String, Arc<str>)> {
        let kind = Kind::Object(order.kind);
        let resource = kind.resource();
        let version = if resource.is_discovered { self.served.version()? } else { resource.version.into() };
        let (group, plural) = (resource.group, resource.plural);
        let (namespace, name) = (&order.group.namespace, &order.group.name);
        Some((format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}/{name}"), version))
    }

    async fn write(
        &self,
        order: &GroupStatusOrder,
        path: &str,
        version: &str,
    ) -> Result<GroupOutcome, WriteError> {
        // When the writer is closed, skip the read.
        let held = match needs_read(order) && self.with.writer.is_open() {
            true => Some(self.with.writer.read::<Value>(path.into()).await?),
            false => None,
        };
        if held.as_ref().is_some_and(|held| held["metadata"]["uid"].as_str() != Some(&*order.uid)) {
            return Ok(GroupOutcome::Gone);
        }
        let Some(body) = patch(order, version, held.as_ref(), timestamp((self.with.clock)())) else {
            return Ok(GroupOutcome::Unchanged);
        };
        self.with.writer.merge(format!("{path}/status"), &body).await.map(|_| GroupOutcome::Written)
    }
}
