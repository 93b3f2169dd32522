//! Evicts preemption victims, and pods that plugins evict: sets condition `DisruptionTarget`, then deletes the pod.
//!
//! Each order ends in exactly one report, unless the process stops first. The condition only informs controllers: when
//! it cannot be written, the pod is deleted without it. The delete has the uid as a precondition and uses the pod's
//! own grace period, so sending it again is safe.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pellucid_cluster::input::Input;
use pellucid_model::effect::{EffectReport, EvictOrder, EvictOutcome, PodRef};
use serde_json::json;
use tokio::sync::mpsc::Sender;

use crate::connection::client::ErrorClass;
use crate::timestamp;
use crate::writes::api_writer::{WriteError, pod_path};
use crate::writes::pod_readback::{PodReadback, read_back};
use crate::writes::writing::{Writing, counters};

/// Times the condition is tried before the pod is deleted without it.
const CONDITION_TRIES: u32 = 3;
/// Times a delete is tried before the order is reported as refused.
const TRIES: u32 = 6;

counters! {
    /// Counters shared by all evictors.
    struct EvictCounters;
    /// Values of [`EvictCounters`] at one moment, in orders unless a field says otherwise.
    struct EvictCounts {
        /// Orders whose pod was deleted.
        deleted,
        /// Orders whose pod was already gone.
        gone,
        /// Orders that were refused or given up.
        refused,
        /// Deletes repeated after an error.
        retries,
        /// Pods deleted although their condition could not be written.
        without_condition,
    }
}

impl EvictCounters {
    fn count(&self, outcome: &EvictOutcome) {
        let counter = match outcome {
            EvictOutcome::Deleted => &self.deleted,
            EvictOutcome::Gone => &self.gone,
            EvictOutcome::Refused { .. } => &self.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// One of several identical workers. The clones share everything.
#[derive(Clone)]
pub(crate) struct Evictor {
    pub(crate) with: Writing,
    pub(crate) reports: Sender<Input>,
    pub(crate) counters: Arc<EvictCounters>,
}

/// The step after the condition was written.
enum AfterCondition {
    /// Delete the pod.
    Delete,
    /// Nothing: the pod does not exist.
    Gone,
}

impl Evictor {
    /// Processes orders until the queue closes.
    pub(crate) async fn work(self) {
        while let Some(order) = self.with.queues.next_eviction().await {
            let EvictOrder { victim, message, .. } = &order;
            let Some(outcome) = self.evict(victim, "PreemptionByScheduler", message).await else { return };
            self.counters.count(&outcome);
            tracing::debug!(pod = %order.victim.key, preemptor = %order.preemptor.key, ?outcome, "eviction settled");
            let done = EffectReport::EvictDone { id: order.id, uid: order.victim.uid, outcome };
            if self.reports.send(Input::Report(done)).await.is_err() {
                return;
            }
        }
    }

    /// Evicts a pod; `reason` and `message` go into its condition. Returns the outcome, or `None` when `stop` is
    /// cancelled before the outcome is known.
    pub(crate) async fn evict(&self, victim: &PodRef, reason: &str, message: &str) -> Option<EvictOutcome> {
        match self.write_condition(victim, reason, message).await? {
            AfterCondition::Gone => Some(EvictOutcome::Gone),
            AfterCondition::Delete => self.delete(victim).await,
        }
    }

    /// Writes the condition. A conflict may mean that another pod has the name; the delete detects that.
    async fn write_condition(&self, victim: &PodRef, reason: &str, message: &str) -> Option<AfterCondition> {
        let key = &victim.key;
        let condition = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": Time(timestamp((self.with.clock)())),
        });
        let body = json!({"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}});
        let mut backoff = self.with.writer.backoff();
        for tries in 1.. {
            let path = pod_path(&key.namespace, &key.name, "/status");
            let Err(error) = self.with.writer.patch(path, &body).await else { break };
            match error.class() {
                _ if error.is_not_found() => return Some(AfterCondition::Gone),
                ErrorClass::Retry | ErrorClass::Unknown if tries < CONDITION_TRIES => {}
                // The delete is rejected by the closed writer, too, and reports it.
                _ if matches!(error, WriteError::Closed) => break,
                _ => {
                    self.counters.without_condition.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(pod = %key, error = %error, "condition DisruptionTarget not written, deleting the pod");
                    break;
                }
            }
            self.with.pause(&mut backoff, &error).await?;
        }
        Some(AfterCondition::Delete)
    }

    async fn delete(&self, victim: &PodRef) -> Option<EvictOutcome> {
        let key = &victim.key;
        let body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": victim.uid},
        });
        let mut backoff = self.with.writer.backoff();
        // Whether an earlier try may have succeeded.
        let mut unsure = false;
        for tries in 1.. {
            let path = pod_path(&key.namespace, &key.name, "");
            let Err(error) = self.with.writer.delete(path, &body).await else {
                return Some(EvictOutcome::Deleted);
            };
            let class = error.class();
            unsure |= class == ErrorClass::Unknown;
            let gone = if unsure { EvictOutcome::Deleted } else { EvictOutcome::Gone };
            match class {
                ErrorClass::Refused | ErrorClass::Bug => return Some(refused(&error)),
                ErrorClass::Refresh if error.is_not_found() => return Some(gone),
                ErrorClass::Refresh | ErrorClass::Unknown => {
                    match read_back(&self.with.writer, &victim.key, &victim.uid).await {
                        Ok(PodReadback::Gone) => return Some(gone),
                        Ok(PodReadback::There { deleting: true, .. }) => return Some(EvictOutcome::Deleted),
                        Ok(PodReadback::There { .. }) if class == ErrorClass::Refresh => {
                            return Some(refused(&error));
                        }
                        // The delete failed, or its outcome is unknown: send it again.
                        Ok(PodReadback::There { .. }) | Err(_) => {}
                    }
                }
                ErrorClass::Retry => {}
            }
            if tries >= TRIES {
                return Some(refused(&error));
            }
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
            self.with.pause(&mut backoff, &error).await?;
        }
        None
    }
}

fn refused(error: &WriteError) -> EvictOutcome {
    let (status, message) = error.as_refusal();
    EvictOutcome::Refused { status, message }
}
