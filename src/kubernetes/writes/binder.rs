//! Binds pods: pulls bind orders, posts Bindings and reports the outcomes.
//!
//! Each order ends in exactly one report, unless the process stops first. When the outcome is unknown (no response in
//! time, a 5xx, a broken connection: the server may have committed), the binder reads the pod until the server
//! answers. Posting again is safe: the uid is a precondition, and a pod is bound at most once.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_cluster::input::Input;
use pellucid_model::effect::{BindOrder, BindOutcome, EffectReport};
use serde::Serialize;
use tokio::sync::mpsc::Sender;

use crate::connection::client::ErrorClass;
use crate::writes::api_writer::{WriteError, pod_path};
use crate::writes::in_flight::{Entered, InFlight};
use crate::writes::pod_readback::{PodReadback, read_back};
use crate::writes::writing::Writing;

/// Times one order is posted before it is reported as refused.
const TRIES: u32 = 6;

/// A Binding (`v1`) as it is sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    target: Target<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a BTreeMap<Arc<str>, Arc<str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a BTreeMap<Arc<str>, Arc<str>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target<'a> {
    api_version: &'static str,
    kind: &'static str,
    name: &'a str,
}

/// One of several identical workers. The clones share everything.
#[derive(Clone)]
pub(crate) struct Binder {
    pub(crate) with: Writing,
    pub(crate) reports: Sender<Input>,
    pub(crate) in_flight: Arc<InFlight>,
}

impl Binder {
    /// Processes orders until the queue closes.
    pub(crate) async fn work(self) {
        loop {
            let entered = self.in_flight.enter().await;
            let Some(order) = self.with.queues.next_bind().await else { return };
            let Some(outcome) = self.bind(&order, &entered).await else { return };
            drop(entered);
            self.with.queues.bind_done();
            tracing::debug!(pod = %order.pod.key, node = %order.node, ?outcome, "bind settled");
            let done = EffectReport::BindDone { id: order.id, uid: order.pod.uid.clone(), outcome };
            if self.reports.send(Input::Report(done)).await.is_err() {
                return;
            }
        }
    }

    /// Returns the outcome of an order; `None` when `stop` is cancelled or the report channel closes before it is
    /// known.
    async fn bind(&self, order: &BindOrder, entered: &Entered<'_>) -> Option<BindOutcome> {
        if self.with.writer.is_open() {
            let sent = EffectReport::BindSent { id: order.id, uid: order.pod.uid.clone() };
            self.reports.send(Input::Report(sent)).await.ok()?;
        }
        let mut backoff = self.with.writer.backoff();
        for tries in 1.. {
            let Err(error) = entered.write(self.post(order)).await else { return Some(BindOutcome::Bound) };
            match error.class() {
                ErrorClass::Refused | ErrorClass::Bug => return Some(refused(&error)),
                ErrorClass::Refresh if error.is_not_found() => return Some(BindOutcome::Gone),
                class @ (ErrorClass::Refresh | ErrorClass::Unknown) => {
                    match self.resolve(order, &error).await? {
                        PodReadback::Gone => return Some(BindOutcome::Gone),
                        PodReadback::There { node: Some(node), .. } if node == *order.node => {
                            return Some(BindOutcome::Bound);
                        }
                        PodReadback::There { node: Some(node), .. } => {
                            return Some(BindOutcome::BoundElsewhere { node });
                        }
                        // The conflict comes from the pod's own state, such as a scheduling gate, and would repeat.
                        PodReadback::There { deleting, .. } if deleting || class == ErrorClass::Refresh => {
                            return Some(refused(&error));
                        }
                        PodReadback::There { .. } => {}
                    }
                }
                ErrorClass::Retry => {}
            }
            if tries >= TRIES {
                return Some(refused(&error));
            }
            self.with.pause(&mut backoff, &error).await?;
        }
        None
    }

    async fn post(&self, order: &BindOrder) -> Result<(), WriteError> {
        let key = &order.pod.key;
        let marks = order.marks.as_deref();
        let body = Binding {
            api_version: "v1",
            kind: "Binding",
            metadata: Metadata {
                namespace: key.namespace.as_str(),
                name: &key.name,
                uid: &order.pod.uid,
                annotations: marks.map(|marks| &marks.annotations),
                labels: marks.map(|marks| &marks.labels),
            },
            target: Target { api_version: "v1", kind: "Node", name: order.node.as_str() },
        };
        self.with.writer.post(pod_path(&key.namespace, &key.name, "/binding"), &body).await.map(|_| ())
    }

    /// Resolves an unknown outcome: reads the pod until the server answers or `stop` is cancelled. There is no other
    /// bound, because after a wrong guess the state would have the pod on two nodes, or on none.
    async fn resolve(&self, order: &BindOrder, cause: &WriteError) -> Option<PodReadback> {
        let key = &order.pod.key;
        tracing::debug!(pod = %key, node = %order.node, error = %cause, "bind outcome unknown, reading the pod");
        let mut backoff = self.with.writer.backoff();
        loop {
            let error = match read_back(&self.with.writer, key, &order.pod.uid).await {
                Ok(readback) => return Some(readback),
                Err(error) => error,
            };
            tracing::warn!(pod = %key, error = %error, "pod cannot be read to settle its binding, trying again");
            self.with.pause(&mut backoff, &error).await?;
        }
    }
}

/// Turns an error into a refusal.
fn refused(error: &WriteError) -> BindOutcome {
    let (status, message) = error.as_refusal();
    let reason = match error {
        WriteError::Status { reason, .. } => reason.as_str(),
        WriteError::Closed => "WritesOff",
        WriteError::NotLeader => "NotLeader",
        _ => "NoAnswer",
    };
    BindOutcome::Refused { status, reason: reason.into(), message }
}
