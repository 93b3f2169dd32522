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
use tokio_util::sync::CancellationToken;

use crate::connection::client::Class;
use crate::writes::api_writer::{ApiWriter, Tries, WriteError, pod_path};
use crate::writes::effect_queues::EffectQueues;
use crate::writes::status_memory::{Recalled, StatusMemory};
use crate::{Clock, timestamp};

/// Times one patch is tried.
const TRIES: u32 = 5;

/// Counters of pod status writers; PodGroup status writers have their own instance.
#[derive(Debug, Default)]
pub struct StatusCounters {
    pub(crate) written: AtomicU64,
    pub(crate) unchanged: AtomicU64,
    pub(crate) superseded: AtomicU64,
    pub(crate) gone: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// Values of [`StatusCounters`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts {
    /// Orders written.
    pub written: u64,
    /// Orders that changed nothing on the API server.
    pub unchanged: u64,
    /// Orders dropped between tries because a newer one came.
    pub superseded: u64,
    /// Orders whose object was gone.
    pub gone: u64,
    /// Orders given up after errors.
    pub failed: u64,
}

impl StatusCounters {
    /// Returns the counts.
    pub fn counts(&self) -> StatusCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StatusCounts {
            written: load(&self.written),
            unchanged: load(&self.unchanged),
            superseded: load(&self.superseded),
            gone: load(&self.gone),
            failed: load(&self.failed),
        }
    }
}

/// One of several identical workers. The clones share everything.
#[derive(Clone)]
pub(crate) struct StatusWriter {
    pub(crate) writer: Arc<ApiWriter>,
    pub(crate) queues: Arc<EffectQueues>,
    pub(crate) clock: Clock,
    pub(crate) memory: Arc<StatusMemory>,
    pub(crate) counters: Arc<StatusCounters>,
    pub(crate) stop: CancellationToken,
}

impl StatusWriter {
    /// Processes orders until the queue closes.
    pub(crate) async fn work(self) {
        while let Some(order) = self.queues.next_status().await {
            let counter = self.carry_out(&order).await;
            counter.fetch_add(1, Ordering::Relaxed);
            self.queues.status_done(&order.pod.uid);
        }
    }

    /// Writes a status. Returns the counter of its outcome.
    async fn carry_out(&self, order: &StatusOrder) -> &AtomicU64 {
        let now = (self.clock)();
        let recalled = self.memory.recall(order, now);
        if recalled.order.condition.is_none() && recalled.order.nomination.is_none() {
            return &self.counters.unchanged;
        }
        let key = &order.pod.key;
        let path = pod_path(&key.namespace, &key.name, "/status");
        let body = patch(&recalled, now);
        let mut tries = Tries::new(TRIES, &self.writer, &self.stop);
        loop {
            let error = match self.writer.patch(path.clone(), &body).await {
                Ok(_) => {
                    self.memory.remember(&recalled.order, (self.clock)());
                    return &self.counters.written;
                }
                Err(error) => error,
            };
            match error.class() {
                // The pod is gone, or another pod has the name (conflict).
                Class::Refresh => return &self.counters.gone,
                Class::Unknown => self.memory.doubt(&recalled.order),
                _ => {}
            }
            if !tries.again(&error).await {
                return self.give_up(order, &error);
            }
            if self.queues.supersede(&recalled.order) {
                return &self.counters.superseded;
            }
        }
    }

    fn give_up(&self, order: &StatusOrder, error: &WriteError) -> &AtomicU64 {
        if !matches!(error, WriteError::Closed) {
            tracing::warn!(pod = %order.pod.key, error = %error, "pod status not written");
        }
        &self.counters.failed
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
