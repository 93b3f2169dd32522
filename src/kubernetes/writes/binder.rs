//! Binds pods: pulls bind orders, posts Bindings and reports the outcomes.
//!
//! Each order ends in exactly one report, unless the process stops first. When the outcome is unknown (no response in
//! time, a 5xx, a broken connection: the server may have committed), the binder reads the pod until the server
//! answers. Posting again is safe: the uid is a precondition, and a pod is bound at most once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pellucid_cluster::input::Input;
use pellucid_model::effect::{BindOrder, BindOutcome, EffectReport};
use serde_json::json;
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use crate::connection::client::Class;
use crate::writes::api_writer::{ApiWriter, Backoff, WriteError, pod_path};
use crate::writes::effect_queues::EffectQueues;
use crate::writes::pod_readback::{PodReadback, read_back};

/// Times one order is posted before it is reported as refused.
const TRIES: u32 = 6;

/// Counters shared by all binders.
#[derive(Debug, Default)]
pub struct BinderCounters {
    bound: AtomicU64,
    elsewhere: AtomicU64,
    gone: AtomicU64,
    refused: AtomicU64,
    retries: AtomicU64,
    reads: AtomicU64,
}

/// Values of [`BinderCounters`] at one moment, in orders unless a field says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BinderCounts {
    /// Orders whose pod was bound to the ordered node.
    pub bound: u64,
    /// Orders whose pod was already bound to another node.
    pub elsewhere: u64,
    /// Orders whose pod was gone.
    pub gone: u64,
    /// Orders that were refused or given up.
    pub refused: u64,
    /// Posts repeated after an error.
    pub retries: u64,
    /// Pod reads to resolve an unknown outcome.
    pub reads: u64,
}

impl BinderCounters {
    /// Returns the counts.
    pub fn counts(&self) -> BinderCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BinderCounts {
            bound: load(&self.bound),
            elsewhere: load(&self.elsewhere),
            gone: load(&self.gone),
            refused: load(&self.refused),
            retries: load(&self.retries),
            reads: load(&self.reads),
        }
    }

    fn count(&self, outcome: &BindOutcome) {
        let counter = match outcome {
            BindOutcome::Bound => &self.bound,
            BindOutcome::BoundElsewhere { .. } => &self.elsewhere,
            BindOutcome::Gone => &self.gone,
            BindOutcome::Refused { .. } => &self.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// One of several identical workers. The clones share everything.
#[derive(Clone)]
pub(crate) struct Binder {
    pub(crate) writer: Arc<ApiWriter>,
    pub(crate) queues: Arc<EffectQueues>,
    pub(crate) reports: Sender<Input>,
    pub(crate) counters: Arc<BinderCounters>,
    pub(crate) stop: CancellationToken,
}

impl Binder {
    /// Processes orders until the queue closes.
    pub(crate) async fn work(self) {
        while let Some(order) = self.queues.next_bind().await {
            let Some(outcome) = self.bind(&order).await else { return };
            self.counters.count(&outcome);
            tracing::debug!(pod = %order.pod.key, node = %order.node, ?outcome, "bind settled");
            let done = EffectReport::BindDone { id: order.id, uid: order.pod.uid, outcome };
            if self.reports.send(Input::Report(done)).await.is_err() {
                return;
            }
        }
    }

    /// Returns the outcome of an order; `None` when `stop` is cancelled or the report channel closes before it is
    /// known.
    async fn bind(&self, order: &BindOrder) -> Option<BindOutcome> {
        if self.writer.is_open() {
            let sent = EffectReport::BindSent { id: order.id, uid: order.pod.uid.clone() };
            self.reports.send(Input::Report(sent)).await.ok()?;
        }
        let mut backoff = self.writer.backoff();
        for tries in 1.. {
            let Err(error) = self.post(order).await else { return Some(BindOutcome::Bound) };
            match error.class() {
                Class::Refused | Class::Bug => return Some(refused(&error)),
                Class::Refresh if error.is_not_found() => return Some(BindOutcome::Gone),
                class @ (Class::Refresh | Class::Unknown) => match self.settle(order, &error).await? {
                    PodReadback::Gone => return Some(BindOutcome::Gone),
                    PodReadback::There { node: Some(node), .. } if node == order.node => {
                        return Some(BindOutcome::Bound);
                    }
                    PodReadback::There { node: Some(node), .. } => {
                        return Some(BindOutcome::BoundElsewhere { node });
                    }
                    // The conflict comes from the pod's own state, such as a scheduling gate, and would repeat.
                    PodReadback::There { deleting, .. } if deleting || class == Class::Refresh => {
                        return Some(refused(&error));
                    }
                    PodReadback::There { .. } => {}
                },
                Class::Retry => {}
            }
            if tries >= TRIES {
                return Some(refused(&error));
            }
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
            self.pause(&mut backoff, &error).await?;
        }
        None
    }

    async fn post(&self, order: &BindOrder) -> Result<(), WriteError> {
        let key = &order.pod.key;
        let body = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": key.namespace.as_str(), "name": key.name, "uid": order.pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": order.node.as_str()},
        });
        self.writer.post(pod_path(&key.namespace, &key.name, "/binding"), &body).await.map(|_| ())
    }

    /// Reads the pod until the server answers, or `stop` is cancelled. There is no other bound: after a wrong guess
    /// the state would hold the pod on two nodes, or on none.
    async fn settle(&self, order: &BindOrder, cause: &WriteError) -> Option<PodReadback> {
        let key = &order.pod.key;
        tracing::debug!(pod = %key, node = %order.node, error = %cause, "bind outcome unknown, reading the pod");
        let mut backoff = self.writer.backoff();
        loop {
            self.counters.reads.fetch_add(1, Ordering::Relaxed);
            let error = match read_back(&self.writer, &order.pod).await {
                Ok(readback) => return Some(readback),
                Err(error) => error,
            };
            tracing::warn!(pod = %key, error = %error, "pod cannot be read to settle its binding, trying again");
            self.pause(&mut backoff, &error).await?;
        }
    }

    async fn pause(&self, backoff: &mut Backoff, error: &WriteError) -> Option<()> {
        tokio::select! {
            () = self.stop.cancelled() => None,
            () = backoff.wait(error.retry_after()) => Some(()),
        }
    }
}

/// Turns an error into a refusal.
fn refused(error: &WriteError) -> BindOutcome {
    let (status, message) = error.as_refusal();
    let reason = match error {
        WriteError::Status { reason, .. } => reason.as_str(),
        WriteError::Closed => "WritesOff",
        _ => "NoAnswer",
    };
    BindOutcome::Refused { status, reason: reason.into(), message }
}
