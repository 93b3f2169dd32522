//! Writes condition `PodScheduled=False` and the nomination of a pod, both in one request. The newest of each per pod
//! wins; an equal one is not written twice.
//!
//! Each write is a strategic merge patch, which merges conditions by type. It contains the uid, so a recreated pod of
//! the same name is not touched. The scheduling thread leaves out what the API server already holds; this module
//! leaves out only recent writes of this process that the watch may not have delivered yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pellucid_model::effect::StatusOrder;
use pellucid_model::{Name, Now};
use serde_json::{Value, json};

use crate::connection::client::ErrorClass;
use crate::timestamp;
use crate::writes::api_writer::{WriteError, pod_path};
use crate::writes::status_memory::{Recalled, StatusMemory};
use crate::writes::writing::{Tries, Writing, counters};

/// Times one patch is tried.
const TRIES: u32 = 5;

counters! {
    /// Counters of pod status writers; PodGroup status writers have their own instance.
    struct StatusCounters;
    /// Values of [`StatusCounters`] at one moment.
    struct StatusCounts {
        /// Orders written.
        written,
        /// Orders that changed nothing on the API server.
        unchanged,
        /// Orders dropped between tries because a newer one came.
        superseded,
        /// Orders whose object was gone.
        gone,
        /// Orders given up after errors.
        failed,
    }
}

/// One of several identical workers. The clones share everything.
#[derive(Clone)]
pub(crate) struct StatusWriter {
    pub(crate) with: Writing,
    pub(crate) memory: Arc<StatusMemory>,
    pub(crate) counters: Arc<StatusCounters>,
}

impl StatusWriter {
    /// Processes orders until the queue closes.
    pub(crate) async fn work(self) {
        while let Some(order) = self.with.queues.next_status().await {
            let counter = self.carry_out(&order).await;
            counter.fetch_add(1, Ordering::Relaxed);
            self.with.queues.status_done(&order.pod.uid);
        }
    }

    /// Writes a status. Returns the counter of its outcome.
    async fn carry_out(&self, order: &StatusOrder) -> &AtomicU64 {
        let now = (self.with.clock)();
        let recalled = self.memory.recall(order, now);
        if recalled.order.condition.is_none() && recalled.order.nomination.is_none() {
            return &self.counters.unchanged;
        }
        let key = &order.pod.key;
        let path = pod_path(&key.namespace, &key.name, "/status");
        let body = patch(&recalled, now);
        let mut tries = Tries::new(TRIES, &self.with);
        loop {
            let Err(error) = self.with.writer.patch(path.clone(), &body).await else {
                self.memory.remember(&recalled.order, (self.with.clock)());
                return &self.counters.written;
            };
            match error.class() {
                // The pod is gone, or another pod has the name (conflict).
                ErrorClass::Refresh => return &self.counters.gone,
                ErrorClass::Unknown => self.memory.doubt(&recalled.order),
                _ => {}
            }
            if !tries.again(&error).await {
                if !matches!(error, WriteError::Closed) {
                    tracing::warn!(pod = %order.pod.key, %error, "pod status not written");
                }
                return &self.counters.failed;
            }
            if self.with.queues.supersede(&recalled.order) {
                return &self.counters.superseded;
            }
        }
    }
}

/// Builds the status patch. Only the first write sets the condition's transition time: `False` stays `False`. A null
/// clears the nomination.
fn patch(recalled: &Recalled, now: Now) -> Value {
    let order = &recalled.order;
    let mut status = json!({});
    if let Some(text) = &order.condition {
        let mut condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": text.reason,
            "message": text.message,
            "lastProbeTime": null,
        });
        if recalled.is_first_condition {
            condition["lastTransitionTime"] = json!(Time(timestamp(now)));
        }
        status["conditions"] = json!([condition]);
    }
    if let Some(nomination) = &order.nomination {
        status["nominatedNodeName"] = json!(nomination.as_ref().map(Name::as_str));
    }
    json!({"metadata": {"uid": order.pod.uid}, "status": status})
}
