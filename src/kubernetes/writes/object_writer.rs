//! Writes objects for plugins: merge patches, creates, deletes and evictions.
//!
//! Each order ends in exactly one report, unless the process stops first. Every write may be sent again: a merge patch
//! is idempotent, and the others can take effect only once. A conflict is reported, and the plugin decides again. The
//! object is read only when an earlier try of the order may have succeeded.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pellucid_cluster::input::Input;
use pellucid_model::effect::{
    EffectReport, EvictOutcome, ObjectOrder, ObjectPart, ObjectRef, ObjectWrite, Precondition, WriteOutcome,
};
use pellucid_model::merge_patch;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::Sender;

use crate::connection::client::ErrorClass;
use crate::writes::api_writer::WriteError;
use crate::writes::evictor::Evictor;
use crate::writes::writing::{Writing, counters};

/// Times one write is tried.
const TRIES: u32 = 6;

counters! {
    /// Counters shared by all object writers.
    struct ObjectCounters;
    /// Values of [`ObjectCounters`] at one moment.
    struct ObjectCounts {
        /// Orders that were written.
        written,
        /// Orders to create an object that was there already.
        existing,
        /// Orders that were refused or given up.
        refused,
        /// Writes repeated after an error.
        retries,
    }
}

/// One of several identical workers. The clones share everything.
#[derive(Clone)]
pub(crate) struct ObjectWriter {
    pub(crate) with: Writing,
    pub(crate) reports: Sender<Input>,
    /// Carries out evictions; its own counters count the deletes sent again.
    pub(crate) evictor: Evictor,
    pub(crate) counters: Arc<ObjectCounters>,
}

/// The API request for a write.
enum ObjectRequest<'w> {
    Patch { path: String, patch: &'w Value, body: Value },
    Create { path: String, body: &'w Value },
    Delete { path: String, precondition: &'w Precondition, options: Value },
}

impl ObjectWriter {
    /// Processes orders until the queue closes.
    pub(crate) async fn work(self) {
        while let Some(order) = self.with.queues.next_object().await {
            let Some(outcome) = self.write(&order.write).await else { return };
            self.record_outcome(&order, &outcome);
            let done = EffectReport::ObjectDone { id: order.id, outcome };
            if self.reports.send(Input::Report(done)).await.is_err() {
                return;
            }
        }
    }

    /// Counts and logs an outcome. For the writes of PostBind, this is the only trace of it.
    fn record_outcome(&self, order: &ObjectOrder, outcome: &WriteOutcome) {
        let counter = match outcome {
            WriteOutcome::Written => &self.counters.written,
            WriteOutcome::AlreadyExists => &self.counters.existing,
            WriteOutcome::Refused { .. } => &self.counters.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let pod = order.pod.as_ref().map(|pod| pod.key.to_string());
        let (plugin, write) = (order.plugin, &order.write);
        tracing::debug!(plugin, pod, %write, ?outcome, "write of an object settled");
    }

    /// Returns the outcome of an order; `None` when `stop` is cancelled before it is known.
    async fn write(&self, write: &ObjectWrite) -> Option<WriteOutcome> {
        let request = match write {
            ObjectWrite::Evict { pod, reason, message } => {
                return Some(match self.evictor.evict(pod, reason, message).await? {
                    EvictOutcome::Deleted | EvictOutcome::Gone => WriteOutcome::Written,
                    EvictOutcome::Refused { status, message } => WriteOutcome::Refused { status, message },
                });
            }
            ObjectWrite::Patch { object, part, precondition, patch } => {
                let subresource = if *part == ObjectPart::Status { "/status" } else { "" };
                let body = with_precondition(patch, precondition);
                path(object).map(|path| ObjectRequest::Patch { path: path + subresource, patch, body })
            }
            ObjectWrite::Create { object, body } => {
                path(object).map(|_| ObjectRequest::Create { path: collection(object), body })
            }
            ObjectWrite::Delete { object, precondition } => path(object).map(|path| ObjectRequest::Delete {
                path,
                precondition,
                options: delete_options(precondition),
            }),
        };
        match request {
            Ok(request) => self.carry_out(&request, write).await,
            Err(problem) => Some(WriteOutcome::Refused { status: 0, message: problem.into() }),
        }
    }

    async fn carry_out(&self, request: &ObjectRequest<'_>, write: &ObjectWrite) -> Option<WriteOutcome> {
        let mut backoff = self.with.writer.backoff();
        // Whether an earlier try may have succeeded.
        let mut unsure = false;
        for tries in 1.. {
            let Err(error) = self.send(request).await else { return Some(WriteOutcome::Written) };
            match error.class() {
                ErrorClass::Refresh
                    if matches!(request, ObjectRequest::Delete { .. }) && error.is_not_found() =>
                {
                    return Some(WriteOutcome::Written);
                }
                // Either an earlier try succeeded, or someone else changed the object.
                ErrorClass::Refresh if unsure && !error.is_not_found() => {
                    match self.is_done(request, write).await {
                        Ok(true) => return Some(WriteOutcome::Written),
                        Ok(false) => return Some(refused(request, &error)),
                        Err(_) => {}
                    }
                }
                ErrorClass::Refused | ErrorClass::Bug | ErrorClass::Refresh => {
                    return Some(refused(request, &error));
                }
                ErrorClass::Unknown => unsure = true,
                ErrorClass::Retry => {}
            }
            if tries >= TRIES {
                return Some(refused(request, &error));
            }
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
            self.with.pause(&mut backoff, &error).await?;
        }
        None
    }

    async fn send(&self, request: &ObjectRequest<'_>) -> Result<(), WriteError> {
        let writer = &self.with.writer;
        match request {
            ObjectRequest::Patch { path, body, .. } => writer.merge(path.clone(), body).await,
            ObjectRequest::Create { path, body } => writer.post(path.clone(), body).await,
            ObjectRequest::Delete { path, options, .. } => writer.delete(path.clone(), options).await,
        }
        .map(drop)
    }

    /// Reads the object and returns whether it has the state that the write requests. Fails when the server does not
    /// answer.
    async fn is_done(&self, request: &ObjectRequest<'_>, write: &ObjectWrite) -> Result<bool, WriteError> {
        let (ObjectWrite::Patch { object, .. }
        | ObjectWrite::Create { object, .. }
        | ObjectWrite::Delete { object, .. }) = write
        else {
            return Ok(false);
        };
        let Ok(path) = path(object) else { return Ok(false) };
        let read: Value = match self.with.writer.read(path).await {
            Err(error) if error.is_not_found() => return Ok(matches!(request, ObjectRequest::Delete { .. })),
            read => read?,
        };
        let metadata = &read["metadata"];
        Ok(match request {
            ObjectRequest::Patch { patch, .. } => merge_patch::stands_on(patch, &read),
            ObjectRequest::Create { body, .. } => merge_patch::stands_on(body, &read),
            ObjectRequest::Delete { precondition, .. } => {
                let is_other =
                    precondition.uid.as_ref().is_some_and(|uid| metadata["uid"].as_str() != Some(&**uid));
                is_other || !metadata["deletionTimestamp"].is_null()
            }
        })
    }
}

/// Returns the path of the collection that an object is in.
fn collection(object: &ObjectRef) -> String {
    let ObjectRef { group, version, plural, namespace, .. } = object;
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    match namespace {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{plural}"),
    }
}

/// Returns the path of an object. Fails when its names cannot be part of a path.
fn path(object: &ObjectRef) -> Result<String, String> {
    let namespace = object.namespace.as_deref().unwrap_or("default");
    for (field, text) in [("name", &*object.name), ("namespace", namespace)] {
        if matches!(text, "" | "." | "..") || text.contains(['/', '%', '?', '#']) {
            return Err(format!("{field} of {}: not a name of an object ({text})", object.plural));
        }
    }
    Ok(format!("{}/{}", collection(object), object.name))
}

/// Returns a patch with its precondition, which the server takes from the metadata.
fn with_precondition(patch: &Value, precondition: &Precondition) -> Value {
    let mut body = patch.clone();
    let Value::Object(fields) = &mut body else { return body };
    let parts = [("uid", &precondition.uid), ("resourceVersion", &precondition.resource_version)];
    for (name, value) in parts {
        let Some(value) = value else { continue };
        let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(metadata) = metadata {
            metadata.insert(name.to_owned(), (**value).into());
        }
    }
    body
}

fn delete_options(precondition: &Precondition) -> Value {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    if *precondition != Precondition::default() {
        let mut parts = json!({});
        for (name, value) in [("uid", &precondition.uid), ("resourceVersion", &precondition.resource_version)]
        {
            if let Some(value) = value {
                parts[name] = (**value).into();
            }
        }
        options["preconditions"] = parts;
    }
    options
}

fn refused(request: &ObjectRequest<'_>, error: &WriteError) -> WriteOutcome {
    let is_there = matches!(error, WriteError::Status { code: 409, reason, .. } if reason == "AlreadyExists");
    if is_there && matches!(request, ObjectRequest::Create { .. }) {
        return WriteOutcome::AlreadyExists;
    }
    let (status, message) = error.as_refusal();
    WriteOutcome::Refused { status, message }
}
