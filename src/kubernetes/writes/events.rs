//! Writes events (`events.k8s.io/v1`). `event_book` decides what is written; this module does the I/O.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use pellucid_model::effect::EventType;
use serde_json::{Value, json};

use crate::connection::client::ErrorClass;
use crate::timestamp;
use crate::writes::api_writer::WriteError;
use crate::writes::event_book::{EventCorrelator, EventOutcome, EventWrite, cut};
use crate::writes::writing::Writing;

/// Times one write is tried.
const TRIES: u32 = 3;
/// `reportingController` of every event.
const CONTROLLER: &str = "pellucid";

/// Writes events, several at once.
pub(crate) struct EventWriter {
    pub(crate) with: Writing,
    /// `reportingInstance` of every event.
    pub(crate) instance: Arc<str>,
    pub(crate) concurrency: usize,
}

impl EventWriter {
    /// Processes orders until the queue closes, then finishes the writes in flight.
    pub(crate) async fn work(self) {
        let mut book = EventCorrelator::default();
        let mut writes = FuturesUnordered::new();
        let mut is_open = true;
        while is_open || !writes.is_empty() {
            let next = tokio::select! {
                order = self.with.queues.next_event(), if is_open && writes.len() < self.concurrency => {
                    is_open = order.is_some();
                    order.and_then(|(order, at)| book.record(order, at, (self.with.clock)()))
                }
                Some((write, outcome)) = writes.next(), if !writes.is_empty() => {
                    book.settle(write, outcome, (self.with.clock)()).filter(|_| is_open)
                }
            };
            if let Some(write) = next {
                writes.push(self.carry_out(write));
            }
        }
    }

    async fn carry_out(&self, write: EventWrite) -> (EventWrite, EventOutcome) {
        let mut backoff = self.with.writer.backoff();
        for tries in 1.. {
            let Err(error) = self.send(&write).await else { return (write, EventOutcome::Written) };
            match error.class() {
                ErrorClass::Refresh if !write.create && error.is_not_found() => {
                    return (write, EventOutcome::Missing);
                }
                // An earlier try succeeded after all: nobody else uses this name.
                ErrorClass::Refresh if write.create && tries > 1 && !error.is_not_found() => {
                    return (write, EventOutcome::Written);
                }
                ErrorClass::Retry | ErrorClass::Unknown if tries < TRIES => {}
                _ => return self.give_up(write, &error),
            }
            if self.with.pause(&mut backoff, &error).await.is_none() {
                return self.give_up(write, &error);
            }
        }
        (write, EventOutcome::Failed)
    }

    fn give_up(&self, write: EventWrite, error: &WriteError) -> (EventWrite, EventOutcome) {
        if !matches!(error, WriteError::Closed) {
            tracing::debug!(pod = %write.pod, reason = write.key.reason, error = %error, "event not written");
        }
        (write, EventOutcome::Failed)
    }

    async fn send(&self, write: &EventWrite) -> Result<(), WriteError> {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", namespace(write));
        let sent = if write.create {
            self.with.writer.post(path, &self.event(write)).await
        } else {
            self.with.writer.patch(format!("{path}/{}", write.name), &json!({"series": series(write)})).await
        };
        sent.map(|_| ())
    }

    fn event(&self, write: &EventWrite) -> Value {
        let mut event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": namespace(write), "name": write.name},
            "eventTime": MicroTime(timestamp(write.last)),
            "reportingController": CONTROLLER,
            "reportingInstance": self.instance,
            "action": write.key.action,
            "reason": write.key.reason,
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": write.pod.namespace.as_str(),
                "name": write.pod.name,
                "uid": write.key.uid,
            },
            "note": cut(&write.key.note),
            "type": match write.key.kind {
                EventType::Normal => "Normal",
                EventType::Warning => "Warning",
            },
        });
        if let Some(of) = &write.object {
            event["regarding"] = json!({
                "apiVersion": of.api_version.as_str(),
                "kind": of.kind.as_str(),
                "name": of.name.as_str(),
                "uid": write.key.uid,
            });
            if !of.namespace.is_empty() {
                event["regarding"]["namespace"] = json!(of.namespace.as_str());
            }
        }
        if write.count > 1 {
            event["series"] = series(write);
        }
        event
    }
}

/// Returns a series, which the API accepts from the second occurrence on.
fn series(write: &EventWrite) -> Value {
    json!({"count": write.count, "lastObservedTime": MicroTime(timestamp(write.last))})
}

/// Returns the namespace of an event: that of the object it regards, and `default` for an object without one.
fn namespace(write: &EventWrite) -> &str {
    let of = write.object.as_ref().map_or(&write.pod.namespace, |of| &of.namespace);
    if of.is_empty() { "default" } else { of.as_str() }
}
