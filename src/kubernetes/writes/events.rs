//! Writes events (`events.k8s.io/v1`). `event_book` decides what is written; this module does the I/O.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use pellucid_model::effect::EventType;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::connection::client::Class;
use crate::writes::api_writer::{ApiWriter, WriteError};
use crate::writes::effect_queues::EffectQueues;
use crate::writes::event_book::{EventCorrelator, EventWrite, Written, cut};
use crate::{Clock, timestamp};

/// Times one write is tried.
const TRIES: u32 = 3;

/// Counters of the event writer.
#[derive(Debug, Default)]
pub struct EventCounters {
    created: AtomicU64,
    series: AtomicU64,
    failed: AtomicU64,
    suppressed: AtomicU64,
    coalesced: AtomicU64,
    remembered: AtomicU64,
}

/// Values of [`EventCounters`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Events created.
    pub created: u64,
    /// Series patches written.
    pub series: u64,
    /// Writes given up.
    pub failed: u64,
    /// Occurrences beyond the budget of their pod.
    pub suppressed: u64,
    /// Occurrences that arrived during a write of the same event.
    pub coalesced: u64,
    /// Events remembered now; a repeat of one becomes a series.
    pub remembered: u64,
}

impl EventCounters {
    /// Returns the counts.
    pub fn counts(&self) -> EventCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EventCounts {
            created: load(&self.created),
            series: load(&self.series),
            failed: load(&self.failed),
            suppressed: load(&self.suppressed),
            coalesced: load(&self.coalesced),
            remembered: load(&self.remembered),
        }
    }
}

/// The reporter named in every event.
#[derive(Clone, Debug)]
pub struct Reporter {
    /// `reportingController`.
    pub controller: Arc<str>,
    /// `reportingInstance`.
    pub instance: Arc<str>,
}

/// Writes events, several at once.
pub(crate) struct EventWriter {
    pub(crate) writer: Arc<ApiWriter>,
    pub(crate) queues: Arc<EffectQueues>,
    pub(crate) clock: Clock,
    pub(crate) reporter: Reporter,
    pub(crate) concurrency: usize,
    pub(crate) counters: Arc<EventCounters>,
    pub(crate) stop: CancellationToken,
}

impl EventWriter {
    /// Processes orders until the queue closes, then finishes the writes in flight.
    pub(crate) async fn work(self) {
        let mut book = EventCorrelator::default();
        let mut writes = FuturesUnordered::new();
        let mut is_open = true;
        while is_open || !writes.is_empty() {
            let next = tokio::select! {
                order = self.queues.next_event(), if is_open && writes.len() < self.concurrency => {
                    is_open = order.is_some();
                    order.and_then(|order| book.note(order, (self.clock)()))
                }
                Some((write, outcome)) = writes.next(), if !writes.is_empty() => {
                    self.count(&write, outcome);
                    book.settle(write, outcome, (self.clock)()).filter(|_| is_open)
                }
            };
            if let Some(write) = next {
                writes.push(self.carry_out(write));
            }
            self.counters.suppressed.store(book.suppressed, Ordering::Relaxed);
            self.counters.coalesced.store(book.coalesced, Ordering::Relaxed);
            self.counters.remembered.store(book.len() as u64, Ordering::Relaxed);
        }
    }

    fn count(&self, write: &EventWrite, outcome: Written) {
        let counter = match (outcome, write.create) {
            (Written::Yes, true) => &self.counters.created,
            (Written::Yes, false) => &self.counters.series,
            (Written::Failed, _) => &self.counters.failed,
            (Written::Missing, _) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    async fn carry_out(&self, write: EventWrite) -> (EventWrite, Written) {
        let mut backoff = self.writer.backoff();
        for tries in 1.. {
            let error = match self.send(&write).await {
                Ok(()) => return (write, Written::Yes),
                Err(error) => error,
            };
            match error.class() {
                Class::Refresh if !write.create && error.is_not_found() => return (write, Written::Missing),
                // An earlier try succeeded after all: nobody else uses this name.
                Class::Refresh if write.create && tries > 1 && !error.is_not_found() => {
                    return (write, Written::Yes);
                }
                Class::Retry | Class::Unknown if tries < TRIES => {}
                _ => return self.give_up(write, &error),
            }
            tokio::select! {
                () = self.stop.cancelled() => return self.give_up(write, &error),
                () = backoff.wait(error.retry_after()) => {}
            }
        }
        (write, Written::Failed)
    }

    fn give_up(&self, write: EventWrite, error: &WriteError) -> (EventWrite, Written) {
        if !matches!(error, WriteError::Closed) {
            tracing::debug!(pod = %write.pod, reason = write.key.reason, error = %error, "event not written");
        }
        (write, Written::Failed)
    }

    async fn send(&self, write: &EventWrite) -> Result<(), WriteError> {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", write.pod.namespace);
        let sent = if write.create {
            self.writer.post(path, &self.event(write)).await
        } else {
            self.writer.patch(format!("{path}/{}", write.name), &json!({"series": series(write)})).await
        };
        sent.map(|_| ())
    }

    fn event(&self, write: &EventWrite) -> Value {
        let mut event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": write.pod.namespace.as_str(), "name": write.name},
            "eventTime": MicroTime(timestamp(write.last)),
            "reportingController": self.reporter.controller,
            "reportingInstance": self.reporter.instance,
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
