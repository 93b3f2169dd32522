//! Writes condition `PodScheduled=False`. The newest order per pod wins; an equal one is not written twice.
//!
//! A patch that merges by condition type, with the uid in it: a pod that was made anew under the same name
//! is not touched. The core leaves out what the API server already holds; here only what this process wrote a
//! moment ago, and the watch has perhaps not shown yet, is left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::client::Class;
use super::door::{Backoff, Door, WriteError, pod_path};
use super::lanes::Lanes;
use super::{Clock, timestamp};
use crate::framework::effect::{ConditionText, StatusOrder};
use crate::model::collections::HashMap;
use crate::model::{Name, Now};

/// How often one patch is tried.
const TRIES: u32 = 5;
/// How long an equal condition is left out: the watch has shown it by then.
const ECHO: Duration = Duration::from_secs(5);
/// How many pods are remembered. When it is reached everything is forgotten, at the price of a few writes.
const REMEMBERED: usize = 65_536;

/// What the condition writers did.
#[derive(Debug, Default)]
pub struct ConditionCounters {
    written: AtomicU64,
    unchanged: AtomicU64,
    superseded: AtomicU64,
    gone: AtomicU64,
    failed: AtomicU64,
}

/// What the condition writers did, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConditionCounts {
    /// Conditions written.
    pub written: u64,
    /// Orders equal to what had just been written.
    pub unchanged: u64,
    /// Orders given up between tries because a newer one came.
    pub superseded: u64,
    /// Orders whose pod was gone.
    pub gone: u64,
    /// Orders given up.
    pub failed: u64,
}

impl ConditionCounters {
    /// Returns the counts.
    pub fn counts(&self) -> ConditionCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ConditionCounts {
            written: load(&self.written),
            unchanged: load(&self.unchanged),
            superseded: load(&self.superseded),
            gone: load(&self.gone),
            failed: load(&self.failed),
        }
    }
}

/// What was last written to a pod.
struct Written {
    condition: Option<ConditionText>,
    nomination: Option<Option<Name>>,
    at: Duration,
}

/// The memory that the workers share.
#[derive(Default)]
pub(super) struct ConditionMemory(Mutex<HashMap<Arc<str>, Written>>);

/// One of several equal workers.
#[derive(Clone)]
pub(super) struct ConditionWriter {
    pub(super) door: Arc<Door>,
    pub(super) lanes: Arc<Lanes>,
    pub(super) clock: Clock,
    pub(super) memory: Arc<ConditionMemory>,
    pub(super) counters: Arc<ConditionCounters>,
    pub(super) stop: CancellationToken,
}

impl ConditionWriter {
    /// Carries out orders until the lane closes.
    pub(super) async fn work(self) {
        while let Some(order) = self.lanes.next_condition().await {
            let counter = self.carry_out(&order).await;
            counter.fetch_add(1, Ordering::Relaxed);
            self.lanes.condition_done(&order.pod.uid);
        }
    }

    /// Writes a condition; returns the counter of what came of it.
    async fn carry_out(&self, order: &StatusOrder) -> &AtomicU64 {
        let now = (self.clock)();
        let before = self.memory.recall(order, now);
        if before == Memory::Equal {
            return &self.counters.unchanged;
        }
        let key = &order.pod.key;
        let path = pod_path(&key.namespace, &key.name, "/status");
        let body = patch(order, before, now);
        let mut backoff = Backoff::new();
        for tries in 1..=TRIES {
            let error = match self.door.patch(path.clone(), &body).await {
                Ok(_) => {
                    self.memory.remember(order, (self.clock)());
                    return &self.counters.written;
                }
                Err(error) => error,
            };
            match error.class() {
                // Not found, or a conflict: another pod has the name.
                Class::Refresh => return &self.counters.gone,
                Class::Retry | Class::Unknown if tries < TRIES => {}
                _ => return self.give_up(order, &error),
            }
            tokio::select! {
                () = self.stop.cancelled() => return self.give_up(order, &error),
                () = backoff.wait(error.retry_after()) => {}
            }
            if self.lanes.is_superseded(&order.pod.uid) {
                return &self.counters.superseded;
            }
        }
        &self.counters.failed
    }

    fn give_up(&self, order: &StatusOrder, error: &WriteError) -> &AtomicU64 {
        if !matches!(error, WriteError::Closed) {
            tracing::warn!(pod = %order.pod.key, error = %error, "pod condition not written");
        }
        &self.counters.failed
    }
}

/// What is remembered of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    Nothing,
    Other,
    Equal,
}

impl ConditionMemory {
    fn recall(&self, order: &StatusOrder, now: Now) -> Memory {
        let memory = self.0.lock();
        let Some(written) = memory.get(&order.pod.uid) else { return Memory::Nothing };
        let equal = written.condition == order.condition && written.nomination == order.nomination;
        let fresh = now.monotonic.saturating_sub(written.at) < ECHO;
        if equal && fresh { Memory::Equal } else { Memory::Other }
    }

    fn remember(&self, order: &StatusOrder, now: Now) {
        let mut memory = self.0.lock();
        if memory.len() >= REMEMBERED {
            memory.clear();
        }
        let (condition, nomination) = (order.condition.clone(), order.nomination.clone());
        let written = Written { condition, nomination, at: now.monotonic };
        memory.insert(order.pod.uid.clone(), written);
    }
}

/// The status. The condition's transition time is set by our first write and then left alone: `False` stays
/// `False`. A null clears the nomination.
fn patch(order: &StatusOrder, before: Memory, now: Now) -> Value {
    let mut status = json!({});
    if let Some(text) = &order.condition {
        let mut condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": text.reason,
            "message": text.message,
            "lastProbeTime": null,
        });
        if before == Memory::Nothing {
            condition["lastTransitionTime"] = json!(Time(timestamp(now)));
        }
        status["conditions"] = json!([condition]);
    }
    if let Some(nomination) = &order.nomination {
        status["nominatedNodeName"] = json!(nomination.as_ref().map(Name::as_str));
    }
    json!({"metadata": {"uid": order.pod.uid}, "status": status})
}
