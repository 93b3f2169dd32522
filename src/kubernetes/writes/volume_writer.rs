//! Writes what binding a volume needs: the `claimRef` of a volume, or the selected node of a claim.
//!
//! Each write is a merge patch with the `resourceVersion` that the decision was based on, so it takes effect at most
//! once. A conflict is reported, and the scheduler decides again. The object is read first only when an earlier try of
//! this order may have succeeded.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pellucid_cluster::input::Input;
use pellucid_model::effect::{EffectReport, VolumeOrder, VolumeOutcome, VolumeWrite};
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use crate::connection::client::Class;
use crate::writes::api_writer::WriteError;
use crate::writes::writing::{Writing, counters};

/// Times one write is tried.
const TRIES: u32 = 6;
/// The annotation that names the node for which a provisioner makes the claim's volume.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The annotation that says that a controller, not a person, set `claimRef`.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

counters! {
    /// Counters shared by all volume writers.
    struct VolumeCounters;
    /// Values of [`VolumeCounters`] at one moment.
    struct VolumeCounts {
        /// Orders that were written.
        written,
        /// Orders that were refused or given up.
        refused,
        /// Writes repeated after an error.
        retries,
    }
}

/// One of several identical workers. The clones share everything.
#[derive(Clone)]
pub(crate) struct VolumeWriter {
    pub(crate) with: Writing,
    pub(crate) reports: Sender<Input>,
    pub(crate) counters: Arc<VolumeCounters>,
}

impl VolumeWriter {
    /// Processes orders until the queue closes.
    pub(crate) async fn work(self) {
        while let Some(order) = self.with.queues.next_volume().await {
            let Some(outcome) = self.write(&order.write).await else { return };
            let counter = match outcome {
                VolumeOutcome::Written => &self.counters.written,
                VolumeOutcome::Refused { .. } => &self.counters.refused,
            };
            counter.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(pod = %order.pod.key, write = ?order.write, ?outcome, "volume write settled");
            let VolumeOrder { id, pod, .. } = order;
            let done = EffectReport::VolumeDone { id, uid: pod.uid, outcome };
            if self.reports.send(Input::Report(done)).await.is_err() {
                return;
            }
        }
    }

    /// Returns the outcome of an order; `None` when `stop` is cancelled before it is known.
    async fn write(&self, write: &VolumeWrite) -> Option<VolumeOutcome> {
        let (path, body) = (path(write), patch(write));
        let mut backoff = self.with.writer.backoff();
        let mut unsure = false;
        for tries in 1.. {
            let Err(error) = self.with.writer.merge(path.clone(), &body).await else {
                return Some(VolumeOutcome::Written);
            };
            match error.class() {
                // Either an earlier try succeeded, or someone else changed the object.
                Class::Refresh if unsure && !error.is_not_found() => {
                    match self.with.writer.get(path.clone()).await {
                        Ok(read) if is_written(write, &read) => return Some(VolumeOutcome::Written),
                        Ok(_) => return Some(refused(&error)),
                        Err(_) => {}
                    }
                }
                Class::Refused | Class::Bug | Class::Refresh => return Some(refused(&error)),
                Class::Unknown => unsure = true,
                Class::Retry => {}
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

fn path(write: &VolumeWrite) -> String {
    match write {
        VolumeWrite::BindVolume { volume, .. } => format!("/api/v1/persistentvolumes/{volume}"),
        VolumeWrite::SelectNode { namespace, claim, .. } => {
            format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim}")
        }
    }
}

fn patch(write: &VolumeWrite) -> Value {
    match write {
        VolumeWrite::BindVolume { resource_version, namespace, claim, claim_uid, .. } => json!({
            "metadata": {"resourceVersion": resource_version, "annotations": {BOUND_BY_CONTROLLER: "yes"}},
            "spec": {"claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": namespace.as_str(),
                "name": claim.as_str(),
                "uid": claim_uid,
            }},
        }),
        VolumeWrite::SelectNode { resource_version, node, .. } => json!({
            "metadata": {"resourceVersion": resource_version, "annotations": {SELECTED_NODE: node.as_str()}},
        }),
    }
}

/// Returns whether an object already has the values of a write.
fn is_written(write: &VolumeWrite, read: &[u8]) -> bool {
    let Ok(read) = serde_json::from_slice::<Value>(read) else { return false };
    match write {
        VolumeWrite::BindVolume { claim_uid, .. } => {
            read["spec"]["claimRef"]["uid"].as_str() == Some(&**claim_uid)
        }
        VolumeWrite::SelectNode { node, .. } => {
            read["metadata"]["annotations"][SELECTED_NODE].as_str() == Some(node.as_str())
        }
    }
}

fn refused(error: &WriteError) -> VolumeOutcome {
    let (status, message) = error.as_refusal();
    VolumeOutcome::Refused { status, message }
}
